"""The headline of steps: how much GPU time was saved since the first, and by which."""

import re
from itertools import pairwise

from gpureport.comparison.across import scaling
from gpureport.comparison.chain import Comparison
from gpureport.comparison.evidence import ReasonKind
from gpureport.comparison.figures import PER_WORK
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.number_format import MINUS
from gpureport.report.model.head import VerdictCode
from gpureport.report.sections.comparison import quality_rows
from gpureport.report.wording import display
from gpureport.report.wording.differences import relative_changes
from gpureport.report.wording.differences.comparison_reasons import count_family, describe_interval
from gpureport.report.wording.display import drop_equal_ends
from gpureport.report.wording.headlines import choose_headline
from gpureport.report.wording.terms import name_one

_MOST = 0.5
"""Share of the change above which one step made most of it."""
_TENFOLD = 10.0
"""Ratio from which a change reads better as times than in per cent."""
_NUMBER = re.compile(r"^[\W\d_]+")
_WORD = re.compile(r"[A-Za-z][A-Za-z]+")
_UNSURE = "unconfirmed, one run each"


def describe_steps(comparison: Comparison) -> str:
    """Return what changed from the first step to the last, and what did most of it, if known."""
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = comparison.judged(first.label, last.label)
    if delta is None or delta.difference is None or not delta.before:
        return describe_quality_alone(comparison)
    fall = quality_rows.describe_quality_fall(comparison)
    is_work = delta.metric == PER_WORK
    change = _describe_work_change(delta, last.work_unit) if is_work else _describe_use_change(delta)
    change = _describe_scaling(comparison) or change
    if delta.verdict in {Verdict.NO_CLEAR_CHANGE, Verdict.NOT_ENOUGH_DATA}:
        noun = _name_figure(delta, last.work_unit)
        clear = delta.verdict is Verdict.NO_CLEAR_CHANGE
        change = f"No clear change in {noun}" if clear else f"Not enough data to say whether {noun} changed"
    if fall:
        return choose_headline((f"{change}, but {fall}.", f"{change}, but quality fell."))
    if delta.verdict is Verdict.UNCONFIRMED:
        unsure = "unconfirmed, too few runs" if max(delta.runs) > 1 else _UNSURE
        if delta.reason and delta.reason.kind is ReasonKind.DRIFT:
            unsure = "unconfirmed, the machine drifted"
        return choose_headline((f"{change}; {unsure}.", f"{change}."))
    if delta.verdict.is_established and is_work:
        return choose_headline([f"{change}{cause}." for cause in _list_causes(comparison, delta)])
    return choose_headline((f"{change}.",))


def code_steps(comparison: Comparison) -> VerdictCode:
    """Return what the headline says, in one word."""
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = comparison.judged(first.label, last.label)
    if delta is None or delta.difference is None or not delta.before or quality_rows.describe_quality_fall(comparison):
        return VerdictCode.QUALITY_FELL
    return VerdictCode[delta.verdict.name]


def describe_quality_alone(comparison: Comparison) -> str:
    """Return that quality fell, where nothing else can be said; empty where it did not."""
    fall = quality_rows.describe_quality_fall(comparison)
    return choose_headline((f"{fall[:1].upper()}{fall[1:]}.", "Quality fell.")) if fall else ""


def name_work_unit(unit: str | None) -> str:
    """Return the unit of work for one: `image` of `images`."""
    one = name_one(display.shorten(display.clean(unit or ""), 24)) or "unit of work"
    return "training step" if one == "step" else one


def _name_figure(delta: Delta, unit: str | None) -> str:
    return f"GPU time per {name_work_unit(unit)}" if delta.metric == PER_WORK else "GPU utilisation"


def _describe_work_change(delta: Delta, unit: str | None) -> str:
    """Return how GPU time per unit of work changed: `52% less GPU time per image`."""
    noun = f"GPU time per {name_work_unit(unit)}"
    ratio = (delta.after or 0.0) / (delta.before or 1.0)
    if ratio >= _TENFOLD:
        return f"{relative_changes.format_times(ratio)} the {noun}"
    size = relative_changes.format_percent_change(ratio).lstrip(f"{MINUS}+")
    return f"{size} {'less' if ratio < 1 else 'more'} {noun}"


def _describe_scaling(comparison: Comparison) -> str:
    """Return what each of more GPUs does: `8 GPUs do 43% of the work per GPU that 1 did`; empty for as many GPUs."""
    ends = comparison.steps[0].label, comparison.steps[-1].label
    found = next((each for each in scaling(comparison.steps) if (each.base, each.step) == ends), None)
    if found is None:
        return ""
    return f"{found.gpus[1]} GPUs do {display.percent(found.efficiency)} of the work per GPU that {found.gpus[0]} did"


def _describe_use_change(delta: Delta) -> str:
    """Return how GPU utilisation changed: `GPU utilisation rises from 35% to 78%`."""
    values = (delta.before, delta.after)
    before, after = (display.or_not_recorded(value, display.percent_formatter(values)) for value in values)
    if before == after:
        return f"GPU utilisation stays at {after}"
    return f"GPU utilisation {'rises' if (delta.difference or 0) > 0 else 'falls'} from {before} to {after}"


def _list_causes(comparison: Comparison, delta: Delta) -> list[str]:
    """Return what may follow the change of a chain, the fullest first: which step made most of it, then nothing."""
    steps = comparison.steps
    if len(steps) == 2:  # noqa: PLR2004 - of two steps the last one made the change
        what = describe_step_change(steps[0], steps[1])
        named = f" in {display.clean(steps[1].label)} than in {display.clean(steps[0].label)}"
        return [f" with {what}" if what else named, named, ""]
    found = find_decisive_step(comparison, delta)
    if found is None:
        return [""]
    base, step = found
    what = describe_step_change(base, step)
    named = f"; most of it in {display.clean(step.label)}"
    return [f"; most of it from {what}" if what else named, named, ""]


def find_decisive_step(comparison: Comparison, delta: Delta) -> tuple[Step, Step] | None:
    """Return the step that made more than half of a change, with the one before it.

    None where no step did, or where the step by itself has not the verdict of the whole change.
    """
    for base, step in pairwise(comparison.steps):
        link = comparison.judged(base.label, step.label)
        if link is None or link.verdict is not delta.verdict or not link.difference or not delta.difference:
            continue
        if link.difference / delta.difference > _MOST:
            return base, step
    return None


def describe_step_change(base: Step, step: Step) -> str:
    """Return what a step changed, by its name: `more loader workers` of `2-more-workers`; empty where it says nothing.

    A name says so where it holds two words or more. Workers are those of the data loader where the step saves waiting
    for data.
    """
    name = _NUMBER.sub("", display.clean(step.label))
    words = re.split(r"[-_\s]+", name)
    if len(words) < 2 or not all(_WORD.fullmatch(word) for word in words):  # noqa: PLR2004 - see above
        return ""
    if "workers" in words and "loader" not in words and _waits_less(base, step):
        words.insert(words.index("workers"), "loader")
    return " ".join(words)


def _waits_less(base: Step, step: Step) -> bool:
    """Return whether GPUs waited for data, and in the later step less than half as long."""
    before, after = (
        sum(
            amount
            for analysis in each.analyses
            for time in analysis.gpu_time
            for name, amount in time.seconds
            if name == "waiting_for_input"
        )
        for each in (base, step)
    )
    return after < before / 2


def describe_certainty(comparison: Comparison) -> str:
    """Return how sure the change from first step to last is, as a clause; empty without an interval."""
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = comparison.judged(first.label, last.label)
    if delta is None or not delta.before or delta.interval is None or delta.verdict is Verdict.UNCONFIRMED:
        return ""
    runs = f", {_describe_runs(delta, comparison)}" if max(delta.runs) > 1 else ""
    if delta.metric != PER_WORK:
        low, high = (f"{100 * end:+.0f}".replace("-", MINUS) for end in delta.interval)
        return f"A change of {low if low == high else f'{low} to {high}'} points (95% interval{runs})"
    ratios = (1 + delta.interval[0] / delta.before, 1 + delta.interval[1] / delta.before)
    if not 0 < ratios[0] <= ratios[1] < _TENFOLD:
        return ""
    if delta.verdict.is_established:
        return _describe_range(ratios, runs)
    size = relative_changes.format_percent_change((delta.after or 0.0) / delta.before)
    interval = drop_equal_ends(relative_changes.format_percent_range(ratios))
    shown = describe_interval(interval, count_family(delta.reason))
    brackets = ", ".join(filter(None, (shown and f"95% interval {shown}", runs.removeprefix(", "))))
    return f"{size}, {delta.verdict.value} ({brackets})" if brackets else f"{size}, {delta.verdict.value}"


def _describe_range(ratios: tuple[float, float], runs: str) -> str:
    """Return the ends of a change that is shown to be one: `Between 45 and 58% less (95% interval, 3 runs a step)`."""
    word = "less" if ratios[1] <= 1 else "more"
    sizes = sorted(abs(ratio - 1) for ratio in ratios)
    low, high = (relative_changes.format_percent_change(1 + size).lstrip("+") for size in sizes)
    if low == high:
        # an interval that prints as the figure does says nothing more
        return f"{high} {word} ({runs.removeprefix(', ')})" if runs else f"{high} {word}"
    return f"Between {low.removesuffix('%')} and {high} {word} (95% interval{runs})"


def _describe_runs(delta: Delta, comparison: Comparison) -> str:
    """Return how many runs the change rests on: `3 runs a step`; where steps differ in them, `3 runs against 2`."""
    before, after = delta.runs
    is_even = before == after and all(len(step.runs) == before for step in comparison.steps)
    return f"{display.plural(before, 'run')} a step" if is_even else f"{display.plural(before, 'run')} against {after}"
