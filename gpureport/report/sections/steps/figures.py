"""Printed figures of steps (title, unit and value), and training quality."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isclose
from typing import NamedTuple

from gpureport.analysis.results import Analysis
from gpureport.comparison import figures as measured
from gpureport.comparison.chain import Comparison
from gpureport.comparison.comparable import SAME_MEMORY
from gpureport.comparison.evidence import ReasonKind
from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.quality import QualityChange, QualityFigure, compare_quality, measure_step_quality
from gpureport.comparison.run import GRAPHICS_CLOCK, SM_CLOCK, UTILISATION
from gpureport.comparison.steps import Step, TrainingBasis
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.comparison.work import STEP_COUNTER
from gpureport.report.model.head import Tile
from gpureport.report.model.shapes import Cell
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.time_spent import choose_unit_per_run, choose_unit_per_work
from gpureport.report.wording import display, scales, terms
from gpureport.report.wording.differences import WHOLE_RUN_UTILISATION, FigureFormat, build_plain_change
from gpureport.report.wording.reasons import describe_no_work
from gpureport.report.wording.words import say

MEMORY, ENERGY, POWER, GPU_SECONDS = "gpu_memory_used_bytes", "energy_joules", "gpu_power_watts", "gpu_seconds"
_BRIEF = 36.0  # GPU-seconds, a hundredth of a GPU-hour
_SCALES = {
    PER_WORK: scales.GPU_HOURS,
    measured.SECONDS_TO_TARGET: scales.TIMES,
    GPU_SECONDS: scales.GPU_HOURS,
    ENERGY: scales.ENERGY,
    "idle_ratio": scales.POINTS,
    UTILISATION: scales.POINTS,
    POWER: scales.POWER,
    SM_CLOCK: scales.CLOCK,
    GRAPHICS_CLOCK: scales.CLOCK,
    MEMORY: scales.MEMORY,
}
_OF_WORK = {PER_WORK, ENERGY_PER_WORK, COST_PER_WORK, WORK_RATE}
_PER_WORK = (PER_WORK, COST_PER_WORK, ENERGY_PER_WORK, WORK_RATE, TRAINING_RATE, measured.SECONDS_TO_TARGET, MEMORY)
_PER_RUN = (GPU_SECONDS, ENERGY, UTILISATION, POWER, measured.SECONDS_TO_TARGET, MEMORY)
"""Columns of the step table in display order, with and without known work."""
_LEAST = (POWER, WORK_RATE, ENERGY, UTILISATION, MEMORY, ENERGY_PER_WORK, COST_PER_WORK)
"""Columns to omit if space is short, in this order."""
_UNEQUAL = 0.1  # difference in work from which start-up weighs more
_WHOLE = 100  # amount of work from which decimals are dropped


class Line(NamedTuple):
    metric: str
    title: str
    before: str
    after: str
    change: Cell
    verdict: Cell
    why: str = ""


@dataclass(frozen=True)
class Figures:
    comparison: Comparison

    def values(self, metric: str) -> list[float]:
        return [value for step in self._steps(metric) if (value := step.value(metric)) is not None]

    def ends(self, metric: str) -> tuple[float | None, float | None]:
        values = [step.value(metric) for step in self._steps(metric)] or [None]
        return values[0] if len(values) > 1 else None, values[-1]

    def _steps(self, metric: str) -> Sequence[Step]:
        """Return all steps, or none if the figure depends on work in different units."""
        units = {step.work_unit for step in self.comparison.steps if step.work_unit}
        return () if metric in _OF_WORK and len(units) > 1 else self.comparison.steps

    def delta(self, metric: str) -> Delta | None:
        ends = self.comparison.steps[0].label, self.comparison.steps[-1].label
        return next((delta for delta in self.comparison.between(*ends) if delta.metric == metric), None)

    @cached_property
    def currency(self) -> str:
        return spending.currency(list_analyses(self.comparison.steps))

    @cached_property
    def in_seconds(self) -> bool:
        deltas = [delta for delta in self.comparison.deltas if delta.metric == PER_WORK]
        sides = [end for delta in deltas for end in (delta.before, delta.after)]
        known = [each for each in (*self.values(PER_WORK), *sides) if each is not None]
        return bool(known) and max(known) < _BRIEF

    @cached_property
    def cost(self) -> scales.WorkScale:
        return scales.choose_work_scale(self.values(COST_PER_WORK), self.comparison.steps[-1].work_unit)

    def format(self, metric: str, steps: Sequence[Step] = ()) -> FigureFormat:
        steps = steps or self.comparison.steps
        units = {step.work_unit for step in steps if step.work_unit}
        unit = units.pop() if len(units) == 1 else None
        per, scale = terms.per_batch(unit), _SCALES.get(metric, scales.NUMBERS)
        if metric == COST_PER_WORK:
            batch = scales.choose_work_scale(self.values(COST_PER_WORK), unit)
            currency = spending.currency(list_analyses(steps))
            per = batch.per
            scale = scales.Scale(units=((display.clean(currency), 1 / batch.factor),))
        elif metric == ENERGY_PER_WORK:
            per, scale = scales.choose_energy_scale(self.values(ENERGY_PER_WORK), unit)
        elif metric == PER_WORK and self.in_seconds:
            scale = scales.GPU_SECONDS
        elif metric in {WORK_RATE, TRAINING_RATE}:
            scale = scales.Scale(units=((f"{scales.name_work(unit or 'units')}/s", 1.0),))
        return FigureFormat(
            title=terms.name_figure(metric, per),
            scale=scale,
            percent=display.percent if scale is scales.POINTS else None,
            absent="none" if metric == measured.SECONDS_TO_TARGET else display.NOT_RECORDED,
            per=per if metric in {PER_WORK, COST_PER_WORK, ENERGY_PER_WORK} else "",
        )

    def list_pair(self, sides: tuple[Step, Step], deltas: Sequence[Delta]) -> list[tuple[FigureFormat, Delta]]:
        found = {delta.metric: delta for delta in deltas}
        left_out = {ENERGY} if any(side.work_unit for side in sides) else set(_OF_WORK)
        if all(side.training_source is None for side in sides):
            left_out.add(TRAINING_RATE)
        one, whole = found[PER_WORK], found[GPU_SECONDS]
        # if both sides did equal work, GPU time adds nothing
        if one.before and one.after and isclose((whole.before or 0.0) / one.before, (whole.after or 0.0) / one.after):
            left_out.add(GPU_SECONDS)
        if all(run.gpu_hour_price is None for side in sides for run in side.runs):
            left_out.add(COST_PER_WORK)
        if not any(measured.SECONDS_TO_TARGET in side.values for side in sides):
            left_out.add(measured.SECONDS_TO_TARGET)
        rates = (found[metric] for metric in (WORK_RATE, SM_CLOCK, GRAPHICS_CLOCK))
        left_out |= {each.metric for each in rates if each.whole.difference is None and not each.interval}
        return [(self.format(each, sides), found[each]) for each in terms.FIGURE_NAMES if each not in left_out]

    def choose_columns(self, room: int) -> list[str]:
        metrics = [each for each in (_PER_WORK if self.values(PER_WORK) else _PER_RUN) if self.values(each)]
        for least in _LEAST:
            if least in metrics and len(metrics) > room:
                metrics.remove(least)
        return metrics

    def column(self, metric: str) -> tuple[str, Callable[[float], str]]:
        """Return the title of a column, and a function that prints its values."""
        if metric == measured.SECONDS_TO_TARGET:
            return terms.name_figure(metric), display.duration
        if metric == UTILISATION:
            return WHOLE_RUN_UTILISATION, display.percent
        name, unit, size = self.unit(metric)
        if metric == COST_PER_WORK:
            return name, lambda value: display.money(value / size, self.currency)
        show = "{:.1f}".format if metric == MEMORY else display.number
        return f"{name}, {unit}", lambda value: show(value / size)

    def unit(self, metric: str) -> tuple[str, str, float]:
        if metric in {PER_WORK, GPU_SECONDS}:
            is_work = metric == PER_WORK
            spent = choose_unit_per_work(self.comparison) if is_work else choose_unit_per_run(max(self.values(metric)))
            return spent.name, spent.unit, spent.size
        if metric == ENERGY:
            return terms.name_figure(metric), *scales.choose_energy_unit(self.values(metric))
        shown = self.format(metric, self.comparison.steps[-1:])
        return shown.title, *shown.scale.units[0]


def describe_training_source(steps: Sequence[Step]) -> str:
    sources = [step.training_source for step in steps if step.training_source is not None]
    if not sources:
        return ""
    if sources[0].basis is TrainingBasis.STEADY_PHASE:
        shortest = min(run.lasted for step in steps for run in step.runs)
        return say("gains.steady", short=shortest < measured.LONG_SECONDS)
    found = {name for source in sources for name in source.names}
    names = sorted("the step counter" if name == STEP_COUNTER else display.clean(name) for name in found)
    return f"Training alone: measured by {display.join_words(names)} from the training loop."


def describe_unequal_work(comparison: Comparison) -> str:
    found = {each.metric: each for each in comparison.between(comparison.steps[0].label, comparison.steps[-1].label)}
    whole, training, total = (found[metric] for metric in (PER_WORK, TRAINING_RATE, GPU_SECONDS))
    changes = [delta.difference or 0.0 for delta in (whole, training, total)]
    is_same = training.verdict is Verdict.NO_CLEAR_CHANGE
    is_clear = training.verdict.is_established and changes[0] * changes[1] > 0
    # the run with less work took less time, but more per unit of work
    if not (whole.verdict.is_established and changes[0] * changes[2] < 0 and (is_same or is_clear)):
        return ""
    is_unequal = total.reason and total.reason.kind is ReasonKind.UNEQUAL_WORK and total.reason.amount > _UNEQUAL
    return say("headline.unequal_work", same=is_same) if is_unequal else ""


def list_analyses(steps: Sequence[Step]) -> list[Analysis]:
    return [analysis for step in steps for analysis in step.analyses]


def describe_prices(steps: Sequence[Step], metrics: Iterable[str]) -> str:
    costs = [analysis.cost for analysis in list_analyses(steps) if COST_PER_WORK in metrics]
    days = sorted({cost.date for cost in costs if cost and cost.date})
    return f"Costs use prices as of {display.join_words(days)}." if days else ""


def build_memory_tile(comparison: Comparison) -> Tile:
    first, last = comparison.steps[0], comparison.steps[-1]
    peak = last.value(MEMORY)
    before = None if first is last else first.value(MEMORY)
    if peak is None:
        return Tile(label="Peak memory", value=display.NOT_RECORDED, context="Memory was not recorded")
    texts = ["" if each is None else display.memory(each) for each in (before, peak)]
    units = {text.partition(display.GAP)[2] for text in texts if text}
    unit = units.pop() if len(units) == 1 else ""
    shown, value = (text.removesuffix(f"{display.GAP}{unit}") if unit else text for text in texts)
    change, context = build_plain_change(before, peak), _describe_installed(last, peak)
    return Tile(label="Peak memory", before=shown, value=value, unit=unit, change=change, context=context)


def _describe_installed(step: Step, peak: float) -> str:
    totals, reserved, is_shared = list[int | None](), set[float](), False
    for analysis in step.analyses:
        found = {each.device: each.metric("gpu_memory_reserved_bytes") for each in analysis.statistics}
        for gpu in analysis.run.gpus:
            logged, total = found.get(gpu.id), gpu.memory_total_bytes
            kept = logged.max if logged and gpu.memory_reserved_bytes is None else gpu.memory_reserved_bytes
            totals.append(total)
            reserved.add(kept if kept and total and kept < total else 0.0)
            is_shared |= bool(gpu.mig)
    known = [total for total in totals if total]
    if not known or len(known) < len(totals):
        return "Installed memory not recorded"
    total, kept = min(known), reserved.pop() if len(reserved) == 1 else 0.0
    if max(known) > SAME_MEMORY * total:
        return "GPUs differ in memory size"
    if is_shared:
        return f"Of {display.memory(total)}, in MIG instances"
    if kept:
        amounts = max(0.0, total - kept - peak), total
        left, installed = (display.memory(each).removesuffix(f"{display.GAP}GiB") for each in amounts)
        return f"{left} free of {display.memory(total - kept)} usable; {installed} installed"
    return f"Of {display.memory(total)} installed: {display.percent(max(0.0, 1 - peak / total))} free"


# --- how well steps trained


def name_metric(name: str) -> str:
    return display.shorten_middle(display.clean(name), 28)


def name_work(change: QualityChange) -> str:
    if change.at_end or change.work is None:
        return ""
    shown = display.integer if change.work >= _WHOLE else display.number
    return f" at {shown(change.work)} {change.work_unit}"


def format_values(values: Sequence[float | None]) -> list[str]:
    texts = [display.or_not_recorded(value, display.number) for value in values]
    while (decimal := [text for text in texts if "." in text]) and all(text.endswith("0") for text in decimal):
        texts = [text.removesuffix("0").removesuffix(".") if "." in text else text for text in texts]
    return texts


def format_finals(figures: Sequence[QualityFigure], values: Sequence[float | None]) -> list[str]:
    shown = zip(figures, format_values(values), strict=True)
    return ["not a number" if figure.final is None and figure.diverged else text for figure, text in shown]


def format_pair(change: QualityChange) -> list[str]:
    return format_finals((change.before, change.after), change.values)


def _format_difference(change: QualityChange) -> tuple[str, str]:
    size = "" if change.difference is None else display.signed(change.difference) if change.difference else "none"
    return size, display.format_interval(change.interval, display.signed) if change.interval else ""


def list_quality_cells(comparison: Comparison, name: str, mixed: set[str]) -> Iterator[Cell]:
    steps, goals = comparison.steps, comparison.goals
    figures = [measure_step_quality(step, name, goals) for step in steps]
    texts = format_finals(figures, [figure.final for figure in figures])
    for base, step, figure, text in zip((None, *steps), steps, figures, texts, strict=False):
        found = compare_quality(base, step, goals) if base and step.label not in mixed else ()
        change, small = next((each for each in found if each.name == name), None), ""
        if change is not None and change.verdict is not Verdict.NOT_ENOUGH_DATA:
            small = display.join(f"{_format_difference(change)[0]}{name_work(change)}", change.verdict.value, by=", ")
        is_worse = change is not None and change.verdict is Verdict.WORSE
        yield Cell(text=text, small=small, value=figure.final, flagged=is_worse)


def list_quality_lines(changes: Sequence[QualityChange]) -> Iterator[Line]:
    for change in changes:
        size, interval = _format_difference(change)
        before, after = format_pair(change)
        yield Line(
            metric=change.name,
            title=f"{name_metric(change.name)}{name_work(change) or ', mean of the last values'}",
            before=before,
            after=after,
            change=Cell(text=size, small=interval, value=change.difference),
            verdict=Cell(text=change.verdict.value, flagged=change.verdict is Verdict.WORSE),
            why=describe_no_work(change.reason),
        )


def _find_falls(comparison: Comparison) -> tuple[str, list[QualityChange]]:
    first, last = comparison.steps[0], comparison.steps[-1]
    for base, step in [(first, last), *pairwise(comparison.steps)]:
        changes = () if base is step else compare_quality(base, step, comparison.goals)
        if fallen := [change for change in changes if change.leading and change.fell]:
            return "" if (base, step) == (first, last) else display.clean(step.label), fallen
    return "", []


def describe_fall(comparison: Comparison) -> str:
    """Return `val_accuracy fell from 0.79 to 0.61`, if any metric got worse."""
    step, fallen = _find_falls(comparison)
    return f"{_describe_fall(fallen[0], in_full=True)}{step and f' in {step}'}" if fallen else ""


def warn_of_falls(comparison: Comparison) -> str:
    step, fallen = _find_falls(comparison)
    unsure = any(change.verdict is Verdict.UNCONFIRMED for change in fallen[:2])
    if not unsure and len(fallen) < 2:  # noqa: PLR2004 - the headline names the first
        return ""
    falls = display.join_words([_describe_fall(change) for change in fallen[:2]])
    return say("quality.fell", step=step, falls=falls, unsure=unsure)


def _describe_fall(change: QualityChange, *, in_full: bool = False) -> str:
    name, runs = name_metric(change.name), change.after.runs
    if change.difference is None or change.after.diverged > change.before.diverged:
        return say("quality.fall_diverged", name=name, n=change.after.diverged if runs > 1 else 0, runs=runs)
    if change.failed and change.verdict not in {Verdict.WORSE, Verdict.UNCONFIRMED}:
        (value,), n = format_values(change.failed[:1]), len(change.failed)
        return say("quality.fall_failed", name=name, full=in_full, value=value, n=n, runs=runs)
    before, after = format_pair(change)
    way = ("rose" if (change.difference or 0.0) > 0 else "fell") if in_full else ""
    return say("quality.fall", name=name, way=way, before=before, after=after, at=name_work(change))
