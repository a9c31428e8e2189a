"""What became of rules, in sentences: `idle share 49%, allowed 5%`, `GPU slowed by heat (1 run). Allowed: none`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite

from gpureport.checks.grammar import LimitError, parse_limit
from gpureport.checks.limit import Limit, Subject
from gpureport.checks.quantities import FINDINGS, SHARE, format_against_limit, format_quantity
from gpureport.findings import Check, CheckOutcome
from gpureport.number_format import MINUS
from gpureport.report.wording import display, terms
from gpureport.report.wording.differences import format_percent_change

_SCOPE = re.compile(r" (?:for|unless) ")
_KIND = re.compile(rf"\b(?:{'|'.join(terms.KINDS)})\b")
_COUNT = re.compile(r"\d+ findings?: ")
_LISTED = 3
_NOUNS = {"idle_ratio": "idle share", "rejected": "rejected lines", "not_judged": "checks not assessed"}
_RELATIONS = {"<=": "allowed", "<": "allowed below", ">=": "required", ">": "required above"}


def describe_failures(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a clause per broken rule: one for all runs where a finding breaks it, else one per run."""
    broken = select_checks(checks, CheckOutcome.BROKEN)
    several = len({check.run for check in checks if check.run}) > 1
    for words in dict.fromkeys(check.limit for check in broken):
        own = [check for check in broken if check.limit == words]
        limit = _parse(words)
        if limit and limit.subject in {Subject.FINDING, Subject.NEW} and limit.threshold.unit == FINDINGS:
            yield _describe_findings(own, limit, words)
            continue
        for check in own:
            run = f"{display.clean(check.run)}: " if several and check.run else ""
            yield f"{run}{_describe_figure(check, limit)}"


def name_failure(checks: Sequence[Check]) -> str:
    """Return in few words the change or finding that broke a rule; empty of other rules."""
    broken = [(check, _parse(check.limit)) for check in select_checks(checks, CheckOutcome.BROKEN)]
    for check, limit in broken:
        if limit is not None and limit.subject is Subject.CHANGE and check.value is not None:
            sign = MINUS if check.value < 0 else "+"
            is_share = limit.threshold.unit == SHARE
            size = format_percent_change(1 + check.value) if is_share else f"{sign}{_format_size(limit, check.value)}"
            return f"{display.raise_first(_noun(limit))} {size}"
    return next((terms.kind_title(limit.name) for _, limit in broken if limit and limit.name in terms.KINDS), "")


def describe_unassessed(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a clause per rule and reason that could not be assessed."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for check in select_checks(checks, CheckOutcome.CANNOT_JUDGE):
        limit = _parse(check.limit)
        # of a change also how large it is
        observed = check.observed if limit is not None and limit.subject is Subject.CHANGE else ""
        why = "; ".join(filter(None, (observed, check.reason)))
        grouped.setdefault((check.limit, why), []).append(check.run)
    for (words, why), runs in grouped.items():
        named = _name_runs(runs)
        said = name_findings(display.clean_sentence(why)).rstrip(".")
        yield f"{display.clean(words)}{f' ({named})' if named else ''}: {said}"


def describe_passed(checks: Sequence[Check]) -> str:
    """Return the rules that hold, in one line, with what was observed of a single run."""
    grouped: dict[str, list[str]] = {}
    for check in select_checks(checks, CheckOutcome.PASSED):
        grouped.setdefault(check.limit, []).append(check.observed)
    held = []
    for words, seen in grouped.items():
        observed = seen[0] if len(seen) == 1 else f"{len(seen)} runs"
        held.append(f"{display.clean(words)}{f' ({display.clean(observed)})' if observed else ''}")
    return "; ".join(held)


def select_checks(checks: Iterable[Check], outcome: CheckOutcome) -> list[Check]:
    """Return the checks that ended in one way."""
    return [check for check in checks if check.outcome is outcome]


def name_findings(text: str) -> str:
    """Return text with kinds of findings by their titles."""
    return _KIND.sub(lambda match: terms.kind_title(match.group()), text)


def _parse(words: str) -> Limit | None:
    """Return the limit of a rule without where it applies; None of a missing source."""
    try:
        return parse_limit(_SCOPE.split(words, maxsplit=1)[0])
    except LimitError:
        return None


def _describe_findings(checks: Sequence[Check], limit: Limit, words: str) -> str:
    one_kind = limit.name in terms.KINDS
    allowed = limit.threshold.text or ("none" if one_kind else f"no {limit.name}")
    new = "new: " if limit.subject is Subject.NEW else ""
    runs = display.plural(len(checks), "run")
    named = f": {_name_runs([check.run for check in checks])}" if len(checks) > 1 else ""
    seen = "; ".join(dict.fromkeys(name_findings(display.clean(check.observed)) for check in checks))
    title = terms.kind_title(limit.name) if one_kind else _COUNT.sub("", seen)
    return f"{new}{title} ({runs}{named}). Allowed: {allowed}{_format_scope(words)}"


def _describe_figure(check: Check, limit: Limit | None) -> str:
    observed = display.clean_sentence(check.observed)
    if limit is None:
        return f"{display.clean(check.limit)}{f' ({observed})' if observed else ''}"
    statistic = f" {limit.statistic}" if limit.statistic and limit.statistic != "mean" else ""
    noun, scope = f"{_noun(limit)}{statistic}", _format_scope(check.limit)
    if limit.subject is Subject.CHANGE:
        return f"{noun} {observed}; {_describe_allowed_change(limit)}{scope}"
    if limit.name in terms.KINDS:
        observed = observed.partition(": ")[0]
    return f"{noun} {name_findings(observed)}, {_RELATIONS[limit.relation]} {limit.threshold.text}{scope}"


def _format_scope(words: str) -> str:
    """Return where a rule applies, and where not, as a clause; empty for everywhere."""
    scope = words.removeprefix(_SCOPE.split(words, maxsplit=1)[0])
    return f" {display.clean(scope)}" if scope else ""


def _noun(limit: Limit) -> str:
    if limit.name in _NOUNS:
        return _NOUNS[limit.name]
    if limit.name in terms.KINDS:
        return terms.kind_title(limit.name)
    if limit.name in terms.CLASSES:
        return terms.CLASSES[limit.name]
    is_relative = limit.subject is Subject.CHANGE and limit.threshold.unit == SHARE
    return name_figure_for_one(limit.name) if is_relative else terms.column_title(limit.name)


def name_figure_for_one(metric: str) -> str:
    """Return a figure within a sentence, per one unit of work."""
    return terms.name_for_one(terms.column_title(metric))


def _name_runs(runs: Sequence[str]) -> str:
    names = [display.clean(run) for run in dict.fromkeys(runs) if run]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{more}"


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
        return format_quantity(size, unit, bound.currency).removeprefix("+")

    return format_against_limit(abs(value), bound, words)


def _describe_allowed_change(limit: Limit) -> str:
    """Return what a limit on a change allows, such as `allowed: a fall of 5 points`."""
    direction = "fall" if limit.threshold.value < 0 else "rise"
    strict = "" if limit.relation.endswith("=") else "more than " if limit.demands_change else "less than "
    return f"{'required' if limit.demands_change else 'allowed'}: a {direction} of {strict}{limit.size}"


def list_demanding_rules(limits: Iterable[Limit]) -> Iterator[str]:
    """Yield a note per limit on a change that a run equal to the baseline breaks."""
    for limit in limits:
        if limit.subject is Subject.CHANGE and limit.demands_change:
            demanded, allowed, sign = ("rise", "fall", "-") if limit.threshold.value > 0 else ("fall", "rise", "")
            size = limit.size
            other = limit.words.replace(f"{limit.relation} {limit.threshold.text}", f"{limit.relation} {sign}{size}")
            yield f"{limit.words} fails without a {demanded} of {size}; to allow a {allowed} of {size}: {other}"
