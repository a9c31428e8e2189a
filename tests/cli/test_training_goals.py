"""Quality beside speed from the command line: --better, --target and limits on training metrics."""

import json
from pathlib import Path

import pytest

import gpureport
from gpureport.errors import SettingsError
from tests.cli.logs import log, stamp
from tests.cli.program import Program

ENDS = {"before": 0.79, "after": 0.61}


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """Lay out two steps, each a log and what its training loop wrote; the second is faster and trains worse."""
    for name, seconds in (("before", 600), ("after", 300)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "gpu.csv").write_text(log(seconds))
        values = [ENDS[name] * share for share in (0.4, 0.8, 0.96, 1, 1, 1)]
        rows = [f"{(k + 1) * seconds / 6 - 1},{k + 1},{value},{1 - value}" for k, value in enumerate(values)]
        (folder / "training.csv").write_text("\n".join(["elapsed,step,val_accuracy,regret", *rows, ""]))
    return tmp_path


@pytest.mark.usefixtures("steps")
def test_the_headline_of_a_comparison_warns(gpureport: Program) -> None:
    said = " ".join(gpureport("compare", "before", "after", "--work", "1000:samples").out.split())
    assert "val_accuracy from 0.79 to 0.61" in said
    assert gpureport("report", "before", "after", "--work", "1000:samples", "-o", "steps.md").code == 0
    heading = Path("steps.md").read_text().splitlines()[0].replace("\\", "")
    assert [word in heading for word in ("%", "val_accuracy", "0.79", "0.61")] == [True] * 4


def test_training_logs_that_are_named_go_to_their_sources(gpureport: Program, steps: Path) -> None:
    for name in ENDS:
        (steps / name / "training.csv").rename(steps / f"{name}.csv")
    sources = ("compare", "before", "after", "--work", "1000:samples")
    done = gpureport(*sources, "--training", "before.csv", "--training", "after.csv", "--format", "json")
    (found,) = json.loads(done.out)["quality"]
    assert [found[side]["final"] for side in ENDS] == [pytest.approx(end) for end in ENDS.values()]
    refused = gpureport(*sources, "--training", "before.csv")
    assert refused.code == 2


@pytest.mark.usefixtures("steps")
def test_goals_reach_the_json(gpureport: Program) -> None:
    goals = ("--target", "val_accuracy=.75", "--better", "regret=lower")
    found = json.loads(gpureport("compare", "before", "after", "--format", "json", *goals).out)
    named = {each["name"]: each for each in found["quality"]}
    assert (named["regret"]["higher_is_better"], named["regret"]["leading"]) == (False, True)
    assert named["val_accuracy"]["before"]["final"] == pytest.approx(0.79)
    before, after = found["time_to_target"]["steps"]
    assert before["seconds"] == pytest.approx(299, abs=2)
    assert (after["seconds"], after["reached"], bool(after["runs"][0]["reason"])) == (None, 0, True)
    assert [step["measures"]["seconds_to_target"] for step in found["steps"]] == [before["seconds"], None]
    plain = json.loads(gpureport("compare", "before", "after", "--format", "json").out)
    assert plain["time_to_target"] is None
    assert "regret" not in {each["name"] for each in plain["quality"]}


def test_limits_on_training_metrics_hold_a_gate(gpureport: Program, steps: Path) -> None:
    (steps / "gpureport.toml").write_text(
        '[training]\ntarget = "val_accuracy=0.6"\n\n[[policy]]\nlimit = "seconds_to_target <= 6 min"\n'
    )
    limit = ("--fail-on", "val_accuracy >= 0.78")
    assert [gpureport("check", name, *limit).code for name in ("before", "after")] == [0, 1]
    assert gpureport("check", "after", "--target", "val_accuracy=.7").code == 4
    assert gpureport("report", "after", *limit, "-o", "after.md").code == 1
    assert gpureport("check", "before", "--fail-on", "training gain >= 1").code == 4


@pytest.mark.usefixtures("steps")
def test_limits_on_rates_count_the_work_that_was_logged(gpureport: Program) -> None:
    Path("pace.csv").write_text("elapsed,step,pace\n" + "".join(f"{k * 10},{k},50\n" for k in range(1, 60)))
    for limit in ("training_rate_hertz >= 40 /s", "work_rate_hertz >= 40 /s"):
        checked = ("check", "before", "--training", "pace.csv", "--fail-on", limit)
        assert [gpureport(*checked, *key).code for key in ((), ("--throughput", "pace"))] == [1, 0]


def test_the_python_api_takes_the_same(steps: Path) -> None:
    runs = [*gpureport.read(steps / "before"), *gpureport.read(steps / "after")]
    found = gpureport.compare(runs, better={"regret": "lower"}, target="val_accuracy=0.75")
    assert "seconds_to_target" in found.deltas_frame()["metric"].tolist()
    (quality,) = found.quality_frame().query("metric == 'val_accuracy'").to_dict("records")
    assert (quality["after"], quality["verdict"]) == (pytest.approx(0.61), "unconfirmed (one run each)")
    page = gpureport.report(found, format="md").replace("\\", "")
    assert "regret from 0.21 to 0.39 and val_accuracy from 0.79 to 0.61" in page
    with pytest.raises(SettingsError):
        gpureport.compare(runs, target="regret=1")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Epoch(train)  [{0}][50/50]  time: 0.5000  loss: 2.9", "500 steps"),
        ("iteration {0}0/ 1000 | consumed samples: {0}00 | global batch size: 10 | time: 2 | loss: 3", "1,000 samples"),
        ("iter {0}: time: 9.0 loss: 3", "10 steps"),
    ],
)
def test_work_is_what_the_text_of_a_loop_counts(gpureport: Program, tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "gpu.csv").write_text(log(600))
    (tmp_path / "train.log").write_text("".join(f"{stamp(50 * at)} {line.format(at)}\n" for at in range(1, 11)))
    assert f" {said} " in " ".join(gpureport("analyze", "gpu.csv", "--training", "train.log").out.split())


def test_one_epoch_is_no_epochs(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(log(600))
    assert " 1 epoch " in " ".join(gpureport("analyze", "gpu.csv", "--work", "1:epochs").out.split())
