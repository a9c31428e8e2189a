"""What became of rules, in sentences: `idle share 49%, allowed 5%`, `GPU slowed by heat (1 run), allowed: none`."""

import re
from collections.abc import Iterator, Sequence

from gpureport.checks.limit import Limit, LimitError, parse_limit
from gpureport.checks.limit_targets import TargetKind
from gpureport.checks.limit_units import FINDINGS
from gpureport.findings import Check, CheckOutcome
from gpureport.report.wording import display, terms

FAILED, NOT_ASSESSED, PASSED = "FAILED", "NOT ASSESSED", "PASSED"
"""How a gate ended."""

_SCOPE = re.compile(r" (?:for|unless) ")
_KIND = re.compile(rf"\b(?:{'|'.join(terms.KINDS)})\b")
_COUNT = re.compile(r"\d+ findings?: ")
_LISTED = 3
_NOUNS = {"idle_ratio": "idle share", "rejected": "rejected lines", "not_judged": "checks not assessed"}
_RELATIONS = {"<=": "allowed", "<": "allowed below", ">=": "required", ">": "required above"}
_COUNTED = {TargetKind.FINDING, TargetKind.NEW}


def describe_failures(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a clause for each rule that is broken: one for all runs in which a finding breaks it, else one a run."""
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


def describe_unassessed(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a clause for each rule and reason that could not be assessed."""
    unknown = [check for check in checks if check.outcome is CheckOutcome.CANNOT_JUDGE]
    for words, reason in dict.fromkeys((check.limit, check.reason) for check in unknown):
        named = _name_runs([check.run for check in unknown if (check.limit, check.reason) == (words, reason)])
        why = name_findings(display.clean_sentence(reason)).rstrip(".")
        yield f"{display.clean(words)}{f' ({named})' if named else ''}: {why}"


def describe_passed(checks: Sequence[Check]) -> str:
    """Return the rules that hold, in one line, as they can be written again, with what was observed of a single run."""
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


def _parse(words: str) -> Limit | None:
    """Return the limit of a rule without where it applies; None where it is none, as of a source that is missing."""
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
    scope = words.removeprefix(_SCOPE.split(words, maxsplit=1)[0])
    seen = "; ".join(dict.fromkeys(name_findings(display.clean(check.observed)) for check in checks))
    title = terms.kind_title(limit.name) if one_kind else _COUNT.sub("", seen)
    return f"{new}{title} ({runs}{named}){display.clean(scope)}. Allowed: {allowed}"


def _describe_figure(check: Check, limit: Limit | None) -> str:
    observed = display.clean_sentence(check.observed)
    if limit is None:
        return f"{display.clean(check.limit)}{f' ({observed})' if observed else ''}"
    statistic = f" {limit.statistic}" if limit.statistic and limit.statistic != "mean" else ""
    change = "change of " if limit.subject is TargetKind.CHANGE else ""
    scope = display.clean(check.limit.removeprefix(_SCOPE.split(check.limit, maxsplit=1)[0]))
    noun = f"{change}{_noun(limit)}{statistic}{scope}"
    bound = f"{_RELATIONS[limit.relation]} {limit.threshold.text}"
    if limit.name in terms.KINDS:
        observed = observed.partition(": ")[0]
    return f"{noun} {name_findings(observed)}, {bound}"


def _noun(limit: Limit) -> str:
    if limit.name in _NOUNS:
        return _NOUNS[limit.name]
    if limit.name in terms.KINDS:
        return terms.kind_title(limit.name)
    if limit.name in terms.CLASSES:
        return terms.CLASSES[limit.name]
    return terms.column_title(limit.name)


def _name_runs(runs: Sequence[str]) -> str:
    names = [display.clean(run) for run in dict.fromkeys(runs) if run]
    more = len(names) - _LISTED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_LISTED])} and {more} more"
