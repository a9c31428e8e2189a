"""What stands at the head of a report on groups: the best of them, and what to know before choosing it."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.chain import Comparison
from gpureport.comparison.factors import Factor
from gpureport.comparison.figures import COST_PER_WORK, PER_WORK
from gpureport.comparison.quality import QualityChange
from gpureport.comparison.study import BestGroup, Study
from gpureport.comparison.verdict import Verdict
from gpureport.report.model.head import VerdictCode
from gpureport.report.model.shapes import Fact
from gpureport.report.sections.comparison.quality_rows import format_pair, name_work, shown_name
from gpureport.report.wording import display
from gpureport.report.wording.display import drop_equal_ends
from gpureport.report.wording.headlines import choose_headline

_AHEAD = {COST_PER_WORK: "cheaper", PER_WORK: "less GPU time"}
_FASTER = "faster in training"
_FIRST = {COST_PER_WORK: "cheapest", PER_WORK: "lowest in GPU time"}
_FASTEST = "fastest in training"
_NAMES = {COST_PER_WORK: "Cheapest", PER_WORK: "Least GPU time"}
_NO_PRICES = "Which GPU is cheapest: state the price of each under [prices]."
_NAME = 60
_NAMED = 6
"""Settings that are named at most."""


_CODES = {
    Verdict.BETTER: VerdictCode.BEST_GROUP,
    Verdict.UNCONFIRMED: VerdictCode.BEST_GROUP_UNCONFIRMED,
    Verdict.NOT_ENOUGH_DATA: VerdictCode.BEST_GROUP_NOT_KNOWN,
}
_NO_BEST = "Fewer than two groups have work that is known in one unit."


def describe_study(study: Study, comparison: Comparison) -> tuple[str, tuple[str, ...]]:
    """Return the best group in a sentence, and what to know beside it; empty where the work is not known."""
    best = study.best_by_cost or study.best_by_speed
    if best is None:
        return "", ()
    details = tuple(f"{fact.name}: {fact.text}" for fact in list_best_facts(study))
    return choose_headline(list(_list_headlines(best, study, comparison))), details


def code_study(study: Study) -> VerdictCode | None:
    """Return what the headline on the best group says, in one word; None where the work is not known."""
    best = study.best_by_cost or study.best_by_speed
    if best is None or best.lower_quality:
        return VerdictCode.BEST_GROUP_LOWER_QUALITY if best else None
    return _CODES.get(best.verdict, VerdictCode.NO_CLEAR_BEST_GROUP)


def name_settings(factors: Sequence[Factor]) -> str:
    """Return the names of settings, of many the first few and how many more there are."""
    names = [display.clean(factor.name) for factor in factors]
    more = len(names) - _NAMED
    return display.join_words([*names[:_NAMED], f"{more} more"] if more > 1 else names)


def _list_headlines(best: BestGroup, study: Study, comparison: Comparison) -> Iterator[str]:
    """Yield headlines on the best group, the fullest first: `batch 256 with 8 workers is cheapest: $1.15 per ...`."""
    first, verdict = _FIRST.get(best.metric, _FASTEST), best.verdict
    size = display.percent(abs(best.change))
    names = (name_group(study, best.label), display.clean(best.label))
    if best.lower_quality:
        change = best.lower_quality[0]
        own, other = reversed(format_pair(change))
        for name in names:
            yield f"{name} is {first}, but {shown_name(change.name)} is {own}, not {other}."
            yield f"{name} is {first}, but at lower quality."
    for name in names:
        if verdict is Verdict.BETTER:
            worst = _compare_with_worst(best, comparison)
            yield f"{name} is {first}: {worst}."
            yield f"{name} is {first}: {size} {_AHEAD.get(best.metric, _FASTER)} than the next."
        elif verdict is Verdict.UNCONFIRMED:
            yield f"{name} is {first}, {size} ahead of the next; unconfirmed, without repetitions."
        elif verdict is Verdict.NOT_ENOUGH_DATA:
            yield f"Not enough data to say which is {first}; {name} comes first."
        else:
            yield f"No group is clearly {first}; {name} comes first."
    yield f"{display.shorten_middle(names[-1], _NAME)} comes first."


def name_group(study: Study, label: str) -> str:
    """Return a group by its settings: `batch 256 with 8 workers` of `batch=256, workers=8`."""
    group = next((group for group in study.groups if group.label == label), None)
    if group is None:
        return display.clean(label)
    parts = [
        f"{display.clean(factor.name)} {display.clean(value)}" if factor.key else display.clean(value)
        for factor, value in zip(study.by, group.values, strict=True)
        if value is not None
    ]
    return " with ".join(parts) or display.clean(label)


def _compare_with_worst(best: BestGroup, comparison: Comparison) -> str:
    """Return how far the best group is ahead of the worst one."""
    others = [value for step in comparison.steps if step.label != best.label and (value := step.value(best.metric))]
    worst = max(others, key=lambda value: abs(value - best.value), default=best.next_value)
    size = display.percent(abs(best.value / worst - 1))
    return f"{size} {_AHEAD.get(best.metric, _FASTER)} than the worst"


def list_best_facts(study: Study) -> Iterator[Fact]:
    """Yield the group that takes the least money or GPU time and the fastest one, and what else varied."""
    for best in (study.best_by_cost, study.best_by_speed):
        if best is not None:
            yield Fact(name=_NAMES.get(best.metric, "Fastest"), text=describe_best_group(best))
    if study.best_by_cost and study.best_by_cost.metric == PER_WORK and "gpu" in {factor.kind for factor in study.by}:
        yield Fact(name="Not known", text=_NO_PRICES)
    if study.best_by_cost is None and study.best_by_speed is None:
        yield Fact(name="Not known", text=_NO_BEST)
    if study.mixed_in:
        names = name_settings(study.mixed_in)
        yield Fact(name="Also varied", text=f"{names}; the groups differ in this too.")


def describe_best_group(best: BestGroup) -> str:
    """Return the best group with its margin over the next, or that none is clear."""
    label, following = display.clean(best.label), display.clean(best.next)
    margin = f"{_format_margin(best)} {_AHEAD.get(best.metric, _FASTER)} than the next, {following}"
    adjusted = f"; adjusted for {display.plural(best.tested, 'comparison')}" if best.tested > 1 else ""
    rivals = display.join_words([display.clean(rival) for rival in best.rivals if rival not in best.unconfirmed])
    sentences = {
        Verdict.BETTER: f"{label}: {margin}{adjusted}.",
        Verdict.UNCONFIRMED: f"{label}: {margin}; unconfirmed, for not every group is repeated.",
        Verdict.NOT_ENOUGH_DATA: f"Not enough data for a best. {label} comes first: {margin}{adjusted}. "
        f"It cannot yet be told from {rivals}.",
    }
    no_clear = f"No clear best. {label} comes first: {margin}{adjusted}. May be as good: {rivals}."
    parts = [sentences.get(best.verdict, no_clear)]
    if best.unconfirmed and rivals:
        unconfirmed = display.join_words([display.clean(label) for label in best.unconfirmed])
        parts.append(f"Worse, but unconfirmed: {unconfirmed}.")
    parts += [f"Its quality is lower: {_describe_quality(change)}." for change in best.lower_quality]
    if best.unknown:
        parts.append(f"Not known for {display.join_words([display.clean(label) for label in best.unknown])}.")
    return " ".join(parts)


def _describe_quality(change: QualityChange) -> str:
    """Return a metric of the best group against the group that trained better."""
    other, own = format_pair(change)
    unsure = " (unconfirmed: one run each)" if change.verdict is Verdict.UNCONFIRMED else ""
    where = f"{name_work(change)} in {display.clean(change.base)}"
    return f"{shown_name(change.name)} {own} against {other}{where}{unsure}"


def _format_margin(best: BestGroup) -> str:
    """Return how far the best is ahead of the next, with its interval."""
    sign = 1.0 if best.change >= 0 else -1.0
    size = display.percent(abs(best.change))
    if best.interval is None:
        return size
    low, high = sorted(sign * end for end in best.interval)
    if low < 0:
        return f"{size} (from {display.percent(-low)} worse to {display.percent(high)} better)"
    ends = drop_equal_ends(f"{display.percent(low).removesuffix('%')} to {display.percent(high)}")
    return f"{size} ({ends})" if ends else size
