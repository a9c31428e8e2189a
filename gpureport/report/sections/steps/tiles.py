"""The four figures of steps, from the first to the last: throughput, cost or GPU time, energy, peak memory."""

from collections.abc import Callable

from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.run import UTILISATION
from gpureport.report.model.head import Change, Tile
from gpureport.report.runs import gpu_time
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.head import money_sentences
from gpureport.report.sections.head.run_tiles import build_memory_tile
from gpureport.report.sections.steps.figures import ENERGY, GPU_SECONDS, Figures, list_analyses
from gpureport.report.wording import differences, display, work_scale
from gpureport.report.wording.differences import build_change, build_plain_change
from gpureport.report.wording.scales import split_common_unit
from gpureport.report.wording.terms import name_figure
from gpureport.report.wording.words import say

_Ends = tuple[float | None, float | None]


def build_step_tiles(comparison: Comparison) -> tuple[Tile, ...]:
    """Return four figures of the first and the last step with their changes, by work where that is known."""
    last, figures, memory = comparison.steps[-1], Figures(comparison), build_memory_tile(comparison)
    # of a run where the work is not known
    energy = _build_tile(figures, ENERGY_PER_WORK if last.value(ENERGY_PER_WORK) is not None else ENERGY, "GPUs only")
    if last.value(PER_WORK) is None:
        return _build_use_tile(figures), _build_time_tile(comparison), energy, memory
    is_priced = last.value(COST_PER_WORK) is not None
    spent = _build_cost_tile(figures) if is_priced else _build_tile(figures, PER_WORK, "No price given")
    return _build_throughput_tile(figures), spent, energy, memory


def _set_tile(  # noqa: PLR0913 - the parts of a tile
    label: str, ends: _Ends, show: Callable[[float], str], change: Change | None, context: str, *, unit: str = ""
) -> Tile:
    before, after = ends
    return Tile(
        label=label,
        before="" if before is None else show(before),
        value=display.NOT_RECORDED if after is None else show(after),
        unit="" if after is None else unit,
        change=change,
        context=context,
    )


def _build_tile(figures: Figures, metric: str, context: str, scale: tuple[str, float] | None = None) -> Tile:
    """Return a tile of a figure in a unit that has a size, otherwise in that of all steps."""
    ends = figures.ends(metric)
    if metric == ENERGY:
        scale = work_scale.choose_energy_unit(ends)
    label, unit, size = (name_figure(metric), *scale) if scale else figures.unit(metric)
    change = build_change(figures.delta(metric)) or build_plain_change(*ends)
    return _set_tile(label, ends, lambda value: display.number(value / size), change, context, unit=unit)


def _build_throughput_tile(figures: Figures) -> Tile:
    factor, unit = work_scale.choose_rate_unit(figures.ends(WORK_RATE), figures.comparison.steps[-1].work_unit)
    before, after = figures.ends(TRAINING_RATE)
    context = "Start-up and pauses included"
    if before and after:
        rates = [display.number(rate * factor) for rate in (before, after)]
        context = f"Training: {' → '.join(rates)}, {differences.format_percent_change(after / before)}"
    return _build_tile(figures, WORK_RATE, context, (unit, 1 / factor))


def _build_cost_tile(figures: Figures) -> Tile:
    ends, (label, show) = figures.ends(COST_PER_WORK), figures.column(COST_PER_WORK)
    context = say(
        "tile.price",
        price=spending.common_price(list_analyses(figures.comparison.steps)),
        training=money_sentences.format_training_cost(figures.comparison),
        nameless=not figures.currency,
    )
    change = build_change(figures.delta(COST_PER_WORK)) or build_plain_change(*ends)
    return _set_tile(label, ends, show, change, context)


def _build_use_tile(figures: Figures) -> Tile:
    delta, ends = figures.delta(UTILISATION), figures.ends(UTILISATION)
    if delta is not None and delta.difference is not None:
        # the figures of the time that the change is of
        ends = delta.before, delta.after
    context = say("tile.no_work", settled=delta is not None and delta.window == "steady")
    return _set_tile(name_figure(UTILISATION), ends, display.percent_formatter(ends), build_change(delta), context)


def _build_time_tile(comparison: Comparison) -> Tile:
    """Return GPU time of a run; runs of several steps may differ in their work."""
    first, last = comparison.steps[0], comparison.steps[-1]
    before, after = (gpu_time.job_gpu_seconds(step.analyses) / len(step.analyses) or None for step in (first, last))
    ends = None if first is last else before, after
    texts, unit = split_common_unit(["" if seconds is None else display.gpu_time(seconds) for seconds in ends])
    return Tile(
        label=name_figure(GPU_SECONDS),
        before=texts[0],
        value=texts[1] or display.NOT_RECORDED,
        unit=unit,
        change=build_plain_change(*ends),
        context="Runs may differ in work",
    )
