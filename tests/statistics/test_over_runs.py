"""False claims on equal steps stay rare; and what several runs say together."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpureport import Analysis
from gpureport.errors import SettingsError
from gpureport.testing import GIB, Delta, Floats, Verdict, Work, check
from tests.statistics.processes import Process, autoregressive, processes
from tests.statistics.runs import TRAINING_RATE, Points, compared, delta, document, learning, level, made, thrice

GROWING = np.linspace(4.0, 20.0, 300)
"""GiB in use, of a framework that takes memory as it needs it."""
OTHER = made("other", step="other", util=level(90, 300))


def fit(*runs: Analysis) -> dict[str, Any]:
    found: dict[str, Any] = document(*runs, OTHER)["memory_fits"][0]
    return found


def over(kind: str, *runs: Analysis) -> list[dict[str, Any]]:
    return [each for each in document(*runs)["across_runs"] if each["kind"] == kind]


def test_the_worst_gpu_of_all_runs_decides() -> None:
    """20 GiB on one of three GPUs fit an L4 of 21.95 GiB; at 21.5 less than 5% is left, and an RTX 3090 has more."""
    low = made("low", step="s", util=level(90, 300), memory=GROWING / 2)
    high = made("high", step="s", util=np.stack([level(90, 300)] * 2), memory=np.stack([GROWING / 3, GROWING]))
    found = fit(low, high)
    assert (found["run"], found["device"], found["peak_bytes"], found["reason_code"]) == ("high", "gpu:1", 20 * GIB, "")
    assert (found["smallest"], found["headroom"]) == ("L4", 0.05)
    (smallest,) = [each for each in found["kinds"] if each["model"] == "L4"]
    assert smallest["free_ratio"] == pytest.approx(1 - 20 * GIB / smallest["memory_bytes"])
    assert all(each["source"] for each in found["kinds"])
    kinds = fit(made("full", util=level(90, 300), memory=GROWING * 21.5 / 20))["kinds"]
    assert {each["fits"] for each in kinds if each["model"] == "L4"} == {False}
    assert {each["fits"] for each in kinds if each["model"] == "RTX 3090"} == {True}


def test_nothing_is_said_from_a_peak_that_is_no_need() -> None:
    cases: list[tuple[Any, str, set[bool | None]]] = [
        (GROWING * 0, "unused", set()),
        (np.concatenate([np.full(10, 1.0), np.full(290, 60.0)]), "preallocated", set()),
        (np.full(300, 30.0), "perhaps_preallocated", {True, None}),
        (None, "not_recorded", set()),
    ]
    for memory, code, fits in cases:
        run = made("a", util=level(90, 300), **({} if memory is None else {"memory": memory}))
        for one in (run, replace(run, findings=())):
            found = fit(one)
            assert (found["reason_code"], found["smallest"] is None or None in fits) == (code, True), code
            assert {each["fits"] for each in found["kinds"]} == fits, code
        assert over("gpu_kinds", run, OTHER) == [], code


def scaled(gpus: int, amount: float, k: int, seconds: int = 300) -> Analysis:
    series = np.stack([level(90, seconds, seed) for seed in range(gpus)])
    return made(f"{gpus}-{k}", step=f"{gpus} GPUs", util=series, work=Work(amount=amount + k, unit="steps"))


def test_scaling_is_work_per_gpu_second_against_the_fewest() -> None:
    """Four GPUs that do three times the work of one are at 75%."""
    runs = [scaled(gpus, amount, k) for gpus, amount in ((1, 1000.0), (4, 3000.0)) for k in range(3)]
    (found,) = over("scaling", *runs)
    assert (found["gpus"], found["steps"], found["severity"]) == ([1, 4], ["1 GPUs", "4 GPUs"], "info")
    assert found["efficiency"] == pytest.approx(0.75, rel=0.01)
    assert found["interval"][0] < 0.75 < found["interval"][1]
    (group, _) = document(*runs)["groups"]
    assert (group["work_per_gpu_hour"]["value"], group["gpus"]) == (pytest.approx(1001 * 12, rel=0.01), 1)
    assert group["utilisation"]["interval"] is not None


def test_scaling_leaves_out_the_start_up_and_takes_a_minute() -> None:
    """A minute of start-up before two minutes on one GPU and one on two; what 50 s came to says nothing of four."""
    runs = [
        made(
            f"{gpus}",
            util=np.stack([np.concatenate([np.zeros(60), level(90, seconds, k)]) for k in range(gpus)]),
            work=Work(amount=1200, unit="steps"),
        )
        for gpus, seconds in ((1, 120), (2, 60))
    ]
    (found,) = over("scaling", *runs)
    assert found["efficiency"] == pytest.approx(1.0, abs=0.03)
    for seconds, count in ((50, 0), (70, 1)):
        assert len(over("scaling", scaled(1, 1000.0, 0, seconds), scaled(4, 3000.0, 0))) == count, seconds


RISING = np.linspace(0.5, 1.0, 120)


def batches(*sizes: tuple[str, float], gpus: int = 1, params: dict[str, str] | None = None) -> list[Analysis]:
    return [
        made(
            f"{size} {params} {gpus}",
            util=[level(90, 120)] * gpus,
            memory=[RISING * peak] * gpus,
            params={"batch_size": size, **(params or {})},
        )
        for size, peak in sizes
    ]


def test_batches_that_tell_nothing_of_memory() -> None:
    huge = [
        made(
            size, util=level(90, 120), memory=20.0, params={"per_device_train_batch_size": size, "grad_accum": "1e300"}
        )
        for size in ("1e300", "2e300")
    ]
    for runs in (
        [*batches(("64", 10.7)), *batches(("64", 6.3), ("256", 20.1), params={"parameters/amp": "true"})],
        [*batches(("32", 20.0)), *batches(("64", 26.0), gpus=2)],
        huge,
        batches(("8", 14.0)) * 2,
    ):
        assert [each for each in over("batch_size", *runs) if each["max_batch"] is not None] == []


def test_targets() -> None:
    runs = [learning(name, {"val_accuracy": ([60.0], [0.7])}) for name in "ab"]
    better = dict.fromkeys(("top-1", "a=b"), "higher")
    targets = {
        "val_accuracy=0.78": ("val_accuracy", 0.78),
        "val/acc=.78": ("val/acc", 0.78),
        "top-1 = 78": ("top-1", 78.0),
    }
    for text, expected in (targets | {"a=b=2": ("a=b", 2.0), "loss=1e-3": ("loss", 0.001)}).items():
        found = document(*runs, target=text, better=better)["time_to_target"]
        assert (found["name"], found["value"]) == expected
    for text in ("top-1=78%", "loss", "=3", "loss=nan", "loss=low"):
        with pytest.raises(ValueError, match="target"):
            compared(*runs, target=text, better=better)


def test_goals_that_say_nothing_are_refused_and_batches_that_fit_are_found() -> None:
    # Peaks of 10 + 0.5 GiB a sample on 80 GiB: 5% free leave room for 132.
    (found,) = over("batch_size", *batches(*((str(size), 10 + 0.5 * size) for size in (8, 16, 32))))
    assert (found["sizes"], found["max_batch"], found["reason_code"]) == ([8, 16, 32], 132, "")
    assert (found["evidence"][0]["metric"], found["evidence"][0]["observed"]) == ("max_batch", 132.0)
    # as recorded on an H100: 64 samples take 10.7 GiB at 32 bits and 6.3 at 16, 256 take 20.1 GiB at 16
    alike = batches(("64", 6.3), ("256", 20.1), params={"parameters/amp": "true"})
    assert over("batch_size", *alike)[0]["max_batch"] == 1033
    runs = [learning(name, {"gain": ([60.0], [0.7])}) for name in "ab"]
    with pytest.raises(ValueError, match="gain"):
        compared(*runs, better={"gain": "up"})
    with pytest.raises(SettingsError) as caught:
        compared(*runs, target="gain=3")
    assert caught.value.code == "unknown_direction"
    assert document(*runs, target="gain=3", better={"gain": "higher"})["time_to_target"]["name"] == "gain"


def test_settings_say_which_way_a_metric_gets_better(tmp_path: Path) -> None:
    path = tmp_path / "gpureport.toml"
    rule = '[[policy]]\nlimit = "training gain best <= 0.9"\n[[policy]]\nlimit = "seconds_to_target <= 1 h"\n'
    path.write_text(f'{rule}[training]\nbetter = {{ gain = "lower" }}\ntarget = "gain=0.6"\n', encoding="utf-8")
    run = learning("a", {"gain": ([60.0, 120.0, 180.0], [0.9, 0.5, 0.4])})
    best, reached = check(path, run)
    assert [best.value, reached.value] == pytest.approx([0.4, 120], abs=11)
    assert check(path, run, target="gain=0.95")[1].value == pytest.approx(60, abs=11)
    path.write_text("[training]\ntarget = 'gain=3'\n", encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        check(path, OTHER)
    assert (caught.value.code, caught.value.where) == ("unknown_direction", "target")


SECONDS = 1800


def pairs(make: Callable[[np.random.Generator], Floats], count: int, rng: np.random.Generator) -> list[Delta]:
    return [
        delta(compared(*(made(name, util=np.round(np.clip(make(rng), 0, 100))) for name in "ab"))) for _ in range(count)
    ]


def is_claimed(found: Delta) -> bool:
    if found.verdict not in {Verdict.NO_CLEAR_CHANGE, Verdict.NOT_ENOUGH_DATA}:
        return True
    if found.interval is None or found.difference is None:
        return False
    low, high = found.interval
    return abs(found.difference) > 0.02 and not low <= 0 <= high


def test_false_claims_on_equal_steps_stay_rare() -> None:
    """A/A at an autocorrelation of 0.9, pairs of twenty minutes: verdicts on at most 7% of them."""
    found = pairs(lambda rng: 80 + autoregressive(1200, 0.9, 3.0, rng), 60, np.random.default_rng(11))
    assert sum(each.verdict is not Verdict.NO_CLEAR_CHANGE for each in found) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [30, 60, 120, 300, 450])
@pytest.mark.parametrize("process", processes(), ids=lambda process: process.name)
def test_two_short_runs_of_one_process_seldom_differ(process: Process, seconds: int) -> None:
    """Whatever changes more slowly than they are long: at most 14% of 200 pairs are called different."""
    found = pairs(lambda rng: process.make(seconds, rng), 200, np.random.default_rng([20_261_121, 5, seconds]))
    assert sum(map(is_claimed, found)) <= 0.14 * 200


@pytest.mark.slow
def test_repetitions_of_any_length_keep_their_promise() -> None:
    """Three runs a side that differ by two points among themselves: 95% of 80 intervals hold six points, or none."""
    for seconds in (40, 600):
        rng = np.random.default_rng([12, seconds])
        for gain in (0.0, 6.0):
            inside = claimed = 0
            for _ in range(80):
                series = {
                    step: [np.round(mean + rng.normal(0, 2) + autoregressive(seconds, 0.9, 3.0, rng)) for _ in range(3)]
                    for step, mean in (("a", 70.0), ("b", 70.0 + gain))
                }
                found = delta(compared(*thrice(lambda given, k: {"util": given[k]}, series)))
                inside += found.interval[0] <= gain / 100 <= found.interval[1]
                claimed += found.verdict in {Verdict.BETTER, Verdict.WORSE}
            # three standard errors below and above what is promised
            assert inside >= 70, (seconds, gain)
            assert gain > 0 or claimed <= 10, seconds


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.5, 0.9])
def test_intervals_of_a_pair_hold_the_ratio_of_training_rates(phi: float) -> None:
    """Half an hour, the first half minute of it at a quarter of the rate, 300 times: a tenth more lies inside."""
    rng = np.random.default_rng([7, round(10 * phi)])
    inside = 0
    for _ in range(300):
        found = delta(compared(scattered("a", 100.0, phi, rng), scattered("b", 110.0, phi, rng)), TRAINING_RATE)
        low, high = (1 + end / found.before for end in found.interval)
        inside += low <= 1.1 <= high
    assert 0.92 <= inside / 300 <= 0.98


def scattered(name: str, rate: float, phi: float, rng: np.random.Generator) -> Analysis:
    rates = rate * (1 + autoregressive(SECONDS, phi, 0.05, rng))
    rates[:30] /= 4
    points: Points = [(second + 1.0, second, "samples_per_second", float(each)) for second, each in enumerate(rates)]
    work = Work(amount=float(rates.sum()), unit="samples")
    return made(name, util=np.full(SECONDS, 90.0), training=points, work=work)
