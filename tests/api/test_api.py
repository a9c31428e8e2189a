"""What `import gpureport` offers, and its errors, files and time to start, as the command line has them."""

import os
import pickle
import re
import socket
import subprocess
import sys
import threading
from contextlib import chdir
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import gpureport
from gpureport.errors import GpureportError, InternalError, RenderError, SettingsError, SourceError
from gpureport.testing import Quality, Rejected, Verdict, Work, recording
from tests.support.logs import SAMPLE, SAMPLES
from tests.support.logs import log as written_log


@pytest.fixture(scope="module")
def hot() -> gpureport.Analysis:
    (recording,) = gpureport.read(SAMPLES / "thermal_throttle")
    return gpureport.analyze(recording)


@pytest.fixture(scope="module")
def chain() -> gpureport.Comparison:
    return gpureport.compare(gpureport.read(SAMPLES / "input_starved", labels={"work": "1000:steps"}))


def printed(code: str, **environment: str) -> list[str]:
    """Return the words that a program prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment or None)
    return done.stdout.split()


def test_names_of_the_package() -> None:
    code = "import gpureport.report.formats.html; import gpureport; print(gpureport.report.__name__)"
    assert printed(f"{code}; print(type(gpureport.report).__name__)") == ["report", "function"]
    assert (HEAVY | {"click"}) & {*printed("import sys, gpureport; dir(gpureport); print(*sys.modules)")} == set()
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        _ = gpureport.analyse


@pytest.mark.parametrize("columns", ["index, utilization.gpu", ("index", "utilization.gpu")])
def test_columns_are_text_or_a_list(columns: str | tuple[str, ...], tmp_path: Path) -> None:
    log = tmp_path / "gpu.csv"
    log.write_text("0, 97 %\n1, 95 %\n" * 20)
    (recording,) = gpureport.read(log, columns=columns, interval=1)
    assert (len(recording.run.gpus), len(recording.series)) == (2, 40)


def test_options_and_labels_are_plain_values() -> None:
    labels = {"name": "a", "step": "b", "params": {"batch_size": 32}, "tags": {"node": "x"}, "work": "12000:steps"}
    (recording,) = gpureport.read(SAMPLES / "healthy", labels=labels)
    run = recording.run
    assert (run.name, run.step, run.params, run.tags) == ("a", "b", (("batch_size", "32"),), (("node", "x"),))
    assert run.work == Work(amount=12000, unit="steps")
    log, host = SAMPLES / "healthy" / "nvidia-smi.csv", SAMPLES / "healthy" / "host.csv"
    (recording,) = gpureport.read(log, host=host, gpus=0, tz="Europe/Berlin")
    assert [device.id for device in recording.run.devices] == ["gpu:0", "host"]
    assert recording.run.timezone == "Europe/Berlin"
    keys = "gpu_model, name, params, step, table, tags, work"
    with pytest.raises(TypeError, match=f"labels has no key 'nmae'; its keys are {keys}"):
        gpureport.read(SAMPLES / "healthy", labels={"nmae": "a"})
    with pytest.raises(TypeError, match="tracker has no key 'run'; its keys are children, "):
        gpureport.read(SAMPLES / "healthy", tracker={"run": "a"})
    with pytest.raises(SourceError, match="nowhere"):
        gpureport.read("nowhere.csv")


def test_times_of_a_frame_are_in_the_zone_of_the_log() -> None:
    log = SAMPLES / "healthy" / "nvidia-smi.csv"
    (local,), (zoned,) = gpureport.read(log), gpureport.read(log, tz="Europe/Berlin")
    bare, aware = local.to_pandas()["timestamp"], zoned.to_pandas()["timestamp"]
    assert str(aware.dt.tz) == "Europe/Berlin"
    assert aware.dt.tz_localize(None).equals(bare)


def test_kinds_are_selected_and_ignored(hot: gpureport.Analysis) -> None:
    assert {finding.kind for finding in hot.findings} == {"startup_idle", "slow_gpu", "thermal_throttle"}
    selected = gpureport.analyze(hot.recording, select="thermal_throttle")
    assert {finding.kind for finding in selected.findings} == {"thermal_throttle"}
    ignored = gpureport.analyze(hot.recording, ignore=["thermal_throttle"])
    assert {finding.kind for finding in ignored.findings} == {"startup_idle", "slow_gpu"}
    with pytest.raises(SettingsError, match=r"^select: no kind 'thermal_throtle'; did you mean 'thermal_throttle'"):
        gpureport.analyze(hot.recording, select="thermal_throtle")


def test_settings_are_a_dict_or_a_file(hot: gpureport.Analysis, tmp_path: Path) -> None:
    assert hot.cost is None
    content = {"prices": {"currency": "EUR", "date": "2026-03-14", "gpu_hour": 2.0}}
    file = tmp_path / "gpureport.toml"
    file.write_text('[prices]\ncurrency = "EUR"\ndate = "2026-03-14"\ngpu_hour = 2.0\n')
    costs = [gpureport.analyze(hot.recording, settings=given).cost for given in (content, file, str(file))]
    assert [cost and round(cost.total or 0, 2) for cost in costs] == [1.66, 1.66, 1.66]
    with pytest.raises(SettingsError, match=r"^settings: unknown section \[price\]"):
        gpureport.analyze(hot.recording, settings={"price": {}})
    with pytest.raises(SettingsError, match=r"^settings: gpu_hour must be a number"):
        gpureport.analyze(hot.recording, settings={"prices": {"gpu_hour": "2"}})


def test_recordings_and_findings_are_frames(hot: gpureport.Analysis) -> None:
    frame = hot.recording.to_pandas()
    assert (len(frame), frame["timestamp"].dt.tz) == (1000, None)
    assert frame["gpu_utilization_ratio"].between(0, 1).all()
    frame = hot.findings_frame()
    assert list(frame["kind"]) == [finding.kind for finding in hot.findings]
    assert list(frame["severity"]) == ["problem", "info", "info"]
    assert frame.loc[0, "start"] == pd.Timestamp("2026-04-02 14:24:50.129500")
    empty = gpureport.analyze(hot.recording, select="ecc_error").findings_frame()
    assert (len(empty), list(empty)) == (0, list(hot.findings_frame()))
    frame = hot.statistics_frame().set_index(["device", "metric"])
    assert frame.loc[("gpu:2", "gpu_temperature_celsius"), "max"] == 88
    assert frame.loc[("gpu:0", "gpu_utilization_ratio"), "below_0.5"] == pytest.approx(0.036, abs=1e-3)
    frame = hot.gpu_time_frame()
    assert list(frame) == ["computing", "short_pauses", "throttled", "idle", "startup"]
    assert frame.sum(axis=1).to_list() == pytest.approx([sum(dict(each.seconds).values()) for each in hot.gpu_time])


def test_one_step_cannot_be_compared(hot: gpureport.Analysis) -> None:
    for runs in ([], [hot]):
        with pytest.raises(ValueError, match="at least two steps"):
            gpureport.compare(runs)


def test_a_comparison_has_a_frame_of_gains(chain: gpureport.Comparison, hot: gpureport.Analysis) -> None:
    gains = chain.gains_frame()
    first, second, third = (step.label for step in chain.steps)
    assert {*zip(gains["base"], gains["step"], strict=True)} == {(first, second), (second, third), (first, third)}
    inverse = gains[gains["step"] == "2-more-workers"].set_index("figure")["ratio"]
    assert inverse["whole_job"] == pytest.approx(1 / inverse["gpu_time"])
    assert (gains["interval_low"].dropna() < gains["ratio"][gains["interval_low"].notna()]).all()
    unknown = gpureport.compare({"a": hot, "b": hot})
    assert (unknown.gains_frame().empty, unknown.quality_frame().empty) == (True, True)
    assert {"primary", "training"} <= set(chain.deltas_frame()["family"])


def test_a_comparison_has_frames(chain: gpureport.Comparison) -> None:
    deltas = chain.deltas_frame()
    assert len(deltas) == len(chain.deltas)
    assert any("not recorded" in reason for reason in deltas["reason"])
    assert set(deltas["verdict"]) <= {each.value for each in Verdict}
    assert set(chain.findings_frame()["run"]) == {each.run.name for each in chain.analyses}
    assert chain.gpu_time_frame()["waiting_for_input"].to_dict()["1-baseline", "1-baseline", "gpu:0"] > 300


def test_runs_are_compared_and_drawn(chain: gpureport.Comparison, hot: gpureport.Analysis) -> None:
    one, two, three = chain.analyses
    named = gpureport.compare({"before": one.recording, "after": [two, three]})
    assert [step.label for step in named.steps] == ["before", "after"]
    assert [each.run.step for each in named.analyses] == ["before", "after", "after"]
    assert [step.label for step in chain.steps] == ["1-baseline", "2-more-workers", "3-mixed-precision"]
    panels = hot.plot(["gpu_power_watts", "gpu_sm_clock_hertz"], devices=["gpu:1", "gpu:2"])
    assert [len(panel.lines) for panel in panels] == [2, 2]
    assert panels[1].dataLim.ymax == pytest.approx(1710)
    assert {"thermal_throttle", "slow_gpu"} <= {str(patch.get_label()) for patch in panels[0].patches}
    plt.close("all")


def test_a_comparison_is_drawn(chain: gpureport.Comparison) -> None:
    axes = chain.plot()
    dots = [line for line in axes.lines if line.get_marker() in {"o", "|"}]
    places = {text.get_text(): dot for text, dot in zip(axes.get_yticklabels(), dots, strict=True)}
    drawn = float(np.asarray(places["GPU utilisation: unconfirmed (one run each)"].get_xdata())[0])
    rows = chain.to_pandas().query("base == '1-baseline' and step == '3-mixed-precision'").set_index("metric")
    row = rows.loc["gpu_utilization_ratio"]
    assert drawn == pytest.approx(100 * row["difference"] / row["before"])
    assert chain.plot("gpu_time").dataLim.bounds[::2] == pytest.approx((0, 100))
    overlay = chain.plot("overlay", metric="gpu_power_watts")
    assert [line.get_label() for line in overlay.lines] == [step.label for step in chain.steps]
    with pytest.raises(ValueError, match="no figure 'pie'"):
        chain.plot("pie")  # type: ignore[arg-type]  # it is the point
    plt.close("all")


def test_reprs_and_notebooks_are_short_and_safe(hot: gpureport.Analysis, chain: gpureport.Comparison) -> None:
    assert repr(hot.recording) == "<Recording 'thermal_throttle': 4 GPUs, 0:12:28, 1000 rows>"
    assert repr(hot) == "<Analysis 'thermal_throttle': 3 findings, 1 of them problems>"
    assert repr(chain).startswith("<Comparison '1-baseline' to '3-mixed-precision': 3 steps, 3 runs, ")
    assert len(repr(chain)) < 150
    html = hot._repr_html_()
    assert set(re.findall(r"<(\w+)", html)) <= {"div", "span", "code"}
    assert not re.search(r"\s(?:src|href|id)=", html)
    text = re.sub(r"<[^>]*>", "", html).replace("\xa0", " ").replace("&nbsp;", " ")
    assert [each for each in ("Computing", "GPU 2 overheats: 88 °C", "F1 · problem") if each not in text] == []
    assert len(html) < 6000
    assert "3-mixed-precision" in re.sub(r"<[^>]*>", "", chain._repr_html_())
    (recording,) = gpureport.read(SAMPLES / "healthy", labels={"name": "<script>alert(1)</script>"})
    html = gpureport.analyze(recording)._repr_html_()
    assert ("<script" in html, "&lt;script&gt;" in html) == (False, True)


def test_a_report_is_a_text_or_a_file_by_suffix(
    hot: gpureport.Analysis, tmp_path: Path, chain: gpureport.Comparison
) -> None:
    with pytest.raises(TypeError, match="either a path"):
        gpureport.report(hot)  # type: ignore[call-overload]  # it is the point
    with pytest.raises(RenderError) as refused:
        gpureport.report(hot, format="png")
    assert refused.value.code == "not_text"
    with pytest.raises(RenderError, match="no report format"):
        gpureport.report(hot, tmp_path / "report.docx")
    assert gpureport.report(hot, tmp_path / "one.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "1-baseline" in gpureport.report(chain, tmp_path / "three.md").read_text(encoding="utf-8")
    assert gpureport.report(chain.analyses[0].recording, format="md").startswith("# ")
    assert gpureport.report(list(chain.analyses), format="md") == gpureport.report(chain, format=".md")
    (tmp_path / "gpu.txt").write_text(written_log(90))
    (tmp_path / "link.txt").symlink_to("gpu.txt")
    (recording,) = gpureport.read(tmp_path / "gpu.txt")
    for name in ("gpu.txt", "link.txt"):
        with pytest.raises(RenderError, match="this is a source, which must not be overwritten"):
            gpureport.report(gpureport.analyze(recording), tmp_path / name)
    assert (tmp_path / "link.txt").read_text() == written_log(90)


@pytest.mark.parametrize(
    "error",
    [
        SettingsError("--by", "no run has it", "name another"),
        SourceError("a.csv", "no rows", "give a log", "an example"),
        InternalError("a.csv", ValueError("odd")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_can_go_to_another_process(error: GpureportError) -> None:
    other = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
    assert type(other) is type(error)
    assert (str(other), other.where, other.what, other.hint) == (str(error), error.where, error.what, error.hint)
    assert getattr(other, "aside", None) == getattr(error, "aside", None)


def test_an_error_is_a_line_and_not_a_book() -> None:
    error = SettingsError("gpureport.toml:4", f"{'x' * 100_000}' is no limit", "write one such as 'idle_ratio <= 5%'")
    assert len(str(error)) < 5000
    assert str(error).startswith("gpureport.toml:4: xxx")
    assert str(error).endswith("x' is no limit; write one such as 'idle_ratio <= 5%'")


PRICE = '[prices]\ncurrency = "EUR"\ndate = "2026-03-14"\ngpu_hour = 2.0\n'


def make(path: Path, what: str) -> None:
    if what == "socket":
        # the path of a socket holds 107 bytes at most
        with chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "large":
        path.touch()
        os.truncate(path, 20_000_000_000)
    else:
        path.mkdir()


def test_a_pipe_is_read_while_somebody_writes_to_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(PRICE,))
    writer.start()
    cost = gpureport.analyze(recording(util=[50.0] * 60), settings=pipe).cost
    writer.join()
    assert cost is not None


def test_folders_of_logs_are_searched_only_so_deep(tmp_path: Path) -> None:
    tmp_path.joinpath(*["d"] * 200).mkdir(parents=True)
    with pytest.raises(SourceError):
        gpureport.read(tmp_path)


def test_settings_and_folders_that_are_none(tmp_path: Path) -> None:
    run = recording(util=[50.0] * 60)
    for what in ("socket", "device", "folder", "large"):
        make(tmp_path / what, what)
        with pytest.raises(SettingsError):
            gpureport.analyze(run, settings=tmp_path / what)
    (tmp_path / "gpu.csv").write_text(written_log(60))
    for text in ("", "{", "[]", "{}", '{"schema": "gpureport.record/1"}', '{"schema": "other"}'):
        (tmp_path / "run.json").write_text(text)
        (run,) = gpureport.read(tmp_path)
        assert (len(run.series), run.run.params) == (60, ()), text


def test_rows_are_found_by_device_and_the_account_adds_up() -> None:
    run = recording(util=[[50.0] * 3, [60.0] * 3])
    assert {device: len(rows) for device, rows in run.by_device().items()} == {"gpu:0": 3, "gpu:1": 3}
    assert (len(run.rows_of("gpu:1")), len(run.rows_of("host"))) == (3, 0)
    assert run.with_series(run.series.slice(0, 0)).by_device() == {}
    rejected = (Rejected(reason="x", rows=2, first_line=3),)
    for lines, accounted in ((10, True), (11, False)):
        account = Quality(lines=lines, rows_kept=5, rejected=rejected, headers=1, noise=1, events=1)
        assert account.accounted is accounted, lines


_PROBE = """
import sys
sys.argv = {argv!r}
try:
    import gpureport
    dir(gpureport)
    from gpureport.cli import main
    {call}
except SystemExit as stop:
    if stop.code:
        raise
print(*sys.modules, file=sys.stderr)
"""
HEAVY = {"pandas", "pyarrow", "scipy", "matplotlib", "jinja2", "mlflow", "neptune", "numpy", "typst"}
AS_IS: dict[str, str] = {}
TAB = {"_GPUREPORT_COMPLETE": "bash_complete"}
LOADS: list[tuple[str, set[str], dict[str, str]]] = [
    *((command, HEAVY, AS_IS) for command in ("", "--help", "--version", "compare --help", "explain --help")),
    ("record --host-only -o {folder}/rec -- true", HEAVY, AS_IS),
    (f"analyze {SAMPLE} --format json", {"pandas", "matplotlib", "mlflow", "neptune", "typst"}, AS_IS),
    (f"report {SAMPLES}/healthy -o {{folder}}/r.html", {"pandas", "matplotlib.pyplot", "scipy.stats"}, AS_IS),
    *(("tab", HEAVY, TAB | {"COMP_WORDS": f"gpureport {typed}"}) for typed in ("ana", "runs sh", "report b")),
]
"""Commands, libraries that take long to load and that they do without, and variables of the environment."""


def loaded(*arguments: str, **variables: str) -> set[str]:
    """Return the modules a command has loaded when it ends; without arguments, those of the imports."""
    code = _PROBE.format(argv=["gpureport", *arguments], call="main()" if arguments else "pass")
    environment = os.environ | {"COMP_CWORD": str(variables.get("COMP_WORDS", "").count(" "))} | variables
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(("command", "without", "variables"), LOADS)
def test_what_is_heavy_is_loaded_where_it_is_needed(
    command: str, without: set[str], variables: dict[str, str], tmp_path: Path
) -> None:
    found = loaded(*command.format(folder=tmp_path).split(), **variables)
    assert (found & without, "gpureport.cli" in found) == (set(), True)


@pytest.mark.parametrize(("name", "ours"), [("OPENBLAS_NUM_THREADS", "1"), ("MIMALLOC_ALLOW_THP", "0")])
@pytest.mark.parametrize("given", [None, "3"])
def test_libraries_are_told_what_suits_small_work(name: str, ours: str, given: str | None) -> None:
    code = "import os, sys; sys.argv = ['gpureport', '--version']\nfrom gpureport.cli import main\ntry: main()\n"
    code += f"finally: print(os.environ[{name!r}])"
    environment = {other: value for other, value in os.environ.items() if other != name}
    assert printed(code, **environment | ({name: given} if given else {}))[-1] == (given or ours)
