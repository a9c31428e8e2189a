"""The four figures of steps, from the first to the last: throughput, cost or GPU time, energy, peak memory."""

from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.run import UTILISATION
from gpureport.report.model.head import Tile
from gpureport.report.runs import gpu_time
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.head import money_sentences
from gpureport.report.sections.head.tiles.memory_tile import build_memory_tile
from gpureport.report.sections.steps.figures import ENERGY, GPU_SECONDS, Figures
from gpureport.report.wording import differences, display, work_scale
from gpureport.report.wording.differences import build_change, build_plain_change
from gpureport.report.wording.terms import name_figure
from gpureport.report.wording.scales import split_common_unit
from gpureport.report.wording.words import say


def build_step_tiles(comparison: Comparison) -> tuple[Tile, ...]:
    """Return four figures of the first and the last step with their changes, by work where that is known."""
    last, figures, memory = comparison.steps[-1], Figures(comparison), build_memory_tile(comparison)
    # of a run where the work is not known
    energy = _build_tile(figures, ENERGY_PER_WORK if last.value(ENERGY_PER_WORK) is not None else ENERGY, "GPUs only")
    if last.value(PER_WORK) is None:
        return _build_use_tile(figures), _build_time_tile(comparison), energy, memory
    if last.value(COST_PER_WORK) is not None:
        return _build_throughput_tile(figures), _build_cost_tile(figures), energy, memory
    return _build_throughput_tile(figures), _build_tile(figures, PER_WORK, "No price given"), energy, memory


def _build_tile(figures: Figures, metric: str, context: str, scale: tuple[str, float] | None = None) -> Tile:
    """Return a tile of a figure in a unit that has a size, otherwise in that of all steps."""
    before, after = figures.ends(metric)
    if metric == ENERGY:
        scale = work_scale.choose_energy_unit((before, after))
    label, (unit, size) = name_figure(metric), scale or ("", 1.0)
    if scale is None:
        label, unit, size = figures.unit(metric)
    return Tile(
        label=label,
        before="" if before is None else display.number(before / size),
        value=display.NOT_RECORDED if after is None else display.number(after / size),
        unit="" if after is None else unit,
        change=build_change(figures.delta(metric)) or build_plain_change(before, after),
        context=context,
    )


def _build_throughput_tile(figures: Figures) -> Tile:
    factor, unit = work_scale.choose_rate_unit(figures.ends(WORK_RATE), figures.comparison.steps[-1].work_unit)
    before, after = figures.ends(TRAINING_RATE)
    context = "Start-up and pauses included"
    if before and after:
        rates = [display.number(rate * factor) for rate in (before, after)]
        context = f"Training: {' → '.join(rates)}, {differences.format_percent_change(after / before)}"
    return _build_tile(figures, WORK_RATE, context, (unit, 1 / factor))


def _build_cost_tile(figures: Figures) -> Tile:
    before, after = figures.ends(COST_PER_WORK)
    label, show = figures.column(COST_PER_WORK)
    context = say(
        "tile.price",
        price=spending.common_price(figures.analyses),
        training=money_sentences.format_training_cost(figures.comparison),
        nameless=not figures.currency,
    )
    return Tile(
        label=label,
        before="" if before is None else show(before),
        value="" if after is None else show(after),
        change=build_change(figures.delta(COST_PER_WORK)) or build_plain_change(before, after),
        context=context,
    )


def _build_use_tile(figures: Figures) -> Tile:
    delta, ends = figures.delta(UTILISATION), figures.ends(UTILISATION)
    if delta is not None and delta.difference is not None:
        # the figures of the time that the change is of
        ends = delta.before, delta.after
    before, after = (display.or_not_recorded(value, display.percent_formatter(ends)) for value in ends)
    return Tile(
        label=name_figure(UTILISATION),
        before="" if ends[0] is None else before,
        value=after,
        change=build_change(delta),
        context=say("tile.no_work", settled=delta is not None and delta.window == "steady"),
    )


def _build_time_tile(comparison: Comparison) -> Tile:
    """Return GPU time of a run; runs of several steps may differ in their work."""
    first, last = comparison.steps[0], comparison.steps[-1]
    held = [gpu_time.job_gpu_seconds(step.analyses) / len(step.analyses) for step in (first, last)]
    (before, after), unit = [display.gpu_time(seconds) if seconds else "" for seconds in held], ""
    if after:
        (before, after), unit = split_common_unit((before, after))
    several = first is not last
    return Tile(
        label=name_figure(GPU_SECONDS),
        before=before if several else "",
        value=after or display.NOT_RECORDED,
        unit=unit,
        change=build_plain_change(*held) if held[1] and several else None,
        context="Runs may differ in work",
    )
