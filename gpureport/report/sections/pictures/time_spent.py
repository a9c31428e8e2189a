"""Where the GPU time went, as bars: one a step, or one a GPU of a single run."""

from collections.abc import Sequence
from math import fsum

from gpureport import number_format
from gpureport.comparison.chain import Comparison, Mean, average, mean_over_runs
from gpureport.comparison.figures import PER_WORK, TRAINING_RATE, count_jobs, find_sampling_step
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study
from gpureport.report.charts.elements import place_ticks
from gpureport.report.model.head import Change
from gpureport.report.model.pictures import SpentBar, TimeSpent
from gpureport.report.runs.gpu_time import seconds_by_cause, seconds_by_class
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.pictures.class_names import Causes, build_segments, describe_pauses, list_legend
from gpureport.report.sections.pictures.gpu_bars import build_gpu_bars
from gpureport.report.sections.pictures.spent_units import SpentUnit, choose_unit_per_run, choose_unit_per_work
from gpureport.report.wording import display
from gpureport.report.wording.differences import WHOLE_RUN_UTILISATION, build_change
from gpureport.report.wording.display import format_interval

_FIRST = "first step"
_INTERVAL = "Line below the end of a bar: 95% interval."
_NO_WORK = "Without the work done, a faster run can look worse."
_ROOM = 1.25
"""How far beyond the longest bar the axis may go for the end of an interval."""

_NEGLIGIBLE = 0.002
"""Share of the axis below which a segment cannot be seen, so that the legend does without it."""

_MOST_BARS = 12


def build_time_spent(comparison: Comparison, runs: Sequence[ReportRun], study: Study | None = None) -> TimeSpent | None:
    """Return the bars of steps, or of the GPUs of a single run; None where no GPU time is known.

    Args:
        comparison: the steps.
        runs: every run of the report.
        study: the groups; None where the steps are a chain.
    """
    if len(comparison.steps) == 1 and len(runs) == 1:
        return build_gpu_bars(runs[0])
    steps = [step for step in comparison.steps if any(_sum_classes(step))]
    if not steps:
        return None
    is_per_work = all(average(step, PER_WORK) for step in steps) and _has_one_unit(comparison)
    if is_per_work:
        unit = choose_unit_per_work(comparison)
    else:
        unit = choose_unit_per_run(max(_mean_gpu_seconds(step).value for step in steps))
    causes = seconds_by_cause(time for step in steps for each in step.analyses for time in each.gpu_time)
    place_of = {step.label: place for place, step in enumerate(comparison.steps)}
    bars = [_build_bar(comparison, place_of[step.label], unit, causes, study=study) for step in choose_steps(steps)]
    end = _find_end(bars)
    rate = "Training alone" if is_per_work else WHOLE_RUN_UTILISATION
    is_chain = study is None and len(comparison.steps) > 2  # noqa: PLR2004 - of two steps the one before is the first
    return TimeSpent(
        caption=_caption(unit, bars),
        columns=(unit.heading, rate if any(bar.beside for bar in bars) else ""),
        bars=tuple(bars),
        end=end,
        ticks=place_ticks(end, unit.short),
        legend=list_legend(bars, causes, _NEGLIGIBLE * end),
        since_first=_change(comparison, 0, -1, PER_WORK) if is_chain and is_per_work else None,
        beside_since_first=_change(comparison, 0, -1, TRAINING_RATE) if is_chain and is_per_work else None,
        rest=_describe_rest(steps, bars),
    )


def _sum_classes(step: Step) -> dict[str, float]:
    """Return the GPU-seconds of each class over all runs of a step that count as whole jobs."""
    seconds = seconds_by_class(time for run in count_jobs(step.runs).counted for time in run.analysis.gpu_time)
    return {name: amount for name, amount in seconds.items() if name != "no_job"}


def _has_one_unit(comparison: Comparison) -> bool:
    units = {step.work_unit for step in comparison.steps}
    return len(units) == 1 and None not in units


def _mean_gpu_seconds(step: Step) -> Mean:
    """Return the GPU time of a run, a mean over those that count."""
    runs = count_jobs(step.runs).counted
    held = [run.analysis.job_gpu_seconds for run in runs]
    if len(held) == 1:
        return Mean(value=fsum(held), interval=None, basis=None)
    return mean_over_runs(held, find_sampling_step(runs) * max(held))


def choose_steps(steps: Sequence[Step]) -> list[Step]:
    """Return the steps that are drawn: of many the first, and the last."""
    return list(steps) if len(steps) <= _MOST_BARS else [steps[0], *steps[1 - _MOST_BARS :]]


def _build_bar(comparison: Comparison, place: int, unit: SpentUnit, causes: Causes, *, study: Study | None) -> SpentBar:
    step = comparison.steps[place]
    mean = average(step, PER_WORK) if unit.is_per_work else None
    mean = mean or _mean_gpu_seconds(step)
    classes = _sum_classes(step)
    # the mean of work figures is a geometric one, and that of classes arithmetic: their shares divide it
    share = mean.value / unit.size / fsum(classes.values())
    ends = mean.interval and (max(mean.interval[0], 0.0) / unit.size, mean.interval[1] / unit.size)
    decimals = number_format.count_decimals(mean.value / unit.size)
    is_chained = study is None and place > 0
    metric, value = _rate_metric(is_per_work=unit.is_per_work), step.value(_rate_metric(is_per_work=unit.is_per_work))
    return SpentBar(
        label=display.clean(step.label),
        small=display.plural(len(step.runs), "run") if len({len(each.runs) for each in comparison.steps}) > 1 else "",
        segments=build_segments(
            {key: amount * share for key, amount in classes.items()}, f"{{:,.{decimals}f}}".format, causes
        ),
        total=display.number(mean.value / unit.size),
        interval=ends,
        interval_text=format_interval(ends, display.number) if ends else "",
        change=_change(comparison, place - 1, place, PER_WORK) if is_chained and unit.is_per_work else None,
        note=_FIRST if place == 0 and study is None and unit.is_per_work else "",
        beside=_format_rate(value, step, metric),
        beside_change=_change(comparison, place - 1, place, metric) if is_chained and unit.is_per_work else None,
    )


def _rate_metric(*, is_per_work: bool) -> str:
    """Return the figure beside the bars: how fast training alone went, or without the work how busy GPUs were."""
    return TRAINING_RATE if is_per_work else UTILISATION


def _format_rate(value: float | None, step: Step, metric: str) -> str:
    if value is None:
        return ""
    if metric == UTILISATION:
        return display.percent(value)
    return f"{display.number(value)}{display.GAP}{display.shorten(display.clean(step.work_unit or 'units'), 24)}/s"


def _change(comparison: Comparison, base: int, place: int, metric: str) -> Change | None:
    """Return how a figure changed between two steps; None where they were not set side by side."""
    first, last = comparison.steps[base].label, comparison.steps[place].label
    delta = next((delta for delta in comparison.between(first, last) if delta.metric == metric), None)
    change = build_change(delta)
    return change if change and change.arrow else None


def _find_end(bars: Sequence[SpentBar]) -> float:
    """Return the end of the axis: that of the longest bar, and of intervals as far as they do not dwarf the bars."""
    longest = max(fsum(part.value for part in bar.segments) for bar in bars)
    ends = [bar.interval[1] for bar in bars if bar.interval]
    return max(longest, min(max(ends, default=0.0) * 1.01, _ROOM * longest))


def _caption(unit: SpentUnit, bars: Sequence[SpentBar]) -> str:
    interval = f"{describe_pauses(bars)} {_INTERVAL}" if any(bar.interval for bar in bars) else describe_pauses(bars)
    if unit.is_per_work:
        return f"{unit.name}; shorter is better.{interval}"
    return f"{unit.name}. {_NO_WORK}{interval}"


def _describe_rest(steps: Sequence[Step], bars: Sequence[SpentBar]) -> str:
    """Return that some steps have no bar; empty where all have one."""
    left_out = len(steps) - len(bars)
    return f"{display.plural(left_out, 'step')} between are not drawn; the table has them all." if left_out else ""
