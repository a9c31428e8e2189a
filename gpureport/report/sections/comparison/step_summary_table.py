"""Steps as groups: means with their intervals, how work scales, and which batch fits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isfinite

from gpureport.comparison.across import HEADROOM, BatchSize, MemoryFit, Scaling, largest_batch, memory_fits, scaling
from gpureport.comparison.chain import Mean, StepSummary, summarize_steps
from gpureport.comparison.figures import COST_PER_WORK, ShortRun
from gpureport.comparison.steps import Step
from gpureport.report.model.shapes import Cell, Fact, Row, Table
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.gpus import spending
from gpureport.report.wording import display, numbered_labels
from gpureport.report.wording.differences.comparison_reasons import describe_memory_reason
from gpureport.report.wording.differences.difference_wording import ONCE_SETTLED
from gpureport.report.wording.display import format_interval

_NAMED = 4
TOO_SHORT = "too short to judge"
"""What stands in the place of a figure that was recorded, but for too short."""
CUT = "Intervals are cut at 0 and, of shares, at 100%: no figure lies beyond."
"""Said where an interval, which is symmetrical, reaches further."""


def build_step_summary_table(steps: Sequence[Step]) -> Table:
    """Return one row a step: utilisation and work per GPU-hour with their intervals."""
    found, analyses = summarize_steps(steps), [analysis for step in steps for analysis in step.analyses]
    rates = [group.work_per_gpu_hour.value for group in found if group.work_per_gpu_hour]
    costs = [group.cost_per_1000_work.value for group in found if group.cost_per_1000_work]
    units = figure_formats.WorkUnits(costs=tuple(step.value(COST_PER_WORK) for step in steps))
    cost = figure_formats.choose_format(COST_PER_WORK, _unit(steps), spending.currency(analyses), units=units)
    busy = display.percent_formatter(
        [each for group in found if group.utilisation for each in _printed(group.utilisation)]
    )
    rows = tuple(
        Row(
            head=Cell(text=display.clean(group.label)),
            cells=(
                Cell(text=str(group.runs)),
                *_format_mean(group.utilisation, busy, limit=1.0, absent=explain_missing_utilisation(group)),
                *(_format_mean(group.work_per_gpu_hour, display.number) if rates else ()),
                *(_format_mean(group.cost_per_1000_work, cost.value) if costs else ()),
            ),
        )
        for group in found
    )
    interval = "95% interval"
    shown = [
        f"GPU utilisation{ONCE_SETTLED}",
        *(["Work per GPU-hour"] if rates else []),
        *([cost.title] if costs else []),
    ]
    names = ("Step", "Runs", *(name for title in shown for name in (title, interval)))
    unbound = [mean for group in found for mean in (group.work_per_gpu_hour, group.cost_per_1000_work)]
    cut = any(_cut(group.utilisation, 1.0) for group in found) or any(_cut(mean, None) for mean in unbound)
    numeric = (True, *(True, True) * len(shown))
    notes = (CUT if cut else "", too_short_note(found), spending.price_note(analyses) if costs else "")
    whole = Table(columns=names, numeric=numeric, rows=rows, notes=tuple(filter(None, notes)))
    return _without_empty_columns(whole)


def _unit(steps: Sequence[Step]) -> str | None:
    """Return what the work of all steps is counted in; None where not known, or steps differ."""
    units = {step.work_unit for step in steps}
    return units.pop() if len(units) == 1 else None


def _without_empty_columns(table: Table) -> Table:
    """Return a table without columns that hold nothing, as the intervals of single short runs."""
    filled = [any(row.cells[place].text for row in table.rows) for place in range(len(table.columns) - 1)]
    kept = [place for place, is_filled in enumerate(filled) if is_filled]
    return replace(
        table,
        columns=(table.columns[0], *(table.columns[place + 1] for place in kept)),
        numeric=tuple(table.numeric[place] for place in kept),
        rows=tuple(replace(row, cells=tuple(row.cells[place] for place in kept)) for row in table.rows),
    )


def cut_interval(mean: Mean, most: float | None) -> tuple[float, float] | None:
    """Return the ends of an interval, cut at nothing and at the most that a figure can be; None without one.

    Args:
        mean: the figure.
        most: what it cannot exceed; None where nothing bounds it.
    """
    if mean.interval is None or not all(map(isfinite, mean.interval)):
        return None
    low, high = mean.interval
    return max(low, 0.0), high if most is None else min(high, most)


def explain_missing_utilisation(group: StepSummary) -> str:
    """Return what stands in the place of a utilisation that is not told."""
    return TOO_SHORT if group.too_short_run else display.NOT_RECORDED


def too_short_note(found: Sequence[StepSummary]) -> str:
    """Return why the utilisation of some steps is not told though it was recorded; empty where that is so of none."""
    short = [(group.label, group.too_short_run) for group in found if group.too_short_run]
    if not short:
        return ""
    steps = [f"{display.clean(label)} ({display.duration(run.seconds)})" for label, run in short]
    named = display.join_words(steps) if len(steps) <= _NAMED else _together(short)
    least = display.duration(short[0][1].least)
    return (
        f"Too short to judge GPU utilisation, by the steady state of the longest run: {named}; a run counts from "
        f"{least} on."
    )


def _together(short: Sequence[tuple[str, ShortRun]]) -> str:
    """Return steps with the least and the most of their lengths."""
    seconds = [run.seconds for _, run in short]
    shortest, longest = display.duration(min(seconds)), display.duration(max(seconds))
    length = shortest if shortest == longest else f"{shortest} to {longest}"
    return f"{numbered_labels.list_labels([display.clean(label) for label, _ in short])} ({length})"


def _printed(mean: Mean) -> tuple[float, ...]:
    """Return a mean share and the ends of its interval."""
    return (mean.value, *(cut_interval(mean, 1.0) or ()))


def _cut(mean: Mean | None, most: float | None) -> bool:
    return mean is not None and cut_interval(mean, most) not in {None, mean.interval}


def _format_mean(
    mean: Mean | None,
    text: Callable[[float], str],
    *,
    limit: float | None = None,
    absent: str = display.NOT_RECORDED,
) -> Iterator[Cell]:
    """Yield a mean and its interval."""
    if mean is None:
        yield from (Cell(text=absent), Cell(text=""))
        return
    yield Cell(text=text(mean.value), value=mean.value)
    interval = cut_interval(mean, limit)
    yield Cell(text=format_interval(interval, text) if interval else "")


def build_scaling_facts(steps: Sequence[Step], shown: Step) -> Iterator[Fact]:
    """Yield how work scales with GPUs, the largest batch that fits, and which kinds of GPU would hold one step.

    Args:
        steps: all steps.
        shown: the one whose peak of memory is looked at.
    """
    for found in scaling(steps):
        yield Fact(name="Scaling", text=_scaled(found))
    batch = largest_batch(steps)
    if batch is not None:
        yield Fact(name="Batch size", text=_batch(batch))
    (fit,) = memory_fits([shown])
    if fit.peak_bytes is not None:
        unknown = f" Of {len(fit.unknown)} others the table does not know the memory." if fit.unknown else ""
        yield Fact(name="GPU kinds", text=f"{display.clean(fit.step)}: {_fitting(fit)}{unknown}")


def _fitting(fit: MemoryFit) -> str:
    """Return which kinds would hold the peak of a step, the smallest first."""
    reason = describe_memory_reason(fit.reason)
    if not fit.kinds or fit.peak_bytes is None:
        return reason
    fitting = [kind for kind in fit.kinds if kind.fits]
    models = [f"{kind.model} ({display.memory(kind.memory_bytes)})" for kind in fitting[:_NAMED]]
    models += [f"{len(fitting) - _NAMED} with more memory"] if len(fitting) > _NAMED else []
    where = display.join_words(models) or "no kind of the GPU table"
    return (
        f"the peak of {display.memory(fit.peak_bytes)} on one GPU would fit {where}, with "
        f"{display.percent(fit.headroom)} left free. {reason}"
    ).rstrip()


def _scaled(found: Scaling) -> str:
    ends = format_interval(found.interval, display.percent) if found.interval else ""
    between = f" (95% interval {ends})" if ends else ""
    labels = f"{display.clean(found.step)} against {display.clean(found.base)}"
    return (
        f"{labels}: {found.gpus[1]} GPUs instead of {found.gpus[0]} do {display.percent(found.efficiency)} of the work "
        f"per GPU-hour{between}."
    )


def _batch(batch: BatchSize) -> str:
    sizes = display.join_words([display.integer(size) for size in batch.sizes])
    if batch.max_batch is None:
        return f"Recorded at {sizes}. {describe_memory_reason(batch.reason)}"
    return (
        f"Recorded at {sizes}: one more takes {display.memory(batch.bytes_each)}, so up to "
        f"{display.integer(batch.max_batch)} would fit with {display.percent(HEADROOM.value)} left free, as far as "
        "memory goes on growing so."
    )
