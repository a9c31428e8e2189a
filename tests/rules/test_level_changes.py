"""Changes are told by levels over many nights, and judged by the job's own figure: no short history shows them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.comparison.run import SampledRun
from gpureport.nightly.figures import BY_NAME, FIGURES, SAMPLING, Figure, measure_figures
from gpureport.nightly.latest import LatestNight, summarize_latest_night
from gpureport.nightly.records import NightlyRecord, NightlyRun, Params, capture_missing
from gpureport.nightly.shifts import FEWEST, SHORTEST, detect_changes, estimate_noise, fit_levels, select_new_shifts
from gpureport.nightly.trends import build_trends, group_changes
from gpureport.testing import analyze, finding, recording
from tests.support.tables import read_table

FIRST = date(2026, 1, 1)
USUAL = {
    name: (float(level), float(spread)) for name, level, spread in read_table(Path(__file__).with_name("usual.tsv"))
}


def day(number: int) -> str:
    return (FIRST + timedelta(days=number)).isoformat()


def course(name: str, nights: int, rng: np.random.Generator, correlation: float = 0.3) -> FloatArray:
    """Return a figure over nights in which nothing changes: correlated, with tails heavier than normal ones."""
    level, spread = USUAL[name]
    if spread < 0:
        return np.asarray(rng.poisson(level, nights), dtype=np.float64)
    shocks = rng.standard_t(6, nights + 30) * np.sqrt(4 / 6 * (1 - correlation**2))
    held = np.zeros(nights + 30)
    for place in range(1, nights + 30):
        held[place] = correlation * held[place - 1] + shocks[place]
    values = level + spread * held[30:]
    kind = next(kind for kind in FIGURES if kind.name == name)
    return np.asarray(np.round(np.clip(values, 0, 1 if kind.unit == "1" else None), 12), dtype=np.float64)


def part(values: Mapping[str, float | None], number: int = 0, **fields: str | Params) -> NightlyRun:
    """Return a run of a night with some figures, the others not recorded."""
    figures = tuple(Figure(name=kind.name, value=values.get(kind.name)) for kind in FIGURES)
    given: dict[str, str | Params] = {"run_id": f"{number:08x}", "name": "bert", "model": "NVIDIA H100", **fields}
    return NightlyRun(source="gpu.csv", gpus=8, started=number * 86_400_000_000, figures=figures, **given)  # type: ignore[arg-type]  # each caller names real fields


def night(number: int, *parts: NightlyRun, label: str = "", recorded: int = 0) -> NightlyRecord:
    return NightlyRecord(
        date=day(number), label=label, command="gpureport nightly gpu.csv", version="1", runs=parts, recorded=recorded
    )


def nights(values: Mapping[str, Iterable[float]]) -> list[NightlyRecord]:
    rows = zip(*values.values(), strict=True)
    return [
        night(number, part(dict(zip(values, map(float, row), strict=True)), number)) for number, row in enumerate(rows)
    ]


def quiet(seed: int, nights: int = 60) -> FloatArray:
    return 100 * course("gpu_utilization_ratio", nights, np.random.default_rng(seed))


def cost(values: FloatArray, starts: tuple[int, ...], penalty: float) -> float:
    edges = [*starts, len(values)]
    parts = [values[start:end] for start, end in pairwise(edges)]
    return sum(float(np.abs(part - np.median(part)).sum()) for part in parts) + penalty * (len(parts) - 1)


def fits(count: int, start: int = 0) -> list[tuple[int, ...]]:
    """Return every way to cut a series into levels that last long enough."""
    if count - start < SHORTEST:
        return []
    whole = [(start,)]
    return whole + [
        (start, *rest) for cut in range(start + SHORTEST, count - SHORTEST + 1) for rest in fits(count, cut)
    ]


def test_fit_is_the_best_of_all() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        values = np.round(rng.normal(size=13) + rng.choice([0, 4], 13).cumsum() % 9, 1)
        penalty = float(rng.uniform(0.5, 6))
        best = min(cost(values, each, penalty) for each in fits(13))
        assert cost(values, fit_levels(values, penalty), penalty) == pytest.approx(best), seed


def test_step_is_found_with_its_size_on_the_third_night() -> None:
    values = quiet(3)
    values[30:] -= 4.8
    assert detect_changes(values[:32], smallest=0.5) == ()
    (found,) = detect_changes(values[:33], smallest=0.5)
    assert (found.place, found.gradual) == (30, False)
    assert found.difference == pytest.approx(-4.8, abs=1)
    assert found.low < -4.8 < found.high < 0
    (later,) = detect_changes(values, smallest=0.5)
    assert later.high - later.low < found.high - found.low


def test_a_step_of_five_spreads_is_told_by_its_third_night() -> None:
    told = 0
    for seed in range(60):
        values = quiet(seed, 33)
        values[30:] -= 3.0
        told += any(abs(step.place - 30) <= 1 for step in detect_changes(values, smallest=0.5))
    assert told >= 40


def test_shocks_outliers_and_few_nights_are_no_change() -> None:
    for seed in range(20):
        values = quiet(seed, 33)
        values[30:] -= 0.6 * np.array([8.0, 3.0, 1.0])
        assert detect_changes(values, smallest=0.5) == ()
    places = ([40], [40, 41], [59], [58, 59], [10], [20, 40])
    for seed, outliers, size in product(range(5), places, (-80.0, -6.0, 12.0)):
        values = quiet(seed)
        values[outliers] += size
        assert detect_changes(values, smallest=0.5) == (), (seed, outliers, size)
    values = np.array([90.0] * 4 + [10.0] * 5)
    assert len(values) < FEWEST
    assert detect_changes(values, smallest=0.5) == ()
    assert detect_changes(np.zeros(0), smallest=0.5) == ()


def test_small_and_slow_changes() -> None:
    values = np.array([70.0] * 20 + [70.4] * 20)
    assert detect_changes(values, smallest=0.5) == ()
    assert detect_changes(values, smallest=0.0, relative=0.01) == ()
    (found,) = detect_changes(values, smallest=0.3)
    assert found.place == 20
    assert [found.low, found.high] == pytest.approx([0.4, 0.4])
    values = quiet(4)
    values[10:] -= 0.15 * np.arange(50)
    slow = detect_changes(values, smallest=0.5)
    assert max(step.difference for step in slow) < 0
    assert any(step.gradual for step in slow)


def test_levels_know_their_value_and_their_unit_changes_nothing() -> None:
    for count in range(10, 40):
        (found,) = detect_changes(np.repeat([0.0, 2.0], [count, 3]), smallest=0.5, grain=0.5) or (None,)
        assert found is None or (found.before, found.after) == (0.0, 2.0)
    (found,) = detect_changes(np.repeat([0.0, 2.0], [30, 10]), smallest=0.5, grain=0.5)
    assert (found.before, found.after, found.difference) == (0.0, 2.0, 2.0)
    values = quiet(5)
    values[30:] += 5
    places = [step.place for step in detect_changes(values, smallest=0.0)]
    assert places
    assert [step.place for step in detect_changes(values * 2.0**30, smallest=0.0)] == places
    assert [step.place for step in detect_changes(-values, smallest=0.0)] == places


def test_noise_is_told_apart_and_only_what_is_new_is_news() -> None:
    for seed in range(10):
        values = quiet(seed, 120)
        expected = estimate_noise(values, 0.0).deviation
        values[60:] += 20
        values[20] -= 40
        assert estimate_noise(values, 0.0).deviation == pytest.approx(expected, rel=0.33)
    values = quiet(3)
    values[30:] -= 4.8
    before, now, later = (detect_changes(values[:nights], smallest=0.5) for nights in (32, 33, 34))
    assert select_new_shifts(now, before) == now
    assert select_new_shifts(later, now) == ()
    values[31:] += 9.6
    assert len(select_new_shifts(detect_changes(values, smallest=0.5), now)) == 1


SHARE, POWER, WORK, IDLE = "gpu_utilization_ratio", "gpu_power_watts", "gpu_seconds_per_1000_work", "idle_ratio"
SAMPLED = Figure(name=SAMPLING, value=1 / 81)
"""What a recording of 81 s with a sample a second notes beside its figures."""


def levels(**values: tuple[float, float]) -> list[NightlyRecord]:
    """Return 23 nights; each figure has one level for twenty of them and another one for three."""
    found = {
        name: [before + 0.001 * before * (n % 3) for n in range(20)] + [after] * 3
        for name, (before, after) in values.items()
    }
    return nights(found)


def latest(history: list[NightlyRecord]) -> LatestNight:
    return summarize_latest_night(history, build_trends(history))


def is_worse(night_: LatestNight) -> bool:
    """Return whether a new event is for the worse and still holds, which breaks the gate."""
    return any(event.verdict == "worse" and not event.is_undone for event in night_.new_events)


def is_compared(night_: LatestNight) -> bool:
    """Return whether every figure of its runs was compared with the nights before."""
    return bool(night_.groups) and not night_.unrecorded and not night_.nights_needed


def test_changes_that_begin_together_are_judged_by_the_own_figure() -> None:
    cases: list[tuple[dict[str, tuple[float, float]], str]] = [
        ({WORK: (800.0, 400.0), IDLE: (0.1, 0.3)}, "better"),
        ({WORK: (800.0, 900.0), IDLE: (0.1, 0.3)}, "worse"),
        ({WORK: (800.0, 800.0), IDLE: (0.1, 0.3)}, "changed"),
        ({"lost_ratio": (0.1, 0.3), "gpu_temperature_celsius": (70.0, 60.0)}, "worse"),
    ]
    for values, verdict in cases:
        found = latest(levels(**values))
        assert ([event.verdict for event in found.new_events], is_worse(found)) == ([verdict], verdict == "worse")


def usual(count: int) -> list[NightlyRecord]:
    return [night(number, part({SHARE: 0.9, POWER: 300.0}, number)) for number in range(count)]


def test_what_cannot_be_compared_is_said() -> None:
    assert (latest([]).date, is_compared(latest([])), is_compared(latest(usual(12)))) == ("", False, True)
    for gone, is_said in ((1, True), (10, True), (11, False)):
        history = [*usual(12), *(night(number, part({SHARE: 0.9}, number)) for number in range(12, 12 + gone))]
        found = latest(history)
        assert [trend.kind.name for trend in found.unrecorded] == [POWER] * is_said, gone
        assert is_compared(found) is not is_said
    missing = latest([*usual(12), night(12, capture_missing("gpu.csv", "", "no such file"))])
    assert (len(missing.missing_runs), is_compared(missing)) == (1, False)
    other = part({SHARE: 0.5, POWER: 200.0}, 90, model="NVIDIA A100")
    for runs in ((other,), (part({SHARE: 0.9, POWER: 300.0}, 12), other)):
        assert dict(latest([*usual(12), night(12, *runs)]).nights_needed) == {("", "NVIDIA A100"): 9}
    units = ["steps"] * 12 + ["images"] * 2
    known = [part({SHARE: 0.9, WORK: 8.0}, n, params=(("--work", f"9 {unit}"),)) for n, unit in enumerate(units)]
    assert set(latest([night(n, each) for n, each in enumerate(known)]).nights_needed.values()) == {8}


def back_again(nights_after: int) -> list[NightlyRecord]:
    """Return nights of a job that was slow in three of them, the first four and the latest as ever."""
    usual, slow = (135.0, 135.0, 135.002, 136.653), (436.672, 438.335, 438.34)
    after = (133.333, 133.335, 140.007, 138.333, 136.667)[:nights_after]
    hot = (70.0,) * 4 + (64.0,) * 3 + (70.0,) * len(after)
    return [
        night(n, part({WORK: work, "gpu_temperature_celsius": celsius}, n, params=(("--work", "600 steps"),)))
        for n, (work, celsius) in enumerate(zip((*usual, *slow, *after), hot, strict=True))
    ]


def test_changes_apart_are_events_and_those_undone_stand_no_longer() -> None:
    early = [800.0 + n % 2 for n in range(15)] + [900.0 + n % 2 for n in range(15)]
    late = [0.1 + 0.001 * (n % 2) for n in range(25)] + [0.3] * 5
    events = group_changes(build_trends(nights({WORK: early, IDLE: late})))
    assert [(len(event.changes), event.date[-2:]) for event in events] == [(1, "16"), (1, "26")]
    # A job slow for twelve nights, as ever for twelve, and slower by 22% since: the last change alone still holds.
    work = [800.0 + n % 2 for n in range(12)] + [1000.0 + n % 2 for n in range(12)] + [800.0 + n % 2 for n in range(12)]
    found = latest(nights({WORK: [*work, *(976.0 + n % 2 for n in range(12))]}))
    assert [event.date[5:] for event in found.standing_events] == ["02-06"]


def test_one_night_is_told_and_a_change_stands_until_three_nights_undo_it() -> None:
    usual, slow = (1.82, 1.97, 1.88), (3.63, 3.63, 3.2)
    history = nights({WORK: usual * 3 + slow + usual, IDLE: (0.1, 0.1, 0.1) * 3 + (0.5, 0.5, 0.5) + (0.1, 0.1, 0.1)})
    told = []
    for count in range(9, 16):
        found = latest(history[:count])
        (own,) = found.own_trends
        new, standing = ([each.date[-2:] for each in events] for events in (found.new_events, found.standing_events))
        told.append((own.emerging is not None, "".join(new), "".join(standing)))
    still = (True, "", "10")
    assert told == [(False, "", ""), *[(True, "", "")] * 2, (False, "10", ""), still, still, (False, "13", "")]


def test_the_latest_change_leads_and_what_is_undone_breaks_no_gate() -> None:
    for nights_after in (3, 4, 5):
        found = latest(back_again(nights_after))
        assert not is_worse(found)
        assert bool(found.new_events) == (nights_after == 3)
    assert [(event.date, event.verdict) for event in latest(back_again(3)).new_events] == [
        ("2026-01-08", "better"),
        ("2026-01-05", "worse"),
    ]
    told = []
    for count in range(13, 18):
        work = [800.0 + n % 3 for n in range(12)] + [900.0] * 5
        power = [300.0 + n % 3 for n in range(13)] + [200.0] * 5
        told.append(is_worse(latest([night(n, part({WORK: work[n], POWER: power[n]}, n)) for n in range(count)])))
    assert told == [False, False, True, False, False]


def test_no_interval_of_a_timed_figure_is_finer_than_its_samples() -> None:
    def changes(*samplings: Figure) -> list[float]:
        history = [
            replace(each, runs=tuple(replace(run, figures=(*run.figures, sampled)) for run in each.runs))
            for each, sampled in zip(back_again(3), samplings, strict=True)
        ]
        work = next(trend for trend in build_trends(history) if trend.kind.name == WORK)
        return [(change.shift.high - change.shift.low) / change.shift.before for change in work.changes]

    fine, coarse = changes(*[SAMPLED] * 10), changes(Figure(name=SAMPLING, value=0.5), *[SAMPLED] * 9)
    assert fine[0] == pytest.approx(0.08, abs=0.01)
    assert (coarse[0] > 1, coarse[1] < 0.1) == (True, True)


def test_low_use_of_unknown_cause_leaves_the_share_of_waits_open() -> None:
    made = replace(analyze(recording(util=[30.0] * 600)), not_judged=())
    (gpu,), unknown = made.gpu_time, "low_util_cause_unknown"
    for kind, known, ratio in ((unknown, 0.0, None), (unknown, 400.0, 0.4), ("underutilised", 0.0, 0.0)):
        seconds = (("computing", 700 - known), ("waiting_for_input", known), ("low_use", 300.0))
        run = replace(made, findings=(finding(kind, (0, 300)),), gpu_time=(replace(gpu, seconds=seconds),))
        figures = {figure.name: figure.value for figure in measure_figures(SampledRun(analysis=run))}
        assert figures["waiting_ratio"] == ratio, (kind, known)


NIGHTS = 60


def alarms(name: str, values: FloatArray) -> list[tuple[int, int]]:
    """Return every alarm as a job meets them night after night: the night, and where the change is said to begin."""
    kind = BY_NAME[name]
    found: list[tuple[int, int]] = []
    before = detect_changes(values[: FEWEST - 1], smallest=kind.smallest, relative=kind.relative, grain=kind.grain)
    for count in range(FEWEST, len(values) + 1):
        now = detect_changes(values[:count], smallest=kind.smallest, relative=kind.relative, grain=kind.grain)
        found += [(count - 1, step.place) for step in select_new_shifts(now, before)]
        before = now
    return found


def calm(seed: int, correlation: float) -> tuple[int, int]:
    """Return the nights with an alarm of any figure where nothing changes, and how many nights could have had one."""
    rng = np.random.default_rng([seed, 61])
    alarmed: set[int] = set()
    for name in USUAL:
        alarmed |= {at for at, _ in alarms(name, course(name, NIGHTS, rng, correlation))}
    return len(alarmed), NIGHTS - FEWEST + 1


@pytest.mark.stress
def test_quiet_nights_stay_quiet() -> None:
    for correlation in (0.3, 0.5):
        alarmed, possible = (sum(each) for each in zip(*(calm(seed, correlation) for seed in range(20)), strict=True))
        assert alarmed <= 0.01 * possible, correlation
