"""What leaves a comparison in doubt: work that the training log contradicts, and steps that took no turns."""

from dataclasses import replace

import pytest

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.steps import build_steps
from gpureport.data_quality import CLOCK_SET_BACK
from gpureport.report.sections.head.excluded_data import describe_unfinished_recordings
from gpureport.report.sections.head.recording_doubts import (
    describe_moved_clocks,
    describe_recording_order,
    describe_work_contradictions,
)
from gpureport.report.wording.display import GAP
from gpureport.testing import ClockStep, Run, Work
from tests.comparison.runs import Points, level, sampled
from tests.report import examples


def rates(first: int = 5, last: int = 300) -> Points:
    """Return a throughput of 100 images a second, logged every five seconds."""
    return [(float(at), at, "images_per_s", 100.0) for at in range(first, last, 5)]


def run(name: str, amount: float, unit: str = "images", training: Points | None = None) -> SampledRun:
    """Return a run of 300 s that did 30,000 images by its training log."""
    work = Work(amount=amount, unit=unit)
    return sampled(name, util=level(90, 301), work=work, training=rates() if training is None else training)


@pytest.mark.parametrize("amount", [16_000, 30_000, 55_000])
def test_work_that_the_log_counts_is_not_doubted(amount: float) -> None:
    """Counts of one job may differ by a factor of two: a log may leave out batches."""
    assert not describe_work_contradictions([run("a", amount)])


@pytest.mark.parametrize(("amount", "stated"), [(1_000_000, "1,000,000"), (64_000, "64,000"), (10_000, "10,000")])
def test_work_far_from_the_log_is_doubted(amount: float, stated: str) -> None:
    """As the size of the data set, or of another run."""
    assert describe_work_contradictions([run("a", amount)]).replace(GAP, " ") == (
        f"The work stated is {stated} images a run, the training log counts about 29,500: "
        "don't rely on figures per unit of work."
    )


def test_the_worst_of_several_runs_is_named() -> None:
    """The others are counted."""
    text = describe_work_contradictions([run("a", 100_000), run("b", 1_000_000), run("c", 30_000)])
    assert "is 1,000,000 images a run" in text.replace(GAP, " ")
    assert " in b and 1 more run: " in text.replace(GAP, " ")


def test_a_log_of_a_part_of_the_run_contradicts_nothing() -> None:
    """At its rate the whole run can have done what was stated."""
    assert not describe_work_contradictions([run("a", 30_000, training=rates(200, 260))])


def test_other_units_are_not_set_against_each_other() -> None:
    """Tokens are no images."""
    assert not describe_work_contradictions([run("a", 1_000_000, "tokens")])
    assert not describe_work_contradictions([sampled("a", util=level(90, 301), training=rates())])


def shifted(name: str, step: str, hours: float) -> SampledRun:
    """Return a run of five minutes that began some hours later."""
    made = sampled(name, step=step, util=level(90, 300))
    info, later = made.analysis.run, round(hours * 3.6e9)
    info = replace(info, started=info.started + later, ended=info.ended + later)
    return replace(made, analysis=replace(made.analysis, run=info))


def order(*runs: tuple[str, float]) -> str:
    """Return what is said of runs of steps that began at some hours."""
    made = [shifted(f"{step}{hours}", step, hours) for step, hours in runs]
    return describe_recording_order(tuple(build_steps(made)))


def test_one_step_after_the_other_is_said() -> None:
    """Whichever of the two came first."""
    said = "Not recorded in turn (A B A B), so a machine that drifts can look like a change: "
    assert order(("a", 0), ("a", 1), ("b", 2), ("b", 3)) == f"{said}a, then b."
    assert order(("a", 2), ("a", 3), ("b", 0), ("b", 1)) == f"{said}b, then a."
    assert order(("a", 0), ("a", 2), ("b", 1), ("b", 3), ("c", 4), ("c", 5)) == f"{said}b, then c."


def test_turns_and_single_runs_need_no_note() -> None:
    """Nor do logs without times, and logs of which some state a zone and others do not."""
    assert not order(("a", 0), ("b", 1), ("a", 2), ("b", 3))
    assert not order(("a", 0), ("b", 1))
    runs = [shifted(f"{step}{hours}", step, hours) for step, hours in (("a", 0), ("a", 1), ("b", 2), ("b", 3))]
    info = runs[0].analysis.run
    for other in (
        replace(info, quality=replace(info.quality, synthetic_time=True)),
        replace(info, timezone=None if info.timezone else "UTC"),
    ):
        changed = [replace(runs[0], analysis=replace(runs[0].analysis, run=other)), *runs[1:]]
        assert not describe_recording_order(tuple(build_steps(changed)))


def stepped(name: str, seconds: float, cause: str = CLOCK_SET_BACK) -> Run:
    """Return a run whose stamps went back."""
    step = ClockStep(device="gpu:0", at=examples.at(60), step_seconds=-seconds, shift_seconds=seconds, cause=cause)
    run = examples.run(name)
    return replace(run, quality=replace(run.quality, clock_steps=(step,)))


def test_a_clock_that_was_set_back_is_told() -> None:
    """By the largest step; small ones, the end of summer time and a log that began anew are no doubt."""
    text = describe_moved_clocks([stepped("a", 120.0), stepped("b", 600.0), stepped("c", 5.0)]).replace(GAP, " ")
    assert (
        text == "The clock went back by 10 min in b and in 1 more run: times after that are repaired, and may be off."
    )
    assert describe_moved_clocks([stepped("a", 120.0)]).replace(GAP, " ").startswith("The clock went back by 2 min: ")
    plain = [stepped("a", 5.0), stepped("b", 3600.0, "daylight saving"), stepped("c", 3600.0, "log restarted")]
    assert not describe_moved_clocks(plain)


def test_many_unfinished_runs_are_counted() -> None:
    """A doubt is never cut, so it names no more runs than a line holds, and no endless name."""
    runs = [examples.run(f"{'x' * 500} {name}") for name in ("one", "two", "three", "four")]
    cut = [replace(run, quality=replace(run.quality, unfinished=True)) for run in runs]
    text = describe_unfinished_recordings(cut)
    assert text.startswith("xxx")
    assert " one and 3 more runs are unfinished: " in text
    assert len(text) < 300
