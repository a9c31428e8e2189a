"""The four figures of steps, from the first to the last: throughput, cost or GPU time, energy, peak memory."""

from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.verdict import Delta
from gpureport.report.model.head import Tile
from gpureport.report.runs import gpu_time
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.head import money_sentences
from gpureport.report.sections.head.tiles.memory_tile import build_memory_tile
from gpureport.report.sections.pictures.spent_units import choose_unit_per_work
from gpureport.report.wording import display, work_scale
from gpureport.report.wording.differences.changes import build_change, build_plain_change
from gpureport.report.wording.differences.relative_changes import format_percent_change
from gpureport.report.wording.scales import split_common_unit
from gpureport.report.wording.terms import name_figure

_GPUS_ONLY = "GPUs only"


def build_step_tiles(comparison: Comparison) -> tuple[Tile, ...]:
    """Return four figures of the first and the last step with their changes."""
    if comparison.steps[-1].value(PER_WORK) is None:
        return (
            _build_use_tile(comparison),
            _build_time_tile(comparison),
            _build_energy_tile(comparison),
            build_memory_tile(comparison),
        )
    cost = comparison.steps[-1].value(COST_PER_WORK) is not None
    return (
        _build_throughput_tile(comparison),
        _build_cost_tile(comparison) if cost else _build_work_time_tile(comparison),
        _build_energy_tile(comparison),
        build_memory_tile(comparison),
    )


def _find_delta(comparison: Comparison, metric: str) -> Delta | None:
    first, last = comparison.steps[0].label, comparison.steps[-1].label
    return next((delta for delta in comparison.between(first, last) if delta.metric == metric), None)


def _list_ends(comparison: Comparison, metric: str) -> tuple[float | None, float | None]:
    """Return a figure of the first and the last step, None for the first of a single one."""
    first, last = comparison.steps[0], comparison.steps[-1]
    return None if first is last else first.value(metric), last.value(metric)


def _build_tile(comparison: Comparison, metric: str, label: str, scale: tuple[str, float], context: str) -> Tile:
    """Return a tile of a figure; `scale` is its unit and what values are multiplied by."""
    unit, factor = scale
    before, after = _list_ends(comparison, metric)
    return Tile(
        label=label,
        before="" if before is None else display.number(before * factor),
        value=display.NOT_RECORDED if after is None else display.number(after * factor),
        unit="" if after is None else unit,
        change=build_change(_find_delta(comparison, metric)) or build_plain_change(before, after),
        context=context,
    )


def _build_throughput_tile(comparison: Comparison) -> Tile:
    rates, unit = _list_ends(comparison, WORK_RATE), comparison.steps[-1].work_unit
    factor, per_time = work_scale.choose_rate_unit(rates, unit)
    before, after = _list_ends(comparison, TRAINING_RATE)
    context = "Start-up and pauses included"
    if before and after:
        change = format_percent_change(after / before)
        context = f"Training: {display.number(before * factor)} → {display.number(after * factor)}, {change}"
    return _build_tile(comparison, WORK_RATE, name_figure(WORK_RATE), (per_time, factor), context)


def _build_cost_tile(comparison: Comparison) -> Tile:
    before, after = _list_ends(comparison, COST_PER_WORK)
    scale = figure_formats.choose_cost_scale(comparison)
    analyses = [analysis for step in comparison.steps for analysis in step.analyses]
    currency, price = spending.currency(analyses), spending.common_price(analyses)
    at = f"At {price} per GPU-hour" if price else "At the price of each GPU"
    training = money_sentences.format_training_cost(comparison)
    at += f"; {training} at the training rate alone" if training else ""
    texts = ["" if value is None else display.money(value * scale.factor, currency) for value in (before, after)]
    return Tile(
        label=name_figure(COST_PER_WORK, scale.per),
        before=texts[0],
        value=texts[1],
        change=build_change(_find_delta(comparison, COST_PER_WORK)) or build_plain_change(before, after),
        context=at if currency else f"{at}, no currency given",
    )


def _build_work_time_tile(comparison: Comparison) -> Tile:
    unit = choose_unit_per_work(comparison)
    return _build_tile(comparison, PER_WORK, unit.name, (unit.unit, 1 / unit.size), "No price given")


def _build_energy_tile(comparison: Comparison) -> Tile:
    """Return the energy per million units of work, or of a run where the work is not known."""
    if comparison.steps[-1].value(ENERGY_PER_WORK) is not None:
        scale = figure_formats.choose_energy_scale(comparison)
        label = name_figure(ENERGY_PER_WORK, scale.per)
        return _build_tile(comparison, ENERGY_PER_WORK, label, (scale.unit, 1 / scale.size), _GPUS_ONLY)
    metric = "energy_joules"
    name, size = work_scale.choose_energy_unit(_list_ends(comparison, metric))
    return _build_tile(comparison, metric, name_figure(metric), (name, 1 / size), _GPUS_ONLY)


def _build_use_tile(comparison: Comparison) -> Tile:
    delta, ends = _find_delta(comparison, UTILISATION), _list_ends(comparison, UTILISATION)
    if delta is not None and delta.difference is not None:
        # the figures of the time that the change is of
        ends = delta.before, delta.after
    before, after = (display.or_not_recorded(value, display.percent_formatter(ends)) for value in ends)
    settled = "Once settled. " if delta and delta.window == "steady" else ""
    return Tile(
        label=name_figure(UTILISATION),
        before="" if ends[0] is None else before,
        value=after,
        change=build_change(delta),
        context=f"{settled}Work done not given (--work N:UNIT)",
    )


def _build_time_tile(comparison: Comparison) -> Tile:
    first, last = comparison.steps[0], comparison.steps[-1]
    held = [gpu_time.job_gpu_seconds(step.analyses) / len(step.analyses) for step in (first, last)]
    shown = [display.gpu_time(seconds) if seconds else "" for seconds in held]
    texts, unit = split_common_unit(shown) if shown[1] else (shown, "")
    return Tile(
        label=name_figure("gpu_seconds"),
        before="" if first is last else texts[0],
        value=texts[1] or display.NOT_RECORDED,
        unit=unit,
        change=build_plain_change(*held) if held[1] and first is not last else None,
        context="Runs may differ in work",
    )
