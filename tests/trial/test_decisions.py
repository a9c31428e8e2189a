"""What `gpureport try` decides in made trials of known truth. All their runs are finished, so it only decides."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support.logs import EPOCH, row, table, write_recording
from tests.support.program import Program, run_program
from tests.support.tables import read_table

_START, _SPACING = 10**15, 10**9
Seconds = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Machine(NamedTuple):
    """How logarithms of durations scatter: at random, over the trial, and in its first run, first round or a spell."""

    noise: float = 0.01
    drift: float = 0.0
    first_run: float = 0.0
    first_round: float = 0.0
    spell: float = 0.0
    tails: bool = False


class Trial(NamedTuple):
    decision: dict[str, Any]
    runs: int
    gpu_share: float


def write_plan(folder: Path, count: int, rounds: int = 3) -> None:
    values = [str(place) for place in range(count)]
    plan: dict[str, Any] = {
        "schema": "gpureport.trial/1",
        "command": ["job", "{s}"],
        "factors": [{"name": "s", "values": values}],
    }
    plan |= {"design": "one-at-a-time", "repeat": rounds, "budget_seconds": None, "interval": 1.0, "host_only": False}
    folder.joinpath("trial").mkdir(parents=True)
    folder.joinpath("trial", "trial.json").write_text(json.dumps(plan | {"seed": 1}))


def write_run(folder: Path, setting: int, number: int, place: int, seconds: float, **more: Any) -> Path:
    """Write what a finished run leaves. The recorder adds 1.2 s to each run."""
    begun = _START + place * _SPACING
    where = folder / "trial" / f"s={setting}" / f"round-{number + 1}"
    ended = begun + round((seconds + 1.2) * 1e6)
    write_recording(where, "", name="output.log", started=begun, ended=ended, **({"exit_code": 0} | more))
    return where


def decide(folder: Path, count: int, *more: str, first: int = 0) -> tuple[int, dict[str, Any]]:
    values = ",".join(map(str, range(first, first + count)))
    found = run_program(
        folder, "try", "-o", "trial", "--set", f"s={values}", "--budget", "1s", *more, "--", "job", "{s}"
    )
    decision: dict[str, Any] = json.loads(folder.joinpath("trial", "decision.json").read_text())
    return found.code, decision


def make_seconds(slower: Sequence[float], machine: Machine, rng: np.random.Generator) -> tuple[Seconds, Seconds]:
    """Return the durations of three rounds, and each run's place in the random order of its round."""
    shape = 3, len(slower)
    scatter = rng.standard_t(3, shape) / 3**0.5 if machine.tails else rng.standard_normal(shape)
    places = np.stack([rng.permutation(len(slower)) for _ in range(3)]) + len(slower) * np.arange(3)[:, None]
    begun = rng.integers(places.size)
    slow = machine.noise * scatter + machine.drift * places / places.size
    slow += machine.first_run * (places == 0) + machine.first_round * (places < len(slower))
    slow += machine.spell * ((places >= begun) & (places <= begun + len(slower) // 2))
    return np.asarray(60 * np.asarray(slower) * np.exp(slow)), np.asarray(places, dtype=np.float64)


def play(folder: Path, slower: Sequence[float], machine: Machine, rng: np.random.Generator) -> Trial:
    """Decide after two rounds, add the third one for the settings that are left, and decide again."""
    count, (seconds, places) = len(slower), make_seconds(slower, machine, rng)
    write_plan(folder, count)
    left, used = [*range(count)], 0.0
    for number in range(3):
        for setting in left:
            write_run(folder, setting, number, int(places[number, setting]), float(seconds[number, setting]))
            used += float(seconds[number, setting])
        if number:
            _, decision = decide(folder, count)
            left = [int(each["setting"]["s"]) for each in decision["settings"] if each["tied"]]
            if len(left) == 1:
                break
    return Trial(decision, len(decision["runs"]), used / float(seconds.sum()))


def is_false(trial: Trial, slower: Sequence[float]) -> bool:
    """Return whether a best setting was left out, or a setting was said to differ from an equal one."""
    found = {int(each["setting"]["s"]): each for each in trial.decision["settings"]}
    dropped = any(not found[place]["tied"] for place, one in enumerate(slower) if one == min(slower))
    alike = (found[place]["verdict"] for place, one in enumerate(slower) if one == slower[0])
    return dropped or bool({"better", "worse"} & set(alike))


def count_over_trials(folder: Path, trials: int, slower: Sequence[float], machine: Machine) -> dict[str, float]:
    rng = np.random.default_rng(len(slower))
    made = [play(folder / str(number), slower, machine, rng) for number in range(trials)]
    best = [{"s": str(place)} for place, one in enumerate(slower) if one == min(slower)]
    tied = [[each["setting"] for each in trial.decision["settings"] if each["tied"]] for trial in made]
    return {
        "right": sum(any(one in best for one in each) for each in tied) / trials,
        "named": sum(trial.decision["chosen"] in best for trial in made) / trials,
        "false": sum(is_false(trial, slower) for trial in made) / trials,
        "runs": sum(trial.runs for trial in made) / trials / len(slower) / 3,
        "gpu": sum(trial.gpu_share for trial in made) / trials,
    }


ALIKE, TENTH = [1.0] * 4, [1.0, 1.0, 1.0, 1 / 1.1]
TRUTHS = {
    "two alike": ([1.0] * 2, Machine(), 0),
    "six alike": ([1.0] * 6, Machine(), 0),
    "alike, drifting": (ALIKE, Machine(drift=0.1), 0),
    "alike, at worst": (ALIKE, Machine(0.02, 0.1, 0.1, 0.1, 0.1, tails=True), 0),
    "2 settings, 10 %": ([1.0, 1 / 1.1], Machine(), 0.9),
    "4 settings, 10 %, noisy": (TENTH, Machine(noise=0.03), 0.4),
    "10 %, slow first run": (TENTH, Machine(first_run=0.2), 0.9),
    "6 settings, 30 %": ([1.0] * 5 + [1 / 1.3], Machine(noise=0.03), 0.99),
}


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS)
def test_truth_over_200_trials(tmp_path: Path, truth: str) -> None:
    slower, machine, named = TRUTHS[truth]
    found = count_over_trials(tmp_path, 200, slower, machine)
    assert found["right"] >= 0.95
    assert found["false"] <= 0.05
    assert found["named"] >= named


def test_clear_best_is_named_with_fewer_runs(tmp_path: Path) -> None:
    found = count_over_trials(tmp_path, 5, [1.0] * 5 + [1 / 1.3], Machine())
    assert [*found.values()] == [1, 1, 0, pytest.approx(2 / 3), pytest.approx(2 / 3, abs=0.01)]
    assert [*count_over_trials(tmp_path / "alike", 5, ALIKE, Machine()).values()] == [1, 0, 0, 1, pytest.approx(1)]


def write_trained_runs(folder: Path, rates: Sequence[float], accuracies: Sequence[float]) -> None:
    """Write two rounds of runs of five minutes on one GPU, with their training metrics."""
    write_plan(folder, len(rates), 2)
    for place in range(2 * len(rates)):
        number, setting = divmod(place, len(rates))
        where = write_run(folder, setting, number, place, 300.0, zone="UTC")
        where.joinpath("output.log").write_text("step 1 loss 2\nstep 2 loss 1\n")
        where.joinpath("gpu.csv").write_text(table(*(row(second) for second in range(0, 300, 5))))
        points = [
            {"timestamp": EPOCH + second, "step": second, "samples_per_second": rates[setting] + number}
            | {"val_accuracy": accuracies[setting] * (1 - 1 / (second + 2))}
            for second in range(0, 300, 10)
        ]
        where.joinpath("metrics.jsonl").write_text("\n".join(map(json.dumps, points)))


@pytest.mark.parametrize(
    "case",
    [
        (0.8, (), 0, {"s": "2"}, None, "2"),
        (0.5, (), 4, None, "no_clear_best", "01"),
        (0.8, ("--target", "val_accuracy=0.7"), 0, {"s": "2"}, None, "2"),
        (0.75, ("--target", "val_accuracy=0.76"), 4, None, "no_clear_best", "01"),
        (0.8, ("--target", "val_accuracy=0.9"), 1, None, "quality", ""),
        (0.8, ("--target", "val_loss=0.9"), 0, {"s": "2"}, None, "2"),
    ],
)
def test_speed_and_quality(tmp_path: Path, case: tuple[float, tuple[str, ...], int, Any, str | None, str]) -> None:
    accuracy, more, code, chosen, reason, tied = case
    write_trained_runs(tmp_path, (100.0, 100.0, 140.0), (0.8, 0.8, accuracy))
    ended, found = decide(tmp_path, 3, "--repeat", "2", *more)
    assert (ended, found["chosen"], found["reason"]) == (code, chosen, reason)
    assert "".join(each["setting"]["s"] for each in found["settings"] if each["tied"]) == tied
    assert [each["quality_fell"] for each in found["settings"]] == [reason == "quality"] * 2 + [chosen is None]
    quality = found["settings"][2]["quality"]
    assert (quality and quality["value"]) == (None if chosen else pytest.approx(accuracy, abs=0.01))
    assert [quality[name] for name in ("before", "target") if quality] == (
        [] if chosen else [None, float(more[1][-4:].strip("="))] if more else [pytest.approx(0.8, abs=0.01), None]
    )
    assert (found["metric"], found["unit"], found["better"]) == ("training_rate_hertz", "samples/s", 1)
    assert found["notes"] == (["target_not_recorded"] if "val_loss=0.9" in more else [])
    assert found["gpu_seconds"] == pytest.approx(6 * 295)
    if chosen:
        saving, share = found["saving"], 1 - 100.5 / 140.5
        assert saving["share"] == pytest.approx(share, abs=0.001)
        assert saving["payback_runs"] == 6 / share // 1 + 1
        assert saving["payback_seconds"] == pytest.approx(6 * 300 * (1 - share) / share, rel=0.01)


@pytest.mark.parametrize(
    ("step", "first", "metric", "notes"),
    [
        (1, 0, "training_rate_hertz", []),
        (3, 0, "duration", ["speed_not_compared"]),
        (2, 0, "duration", ["work_unclear"]),
        # half as many steps of twice the size
        (2, 1, "duration", ["assumes_equal_work"]),
    ],
)
def test_steps_need_equal_counts(tmp_path: Path, step: int, first: int, metric: str, notes: list[str]) -> None:
    write_trained_runs(tmp_path, (100.0, 100.0), (0.8, 0.8))
    trial = tmp_path / "trial"
    for log in trial.rglob("metrics.jsonl"):
        each = step if "s=1" in str(log) else 1
        more = {"loss": 1 / each, "tokens_per_second" if each == 3 else "lr": 2.0}
        points = [{"timestamp": EPOCH + second, "step": second // each} | more for second in range(0, 300, 10)]
        log.write_text("\n".join(map(json.dumps, points)))
    for place in (1, 0) if first else ():
        (trial / f"s={place}").rename(trial / f"s={place + 1}")
        (trial / "trial.json").write_text((trial / "trial.json").read_text().replace('["0", "1"]', '["1", "2"]'))
    code, found = decide(tmp_path, 2, "--repeat", "2", first=first)
    assert (code, found["metric"], found["notes"]) == (4, metric, notes)
    assert (found["reason"] == "work_unclear") == ("work_unclear" in notes)
    assert run_program(tmp_path, "report", "trial", "-o", "page.json").code == 0
    page = (tmp_path / "page.json").read_text()
    assert ("No decision" in page, " steps, unconfirmed" in page) == ("work_unclear" in notes, False)


def test_wrong_options_are_refused_before_a_run(gpureport: Program, tmp_path: Path) -> None:
    write_trained_runs(tmp_path, (100.0, 140.0), (0.8, 0.8))
    (tmp_path / "trial" / "s=1" / "round-2" / "run.json").unlink()
    (tmp_path / "link").symlink_to("nowhere")
    for more, code in read_table(Path(__file__).with_name("refused.tsv")):
        words = ("-o", "trial", "--set", "s=0,1", "--repeat", "2", *more.split(), "--", "job", "{s}")
        assert gpureport("--debug", "try", *words).error == code, more


def test_failed_runs_exclude_their_settings(tmp_path: Path) -> None:
    write_plan(tmp_path, 3)
    write_run(tmp_path, 0, 0, 0, 60)
    assert decide(tmp_path, 3)[1]["reason"] == "too_few_rounds"
    for number in range(3):
        write_run(tmp_path, 0, number, 3 * number, 60 + number)
        write_run(tmp_path, 1, number, 3 * number + 1, 50 + number)
    write_run(tmp_path, 2, 0, 2, 5.0, exit_code=1)
    code, found = decide(tmp_path, 3)
    assert (code, found["chosen"], found["notes"]) == (0, {"s": "1"}, ["assumes_equal_work"])
    assert [each["failure"] for each in found["settings"]] == [None, None, "failed"]
    assert found["margin"]["over"] == {"s": "0"}
    assert found["margin"]["change"] == pytest.approx(-1 / 6, abs=0.01)
    assert found["margin"]["interval"][0] < found["margin"]["change"] < found["margin"]["interval"][1] < 0
    (tmp_path / "trial" / "s=1" / "round-2" / "run.json").write_text("{")
    assert len(decide(tmp_path, 3)[1]["runs"]) == 7
    assert [*tmp_path.glob("trial/interrupted/s=1-round-2-*/output.log")]
