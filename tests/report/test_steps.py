"""What a report says of steps beside their table: intervals, effects since the first step, and what is left."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from gpureport import columns
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.chain.step_means import average_work_figure
from gpureport.comparison.steps.step_figures import PER_WORK
from gpureport.comparison.study.factors import Factor
from gpureport.report import build, render
from gpureport.report.formats.text import markdown, terminal
from gpureport.report.model.comparison_parts import ComparisonPart
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Table
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.wording import display
from gpureport.report.wording.display import GAP
from gpureport.series_table import METRIC_TYPES
from gpureport.testing import Work
from tests.report import examples

STEPS = (("old", 0.6), ("mid", 0.5), ("new", 0.9))
SECONDS = {"old": 900, "mid": 700, "new": 400}


def plain(text: str) -> str:
    """Return text with ordinary spaces."""
    return text.replace(GAP, " ")


def busy(name: str, level: float, step: str, seconds: int = 900, work: float | None = 1000) -> examples.Pair:
    """Return a run of two GPUs at a level of utilisation that did so many steps; a tenth of its time was idle."""
    info = examples.run(
        name, seconds=seconds, step=step, work=None if work is None else Work(amount=work, unit="steps")
    )
    scatter = np.random.default_rng(len(name) + ord(name[-1])).normal(0, 0.01, (2, seconds + 1))
    gap = examples.idle_gap("gpu:0", 100, 100 + seconds / 10)
    levels = list(np.round(np.clip(level + scatter, 0, 1), 2))
    return examples.recording(info, levels), examples.analysis(info, findings=(gap,), idle=seconds / 10)


def chain(*, runs: int = 3, by: str = "") -> Report:
    """Return the report of three steps with repetitions, one of them slower to use its GPUs and faster in all."""
    named = [
        busy(f"{step}{run}", level + run / 200, f"{by}={step}" if by else step, SECONDS[step] + 3 * run)
        for step, level in STEPS
        for run in range(runs)
    ]
    factors = (Factor(kind="param", key=by),) if by else ()
    return build(named, title=None, command="", gpu_hour_price=2.5, version="0", by=factors)


def compared(report: Report) -> ComparisonPart:
    """Return what the report says of its steps."""
    assert report.comparison is not None
    return report.comparison


def column(table: Table, name: str) -> list[str]:
    """Return the cells of a column."""
    return [plain(row.cells[table.columns.index(name) - 1].text) for row in table.rows]


@pytest.fixture(scope="module")
def repeated() -> Report:
    """Return the report of three steps of three runs."""
    return chain()


def test_tiles_of_repeated_steps_are_means(repeated: Report) -> None:
    """What the table says of the last step, its tile says as well, and it is one run's, not the sum of three."""
    assert repeated.steps is not None
    throughput, cost, energy, memory = repeated.tiles
    assert (throughput.label, throughput.unit) == ("Whole-job throughput", "steps/s")
    assert cost.label == "Cost per million steps"
    assert cost.change is not None
    assert (cost.change.text, cost.change.verdict, cost.change.arrow) == ("−55%", "better", "down")
    assert cost.context == "At 2.50 per GPU-hour, no currency given"
    assert energy.label.startswith("Energy per ")
    assert memory.change is None or memory.change.verdict == ""
    assert [plain(bar.total) for bar in repeated.gpu_time] == ["30.1 GPU-min", "23.4 GPU-min", "13.4 GPU-min"]
    assert repeated.title == "old → new"


def test_a_finding_of_every_repetition_is_open_once(repeated: Report) -> None:
    """Three runs that show one gap each have one open finding."""
    assert [card.run for card in repeated.findings if card.is_open] == ["new, new2", "new, new1", "new, new0"]


def test_the_headline_names_the_step_that_saved_most(repeated: Report) -> None:
    """Notes hold what else got better or worse; not those that say the same of equal work."""
    assert repeated.verdict.sentence == "55% less GPU time per training step; most of it in new."
    (better,) = (plain(note) for note in repeated.verdict.notes if note.startswith("Also better"))
    assert "GPU utilisation in steady state 60% to 90%" in better
    assert "steps a second" not in better


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (0.9912, 0.9815, ("99.1%", "98.2%")),
        (0.0951, 0.1234, ("9.5%", "12.3%")),
        (0.36, 0.45, ("36%", "45%")),
        (0.0, 0.123, ("0%", "12%")),
        (0.991, 1.0, ("99.1%", "100%")),
        (0.991, None, ("99.1%", "not recorded")),
    ],
)
def test_two_shares_have_the_same_decimals(before: float, after: float | None, expected: tuple[str, str]) -> None:
    """Their difference, which has a decimal, is the one that a reader reckons from them."""
    shown = figure_formats.choose_format("gpu_utilization_ratio", None)
    assert tuple(map(plain, shown.format_pair(before, after))) == expected


@pytest.mark.parametrize(("whole", "shown"), [(1.0, "+20.0 points"), (0.5, None)])
def test_a_change_of_what_had_settled_stands_below_no_other_figure(whole: float, shown: str | None) -> None:
    """Where the figure is of the whole recording and another, nobody could reckon the change from it."""
    runs = []
    for step, level in (("old", 0.6), ("new", 0.8)):
        for run in range(2):
            recording, analysis = busy(f"{step}{run}", level, step, work=None)
            found = tuple(
                examples.statistics(gpu.id, gpu_utilization_ratio=whole * level) for gpu in recording.run.gpus
            )
            runs.append((recording, replace(analysis, statistics=found)))
    made = build(runs, title=None, command="gpureport report", gpu_hour_price=None, version="0.1.0")
    assert made.steps is not None
    change = made.steps.rows[1].cells[made.steps.columns.index("GPU utilisation, whole run") - 1].change
    assert (change and plain(change.text)) == shown


def test_for_how_many_comparisons_verdicts_allow_is_a_note(repeated: Report) -> None:
    """It is how the verdicts were come by, and no part of the result."""
    allows = "Verdicts are adjusted for 3 comparisons of the whole job and 3 of training (Holm)."
    assert allows in repeated.verdict.notes
    assert allows not in repeated.verdict.details


@pytest.mark.parametrize(("graphics", "told"), [(1.5e9, False), (1.2e9, True)])
def test_a_clock_that_moves_as_another_is_not_told_twice(graphics: float, *, told: bool) -> None:
    """The graphics clock is named beside the SM clock where it went another way."""
    runs = []
    for step, ends in (("slow", (1e9, 1e9)), ("fast", (1.5e9, graphics))):
        for run in range(3):
            recording, analysis = busy(f"{step}{run}", 0.8, step)
            series = recording.series
            for metric, clock in zip(("gpu_sm_clock_hertz", "gpu_graphics_clock_hertz"), ends, strict=True):
                field = pa.field(metric, METRIC_TYPES[metric])
                values = np.full(series.num_rows, clock + run * 1e6)
                series = series.append_column(field, columns.nan_to_null(values, METRIC_TYPES[metric]))
            runs.append((recording.with_series(series), analysis))
    made = build(runs, title=None, command="gpureport report", gpu_hour_price=None, version="0.1.0")
    (beside,) = (line for line in made.verdict.notes if line.startswith("Also changed"))
    assert "SM clock" in beside
    assert ("graphics clock" in beside) == told


def test_what_is_proven_worse_is_a_note() -> None:
    """A faster step that uses its GPUs less is said to do so."""
    runs = [
        busy(f"{step}{run}", level + run / 200, step, SECONDS[step]) for step, level in STEPS[:2] for run in range(3)
    ]
    content = build(runs, title=None, command="", gpu_hour_price=None, version="0")
    assert any(note.startswith("Also worse: GPU utilisation in steady state") for note in content.verdict.notes)


def test_a_headline_is_not_cut_within_a_name() -> None:
    """Names too long for sixteen words are left out."""
    names = ("exp. 1 with the loader of old", "exp. 2 with many more workers")
    runs = [
        busy(f"{step}{run}", level + run / 200, name, SECONDS[step])
        for (step, level), name in zip(STEPS[:2], names, strict=True)
        for run in range(3)
    ]
    content = build(runs, title=None, command="", gpu_hour_price=None, version="0")
    assert display.headline(content.verdict.sentence) == ("22% less GPU time per training step.", "")


def test_effects_since_the_first_step_stand_beside_those_of_the_step(repeated: Report) -> None:
    """From the second link on."""
    first, second = compared(repeated).links
    assert first.effects.columns == ("", "Before", "After", "Difference", "Verdict")
    assert second.effects.columns == (*first.effects.columns, "Since first", "Verdict since first")
    place = [row.head.text for row in second.effects.rows].index("GPU utilisation once settled")
    cells = [plain(cell.text) for cell in second.effects.rows[place].cells]
    assert cells == ["50%", "90%", "+40.0 points", "better", "+30.0 points", "better"]
    assert " to " in second.effects.rows[place].cells[4].small
    assert [row.cells[3].text for row in first.effects.rows if row.head.text.startswith("GPU util")] == ["worse"]


def test_a_chain_has_dots_with_intervals(repeated: Report) -> None:
    """The figure that the chain is judged by, then training alone, then utilisation, of what had settled."""
    per_work, rate, used = compared(repeated).charts
    assert (per_work.title, per_work.form, per_work.share) == ("GPU time per 1,000 steps, GPU-h", "dots", False)
    assert (rate.title, rate.form, rate.share) == ("Training throughput, steps/s", "dots", False)
    assert [round(dot.value, 2) for dot in rate.rows[2].runs] == [2.5, 2.48, 2.46]
    assert rate.rows[2].interval is not None
    assert (used.title, used.form, used.share) == ("Mean GPU utilisation once settled", "dots", True)
    assert [row.label for row in used.rows] == ["old (3 runs)", "mid (3 runs)", "new (3 runs)"]
    for row, level in zip(used.rows, (0.605, 0.505, 0.905), strict=True):
        assert row.value == pytest.approx(level, abs=0.002)
        assert row.interval is not None
        assert row.interval[0] < level < row.interval[1]
    assert plain(used.rows[0].text).startswith("60.5% (")
    dots = used.rows[0].runs
    assert [dot.run for dot in dots] == ["old0", "old1", "old2"]
    assert [dot.value for dot in dots] == pytest.approx([0.6, 0.605, 0.61], abs=0.002)
    assert per_work.rows[0].each_run == "runs 0.500, 0.502 and 0.503"
    assert compared(repeated).legend.replace(GAP, " ") == (
        "Large dot: a step, a mean over its runs, its 95% interval as a line across it. Small dots: its runs. Dashed: "
        "the first step."
    )
    assert per_work.rows[0].value == pytest.approx(0.5017, abs=1e-4)


def test_the_legend_of_single_runs_speaks_of_no_mean() -> None:
    """Each step is one run, without an interval where it is told by its whole recording alone."""
    part = compared(chain(runs=1))
    assert part.legend.startswith("Dot: a step, its 95")
    assert part.legend.endswith(", hollow where it has no interval. Dashed: the first step.")


def test_brief_gpu_time_per_unit_of_work_is_in_seconds() -> None:
    """Where no step takes a hundredth of an hour, every table, tile, chart and sentence is in seconds."""
    runs = [
        busy(f"{step}{run}", level, step, SECONDS[step] + 3 * run, work=60_000)
        for step, level in STEPS
        for run in (0, 1)
    ]
    content = build(runs, title=None, command="", gpu_hour_price=None, version="0")
    title = "GPU time per 1,000 steps"
    assert content.steps is not None
    assert column(content.steps, "GPU time per 1,000 steps, GPU-s") == ["30.1", "23.4", "13.4"]
    assert content.steps.rows[0].cells[0].value == pytest.approx(30.05, abs=0.02)
    tile = content.tiles[1]
    assert (tile.label, tile.before, tile.value, tile.unit) == ("GPU time per 1,000 steps", "30.1", "13.4", "GPU-s")
    assert tile.context == "No price given"
    per_work = compared(content).charts[0]
    assert per_work.title == f"{title}, GPU-s"
    assert per_work.rows[0].value == pytest.approx(30.05, abs=0.01)
    assert [link.effects.rows[0].head.text for link in compared(content).links] == ["Whole-job throughput"] * 2
    assert all(title in [row.head.text for row in link.effects.rows] for link in compared(content).links)
    assert "GPU-hours per" not in terminal.render(content) + markdown.render(content)


def test_one_long_step_keeps_all_in_hours() -> None:
    """A column has one unit."""
    runs = [busy("a", 0.6, "a", 900, work=1000), busy("b", 0.6, "b", 900, work=100_000)]
    content = build(runs, title=None, command="", gpu_hour_price=None, version="0")
    assert content.steps is not None
    assert column(content.steps, "GPU time per 1,000 steps, GPU-s") == ["1,800", "18.0"]


def test_a_mean_per_unit_of_work_is_told_from_logarithms() -> None:
    """Of several runs their geometric mean; of one without a training log it has no interval."""
    pairs = [busy(f"r{run}", 0.6, "s", 400 * 2**run) for run in range(3)]
    (step,) = compare(examples.sampled(*(analysis for _, analysis in pairs))).steps
    mean = average_work_figure(step, PER_WORK)
    assert mean is not None
    assert mean.value == pytest.approx(1600)
    assert mean.interval is not None
    assert mean.interval[0] * mean.interval[1] == pytest.approx(1600**2)
    (lone,) = compare(examples.sampled(pairs[0][1])).steps
    alone = average_work_figure(lone, PER_WORK)
    assert alone is not None
    assert alone.interval is None
    assert alone.value == pytest.approx(lone.value(PER_WORK)) == 800


@pytest.mark.parametrize("extension", [".txt", ".html"])
def test_every_format_says_what_the_training_rate_rests_on(repeated: Report, extension: str) -> None:
    """Both rates are named, and where that of training alone comes from."""
    text = " ".join(plain(render(repeated, extension, detail=0).decode()).split())
    assert "Training alone: by work over the steady phase of the GPU log." in text
    assert "Whole job" in text


def test_no_interval_leaves_what_a_share_can_be() -> None:
    """Repetitions near 100% have an interval that reaches further; it is cut, and the note says so."""
    runs = [busy(f"{step}{run}", level, step) for step in ("a", "b") for run, level in enumerate((0.97, 1.0))]
    part = compared(build(runs, title=None, command="", gpu_hour_price=None, version="0"))
    ends = [row.interval for row in part.charts[-1].rows]
    assert [end and end[1] for end in ends] == [1.0, 1.0]
    assert "101" not in repr(part.estimates)
    assert plain(part.estimates.note) == "Intervals are cut at 0 and, of shares, at 100%: no figure lies beyond."
    assert compared(chain()).estimates.note == ""


def test_groups_have_bars_and_a_table() -> None:
    """Values of a param beside each other: utilisation and work per GPU-hour, without the param's name at each."""
    part = compared(chain(by="framework"))
    assert [(chart.title, chart.form) for chart in part.charts] == [
        ("Mean GPU utilisation once settled", "bars"),
        ("Steps per GPU-hour", "bars"),
    ]
    assert [row.label for row in part.charts[0].rows] == ["old (3 runs)", "mid (3 runs)", "new (3 runs)"]
    assert part.estimates.columns == (
        "Step",
        "Runs",
        "GPU utilisation once settled",
        "95% interval",
        "Work per GPU-hour",
        "95% interval",
        "Cost per million steps",
        "95% interval",
    )
    assert column(part.estimates, "Work per GPU-hour") == ["1,993", "2,560", "4,467"]


def test_what_is_still_lost_and_what_costs_most(repeated: Report) -> None:
    """Amounts of a run, and the card of the finding that costs most."""
    assert [(fact.name, plain(fact.text)) for fact in compared(repeated).remaining] == [
        ("Still lost", "Up to 10% of 13.4 GPU-min a run in new: all of it idle. In old it was 10%."),
        (
            "Largest left",
            (
                "Idle gaps, GPU 0: up to 40.3 GPU-s a run (5.0%), a mean over all runs, found in all 3; most in F1, "
                "5.0% of its run."
            ),
        ),
    ]
    text = terminal.render(repeated)
    assert "still lost" in text.lower()
    assert "Idle gaps, GPU 0: up to 40.3" in " ".join(plain(text).split())
    assert "Persisting" in text


def test_the_largest_is_no_consequence_of_another() -> None:
    """What follows from another finding is not looked at first, however much it costs; nor what costs nothing."""
    cause, follows = examples.throttling("gpu:1", 0, 300), examples.idle_gap("gpu:0", 100, 400)
    free = replace(examples.idle_gap("gpu:1", 1, 2), kind="mem_prealloc", lost_gpu_seconds=None)
    info = examples.run("a")
    found = (replace(cause, consequences=(follows.fingerprint,)), follows, free)
    left = compare(examples.sampled(examples.analysis(info, findings=found))).remaining
    assert left.largest is not None
    assert (left.largest.kind, left.largest.lost_gpu_seconds) == ("thermal_throttle", 60.0)
    assert left.lost_gpu_seconds == (("idle", 120.0),)
    assert left.held_gpu_seconds == 1200.0
    assert compare(examples.sampled(examples.analysis(info, findings=(free,)))).remaining.largest is None


def test_the_head_of_groups_names_the_best() -> None:
    """The sentence and the first tiles are of the best group; what is of the last one says so."""
    report = chain(by="framework")
    assert report.subtitle.startswith("3 groups by framework \N{MIDDLE DOT} 9 runs \N{MIDDLE DOT} ")
    sentence = plain(report.verdict.sentence)
    assert sentence == "framework=new is cheapest: 55% cheaper than the worst."
    cheapest, fastest, lost, _ = report.tiles
    assert cheapest.label == "Cost per million steps"
    assert cheapest.context.startswith("framework=new; next framework=mid, ")
    assert fastest.label == "Training throughput"
    assert lost.context.startswith("framework=new: ")
    assert any(note.startswith("In framework=new, the last group: ") for note in report.verdict.notes)
    assert not any("last step" in line for line in (*report.verdict.details, *report.verdict.notes))
