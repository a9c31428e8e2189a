"""`gpureport compare`: text, JSON, steps by label or param, and its exit codes."""

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.importers.logs import HEADER, log, row

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
}


def gapped(seconds: int = 300, power: str = "250.00 W") -> str:
    """Return a log with half a minute of idleness in its middle."""
    middle = range(seconds // 2 - 15, seconds // 2 + 15)
    rows = [row(second, util=0 if second in middle else 95, power=power) for second in range(seconds)]
    return "\n".join([HEADER, *rows, ""])


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Lay out a log with a gap, and one without."""
    (tmp_path / "before.csv").write_text(gapped())
    (tmp_path / "after.csv").write_text(log(300))
    return tmp_path


def test_json_follows_its_schema(gpureport: Program, two: Path) -> None:
    """The document holds what the contract names; what is not computed is null and judges nothing."""
    del two
    outcome = gpureport("compare", "before.csv", "after.csv", "--format", "json")
    document = json.loads(outcome.out)
    assert (outcome.code, outcome.err) == (0, "")
    assert document["schema"] == "gpureport.comparison/1"
    assert list(document) == ["schema", "steps", "comparability", "deltas", "findings", "across_runs"]
    assert [step["label"] for step in document["steps"]] == ["before", "after"]
    assert all(set(delta) == DELTA for delta in document["deltas"])
    for delta in document["deltas"]:
        absent = [delta[name] for name in ("interval", "level", "basis", "detectable_difference")]
        assert absent == [None] * 4
        assert (delta["verdict"], bool(delta["reason"])) == ("cannot judge", True)
    work = next(delta for delta in document["deltas"] if delta["metric"] == "gpu_seconds_per_1000_work")
    assert (work["before"], work["after"], work["difference"]) == (None, None, None)
    assert all({"check", "before", "after", "comparable", "note"} <= set(check) for check in document["comparability"])
    assert document["across_runs"] == []


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
    outcome = gpureport("compare", "before.csv", "other.csv")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80
    words = " ".join(outcome.out.split())
    assert "Power read from: power.draw (1 s) against power.draw.instant." in words
    assert words.count("No difference is tested") == 1
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
    text = gpureport("compare", "before", "again", "after").out
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


def test_nothing_to_compare_is_four_and_still_shown(gpureport: Program, two: Path) -> None:
    """Logs of a few seconds are read and shown, and the exit code says that nothing was judged."""
    (two / "short.csv").write_text(log(20))
    outcome = gpureport("compare", "short.csv", "before.csv")
    assert outcome.code == 4
    assert "Nothing can be compared with these recordings." in outcome.out
    assert outcome.err.startswith("gpureport: short, before: nothing can be compared; ")
    assert outcome.err.count("\n") == 1
    assert json.loads(gpureport("compare", "short.csv", "before.csv", "--format", "json").out)["steps"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("before.csv",), 2, "comparing takes two runs or more, and this is 1; "),
        (("before.csv", "after.csv", "--step", "s"), 2, "all 2 runs are of one step (s), "),
        (("before.csv", "absent.csv"), 3, "absent.csv: no such file; "),
        (("before.csv", "after.csv", "--by", "colour"), 2, "Invalid value for '--by': 'colour' is none of step, "),
        (
            ("before.csv", "after.csv", "--by", "param:lr"),
            2,
            "--by: run before has no param 'lr'; give it with --param",
        ),
        (("before.csv", "after.csv", "--gpu-hour-price", "3"), 2, "No such option"),
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
