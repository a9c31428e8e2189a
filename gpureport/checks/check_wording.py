"""What became of rules, in sentences: `idle share 49%, allowed 5%`, `GPU slowed by heat (1 run), allowed: none`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite

from gpureport.checks import limit_units
from gpureport.checks.limit import Limit, LimitError, TargetKind, parse_limit
from gpureport.checks.limit_units import FINDINGS, SHARE
from gpureport.findings import Check, CheckOutcome
from gpureport.number_format import MINUS
from gpureport.report.wording import display, terms
from gpureport.report.wording.differences import format_percent_change
from gpureport.report.wording.reasons import SINGLE_RUN_SCATTER

FAILED, NOT_ASSESSED, PASSED = "FAILED", "NOT ASSESSED", "PASSED"
"""How a gate ended."""

THREE_RUNS = "make the baseline of three runs: gpureport baseline set NAME A B C"
"""What narrows the interval of a change."""

UNKNOWN_CHANGE = "unknown_change"
"""Code of a change of which it is not known whether it keeps its limit."""

_SCOPE = re.compile(r" (?:for|unless) ")
_KIND = re.compile(rf"\b(?:{'|'.join(terms.KINDS)})\b")
_COUNT = re.compile(r"\d+ findings?: ")
_LISTED = 3
_NOUNS = {"idle_ratio": "idle share", "rejected": "rejected lines", "not_judged": "checks not assessed"}
_RELATIONS = {"<=": "allowed", "<": "allowed below", ">=": "required", ">": "required above"}
_COUNTED = {TargetKind.FINDING, TargetKind.NEW}


def describe_failures(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a clause per broken rule: one for all runs where a finding breaks it, else one per run."""
    broken = [check for check in checks if check.outcome is CheckOutcome.BROKEN]
    several = len({check.run for check in checks if check.run}) > 1
    for words in dict.fromkeys(check.limit for check in broken):
        own = [check for check in broken if check.limit == words]
        limit = _parse(words)
        if limit and limit.subject in _COUNTED and limit.threshold.unit == FINDINGS:
            yield _describe_findings(own, limit, words)
            continue
        for check in own:
            run = f"{display.clean(check.run)}: " if several and check.run else ""
            yield f"{run}{_describe_figure(check, limit)}"


def name_failure(checks: Sequence[Check]) -> str:
    """Return in few words the change or finding that broke a rule; empty of other rules."""
    broken = [(check, _parse(check.limit)) for check in checks if check.outcome is CheckOutcome.BROKEN]
    for check, limit in broken:
        if limit is not None and limit.subject is TargetKind.CHANGE and check.value is not None:
            return f"{display.raise_first(_noun(limit))} {_format_signed_change(check.value, limit)}"
    return next((terms.kind_title(limit.name) for _, limit in broken if limit and limit.name in terms.KINDS), "")


def _format_signed_change(value: float, limit: Limit) -> str:
    """Return a change with its sign, in per cent, in points or in its unit."""
    if limit.threshold.unit == SHARE:
        return format_percent_change(1 + value)
    return f"{MINUS if value < 0 else '+'}{_format_size(limit, value)}"


def describe_unassessed(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a clause per rule and reason that could not be assessed."""
    unknown = [check for check in checks if check.outcome is CheckOutcome.CANNOT_JUDGE]
    for words, why in dict.fromkeys((check.limit, _explain(check)) for check in unknown):
        named = _name_runs([check.run for check in unknown if (check.limit, _explain(check)) == (words, why)])
        said = name_findings(display.clean_sentence(why)).rstrip(".")
        yield f"{display.clean(words)}{f' ({named})' if named else ''}: {said}"


def _explain(check: Check) -> str:
    """Return why a rule could not be assessed; of a change also how large it is."""
    limit = _parse(check.limit)
    is_change = limit is not None and limit.subject is TargetKind.CHANGE
    return "; ".join(filter(None, (check.observed if is_change else "", check.reason)))


def describe_passed(checks: Sequence[Check]) -> str:
    """Return the rules that hold, in one line, with what was observed of a single run."""
    passed = [check for check in checks if check.outcome is CheckOutcome.PASSED]
    held = []
    for words in dict.fromkeys(check.limit for check in passed):
        own = [check for check in passed if check.limit == words]
        observed = own[0].observed if len(own) == 1 else f"{len(own)} runs"
        held.append(f"{display.clean(words)}{f' ({display.clean(observed)})' if observed else ''}")
    return "; ".join(held)


def name_findings(text: str) -> str:
    """Return text with kinds of findings by their titles."""
    return _KIND.sub(lambda match: terms.kind_title(match.group()), text)


def describe_change(limit: Limit, value: float, ends: tuple[float, float], *, has_level: bool) -> str:
    """Return a change in words, such as `fell by 45.2 points (95%: -46.7 to -43.8)`.

    Args:
        limit: the limit on the change.
        value: after less before, in the unit of the limit.
        ends: of the interval of the change.
        has_level: whether the interval holds the change in 95% of cases.
    """
    size = _format_size(limit, value)
    verb = "changed" if size == _format_size(limit, 0.0) else "fell" if value < 0 else "rose"
    if not all(map(isfinite, ends)):
        return f"{verb} by {size}"
    unit = f"{display.GAP}points"
    low, high = (f"{MINUS if end < 0 else '+'}{_format_size(limit, end).removesuffix(unit)}" for end in ends)
    return f"{verb} by {size} ({'95%: ' if has_level else ''}{low} to {high})"


def _format_size(limit: Limit, value: float) -> str:
    """Return the size of a change, without a sign."""
    unit, bound = limit.threshold.unit, replace(limit.threshold, value=abs(limit.threshold.value))

    def words(size: float) -> str:
        if unit == SHARE:
            return display.percent(size)
        return limit_units.format_quantity(size, unit, bound.currency).removeprefix("+")

    return limit_units.format_against_limit(abs(value), bound, words)


def explain_unknown_change(limit: Limit, value: float, ends: tuple[float, float], why: str) -> str:
    """Return that a change may or may not keep its limit; empty where that is known.

    It is known where the whole interval keeps or breaks the limit; where a run did better; and where the change itself
    keeps the limit and the interval reaches no further from it to the side of the limit than the limit is large.

    Args:
        limit: the limit on the change.
        value: after less before, in the unit of the limit.
        ends: of the interval of the change.
        why: what leaves it open, and what would settle it.
    """
    if len({limit.holds(end) for end in ends}) == 1 or is_improvement(limit, value):
        return ""
    reach = ends[1] - value if limit.is_upper else value - ends[0]
    is_precise = isfinite(reach) and reach <= abs(limit.threshold.value) * (1 + 1e-9)
    if is_precise and limit.holds(value):
        return ""
    verb = "fell" if limit.threshold.value < 0 else "rose"
    least = "at least" if demands_change(limit) == limit.relation.endswith("=") else "more than"
    return f"whether it {verb} by {least} {_threshold_size(limit)} is not known {why}"


def is_improvement(limit: Limit, value: float) -> bool:
    """Return whether a change goes away from a limit that only bounds how much worse a run may be."""
    return not demands_change(limit) and (value < 0 if limit.is_upper else value > 0)


def demands_change(limit: Limit) -> bool:
    """Return whether a limit on a change is broken where nothing changed."""
    return not limit.holds(0.0)


def list_demanding_rules(limits: Iterable[Limit]) -> Iterator[str]:
    """Yield a note per limit on a change that a run equal to the baseline breaks."""
    for limit in limits:
        if limit.subject is not TargetKind.CHANGE or not demands_change(limit):
            continue
        size = _threshold_size(limit)
        demanded, allowed, sign = ("rise", "fall", "-") if limit.threshold.value > 0 else ("fall", "rise", "")
        other = limit.words.replace(f"{limit.relation} {limit.threshold.text}", f"{limit.relation} {sign}{size}")
        yield f"{limit.words} fails without a {demanded} of {size}; to allow a {allowed} of {size}: {other}"


def describe_allowed_change(limit: Limit) -> str:
    """Return what a limit on a change allows, such as `allowed: a fall of 5 points`."""
    direction = "fall" if limit.threshold.value < 0 else "rise"
    demanded, less = demands_change(limit), "" if limit.relation.endswith("=") else "less than "
    if demanded:
        less = less.replace("less", "more")
    return f"{'required' if demanded else 'allowed'}: a {direction} of {less}{_threshold_size(limit)}"


def _threshold_size(limit: Limit) -> str:
    return limit.threshold.text.lstrip("+-")


def count_compared_runs(before: int, after: int) -> str:
    """Return how many runs a change rests on, such as `3 baseline runs, 2 checked`."""
    assumed = f"; {SINGLE_RUN_SCATTER}" if min(before, after) == 1 < max(before, after) else ""
    return f"{display.plural(before, 'baseline run')}, {after} checked{assumed}"


def _parse(words: str) -> Limit | None:
    """Return the limit of a rule without where it applies; None of a missing source."""
    try:
        return parse_limit(_SCOPE.split(words, maxsplit=1)[0])
    except LimitError:
        return None


def _describe_findings(checks: Sequence[Check], limit: Limit, words: str) -> str:
    one_kind = limit.name in terms.KINDS
    allowed = limit.threshold.text or ("none" if one_kind else f"no {limit.name}")
    new = "new: " if limit.subject is TargetKind.NEW else ""
    runs = display.plural(len(checks), "run")
    named = f": {_name_runs([check.run for check in checks])}" if len(checks) > 1 else ""
    seen = "; ".join(dict.fromkeys(name_findings(display.clean(check.observed)) for check in checks))
    title = terms.kind_title(limit.name) if one_kind else _COUNT.sub("", seen)
    return f"{new}{title} ({runs}{named}). Allowed: {allowed}{_format_scope(words)}"


def _format_scope(words: str) -> str:
    """Return where a rule applies, and where not, as a clause; empty for everywhere."""
    scope = words.removeprefix(_SCOPE.split(words, maxsplit=1)[0])
    return f" {display.clean(scope)}" if scope else ""


def _describe_figure(check: Check, limit: Limit | None) -> str:
    observed = display.clean_sentence(check.observed)
    if limit is None:
        return f"{display.clean(check.limit)}{f' ({observed})' if observed else ''}"
    statistic = f" {limit.statistic}" if limit.statistic and limit.statistic != "mean" else ""
    noun, scope = f"{_noun(limit)}{statistic}", _format_scope(check.limit)
    if limit.subject is TargetKind.CHANGE:
        return f"{noun} {observed}; {describe_allowed_change(limit)}{scope}"
    bound = f"{_RELATIONS[limit.relation]} {limit.threshold.text}"
    if limit.name in terms.KINDS:
        observed = observed.partition(": ")[0]
    return f"{noun} {name_findings(observed)}, {bound}{scope}"


def _noun(limit: Limit) -> str:
    if limit.name in _NOUNS:
        return _NOUNS[limit.name]
    if limit.name in terms.KINDS:
        return terms.kind_title(limit.name)
    if limit.name in terms.CLASSES:
        return terms.CLASSES[limit.name]
    is_relative = limit.subject is TargetKind.CHANGE and limit.threshold.unit == SHARE
    return name_figure_for_one(limit.name) if is_relative else terms.column_title(limit.name)


def name_figure_for_one(metric: str) -> str:
    """Return a figure within a sentence, per one unit of work."""
    return terms.name_for_one(terms.column_title(metric))


def _name_runs(runs: Sequence[str]) -> str:
    names = [display.clean(run) for run in dict.fromkeys(runs) if run]
    more = len(names) - _LISTED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_LISTED])} and {more} more"
