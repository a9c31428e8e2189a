"""The headline of steps, how sure it is, and their four figures from the first to the last."""

import re
from collections.abc import Callable
from itertools import pairwise

from gpureport.comparison.across import scaling
from gpureport.comparison.chain import Comparison
from gpureport.comparison.evidence import ReasonKind
from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.number_format import MINUS
from gpureport.report.model.head import Change, Tile, VerdictCode
from gpureport.report.runs import gpu_time
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.head.loss_sentence import format_training_cost
from gpureport.report.sections.head.run_tiles import build_memory_tile
from gpureport.report.sections.steps import quality
from gpureport.report.sections.steps.figures import ENERGY, GPU_SECONDS, Figures, list_analyses
from gpureport.report.wording import differences, display, scales
from gpureport.report.wording.differences import build_change, build_plain_change
from gpureport.report.wording.headlines import choose_headline
from gpureport.report.wording.reasons import count_family, describe_interval
from gpureport.report.wording.terms import name_figure, name_one
from gpureport.report.wording.words import say

_MOST = 0.5
"""Share of the change above which one step made most of it."""
_TENFOLD = 10.0
"""Ratio from which a change reads better as times than in per cent."""


def judge_ends(comparison: Comparison) -> Delta | None:
    return comparison.judged(comparison.steps[0].label, comparison.steps[-1].label)


def describe_steps(comparison: Comparison) -> tuple[str, VerdictCode]:
    last, delta = comparison.steps[-1], judge_ends(comparison)
    if delta is None or delta.difference is None or not delta.before:
        return describe_quality_alone(comparison), VerdictCode.QUALITY_FELL
    is_work = delta.metric == PER_WORK
    one = name_one(display.shorten(display.clean(last.work_unit or ""), 24)) or "unit of work"
    noun = f"GPU time per {'training step' if one == 'step' else one}" if is_work else "GPU utilisation"
    ends = comparison.steps[0].label, last.label
    scaled = next((each for each in scaling(comparison.steps) if (each.base, each.step) == ends), None)
    if scaled is not None:
        few, many = scaled.gpus
        change = say("headline.scaling", few=few, many=many, share=display.percent(scaled.efficiency))
    elif is_work:
        change = _describe_size(delta, noun)
    else:
        values = (delta.before, delta.after)
        before, after = (display.or_not_recorded(value, display.percent_formatter(values)) for value in values)
        way = "" if before == after else "rises" if delta.difference > 0 else "falls"
        change = say("headline.use", way=way, before=before, after=after)
    if delta.verdict in {Verdict.NO_CLEAR_CHANGE, Verdict.NOT_ENOUGH_DATA}:
        change = say(f"headline.{delta.verdict.code}", noun=noun)
    if fall := quality.describe_fall(comparison):
        return choose_headline((f"{change}, but {fall}.", f"{change}, but quality fell.")), VerdictCode.QUALITY_FELL
    endings = [""]
    if delta.verdict is Verdict.UNCONFIRMED:
        is_drift = delta.reason is not None and delta.reason.kind is ReasonKind.DRIFT
        endings = [say("headline.unconfirmed", drift=is_drift, several=max(delta.runs) > 1), ""]
    elif delta.verdict.is_established and is_work:
        endings = _list_causes(comparison, delta)
    return choose_headline([f"{change}{ending}." for ending in endings]), VerdictCode[delta.verdict.name]


def describe_quality_alone(comparison: Comparison) -> str:
    """Return that quality fell, where nothing else can be said; empty where it did not."""
    fall = quality.describe_fall(comparison)
    return choose_headline((f"{display.raise_first(fall)}.", "Quality fell.")) if fall else ""


def _describe_size(delta: Delta, noun: str) -> str:
    """Return how GPU time per unit of work changed: `52% less GPU time per image`."""
    ratio = (delta.after or 0.0) / (delta.before or 1.0)
    if ratio >= _TENFOLD:
        return f"{differences.format_times(ratio)} the {noun}"
    size = differences.format_percent_change(ratio).lstrip(f"{MINUS}+")
    return f"{size} {'less' if ratio < 1 else 'more'} {noun}"


def _list_causes(comparison: Comparison, delta: Delta) -> list[str]:
    """Return what may follow the change of a chain, the fullest first: which step made most of it, then nothing."""
    steps = comparison.steps
    is_pair = len(steps) == 2  # noqa: PLR2004 - of two steps the last one made the change
    for base, step in pairwise(steps):
        link = comparison.judged(base.label, step.label)
        part = link.difference if link and link.verdict is delta.verdict else None
        if is_pair or (part and delta.difference and part / delta.difference > _MOST):
            what, names = _describe_step_change(base, step), {"step": display.clean(step.label)}
            named = say("headline.than" if is_pair else "headline.most_in", **names, base=display.clean(base.label))
            return [say("headline.cause", what=what, chain=not is_pair) if what else named, named, ""]
    return [""]


def _describe_step_change(base: Step, step: Step) -> str:
    """Return what a step changed, by its name: `more loader workers` of `2-more-workers`; empty where it says nothing.

    A name says so where it holds two words or more. Workers are those of the data loader where the step waits for data
    less than half as long.
    """
    words = re.split(r"[-_\s]+", re.sub(r"^[\W\d_]+", "", display.clean(step.label)))
    if len(words) < 2 or not all(re.fullmatch("[A-Za-z]{2,}", word) for word in words):  # noqa: PLR2004 - see above
        return ""
    before, after = (
        gpu_time.seconds_by_class(time for analysis in side.analyses for time in analysis.gpu_time).get(
            "waiting_for_input", 0.0
        )
        for side in (base, step)
    )
    if "workers" in words and "loader" not in words and after < before / 2:
        words.insert(words.index("workers"), "loader")
    return " ".join(words)


def describe_certainty(comparison: Comparison) -> str:
    """Return how sure the change from first step to last is, as a clause; empty without an interval."""
    delta = judge_ends(comparison)
    if delta is None or not delta.before or delta.interval is None or delta.verdict is Verdict.UNCONFIRMED:
        return ""
    (first, other), runs = delta.runs, ""
    if max(first, other) > 1:
        is_even = first == other and all(len(step.runs) == first for step in comparison.steps)
        runs = f"{display.plural(first, 'run')} {'a step' if is_even else f'against {other}'}"
    if delta.metric != PER_WORK:
        ends = " to ".join(dict.fromkeys(f"{100 * end:+.0f}".replace("-", MINUS) for end in delta.interval))
        return say("headline.points", ends=ends, runs=runs)
    low, high = (1 + end / delta.before for end in delta.interval)
    if not 0 < low <= high < _TENFOLD:
        return ""
    if not delta.verdict.is_established:
        ends = describe_interval(differences.format_percent_range((low, high)), count_family(delta.reason))
        size = differences.format_percent_change((delta.after or 0.0) / delta.before)
        return say("headline.unsure", size=size, verdict=delta.verdict.value, ends=ends, runs=runs)
    least, most = (
        differences.format_percent_change(1 + size).lstrip("+") for size in sorted((abs(low - 1), abs(high - 1)))
    )
    # an interval that prints as the figure does says nothing more
    least = least.removesuffix("%") if least != most else ""
    return say("headline.range", least=least, most=most, word="less" if high <= 1 else "more", runs=runs)


# --- tiles


_Ends = tuple[float | None, float | None]


def build_step_tiles(comparison: Comparison) -> tuple[Tile, ...]:
    """Return four figures of the first and the last step with their changes, by work where that is known."""
    figures, memory, last = Figures(comparison), build_memory_tile(comparison), comparison.steps[-1]
    if last.value(PER_WORK) is None:
        # runs of several steps may differ in their work, so that GPU time is not judged
        spent, change = figures.ends(GPU_SECONDS), build_plain_change(*figures.ends(GPU_SECONDS))
        name, unit, size = figures.unit(GPU_SECONDS) if spent[-1] else (name_figure(GPU_SECONDS), "", 1.0)
        context = "Runs may differ in work"
        time = _set_tile(name, spent, lambda value: display.number(value / size), change, context, unit=unit)
        return _build_use_tile(figures), time, _build_tile(figures, ENERGY, "GPUs only"), memory
    factor, rate = scales.choose_rate_unit(figures.ends(WORK_RATE), last.work_unit)
    before, after = figures.ends(TRAINING_RATE)
    context = "Start-up and pauses included"
    if before and after:
        rates = [display.number(each * factor) for each in (before, after)]
        context = f"Training: {' → '.join(rates)}, {differences.format_percent_change(after / before)}"
    throughput = _build_tile(figures, WORK_RATE, context, (rate, 1 / factor))
    if last.value(COST_PER_WORK) is None:
        cost = _build_tile(figures, PER_WORK, "No price given")
    else:
        ends, (label, show) = figures.ends(COST_PER_WORK), figures.column(COST_PER_WORK)
        price, training = spending.common_price(list_analyses(comparison.steps)), format_training_cost(comparison)
        context = say("tile.price", price=price, training=training, nameless=not figures.currency)
        cost = _set_tile(label, ends, show, _build_change(figures, COST_PER_WORK), context)
    # of a run where the work is not known
    energy = ENERGY_PER_WORK if last.value(ENERGY_PER_WORK) is not None else ENERGY
    return throughput, cost, _build_tile(figures, energy, "GPUs only"), memory


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


def _build_change(figures: Figures, metric: str) -> Change | None:
    return build_change(figures.delta(metric)) or build_plain_change(*figures.ends(metric))


def _build_tile(figures: Figures, metric: str, context: str, scale: tuple[str, float] | None = None) -> Tile:
    """Return a tile of a figure in a unit that has a size, otherwise in that of all steps."""
    ends = figures.ends(metric)
    if metric == ENERGY:
        scale = scales.choose_energy_unit(ends)
    label, unit, size = (name_figure(metric), *scale) if scale else figures.unit(metric)
    change = _build_change(figures, metric)
    return _set_tile(label, ends, lambda value: display.number(value / size), change, context, unit=unit)


def _build_use_tile(figures: Figures) -> Tile:
    delta, ends = figures.delta(UTILISATION), figures.ends(UTILISATION)
    if delta is not None and delta.difference is not None:
        # the figures of the time that the change is of
        ends = delta.before, delta.after
    context = say("tile.no_work", settled=delta is not None and delta.window == "steady")
    return _set_tile(name_figure(UTILISATION), ends, display.percent_formatter(ends), build_change(delta), context)
