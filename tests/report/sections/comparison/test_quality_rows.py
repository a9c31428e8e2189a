"""Quality beside speed, in words: the headline, the table of steps, the rows of a pair, the time to a target."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import pytest

import gpureport
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import build_sampled_run
from gpureport.comparison.training.training_goals import NO_GOALS, QualityTarget, TrainingGoals
from gpureport.report import build, render
from gpureport.report.model.report_content import Report
from gpureport.report.sections.comparison.quality_rows import format_values, warn_of_quality
from gpureport.report.wording.display import headline, plain
from gpureport.testing import Analysis, Comparison, Recording, Work, recording, with_training

Curves = Mapping[str, Sequence[float]]
TARGET = TrainingGoals(target=QualityTarget(name="val_accuracy", value=0.75))
GOOD = (0.5, 0.77, 0.79, 0.79, 0.79)
BAD = (0.5, 0.6, 0.61, 0.61, 0.61)


@cache
def _recorded(seconds: int) -> tuple[Recording, Analysis]:
    made = recording(util=[90.0] * seconds, power=300.0)
    return made, gpureport.analyze(made)


def run(step: str, curves: Curves, place: int = 0, seconds: int = 900) -> tuple[Recording, Analysis]:
    """Return a run that logged each metric once a minute, and did the same work as any other."""
    made, analysis = _recorded(seconds)
    labels = {"id": f"{step}{place}", "name": f"{step}-{place}", "step": step, "work": Work(amount=1e5, unit="samples")}
    labelled = replace(made.run, **labels)  # type: ignore[arg-type]  # fields of several types
    points = [(60.0 * (k + 1), name, value) for name, values in curves.items() for k, value in enumerate(values)]
    return with_training(replace(made, run=labelled), points), replace(analysis, run=labelled)


def steps(*sides: Curves, runs: int = 1, scatter: float = 0.001) -> list[tuple[Recording, Analysis]]:
    """Return runs of steps a, b and so on, each faster than the one before, with metrics that scatter between runs."""
    return [
        run(
            label,
            {name: [value + place * scatter for value in values] for name, values in side.items()},
            place,
            900 - 200 * number + place,
        )
        for number, (label, side) in enumerate(zip("abc", sides, strict=False))
        for place in range(runs)
    ]


def compared(runs: Sequence[tuple[Recording, Analysis]], goals: TrainingGoals = NO_GOALS) -> Comparison:
    """Return the comparison of runs."""
    return compare([build_sampled_run(*each) for each in runs], goals=goals)


def report(runs: Sequence[tuple[Recording, Analysis]], goals: TrainingGoals = NO_GOALS) -> Report:
    """Return the report of runs."""
    return build(runs, title=None, command="", gpu_hour_price=2.0, version="0", goals=goals)


@pytest.mark.parametrize(
    ("sides", "runs", "warning"),
    [
        (
            ({"val_accuracy": GOOD}, {"val_accuracy": BAD}),
            1,
            "quality fell: val_accuracy from 0.79 to 0.61 (unconfirmed: one run each)",
        ),
        (({"val_accuracy": GOOD}, {"val_accuracy": BAD}), 3, "quality fell: val_accuracy from 0.791 to 0.611"),
        (({"val_accuracy": BAD}, {"val_accuracy": GOOD}), 3, ""),
        (({"val_accuracy": GOOD}, {"val_accuracy": GOOD}), 3, ""),
        (({}, {}), 1, ""),
        (
            ({"val_loss": [1.0, 0.5, 0.4]}, {"val_loss": [1.0, 0.9, float("nan")]}),
            1,
            "quality fell: val_loss diverged (unconfirmed: one run each)",
        ),
        (
            ({"val_accuracy": BAD}, {"val_accuracy": GOOD}, {"val_accuracy": BAD}),
            1,
            "quality fell in c: val_accuracy from 0.79 to 0.61 (unconfirmed: one run each)",
        ),
    ],
)
def test_what_fell_is_said(sides: tuple[Curves, ...], runs: int, warning: str) -> None:
    """From the first step to the last, else in any step; nothing where quality rose, stayed or is not known."""
    assert warn_of_quality(compared(steps(*sides, runs=runs))) == warning


def test_a_run_that_went_wrong_is_named() -> None:
    """In the headline, and among the facts of the pair."""
    good, bad = {"val_accuracy": GOOD}, {"val_accuracy": [0.1] * 5}
    runs = [run(step, bad if step == "b" and k == 2 else good, k) for step in "ab" for k in range(3)]
    assert warn_of_quality(compared(runs)) == "quality fell: val_accuracy to 0.1 in 1 of 3 runs"
    part = report(runs).comparison
    assert part is not None
    (link,) = part.links
    assert "b: 1 of 3 runs ended at 0.1" in plain(link.training[0].text)


@pytest.mark.parametrize("runs", [1, 3])
def test_the_headline_names_speed_and_quality(runs: int) -> None:
    """A faster step that trains worse is no win: the largest letters of a page say both."""
    content = report(steps({"val_accuracy": GOOD}, {"val_accuracy": BAD}, runs=runs))
    first, _ = headline(content.verdict.sentence)
    assert "less GPU time per sample, but val_accuracy fell from 0.79" in first
    unconfirmed = "Quality fell: val_accuracy from 0.79 to 0.61 (unconfirmed: one run each)."
    assert (unconfirmed == content.verdict.details[0]) == (runs == 1)
    equal = report(steps({"val_accuracy": GOOD}, {"val_accuracy": GOOD}))
    assert "val_accuracy" not in equal.verdict.sentence + " ".join(equal.verdict.details)


def test_the_table_of_steps_has_the_metric_beside_the_verdict() -> None:
    """With its change and its verdict below."""
    content = report(steps({"val_accuracy": GOOD, "loss": BAD}, {"val_accuracy": BAD, "loss": BAD}, runs=3))
    assert content.steps is not None
    assert content.steps.columns[2] == "val_accuracy at the end"
    assert len(content.steps.columns) <= 7
    cells = [row.cells[1] for row in content.steps.rows]
    assert [(cell.text, plain(cell.small)) for cell in cells] == [("0.791", ""), ("0.611", "−0.180, worse")]
    without = report(steps({}, {}))
    assert without.steps is not None
    assert not any("at the end" in column for column in without.steps.columns)


def test_a_pair_has_a_row_of_each_metric() -> None:
    """Both values, the difference with its interval, the verdict, and where each was best."""
    sides = {"val_accuracy": GOOD, "loss": (2.0, 1.0)}, {"val_accuracy": BAD, "loss": (2.0, 1.0)}
    part = report(steps(*sides, runs=3)).comparison
    assert part is not None
    (link,) = part.links
    rows = {row.head.text: [plain(cell.text) for cell in row.cells] for row in link.effects.rows}
    assert rows["val_accuracy at the end"] == ["0.791", "0.611", "−0.180", "worse"]
    assert rows["loss at the end"] == ["1.5", "1.5", "none", "no clear change"]
    assert link.figures.rows[-1].head.text == "loss at the end"
    facts = {fact.name: plain(fact.text) for fact in link.training}
    assert facts["val_accuracy"] == "0.791, then 0.611; best 0.791 after 3 min, then 0.611 after 3 min"
    assert {fact.name: fact.text for fact in link.verdicts}["val_accuracy at the end"] == "Worse."


def test_time_to_a_target_is_told_of_each_step() -> None:
    """With GPU time and cost until then; a step that never reached it says so in every format."""
    content = report(steps({"val_accuracy": GOOD}, {"val_accuracy": BAD}, runs=2), TARGET)
    assert content.comparison is not None
    fact = content.comparison.across[0]
    assert fact.name == "Time to val_accuracy=0.75"
    told = plain(fact.text)
    assert told == "a: 2 min (2.00 GPU-min, 0.067, mean of 2 runs); b: the target was never reached in 2 of 2 runs."
    for extension in (".txt", ".html", ".json"):
        assert "the target was never reached in 2 of 2 runs" in " ".join(
            plain(render(content, extension, detail=0).decode()).split()
        )
    assert content.steps is not None
    place = content.steps.columns.index("Time to target") - 1
    assert [plain(row.cells[place].text) for row in content.steps.rows] == ["2 min", "not recorded"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((0.79, 0.61), ["0.79", "0.61"]),
        ((0.791, 0.61), ["0.791", "0.610"]),
        ((2.0, 1.0), ["2", "1"]),
        ((100.0, 90.0), ["100", "90"]),
        ((0.5, None), ["0.5", "not recorded"]),
        ((None, None), ["not recorded", "not recorded"]),
    ],
)
def test_values_side_by_side_have_no_digits_that_say_nothing(
    values: tuple[float | None, ...], texts: list[str]
) -> None:
    """Zeros at the end of all of them are left out."""
    assert format_values(values) == texts
