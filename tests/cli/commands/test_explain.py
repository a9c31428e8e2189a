"""`gpureport explain`: every kind, metric and field by name, and what to record."""

import re
from pathlib import Path

import pytest

from gpureport import recording_advice
from gpureport.analysis import RULES
from gpureport.analysis.advice import steps_by_loss
from gpureport.analysis.advice.catalogue import STEPS
from gpureport.analysis.engine.selection import kinds_by_name, list_thresholds
from gpureport.analysis.rules.rule import Rule
from gpureport.checks.limit import parse_limit
from gpureport.checks.limit_targets import TARGETS
from gpureport.gpu_query import COUNTER_FIELDS
from gpureport.importers.logs.nvidia_smi.query.fields import is_known_column, parse_query_field
from gpureport.metrics import BY_NAME, METRICS
from gpureport.nightly.history.night_figures import FIGURES as NIGHTLY
from gpureport.report.explain import explained_classes, explanation_text
from gpureport.report.explain.explained_figures import FIGURES
from gpureport.report.explain.explanation import explain
from gpureport.report.model.shapes import Explanation
from gpureport.report.wording import terms
from gpureport.testing import GPU_TIME_CLASSES
from tests.cli.program import Program

UTILISATION = "gpu_utilization_ratio"
KINDS = [(kind, rule) for rule in RULES for kind in rule.kinds]


def words(content: Explanation) -> str:
    """Return an explanation as text on one line."""
    return " ".join(explanation_text.render(content, width=200).split())


@pytest.mark.parametrize(("kind", "rule"), KINDS, ids=[kind for kind, _ in KINDS])
def test_every_kind_is_explained(kind: str, rule: Rule) -> None:
    """A kind comes with its title, condition, every limit and its origin, what it needs, and advice."""
    text = words(explain(kind, RULES))
    assert text.startswith(f"{kind}: {terms.kind_title(kind)}")
    assert " ".join((rule.__doc__ or "").split()[:8]) in text
    missing = [
        name for name, limit in list_thresholds(rule).items() if f"{name} " not in text or limit.source not in text
    ]
    assert missing == []
    needed = {name for group in (*rule.requires, rule.wants) for name in group}
    assert [name for name in needed if name not in text] == []
    (advice,) = (one.recommendations for one in rule.descriptions if one.name == kind)
    assert advice
    assert [said for said in advice if " ".join(said.split()) not in text] == []


@pytest.mark.parametrize("kind", [kind for kind, _ in KINDS])
def test_a_kind_comes_with_its_steps(kind: str) -> None:
    """Every step of every cause, each once, with what to do, when, at what risk, and how to check it."""
    text = words(explain(kind, RULES))
    for path in steps_by_loss.PATHS[kind]:
        assert not path.causes or f"cause {' or '.join(path.causes)}" in text
        for name in path.steps:
            step = STEPS[name]
            said = [" ".join(part.split()) for part in (step.do, step.when, step.risk, step.check, step.source)]
            assert [part for part in said if part not in text] == []
            assert text.count(said[0]) == 1


@pytest.mark.slow
def test_findings_recommend_what_explain_tells(gpureport: Program, tmp_path: Path) -> None:
    """What a finding recommends is among the advice of its kind."""
    import json  # noqa: PLC0415 - only here

    del tmp_path
    samples = Path(__file__).parents[3] / "sample_logs"
    told = {kind.name: set(kind.recommendations) for rule in RULES for kind in rule.descriptions}
    strange = set()
    for folder in sorted(samples.iterdir()):
        columns = (
            ["--map", str(folder / "map.toml"), str(folder / "wrapper.csv")]
            if folder.name == "mapped"
            else [str(folder)]
        )
        document = json.loads(gpureport("analyze", *columns, "--format", "json").out)
        found = [finding for run in document["runs"] for finding in run["findings"]]
        strange |= {each["kind"] for each in found if each["recommendation"] not in told[each["kind"]]}
    assert strange == set()


@pytest.mark.parametrize("family", sorted(set(kinds_by_name(RULES)) - {kind for kind, _ in KINDS}))
def test_a_family_is_explained_by_its_kinds(family: str) -> None:
    """A family names all its kinds."""
    text = words(explain(family, RULES))
    assert [kind for kind in kinds_by_name(RULES)[family] if terms.kind_title(kind) not in text] == []


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_is_explained(metric: object) -> None:
    """A metric comes with its meaning, unit, source and what a value covers; its field leads to it."""
    one = BY_NAME[getattr(metric, "name", "")]
    text = words(explain(one.name, RULES))
    assert [part for part in (one.name, one.brief, one.covers, one.recorded_by, one.otel) if part not in text] == []
    assert one.name in words(explain(one.recorded_by, RULES))


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("clocks.sm", "gpu_sm_clock_hertz"),
        ("power.draw.average", "gpu_power_watts"),
        ("hw.gpu.utilization", "gpu_utilization_ratio"),
        ("clocks_throttle_reasons.active", "clock_event_sw_power_cap"),
    ],
)
def test_other_names_of_a_metric_lead_to_it(name: str, metric: str) -> None:
    """Aliases, older spellings and OpenTelemetry names are understood."""
    assert metric in words(explain(name, RULES))


def test_the_recording_holds_every_field_a_rule_asks_for() -> None:
    """What records a metric that a rule requires or uses is among the commands."""
    text = words(explain("recording", RULES))
    wanted = {name for rule in RULES for group in (*rule.requires, rule.wants) for name in group}
    assert {UTILISATION, "cpu_utilization_ratio"} <= wanted
    # dmon counts the same errors as the query
    wanted -= {"gpu_ecc_single_bit_total", "gpu_ecc_double_bit_total"}
    # only the recorder knows which processes are the job's
    wanted -= {"job_cpu_cores"}
    commands = {name: recording_advice.find_raw_command(BY_NAME[name]) for name in wanted}
    assert [name for name, command in commands.items() if not command or command not in text] == []


def test_the_recording_commands_are_understood_by_the_importer() -> None:
    """nvidia-smi fields are known ones, each once; only the fields to add are what old drivers refuse."""
    fields = re.findall(r"--query-gpu=(\S+)", recording_advice.GPU_COMMAND)[0].split(",")
    assert len(fields) == len(set(fields))
    understood = [parse_query_field(field) for field in (*fields[1:], *COUNTER_FIELDS)]
    assert [each for each in understood if each is None or not is_known_column(each)] == []
    assert {"timestamp", "index", "uuid", "driver_version"} <= set(fields)
    assert ",".join(COUNTER_FIELDS) in words(explain("recording", RULES))
    assert not set(COUNTER_FIELDS) & set(fields)


def test_a_rule_asks_for_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rule looks at a metric that it neither requires nor uses by its own account."""
    from gpureport import testing  # noqa: PLC0415 - as above
    from gpureport.analysis.job.phases import find_activities, find_job_window  # noqa: PLC0415 - as above
    from gpureport.analysis.rules.rule import Context  # noqa: PLC0415 - as above
    from gpureport.analysis.series import device_series  # noqa: PLC0415 - patched here only

    read: set[str] = set()
    values = device_series.DeviceSeries.values

    def spied(self: device_series.DeviceSeries, metric: str) -> object:
        read.add(metric)
        return values(self, metric)

    recording = testing.recording(
        util=[50.0] * 300, memory=[30.0] * 300, temperature=[80.0] * 300, power=[200.0] * 300, cpu=[90.0] * 300
    )
    by_device = device_series.series_by_device(recording)
    active = find_activities(by_device)
    window = find_job_window(recording.run, active.values())
    context = Context(recording=recording, series=by_device, active=active, window=window)
    for one in by_device.values():
        # whether power can be right is told by temperature as well, whichever rule asks first
        one.explain_implausibility("gpu_power_watts")
    monkeypatch.setattr(device_series.DeviceSeries, "values", spied)
    # the last one refreshes with the utilisation of the GPU and stands in where that never changes
    stand_ins = {"gpu_graphics_clock_hertz", "gpu_power_limit_requested_watts", "gpu_memory_controller_ratio"}
    unsaid = {}
    for rule in RULES:
        read.clear()
        list(rule.find(context))
        said = {name for group in (*rule.requires, rule.wants) for name in group}
        events = {name for name in read if name not in BY_NAME}
        unsaid[rule.kinds[0]] = read - said - stand_ins - events
    assert {kind: names for kind, names in unsaid.items() if names} == {}


def test_limits_are_those_in_force(gpureport: Program, tmp_path: Path) -> None:
    """A limit from the settings is shown with its file, a default one in full."""
    (tmp_path / "gpureport.toml").write_text("[rules.throttling]\nmerge = 45\n")
    text = " ".join(gpureport("explain", "throttling", "--detail", "full").out.split())
    assert "merge 45 s; settings: gpureport.toml" in text
    assert "clock_drop 0.985 (98.5%); pragmatic: " in text


def test_without_a_name_everything_is_listed(gpureport: Program) -> None:
    """All kinds, families and metrics are named."""
    outcome = gpureport("explain")
    listed = set(outcome.out.split())
    assert outcome.code == 0
    assert {kind for kind, _ in KINDS} | set(kinds_by_name(RULES)) | set(BY_NAME) | {"recording"} <= listed


def test_commands_are_printed_to_be_copied(gpureport: Program) -> None:
    """Command lines are whole lines, whatever the width."""
    lines = gpureport("explain", "recording").out.splitlines()
    assert {recording_advice.RECORD, recording_advice.GPU_COMMAND, recording_advice.HOST_COMMAND} <= set(lines)
    assert len(lines) < 60


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("idle_gp", "did you mean 'idle_gap'?"),
        ("gpu_utilisation_ratio", "did you mean 'gpu_utilization_ratio'?"),
        ("utilisation.gpu", "did you mean 'utilization.gpu'?"),
        ("recordng", "did you mean 'recording'?"),
        ("weather", "gpureport explain lists what there is"),
    ],
)
def test_a_mistyped_name_is_usage(gpureport: Program, name: str, meant: str) -> None:
    """An unknown name is one line with the nearest one."""
    outcome = gpureport("explain", name)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"gpureport: explain: nothing is called {name!r}; {meant}\n"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("utilisation", "'utilization.gpu'"),
        ("gpu_util", "'utilization.gpu', 'gpu_utilization_ratio'"),
        ("power.drow", "'power.draw'"),
        ("clocks.smm", "'clocks.current.sm'"),
        ("idel_gap", "'idle_gap'"),
        ("short_pausess", "'short_pauses'"),
        ("vram_used", "'memory.used'"),
        ("throttle", "'hw_throttle', 'thermal_throttle' or 'throttling'?"),
    ],
)
def test_a_name_that_is_not_quite_one(gpureport: Program, name: str, nearest: str) -> None:
    """Names, old fields and headings that scripts write lead to what there is."""
    outcome = gpureport("explain", name)
    assert outcome.code == 2
    assert f"nothing is called {name!r}; did you mean {nearest}" in outcome.err


@pytest.mark.parametrize("name", sorted({*kinds_by_name(RULES), *(kind for kind, _ in KINDS)}))
def test_a_kind_fits_on_a_screen(gpureport: Program, name: str) -> None:
    """The first page has condition, needs and every step by name, and says how to read the rest."""
    short = gpureport("explain", name).out
    assert len(short.splitlines()) <= 40
    said = " ".join(short.split())
    kinds = kinds_by_name(RULES)[name]
    titles = {STEPS[step].title for kind in kinds for path in steps_by_loss.PATHS[kind] for step in path.steps}
    assert [title for title in titles if title not in said] == []
    assert f"gpureport explain {name} --detail full" in said


@pytest.mark.parametrize("key", GPU_TIME_CLASSES)
def test_every_class_of_gpu_time_is_explained(key: str) -> None:
    """By its key and by what reports call it: what it holds, and the kinds of findings that tell more."""
    title = terms.CLASSES[key]
    for name in {key, title, title.replace(" ", "_")} - set(kinds_by_name(RULES)):
        text = words(explain(name, RULES))
        assert text.startswith(f"{key}: {title}")
        assert "Counted" in text
    kinds = explained_classes.KINDS_BY_CLASS.get(key, ())
    assert set(kinds) <= set(kinds_by_name(RULES))
    assert key in words(explain(None, RULES))


def _list_figures() -> set[str]:
    """Return every name of a figure that rules, comparisons and nights have, and that is no metric, class or kind."""
    of_runs = {"statistic", "figure of each GPU", "figure of all GPUs", "figure of the run", "rate of training alone"}
    limited = {name for name, target in TARGETS.items() if target.subject in {*of_runs, "time to a target"}}
    return (limited | {figure.name for figure in NIGHTLY} | {"lost", "lost_ratio"}) - set(BY_NAME)


@pytest.mark.parametrize("name", sorted(_list_figures()))
def test_every_figure_is_explained(gpureport: Program, name: str) -> None:
    """What it means, its unit, and a rule that can be copied; it is among what can be explained."""
    outcome = gpureport("explain", name)
    assert (outcome.code, outcome.err) == (0, "")
    said = " ".join(outcome.out.split())
    (rule,) = re.findall("--fail-on '(.+)'", said)
    assert parse_limit(rule).name in {name, *rule.split()}
    assert " Meaning " in said
    assert name in words(explain(None, RULES))


def test_no_figure_is_explained_that_nothing_has() -> None:
    """A name that went out of use goes here too."""
    assert set(FIGURES) == _list_figures()


def test_a_figure_is_suggested(gpureport: Program) -> None:
    """A slip of a letter leads to it."""
    assert "did you mean 'idle_ratio'" in gpureport("explain", "idle_ration").err


def test_a_class_is_found_on_the_command_line(gpureport: Program) -> None:
    """As a report spells it."""
    assert gpureport("explain", "short_pauses").out.startswith("short_pauses: Short pauses")
    assert gpureport("explain", "no_data").out.startswith("no_samples: No data")


def test_a_title_is_explained_as_its_kind(gpureport: Program) -> None:
    """However its letters are written; a misspelt one is suggested."""
    by_kind = gpureport("explain", "startup_idle")
    title = terms.kind_title("startup_idle")
    assert gpureport("explain", title).out == gpureport("explain", title.upper()).out == by_kind.out != ""
    assert [part in by_kind.out for part in ("\nFound when\n", "\nNeeds\n", "\nDo\n")] == [True] * 3
    missed = gpureport("explain", "slow strt")
    assert (missed.code, "did you mean 'startup_idle'" in missed.err) == (2, True)
