"""How well two steps trained: what is compared, which verdict it gets, and how soon a target was reached."""

from dataclasses import replace
from math import hypot, log, sqrt
from typing import Any

import numpy as np
import pytest

from gpureport import Analysis, analyze
from gpureport.testing import Verdict, Work, recording, with_training
from tests.statistics.runs import LearningCurve, compared, delta, document, learning, learning_step, level, made, reason

SEEDS = 100
TO_TARGET = "seconds_to_target"
GOAL = "val_accuracy=0.7"


def changes(base: list[Analysis], step: list[Analysis], **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document(*base, *step, **options)["quality"]
    return found


def over_seeds(runs: int, after: float, seeds: int, before: float = 0.79) -> list[dict[str, Any]]:
    found = []
    is_loss = before < 0.7
    name, start, wide = ("val_loss", 2.3, 3) if is_loss else ("val_accuracy", 0.1, 1)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        shape: dict[str, Any] = {"between": wide * float(rng.uniform(0.002, 0.01))}
        shape["constant"] = float(rng.choice([40.0, 80.0, 150.0]))
        shape["scatter"] = wide * float(rng.choice([0.002, 0.005, 0.01, 0.02]))
        shape["points"] = int(rng.choice([8, 15, 30, 200]))
        sides = []
        for label, end in (("base", before), ("step", after)):
            curve = LearningCurve(end=end, start=start, **shape)
            each = [(curve.seconds(), curve.values(rng)) for _ in range(runs)]
            sides += [learning(f"{label}{k}", {name: values}, step=label) for k, values in enumerate(each)]
        found += [each for each in document(*sides)["quality"] if each["base"] == "base"][:1]
    return found


def fallen(found: list[dict[str, Any]]) -> int:
    return sum(bool(each["fell"]) for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 3])
def test_falls_are_warned_of_and_nothing_else(runs: int) -> None:
    """Over 100 pairs each: falls always, a rise never; of none at most two false warnings, ten of 1000."""
    assert fallen(over_seeds(runs, 0.61, SEEDS)) == SEEDS
    assert fallen(over_seeds(runs, 0.79 - (0.1 if runs == 1 else 0.08), SEEDS)) == SEEDS
    assert fallen(over_seeds(runs, 0.85, SEEDS)) == 0
    stays = over_seeds(runs, 0.79, SEEDS)
    assert fallen(stays) <= 2
    assert sum(each["verdict_code"] != "no_clear_change" for each in stays) <= 4
    assert fallen(over_seeds(runs, 0.79, 10 * SEEDS)) <= SEEDS // 10


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 3])
def test_a_loss_that_rises_by_half_is_warned_of(runs: int) -> None:
    """Its noise is relative: 0.6 to 3 per cent between runs, up to 6 per cent of a value."""
    assert fallen(over_seeds(runs, 0.75, SEEDS, before=0.5)) == SEEDS
    assert fallen(over_seeds(runs, 0.4, SEEDS, before=0.5)) == 0
    assert fallen(over_seeds(runs, 0.5, 10 * SEEDS, before=0.5)) <= SEEDS // 5


def of_equal_time(seed: int, runs: int, points: int, worse: float = 0.0, sides: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    found = []
    for label, count, end in (("base", points, 0.5), ("step", points // 2, 0.5 * (1 + worse)))[::sides]:
        for place in range(runs):
            level = end * (1 + rng.normal(0, 0.02))
            values = level + (2.3 - level) * np.exp(-np.arange(points) / points * 6)
            values *= 1 + rng.normal(0, 0.02, points)
            each = {"val_loss": (np.linspace(1, 590, count), values[:count])}
            found.append(learning(f"{label}{place}", each, step=label))
    change: dict[str, Any] = document(*found)["quality"][0]
    return change


@pytest.mark.parametrize("points", [12, 60])
@pytest.mark.parametrize(("runs", "verdict"), [(1, "unconfirmed"), (3, "worse")])
def test_runs_of_the_same_time_are_compared_at_equal_work(runs: int, verdict: str, points: int) -> None:
    for seed, sides in ((0, 1), (1, -1), (2, 1)):
        equal, worse = (of_equal_time(seed, runs, points, by, sides) for by in (0.0, 1.0))
        assert (equal["verdict_code"], equal["fell"], equal["at_end"]) == ("no_clear_change", False, False)
        assert (equal["work"], equal["work_unit"]) == (points // 2 - 1, "steps")
        assert (worse["verdict_code"] == verdict or sides < 0, worse["fell"]) == (True, sides == 1)


def counted(label: str, count: int, size: float = 1.0, work: Work | None = None, **more: Any) -> Analysis:
    """An accuracy after so many steps of a size, with params, and training metrics that have a value at each step."""
    steps, metrics = np.arange(count), {name: value for name, value in more.items() if name[-1] == "_"}
    curves = {"val_accuracy": 0.5 + 0.3 * (1 - np.exp(-steps * size / 40))}
    curves |= {name[:-1]: value * np.ones(count) if np.ndim(value) == 0 else value for name, value in metrics.items()}
    one = learning(label, {name: (steps * 5.0 + 1, values) for name, values in curves.items()}, step=label)
    params = tuple((name, value) for name, value in more.items() if name not in metrics)
    return replace(one, run=replace(one.run, params=params, work=work))


ONE, TWO = ({"size": by, "batch_size": str(32 * by)} for by in (1, 2))
EPOCHS, SAMPLES = (Work(amount=20, unit=unit) for unit in ("epochs", "samples"))


def test_work_is_what_all_runs_count_alike() -> None:
    slow, fast = ({"count": count, "samples_per_second_": rate} for count, rate in ((60, 8.0), (100, 16.0)))
    cases: list[tuple[dict[str, Any], dict[str, Any], Any]] = [
        ({"count": 100}, {"count": 101}, ("steps", 99, True)),
        ({"count": 100}, {"count": 103}, ("steps", 99, False)),
        ({"count": 1}, {"count": 1}, "work_not_logged"),
        ({"count": 1, "work": SAMPLES}, {"count": 1, "work": SAMPLES}, ("samples", 20, True)),
        ({"count": 1, "work": SAMPLES}, {"count": 1, "work": replace(SAMPLES, amount=21)}, "work_not_logged"),
        ({"count": 1, "work": SAMPLES}, {"count": 1, "work": replace(SAMPLES, unit="steps")}, "work_not_logged"),
        ({"count": 100, **ONE}, {"count": 52, **TWO}, ("samples", 99 * 32, False)),
        ({"count": 100, **ONE}, {"count": 60, **ONE}, ("steps", 59, False)),
        ({"count": 100, **ONE}, {"count": 60}, "other_work_unit"),
        ({"count": 20, "epochs": "20"}, {"count": 10, "epochs": "10"}, ("epochs", 9, False)),
        ({"count": 20, "work": EPOCHS}, {"count": 20, "max_epochs": "19"}, ("epochs", 19, True)),
        ({"count": 20, "epochs": "20"}, {"count": 100}, "other_work_unit"),
        (slow, {"count": 100, "samples_per_second_": 8.5}, ("steps", 59, False)),
        (slow, {"count": 100, "samples_per_second_": 9.2}, "other_work_unit"),
        (slow, fast, "other_work_unit"),
        (slow, {"count": 100, "tokens_per_second_": 8.0}, "other_work_unit"),
        (slow | {"epoch_": np.arange(60) / 10}, fast | {"epoch_": np.arange(100) / 5}, ("epochs", 5.9, False)),
    ]
    for base, step, expected in cases:
        change = changes([counted("a", **base)], [counted("b", **step)])[0]
        found = (change["work_unit"], pytest.approx(change["work"]), change["at_end"])
        assert (change["reason_code"] if isinstance(expected, str) else found) == expected, (base, step)
        if isinstance(expected, str):
            assert (change["verdict_code"], change["fell"]) == ("not_enough_data", False), (base, step)
            assert (change["before"]["final"] is None, change["after"]["at_work"]) == (False, None), (base, step)


def test_a_metric_with_few_steps_beside_another_counts_epochs() -> None:
    for count, unit in ((101, "steps"), (102, "epochs")):
        curves = {name: (np.arange(1.0, 1 + each), np.ones(each)) for name, each in (("val_loss", 20), ("loss", count))}
        found = changes(*([learning(label, curves, step=label)] for label in "ab"))[0]
        assert (found["name"], found["work_unit"], found["work"]) == ("val_loss", unit, 19), count


@pytest.mark.parametrize(("runs", "verdict"), [(1, "unconfirmed"), (3, "worse")])
def test_a_fall_is_said_as_surely_as_runs_allow(runs: int, verdict: str) -> None:
    for change in over_seeds(runs, 0.61, 3):
        assert (change["fell"], change["verdict_code"], change["leading"]) == (True, verdict, True)
        assert change["difference"] == pytest.approx(-0.18, abs=0.05)
        assert (change["interval"] is None) == (runs == 1)
    assert not fallen([each for after in (0.79, 0.9) for each in over_seeds(runs, after, 3)])


def leading(base: list[Analysis], step: list[Analysis], **options: Any) -> list[tuple[str, bool]]:
    return list(dict.fromkeys((each["name"], each["leading"]) for each in changes(base, step, **options)))


@pytest.mark.parametrize(("runs", "verdict"), [(1, "unconfirmed"), (2, "worse")])
def test_a_run_that_diverged_is_worse(runs: int, verdict: str) -> None:
    good, bad = {"loss": [0.9, 0.5, 0.4]}, {"loss": [0.9, 7.0, float("nan")]}
    alike, other = learning_step("a", *[good] * runs), learning_step("b", *[good] * (runs - 1), bad)
    change = changes(alike, other)[0]
    assert (change["fell"], change["verdict_code"], change["after"]["diverged"]) == (True, verdict, 1)
    assert (change["after"]["best"], bool(changes(other, alike)[0]["fell"])) == (pytest.approx(0.4, abs=0.51), False)


def test_which_metrics_lead_and_which_are_compared() -> None:
    values = [0.5, 0.4, 0.3]
    base, step = (
        learning_step(label, dict.fromkeys(("train_loss_step", "loss", "val_loss", "val_acc", "lr"), values))
        for label in "ab"
    )
    assert leading(base, step) == [("val_acc", True), ("val_loss", True), ("loss", False)]
    assert leading(base, step, better={"lr": "higher"})[:2] == [("lr", True), ("val_acc", True)]
    base, step = (learning_step(label, {"train_loss_step": values}) for label in "ab")
    assert [name for name, _ in leading(base, step)] == ["train_loss_step"]
    base = learning_step("a", {"loss": [0.2] * 5})
    found = changes(base, learning_step("b", {"loss": [0.9] * 5, "val_loss": [0.9] * 5}))
    told = {each["name"]: (each["leading"], each["verdict_code"]) for each in found}
    assert told == {"val_loss": (False, "not_enough_data"), "loss": (True, "unconfirmed")}
    base, step = (
        learning_step(label, *({"gain": [end + k / 100] * 5} for k in range(3)))
        for label, end in (("a", 5.0), ("b", 1.0))
    )
    assert changes(base, step) == []
    assert changes(base, step, better={"gain": "higher"})[0]["verdict_code"] == "worse"


def accuracies(label: str, *ends: float) -> list[Analysis]:
    return learning_step(label, *({"val_acc": [end] * 5} for end in ends))


def test_repetitions_of_an_accuracy_are_judged_together() -> None:
    base, step = accuracies("a", 0.78, 0.79, 0.80), accuracies("b", 0.79, 0.80, 0.1)
    change = changes(base, step)[0]
    assert (change["verdict_code"], change["fell"], change["failed"]) == ("no_clear_change", True, pytest.approx([0.1]))
    back = changes(step, base)[0]
    assert (back["failed"], back["fell"]) == ([], False)
    change = changes(accuracies("a", 0.77, 0.79, 0.80), accuracies("b", 0.70, 0.73, 0.765))[0]
    assert (change["interval"][1] > 0, change["verdict_code"]) == (True, "worse")
    # Not by a tenth of itself: 79 and 73 are as far apart as 0.79 and 0.73.
    for scale in (1, 100):
        change = changes(accuracies("a", 0.79 * scale), accuracies("b", 0.73 * scale))[0]
        assert (change["fell"], change["full_scale"]) == (True, scale)
        assert change["margin"] == pytest.approx(0.0342 * scale, abs=0.0001 * scale)


def figure(values: list[float], name: str = "val_accuracy", every: float = 5.0) -> dict[str, Any]:
    curve = {name: (np.arange(len(values)) * every + every, values)}
    before: dict[str, Any] = document(learning("a", curve), learning("b", curve))["quality"][0]["before"]
    return before


def test_ends_best_values_and_spread_of_a_metric() -> None:
    assert figure([0.7] * 99 + [0.2])["final"] == pytest.approx(0.65)
    for count, last in ((1, 1), (2, 2), (3, 2), (4, 2), (5, 3), (20, 3), (100, 10)):
        values = [0.0] * (count - last) + [0.8] * last
        assert figure(values)["final"] == pytest.approx(0.8), count
        if count > last:
            assert figure([0.0] * (count - last + 1) + [0.8] * (last - 1))["final"] < 0.79, count
    values = [0.1, 0.5, 0.9, 0.9]
    highest, lowest = figure(values, every=100.0), figure(values, "val_loss", every=100.0)
    assert (highest["best"], highest["best_seconds"]) == (0.9, pytest.approx(300, abs=1))
    assert (lowest["best"], lowest["best_seconds"]) == (0.1, pytest.approx(100, abs=1))
    rise = np.linspace(0.2, 0.8, 100)
    assert figure(rise.tolist())["spread"] == pytest.approx(0, abs=1e-9)
    noisy = rise + np.random.default_rng(1).normal(0, 0.01, 100)
    assert figure(noisy.tolist())["spread"] == pytest.approx(0.01, rel=0.3)
    for count, last in ((10, 5), (30, 6), (100, 20)):
        line = np.linspace(0.1, 0.5, last).tolist()
        assert figure([0.9] * (count - last) + line)["spread"] == pytest.approx(0, abs=1e-9), count
        assert figure([0.9] * (count - last + 1) + line[1:])["spread"] > 0.01, count
    assert figure([0.2, 0.3, 0.2])["spread"] == pytest.approx(sqrt(0.02 / 3))
    assert figure([0.2, 0.3])["spread"] is None


def test_values_at_equal_work_and_those_logged_as_no_number() -> None:
    for values, count, value in (([0.8] * 59 + [0.2] + [0.9] * 40, 60, 0.7), ([0.0] * 3 + [0.8] + [0.9] * 4, 4, 0.8)):
        base, step = (learning_step(label, {"loss": values[:stop]}) for label, stop in (("a", None), ("b", count)))
        assert changes(base, step)[0]["before"]["at_work"] == pytest.approx(value)
    base, step = learning_step("a", {"val_loss": [0.9, 0.5, 0.4]}), learning_step("b", {"val_loss": [2.0, 1.8]})
    change = changes(base, step)[0]
    assert (change["higher_is_better"], change["fell"], change["verdict_code"]) == (False, True, "unconfirmed")
    points = [(20.0, "val_acc", 0.5), (30.0, "loss", None), (10.0, "loss", 0.9), (10.0, "val_acc", 0.1)]
    runs = [analyze(with_training(recording(util=level(90, 100, seed)), points)) for seed in range(2)]
    found = {each["name"]: each["before"] for each in document(*runs)["quality"]}
    assert (found["val_acc"]["diverged"], found["loss"]["diverged"]) == (0, 1)
    assert (found["val_acc"]["best"], found["loss"]["final"]) == (0.5, None)


def at_steps(label: str, *points: tuple[int | None, float]) -> Analysis:
    one = learning(label, {}, step=label)
    logged = [(place * 10.0 + 1, "loss", value) for place, (_, value) in enumerate(points)]
    return replace(one, recording=with_training(one.recording, logged, [at for at, _ in points]))  # type: ignore[misc]  # some have no step


def test_values_that_lie_far_apart_are_interpolated_with_an_error() -> None:
    """Each beside a flat loss of 1; the margin holds 2.5 standard errors and the bias beside a noise of a tenth."""
    bumps = {0: 2, 10: 2, 20: 1, 30: 1, 40: 1, 50: 1.08, 60: 1, 70: 1, 80: 2}
    cases: list[tuple[dict[int, float], int, float, float, float]] = [
        (bumps, 45, 1.04, 0.04, 0.02),
        (dict.fromkeys(range(0, 60, 10), 1.0) | {10: 1.08}, 15, 1.04, sqrt(0.008 / 4.5), 0.02),
        (dict.fromkeys(range(0, 70, 10), 1.0) | {50: 1.08}, 40, 1.0, sqrt(0.008 / 6), 0),
        ({at: 1 + at / 100 for at in (0, 10, 40, 50, 70)}, 45, 1.45, 0, 0),
        ({0: 1.4, 40: 1, 80: 1, 120: 1}, 20, 1.2, sqrt(0.02 / 1.5), 0.1),
        ({0: 1.5, 100: 1}, 50, 1.25, 0, 0.25),
    ]
    for values, last, value, error, bias in cases:
        flat = [at_steps("b", (0, 1.0), (last // 2, 1.0), (last, 1.0))]
        change = changes([at_steps("a", *values.items())], flat)[0]
        found = (change["work"], change["before"]["at_work"], change["after"]["at_work"], change["margin"])
        assert found == pytest.approx((last, value, 1, hypot(value / 10, 2.5 * error) + bias)), values
    # at the end of runs, six last values of which four count as independent
    noisy = learning_step("a", {"loss": [1.0] * 48 + [1.5, 0.5, 0.5, 1.5] * 3})
    flat = learning_step("b", {"loss": [1.0] * 60})
    assert changes(noisy, flat)[0]["margin"] == pytest.approx(hypot(0.1, 2.5 * sqrt(0.3 / 4)))


def test_runs_without_a_value_at_common_work_are_not_compared() -> None:
    flat = at_steps("b", (0, 1.0), (20, 1.0), (45, 1.0))
    for points in ([(60, 1.0), (80, 1.0)], [(30, float("nan")), (None, 1.0), (None, 0.9)]):
        assert changes([at_steps("a", *points)], [flat])[0]["reason_code"] == "no_common_work", points


def sooner(name: str, step: str, constant: float, end: float = 0.8, *, is_priced: bool = False) -> Analysis:
    curve = LearningCurve(end=end, constant=constant, points=300, scatter=0, between=0)
    points = {"val_accuracy": (curve.seconds(), curve.values(np.random.default_rng(0)))}
    return learning(name, points, step=step, is_priced=is_priced)


def targets(*runs: Analysis, target: str = GOAL) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document(*runs, target=target)["time_to_target"]["steps"]
    return found


def test_a_run_without_a_time_says_why() -> None:
    """No time is never a time of 0."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "not_recorded"),
        ({"val_loss": ([60.0], [0.9])}, "not_recorded"),
        ({"val_accuracy": ([60.0, 90.0], [0.3, float("nan")])}, "not_reached"),
        ({"val_accuracy": ([-60.0, 90.0], [0.8, 0.9])}, "before_recording"),
    ]
    for curves, code in cases:
        (found,) = targets(learning("a", curves, step="a"), sooner("b", "b", 40.0))[0]["runs"]
        assert (found["seconds"], found["gpu_seconds"], found["reason_code"]) == (None, None, code), code


def test_a_step_has_the_time_to_a_target_that_each_run_reached() -> None:
    for constant in (40.0, 80.0, 150.0):
        truth = -constant * log((0.8 - 0.7) / (0.8 - 0.1))
        found = targets(sooner("a", "a", constant, is_priced=True), sooner("b", "b", 40.0))[0]
        assert truth <= found["seconds"] + 1 <= truth + 3.1
        assert found["gpu_seconds"] == pytest.approx(found["seconds"])
        assert found["cost"] == pytest.approx(found["seconds"] / 3600 * 2)
    loss = learning("a", {"val_loss": ([60.0, 120.0, 180.0], [0.9, 0.5, 0.6])})
    assert targets(loss, sooner("b", "b", 40.0), target="val_loss=0.5")[0]["seconds"] == pytest.approx(120, abs=1)
    runs, other = [sooner("a", "s", 40.0), sooner("b", "s", 90.0)], sooner("z", "z", 40.0)
    whole = targets(*runs, other)[0]
    each = [run["seconds"] for run in whole["runs"]]
    assert whole["seconds"] == pytest.approx((each[0] * each[1]) ** 0.5)
    lame = targets(*runs, sooner("c", "s", 40.0, end=0.6), other)[0]
    assert (lame["seconds"], lame["reached"], lame["runs"][2]["reason_code"]) == (None, 2, "not_reached")
    timeless = analyze(with_training(recording(util=level(90, 600)), [(None, "val_accuracy", 0.9)]))
    assert targets(made("y", util=level(90, 600)), timeless)[1]["runs"][0]["reason_code"] == "no_times"


def test_repetitions_show_which_step_is_sooner() -> None:
    runs = [sooner(f"{s}{k}", s, by * (1 + k / 50)) for s, by in (("a", 80.0), ("b", 40.0)) for k in range(3)]
    found = delta(compared(*runs, target=GOAL), TO_TARGET)
    assert (found.verdict, found.basis, found.unit) == (Verdict.BETTER, "replicates", "s")
    assert found.after / found.before == pytest.approx(0.5, abs=0.02)
    for constant, verdict in ((40.0, Verdict.UNCONFIRMED), (70.0, Verdict.NO_CLEAR_CHANGE)):
        single = compared(sooner("a", "a", 80.0), sooner("b", "b", constant), target=GOAL)
        assert delta(single, TO_TARGET).verdict is verdict
    assert TO_TARGET not in {each.metric for each in compared(*runs).deltas}


def test_a_target_that_one_step_never_reached() -> None:
    cases: list[tuple[int, tuple[float, float], Verdict]] = [
        (1, (0.8, 0.6), Verdict.UNCONFIRMED),
        (2, (0.8, 0.6), Verdict.WORSE),
        (2, (0.6, 0.8), Verdict.BETTER),
        (2, (0.6, 0.6), Verdict.NOT_ENOUGH_DATA),
    ]
    for runs, ends, verdict in cases:
        each = [sooner(f"{s}{k}", s, 60.0, end=end) for s, end in zip("ab", ends, strict=True) for k in range(runs)]
        found = delta(compared(*each, target=GOAL), TO_TARGET)
        assert (found.verdict, reason(found)) == (verdict, "target_not_reached"), (runs, ends)
        assert (found.before is None, found.after is None) == (ends[0] < 0.7, ends[1] < 0.7), (runs, ends)
