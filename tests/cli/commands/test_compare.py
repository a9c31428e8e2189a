"""`gpureport compare`: text, JSON, steps by label or param, and its exit codes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpureport.record_folder import format_run_file, read_run_file
from gpureport.report.wording.display import GAP
from tests.cli.program import Program
from tests.importers.written_logs import HEADER, log, row, write_recording

DELTA = {
    "metric",
    "unit",
    "device",
    "base",
    "step",
    "before",
    "after",
    "difference",
    "interval",
    "level",
    "basis",
    "detectable_difference",
    "verdict",
    "reason",
    "window",
    "whole",
    "primary",
    "family",
    "runs",
    "needed",
    "unseen_gap_seconds",
    "left_out",
    "general_reason",
    "verdict_code",
    "reason_code",
    "reason_check",
}
_NINE = 1_773_478_800
"""When logs start, in seconds since 1970 if they are of UTC."""
VERDICTS = {"better", "worse", "differs", "unconfirmed (one run each)", "no clear change", "not enough data"}


def gapped(seconds: int = 300, power: str = "250.00 W") -> str:
    """Return a log with half a minute of idleness in its middle."""
    middle = range(seconds // 2 - 15, seconds // 2 + 15)
    rows = [row(second, util=0 if second in middle else 95, power=power) for second in range(seconds)]
    return "\n".join([HEADER, *rows, ""])


@pytest.fixture
def alike(tmp_path: Path) -> list[str]:
    """Lay out the same steps of two chains, whose folders are called alike; return the logs."""
    logs = [f"{chain}/{step}/gpu.csv" for chain in ("c1", "c2") for step in ("slow", "fast")]
    for place, each in enumerate(logs):
        path = tmp_path / each
        path.parent.mkdir(parents=True)
        path.write_text(log(300 + place))
    return logs


def test_logs_that_are_called_alike_are_told_apart(gpureport: Program, alike: list[str]) -> None:
    """By the folder above, in every command; a name that was given is as it was."""
    names = ["c1/slow", "c1/fast", "c2/slow", "c2/fast"]
    steps = [part for each in alike for part in (each, "--step", each.split("/")[1])]
    text = gpureport("compare", *steps, "--detail", "full").out
    assert all(f"- {name} " in text for name in names)
    found = json.loads(gpureport("analyze", *alike, "--format", "json").out)
    assert [each["run"]["name"] for each in found["runs"]] == names
    alone = json.loads(gpureport("analyze", alike[0], "--format", "json").out)
    assert alone["runs"][0]["run"]["name"] == "slow"


def test_stored_logs_are_told_apart_and_found_by_their_names(
    gpureport: Program, tmp_path: Path, alike: list[str]
) -> None:
    """Those stored with one command are called apart; those stored one by one are when they are shown together."""
    assert gpureport("ingest", *alike[:2], alike[2]).code == 0
    (tmp_path / alike[0]).unlink()
    (tmp_path / alike[0]).parent.rmdir()
    stored = gpureport("compare", "c1/slow", "fast", "--format", "json")
    assert [run["name"] for step in json.loads(stored.out)["steps"] for run in step["runs"]] == ["c1/slow", "fast"]
    assert gpureport("ingest", alike[3]).code == 0
    one_by_one = [line.split()[0] for line in gpureport("runs").out.splitlines() if " fast " in line]
    found = json.loads(gpureport("analyze", *one_by_one, "--format", "json").out)
    assert [each["run"]["name"] for each in found["runs"]] == ["c1/fast", "c2/fast"]


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Lay out a log with a gap, and one without."""
    (tmp_path / "before.csv").write_text(gapped())
    (tmp_path / "after.csv").write_text(log(300))
    return tmp_path


def long(level: int, seconds: int = 700, power: int = 250) -> str:
    """Return a log long enough to tell its own scatter, at a utilisation that moves by two points."""
    rows = [row(second, util=level + (second // 7) % 3, power=f"{power}.00 W") for second in range(seconds)]
    return "\n".join([HEADER, *rows, ""])


def test_json_follows_its_schema(gpureport: Program, two: Path) -> None:
    """The document holds what the contract names; five minutes of one run have a wide interval."""
    del two
    outcome = gpureport("compare", "before.csv", "after.csv", "--format", "json")
    document = json.loads(outcome.out)
    assert (outcome.code, outcome.err) == (0, "")
    assert document["schema"] == "gpureport.comparison/1"
    assert {"steps", "comparability", "deltas", "findings", "across_runs", "changes"} <= set(document)
    assert [step["label"] for step in document["steps"]] == ["before", "after"]
    assert all(set(delta) == DELTA for delta in document["deltas"])
    assert {delta["verdict"] for delta in document["deltas"]} <= VERDICTS
    found = {delta["metric"]: delta for delta in document["deltas"]}
    short = found["gpu_utilization_ratio"]
    assert (short["level"], short["basis"], short["left_out"]) == (0.95, "within-run", [])
    assert short["interval"][0] < -0.2
    # a share ends at 1
    assert short["interval"][1] == pytest.approx(1 - short["before"])
    assert (short["verdict"], short["primary"]) == ("no clear change", True)
    work = found["gpu_seconds_per_1000_work"]
    assert (work["before"], work["after"], work["difference"], work["verdict"]) == (None, None, None, "not enough data")
    assert all({"check", "before", "after", "comparable", "note"} <= set(check) for check in document["comparability"])
    assert document["across_runs"] == []


def test_one_run_against_one_differs_in_this_pair_at_most(gpureport: Program, two: Path) -> None:
    """An interval from what lies within the runs, at a level of 0.95, with what it would take to narrow it."""
    (two / "low.csv").write_text(long(60))
    (two / "high.csv").write_text(long(90))
    document = json.loads(gpureport("compare", "low.csv", "high.csv", "--format", "json").out)
    found = {delta["metric"]: delta for delta in document["deltas"]}
    delta = found["gpu_utilization_ratio"]
    assert (delta["verdict"], delta["basis"], delta["level"]) == ("unconfirmed (one run each)", "within-run", 0.95)
    assert delta["difference"] == pytest.approx(0.3)
    assert delta["interval"][0] < delta["difference"] < delta["interval"][1]
    assert (delta["window"], delta["runs"], delta["needed"]["half_width"]) == ("steady", [1, 1], 0.02)
    assert delta["whole"]["difference"] == pytest.approx(0.3)
    assert delta["detectable_difference"] > 0
    steady = document["steps"][0]["runs"][0]
    assert (steady["steady"]["seconds"], steady["sample_means"]["gpu_power_watts"]) == (pytest.approx(700, abs=1), 250)


def test_steps_from_a_file(gpureport: Program, two: Path) -> None:
    """A file says which runs make which step; logs beside it are found wherever the program runs."""
    (two / "more").mkdir()
    for name, level in (("a1", 60), ("a2", 61), ("b1", 80), ("b2", 82)):
        (two / "more" / f"{name}.csv").write_text(long(level, 120, power=level))
    params = {"a": "{workers = 2, amp = false}", "b": "{workers = 14, amp = false}"}
    steps = "".join(f'[[step]]\nlabel = "{s}"\nruns = ["{s}1.csv", "{s}2.csv"]\nparams = {params[s]}\n' for s in "ab")
    (two / "more" / "steps.toml").write_text(steps)
    document = json.loads(gpureport("compare", "--steps", "more/steps.toml", "--format", "json").out)
    assert [(step["label"], len(step["runs"])) for step in document["steps"]] == [("a", 2), ("b", 2)]
    assert document["steps"][1]["runs"][1]["params"] == {"workers": "14", "amp": "False"}
    assert [(change["key"], change["before"], change["after"]) for change in document["changes"]] == [
        ("workers", "2", "14")
    ]
    first, second = document["gains"]
    assert (first["step"], first["since_before"], second["since_before"]["base"]) == ("a", None, "a")
    assert [(change["key"], change["values_after"]) for change in second["changes"]] == [
        ("workers", [{"text": "14", "runs": 2}])
    ]
    assert second["since_first"]["cost"] is None
    assert document["potential"]["step"] == "b"
    assert document["potential"]["at_most"] >= 1
    found = {delta["metric"]: delta for delta in document["deltas"]}
    delta = found["gpu_utilization_ratio"]
    assert (delta["verdict"], delta["basis"], delta["runs"]) == ("better", "replicates", [2, 2])
    assert found["gpu_power_watts"]["verdict"] == "differs"


def works(document: Any) -> list[list[float]]:  # noqa: ANN401 - JSON
    """Return the work that each run of each step did, by the rate of the whole job and its GPU time."""
    runs = [[run["measures"] for run in step["runs"]] for step in document["steps"]]
    return [[round(each["gpu_seconds"] * each["work_rate_hertz"]) for each in step] for step in runs]


def test_each_run_of_a_file_of_steps_did_its_own_work(gpureport: Program, two: Path) -> None:
    """One text for all runs of a step, or one for each; --work speaks for the steps that state none."""
    for name in ("a1", "a2", "b1", "b2", "c1"):
        (two / f"{name}.csv").write_text(long(60, 120))
    (two / "steps.toml").write_text(
        '[[step]]\nlabel = "a"\nruns = ["a1.csv", "a2.csv"]\nwork = "500:steps"\n'
        '[[step]]\nlabel = "b"\nruns = ["b1.csv", "b2.csv"]\nwork = ["600:steps", "700:steps"]\n'
        '[[step]]\nlabel = "c"\nruns = ["c1.csv"]\n'
    )
    outcome = gpureport("compare", "--steps", "steps.toml", "--work", "800:steps", "--format", "json")
    assert works(json.loads(outcome.out)) == [[500, 500], [600, 700], [800]]


def test_each_source_has_its_own_work(gpureport: Program, two: Path) -> None:
    """As many amounts as sources, in their order; any other number is refused."""
    del two
    given = ("--work", "1000:steps", "--work", "2000:steps")
    outcome = gpureport("compare", "before.csv", "after.csv", *given, "--format", "json")
    assert works(json.loads(outcome.out)) == [[1000], [2000]]
    refused = gpureport("compare", "before.csv", "after.csv", *given, "--work", "3000:steps")
    assert refused.code == 2
    assert refused.err.startswith("gpureport: --work: 3 amounts for 2 sources; give one, or one for each source")


@pytest.mark.parametrize("is_stored", [False, True])
def test_one_amount_for_runs_of_other_lengths_is_doubted(
    gpureport: Program, tmp_path: Path, *, is_stored: bool
) -> None:
    """Their params say how many steps each did; the first screen says so, and nothing per image is judged."""
    for name, steps in (("base", 200), ("more", 700)):
        for place in range(3):
            folder = tmp_path / "runs" / name / str(place)
            write_recording(folder, long(80 + place, 700 + steps // 20), ended=1)
            run = read_run_file(folder)
            assert run is not None
            (folder / "run.json").write_text(format_run_file(replace(run, params=(("steps", str(steps)),))))
    sources = ("runs/base", "runs/more")
    if is_stored:
        assert gpureport("ingest", *sources, "--step", "base", "--step", "more", "--work", "44800:images").code == 0
    stored = [f"{name}/{place}" for name in ("base", "more") for place in range(3)]
    asked = stored if is_stored else [*sources, "--work", "44800:images"]
    warning = "One --work for runs that differ in steps (200, 700): give one for each source."
    shown = " ".join(gpureport("compare", *asked).out.split())
    assert warning in shown
    assert shown.startswith("Not enough data to say whether GPU time per image changed.")
    document = json.loads(gpureport("compare", *asked, "--format", "json").out)
    assert warning in document["warnings"]
    assert warning in gpureport("report", *asked, "-o", "r.html").err.splitlines()
    each = ["--work", "12800:images", "--work", "44800:images"]
    assert json.loads(gpureport("compare", *sources, *each, "--format", "json").out)["warnings"] == []


def test_work_that_is_stated_of_a_stored_run_alone_is_believed(gpureport: Program, two: Path) -> None:
    """It was said of several when the run was stored; the amount is the same."""
    for name, steps in (("before", "200"), ("after", "700")):
        assert gpureport("ingest", f"{name}.csv", "--param", f"steps={steps}").code == 0
    work = ("--work", "5000:images")
    for _ in range(2):
        assert gpureport("ingest", "before.csv", "after.csv", *work).code == 0
        assert "One --work" in gpureport("compare", "before", "after").out
        for name in ("before", "after"):
            assert gpureport("ingest", f"{name}.csv", *work).code == 0
        assert "One --work" not in gpureport("compare", "before", "after").out
    assert (two / ".gpureport").is_dir()


@pytest.mark.parametrize(
    "content",
    [
        *("", "step = 5", "[[step]]\nlabel = 'a'", "x = [", "[[step]]\nlabel=''\nruns=['a']"),
        *("[[step]]\nlabel='a'\nruns=['a']\nother=1", "[[step]]\nlabel='a'\nruns=['a']\nparams={x=[1]}"),
        *("[[step]]\nlabel='a'\nruns=['a']\nwork='many'", "[[step]]\nlabel='a'\nruns=['a']\nwork=['1:x', '2:x']"),
        *("[[step]]\nlabel='a'\nruns=['a']\nwork=1000", "[[step]]\nlabel='a'\nruns=['a']\nwork=[1000]"),
    ],
)
def test_a_file_that_names_no_steps_is_refused(gpureport: Program, two: Path, content: str) -> None:
    """One line says what it should look like."""
    (two / "steps.toml").write_text(content)
    outcome = gpureport("compare", "--steps", "steps.toml")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("gpureport: steps.toml: ")
    assert outcome.err.count("\n") == 1
    assert gpureport("compare", "before.csv", "after.csv", "--steps", "steps.toml").code == 2
    assert gpureport("compare").code == 2


def test_params_and_tags_that_changed_are_listed(gpureport: Program, two: Path) -> None:
    """What is the same is not."""
    del two
    gpureport("ingest", "before.csv", "--name", "a", "--param", "lr=1", "--param", "workers=2", "--tag", "node=x")
    gpureport("ingest", "after.csv", "--name", "b", "--param", "lr=1", "--param", "workers=8", "--tag", "node=y")
    document = json.loads(gpureport("compare", "a", "b", "--format", "json").out)
    changed = [(each["kind"], each["key"], each["before"], each["after"]) for each in document["changes"]]
    assert changed == [("param", "workers", "2", "8"), ("tag", "node", "x", "y")]
    assert "param workers" in gpureport("compare", "a", "b", "--detail", "full").out


def test_findings_that_went_are_resolved(gpureport: Program, two: Path) -> None:
    """The gap of the first log is gone in the second, and new the other way round."""
    del two

    def kinds(*sources: str) -> dict[str, list[str]]:
        document = json.loads(gpureport("compare", *sources, "--format", "json").out)
        return {fate: [entry["kind"] for entry in entries] for fate, entries in document["findings"].items()}

    forth, back = kinds("before.csv", "after.csv"), kinds("after.csv", "before.csv")
    assert set(forth) == {"new", "persisting", "resolved", "cannot_tell"}
    assert "idle_gap" in forth["resolved"]
    assert "idle_gap" in back["new"]
    assert sorted(forth["persisting"]) == sorted(back["persisting"])


def test_a_run_against_itself_changes_nothing(gpureport: Program, two: Path) -> None:
    """No difference, no finding new or gone; and it is said that both sides are one recording."""
    del two
    document = json.loads(gpureport("compare", "before.csv", "before.csv", "--format", "json").out)
    assert {delta["difference"] for delta in document["deltas"]} == {0.0, None}
    assert [document["findings"][fate] for fate in ("new", "resolved", "cannot_tell")] == [[], [], []]
    assert {check["check"]: check["comparable"] for check in document["comparability"]}["different_runs"] is False


def test_text_says_what_may_be_doubted(gpureport: Program, two: Path) -> None:
    """Power that is read in another way is a warning beside both values; text fits 80 columns."""
    other = gapped().replace("power.draw [W]", "power.draw.instant [W]")
    (two / "other.csv").write_text(other)
    outcome = gpureport("compare", "before.csv", "other.csv", "--detail", "full")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80
    words = " ".join(outcome.out.split())
    assert "Power read from: power.draw (1 s) against power.draw.instant." in words
    assert words.count("Repeat every step before you rely on it") == 1
    assert "Power of a GPU 250 W not recorded" in words


def test_findings_can_be_narrowed(gpureport: Program, two: Path) -> None:
    """--select leaves other kinds out."""
    del two
    document = json.loads(
        gpureport("compare", "before.csv", "after.csv", "--select", "log_gap", "--format", "json").out
    )
    assert not any(document["findings"].values())


def test_repetitions_of_a_step_are_shown(gpureport: Program, two: Path) -> None:
    """Runs of one label are one step, with the figures of each under it."""
    (two / "again.csv").write_text(gapped(320))
    for name, step in (("before", "slow"), ("again", "slow"), ("after", "fast")):
        gpureport("ingest", f"{name}.csv", "--step", step, "--param", f"workers={step}", "--name", name)
    text = gpureport("compare", "before", "again", "after", "--detail", "full").out
    assert "slow (2 runs)" in text
    assert "- before" in text
    document = json.loads(gpureport("compare", "before", "again", "after", "--format", "json").out)
    assert [[run["name"] for run in step["runs"]] for step in document["steps"]] == [["before", "again"], ["after"]]


def test_steps_by_param_and_tag(gpureport: Program, two: Path) -> None:
    """--by makes steps of what runs were configured or labelled with."""
    del two
    gpureport("ingest", "before.csv", "--name", "a", "--param", "workers=2", "--tag", "node=x")
    gpureport("ingest", "after.csv", "--name", "b", "--param", "workers=8", "--tag", "node=x")
    document = json.loads(gpureport("compare", "a", "b", "--by", "param:workers", "--format", "json").out)
    assert [step["label"] for step in document["steps"]] == ["workers=2", "workers=8"]
    one = gpureport("compare", "a", "b", "--by", "tag:node")
    assert (one.code, one.out) == (2, "")
    assert "all 2 runs are of one tag 'node' (node=x)" in one.err


def test_steps_by_folder(gpureport: Program, two: Path) -> None:
    """--by folder makes a chain of the folders below what the logs share; a log in none is named."""
    for name in ("slow/1", "slow/2", "fast/1"):
        (two / "experiments" / name).mkdir(parents=True)
        shutil.copy(two / "before.csv", two / "experiments" / name / "nvidia-smi.csv")
    asked = ("compare", "experiments", "--by", "folder", "--format", "json")
    steps = {step["label"]: len(step["runs"]) for step in json.loads(gpureport(*asked).out)["steps"]}
    assert steps == {"fast": 1, "slow": 2}
    shutil.copy(two / "before.csv", two / "experiments" / "before.csv")
    assert gpureport(*asked).err.startswith("gpureport: --by: the log of run before lies in no folder of its own; ")
    hidden = gpureport(*asked, "--anonymise")
    assert (hidden.code, hidden.out) == (2, "")
    assert hidden.err.startswith("gpureport: --by: --anonymise leaves no folder to tell runs by; ")


def test_folders_stand_by_the_time_they_were_recorded(gpureport: Program, two: Path) -> None:
    """A name says nothing of the order: what was recorded first is the base. The order is said."""
    for name, first in (("base", 0), ("8-workers", 400)):
        (two / "runs" / name).mkdir(parents=True)
        rows = [row(second, util=90) for second in range(first, first + 300)]
        (two / "runs" / name / "gpu.csv").write_text("\n".join([HEADER, *rows, ""]))
    done = gpureport("compare", "runs", "--by", "folder", "--format", "json")
    assert [step["label"] for step in json.loads(done.out)["steps"]] == ["base", "8-workers"]
    assert done.err == "gpureport: steps stand by the start of their first runs: base, 8-workers\n"


def test_nothing_to_compare_is_four_and_still_shown(gpureport: Program, two: Path) -> None:
    """Logs of a few seconds are read and shown, and the exit code says that nothing was judged."""
    (two / "short.csv").write_text(log(20))
    outcome = gpureport("compare", "short.csv", "before.csv")
    assert outcome.code == 4
    assert outcome.out.startswith("Too short to compare: ")
    assert outcome.err.startswith("gpureport: short, before: nothing can be compared; ")
    assert outcome.err.count("\n") == 1
    assert json.loads(gpureport("compare", "short.csv", "before.csv", "--format", "json").out)["steps"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("before.csv",), 2, "a comparison needs at least two runs, and this is 1; "),
        (("before.csv", "after.csv", "--step", "s"), 2, "all 2 runs are of one step (s), "),
        (("before.csv", "absent.csv"), 3, "absent.csv: no such file; "),
        (("before.csv", "after.csv", "--by", "colour"), 2, "Invalid value for '--by': 'colour' is none of step, "),
        (
            ("before.csv", "after.csv", "--by", "param:lr"),
            2,
            "--by: run before has no param 'lr'; give it with --param",
        ),
        (("before.csv", "after.csv", "--gpu-hour-price", "dear"), 2, "Invalid value for '--gpu-hour-price': 'dear' "),
        (
            ("before.csv", "after.csv", "--gpu-hour-price", "2 euro"),
            2,
            "Invalid value for '--gpu-hour-price': '2 euro' ",
        ),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    gpureport: Program, two: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """Too few runs and bad options are usage, a missing source is a source."""
    del two
    outcome = gpureport("compare", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(f"gpureport: {message}")
    assert outcome.err.count("\n") == 1


def test_the_order_of_repetitions_and_of_files_changes_nothing(gpureport: Program, two: Path) -> None:
    """Three and three logs, named in every other order: all but the list of runs is the same to the byte."""
    for name, level in (("a1", 60), ("a2", 62), ("a3", 61), ("b1", 80), ("b2", 83), ("b3", 81)):
        (two / f"{name}.csv").write_text(long(level, 200, power=level))
    documents = []
    for order in ("123", "312", "231", "321"):
        steps = ""
        for step in "ab":
            runs = ", ".join(f'"{step}{number}.csv"' for number in order)
            steps += f'[[step]]\nlabel = "{step}"\nruns = [{runs}]\n'
        (two / "steps.toml").write_text(steps)
        document = json.loads(gpureport("compare", "--steps", "steps.toml", "--format", "json").out)
        for step in document["steps"]:
            step["runs"].sort(key=lambda run: run["name"])
        documents.append(document)
    assert documents[0]["deltas"]
    for document in documents[1:]:
        assert document == documents[0]


def test_a_log_against_itself(gpureport: Program, two: Path) -> None:
    """Nothing differs, and every interval lies around zero."""
    (two / "one.csv").write_text(long(60))
    outcome = gpureport("compare", "one.csv", "one.csv", "--format", "json")
    recorded = [each for each in json.loads(outcome.out)["deltas"] if each["difference"] is not None]
    assert outcome.code == 0
    assert {(each["verdict"], each["difference"]) for each in recorded} == {("no clear change", 0.0)}
    intervals = [each["interval"] for each in recorded if each["interval"]]
    assert intervals
    assert all(low <= 0 <= high for low, high in intervals)


def test_roots_and_steps_are_in_text_and_json(gpureport: Program) -> None:
    """What a finding follows from and what to do about it, as the report of the same runs has them."""
    samples = Path(__file__).parents[3] / "sample_logs" / "input_starved"
    runs = [str(samples / name) for name in ("3-mixed-precision", "1-baseline")]
    document = json.loads(gpureport("compare", *runs, "--format", "json").out)
    new = {entry["kind"]: entry for entry in document["findings"]["new"]}
    assert (new["idle_gap"]["root"], new["cpu_bound"]["root"]) == (new["cpu_bound"]["fingerprint"], None)
    named = [step["name"] for step in new["cpu_bound"]["steps"]]
    assert named
    assert [name for name in named if name not in document["advice"]] == []
    text = " ".join(gpureport("compare", *runs, "--detail", "full").out.split())
    assert "WHAT TO DO NEXT Problem Waiting for data: CPU saturated, both GPUs" in text
    assert "explains Idle gaps, both GPUs" in text
    assert f"Steps 1. {document['advice'][named[0]]['title']}" in text
    assert "; follows from Waiting for data: CPU saturated" in text


def test_every_cost_has_its_currency_and_its_prices_their_date(gpureport: Program, two: Path) -> None:
    """In the tables of text, HTML and Markdown, per million units of work there, and as fields of the JSON."""
    (two / "after.csv").write_text(log(400))
    (two / "prices.toml").write_text('[prices]\ncurrency = "EUR"\ndate = 2026-03-01\ngpu_hour = 3.00\n')
    asked = ("before.csv", "after.csv", "--config", "prices.toml", "--work", "1000:steps")
    shown = gpureport("compare", *asked, "--detail", "full").out
    lines = [line for line in shown.splitlines() if line.lstrip().startswith("Cost per million steps  ")]
    assert 3 in [line.count("EUR") for line in lines]
    assert "Costs by prices of 2026-03-01." in shown
    for name in ("out.html", "out.md"):
        assert gpureport("report", *asked, "-o", name).code == 0
        written = (two / name).read_text().replace("\N{NO-BREAK SPACE}", " ")
        assert "€249" in written
        assert "Cost per million steps" in written
        assert "Costs by prices of 2026-03-01." in written
    run = json.loads(gpureport("compare", *asked, "--format", "json").out)["steps"][0]["runs"][0]
    assert (run["gpu_hour_price"], run["currency"], run["price_date"]) == (3.0, "EUR", "2026-03-01")


@pytest.mark.parametrize("command", [("compare",), ("report", "-o", "steps.html")], ids=["compare", "report"])
def test_steps_of_another_batch_are_one_chain(gpureport: Program, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Their work is counted in samples, by which the runs are still those that were read, in the order of steps."""
    for place, (name, batch, steps) in enumerate((("small", 64, 512), ("large", 256, 128))):
        (tmp_path / f"{name}.csv").write_text(log(300 + place))
        labels = ("--param", f"batch_size={batch}", "--work", f"{steps}:steps", "--step", name)
        assert gpureport("ingest", f"{name}.csv", *labels).code == 0
    done = gpureport(command[0], "large", "small", *command[1:])
    assert (done.code, done.err.count("Traceback")) == (0, 0)
    page = (tmp_path / "steps.html").read_text() if "-o" in command else done.out
    assert "per 1,000 samples" in page.replace("\u00a0", " ")


def test_an_unfinished_recording_is_said_in_every_format(gpureport: Program, two: Path) -> None:
    """It counts, and one line says that it may be a part of its job; a finished one is said nothing of."""
    for name, ended in (("base", 300_000_000), ("workers", None)):
        write_recording(two / name, log(300), ended=ended)
    warning = (
        "workers is unfinished: it is still recording, or its recorder was killed; its work is not known: "
        "give one --work for each source, or leave it out."
    )
    assert warning in " ".join(gpureport("compare", "base", "workers").out.split())
    assert warning in " ".join(gpureport("compare", "base", "workers", "--detail", "full").out.split())
    document = json.loads(gpureport("compare", "base", "workers", "--format", "json").out)
    assert document["warnings"] == [warning]
    assert gpureport("report", "base", "workers", "-o", "a.md", "-o", "a.html", "-o", "a.json").code == 0
    assert all(warning in (two / name).read_text() for name in ("a.md", "a.html", "a.json"))
    finished = json.loads(gpureport("compare", "base", "before.csv", "--format", "json").out)
    assert finished["warnings"] == []


def test_work_that_the_training_log_contradicts_is_said_in_every_format(gpureport: Program, two: Path) -> None:
    """As that of the whole job, stated of short runs; work that the log counts is believed."""
    rows = [f"{_NINE + second},{second},100.0" for second in range(5, 300, 5)]
    (two / "metrics.csv").write_text("\n".join(["time,step,images_per_s", *rows, ""]))
    runs = ("before.csv", "after.csv", "--tz", "UTC", *("--training", "metrics.csv") * 2)
    asked = (*runs, "--work", "3000000:images")
    warning = "The work stated is 3,000,000 images a run, the training log counts about 29,"
    document = json.loads(gpureport("compare", *asked, "--format", "json").out)
    assert [text.startswith(warning) for text in document["warnings"]] == [True]
    for detail in ("short", "full"):
        assert warning in " ".join(gpureport("compare", *asked, "--detail", detail).out.split())
    assert gpureport("report", *asked, "-o", "a.md", "-o", "a.html", "-o", "a.json").code == 0
    assert all(warning in (two / name).read_text().replace(GAP, " ") for name in ("a.md", "a.html", "a.json"))
    believed = json.loads(gpureport("compare", *runs, "--work", "30000:images", "--format", "json").out)
    assert believed["warnings"] == []
