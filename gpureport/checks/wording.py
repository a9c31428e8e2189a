"""What became of rules, each in one sentence: the rule as written, the runs, what was observed, and why."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import isfinite

from gpureport.checks.grammar import LimitError, parse_limit
from gpureport.checks.limit import Limit, Subject
from gpureport.checks.quantities import SHARE, format_against_limit, format_quantity
from gpureport.findings import Check, CheckOutcome
from gpureport.number_format import MINUS
from gpureport.report.wording import display, terms
from gpureport.report.wording.differences import format_percent_change

_SCOPE = re.compile(r" (?:for|unless) ")
_KIND = re.compile(rf"\b(?:{'|'.join(terms.KINDS)})\b")
_LISTED = 3


def describe_checks(checks: Iterable[Check], outcome: CheckOutcome) -> Iterator[str]:
    """Yield a clause per rule and what became of it, such as `idle_ratio <= 5% (night-3): 49%`."""
    yield from _group_runs(
        (check, _explain(check) if outcome is not CheckOutcome.BROKEN else check.observed)
        for check in select_checks(checks, outcome)
    )


def describe_notes(checks: Iterable[Check]) -> Iterator[str]:
    """Yield what else to know of rules that are broken or hold, once, with the rules that it is about."""
    rules: dict[str, list[str]] = {}
    for check in checks:
        if check.reason and check.outcome in {CheckOutcome.BROKEN, CheckOutcome.PASSED}:
            rules.setdefault(check.reason, []).append(check.limit)
    for reason, words in rules.items():
        yield display.clean(f"{name_findings(reason)} ({', '.join(dict.fromkeys(words))})")


def describe_passed(checks: Iterable[Check]) -> str:
    """Return the rules that hold, in one line, with what was observed of a single run."""
    seen: dict[str, list[str]] = {}
    for check in select_checks(checks, CheckOutcome.PASSED):
        seen.setdefault(check.limit, []).append(check.observed)
    observed = {words: each[0] if len(each) == 1 else f"{len(each)} runs" for words, each in seen.items()}
    return display.clean("; ".join(f"{words}{f' ({text})' if text else ''}" for words, text in observed.items()))


def _explain(check: Check) -> str:
    """Return why a rule could not be assessed or does not count; of a change also how large it is."""
    limit = _parse(check.limit)
    if check.outcome is CheckOutcome.CANNOT_JUDGE and limit is not None and limit.subject is Subject.CHANGE:
        return "; ".join(filter(None, (check.observed, check.reason)))
    return check.reason or check.observed


def _group_runs(told: Iterable[tuple[Check, str]]) -> Iterator[str]:
    """Yield each rule and what is said of it once, with the runs that it is said of."""
    runs: dict[tuple[str, str], list[str]] = {}
    for check, said in told:
        runs.setdefault((check.limit, said), []).append(check.run)
    for (words, said), named in runs.items():
        names = [name for name in dict.fromkeys(named) if name]
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        of = f" ({', '.join(names[:_LISTED])}{more})" if names else ""
        sentence = f": {name_findings(said)}" if said else ""
        yield display.clean_sentence(f"{words}{of}{sentence}").rstrip(".")


def name_failure(checks: Iterable[Check]) -> str:
    """Return in few words the change or finding that broke a rule; empty of other rules."""
    broken = [(check, _parse(check.limit)) for check in select_checks(checks, CheckOutcome.BROKEN)]
    for check, limit in broken:
        if limit is not None and limit.subject is Subject.CHANGE and check.value is not None:
            size = f"{MINUS if check.value < 0 else '+'}{_format_size(limit, check.value)}"
            if limit.threshold.unit == SHARE:
                size = format_percent_change(1 + check.value)
            return f"{display.raise_first(name_figure_for_one(limit.name))} {size}"
    return next((terms.kind_title(limit.name) for _, limit in broken if limit and limit.name in terms.KINDS), "")


def _parse(words: str) -> Limit | None:
    """Return the limit of a rule without where it applies; None of a missing source."""
    try:
        return parse_limit(_SCOPE.split(words, maxsplit=1)[0])
    except LimitError:
        return None


def select_checks(checks: Iterable[Check], outcome: CheckOutcome) -> list[Check]:
    """Return the checks that ended in one way."""
    return [check for check in checks if check.outcome is outcome]


def name_findings(text: str) -> str:
    """Return text with kinds of findings by their titles."""
    return _KIND.sub(lambda match: terms.kind_title(match.group()), text)


def name_figure_for_one(metric: str) -> str:
    """Return a figure within a sentence, per one unit of work."""
    return terms.name_for_one(terms.column_title(metric))


def describe_change(limit: Limit, value: float, ends: tuple[float, float], *, has_level: bool) -> str:
    """Return a change in words, such as `fell by 45.2 points (95%: -46.7 to -43.8)`.

    The interval has a level where it holds the change in 95% of cases.
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


def list_demanding_rules(limits: Iterable[Limit]) -> Iterator[str]:
    """Yield a note per limit on a change that a run equal to the baseline breaks."""
    for limit in limits:
        if limit.subject is Subject.CHANGE and limit.demands_change:
            demanded, allowed, sign = ("rise", "fall", "-") if limit.threshold.value > 0 else ("fall", "rise", "")
            size = limit.size
            other = limit.words.replace(f"{limit.relation} {limit.threshold.text}", f"{limit.relation} {sign}{size}")
            yield f"{limit.words} fails without a {demanded} of {size}; to allow a {allowed} of {size}: {other}"
