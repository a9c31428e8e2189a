"""What was not assessed, and how much was: an empty list of findings must never read as good health."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gpureport import recording_advice
from gpureport.analysis import missing_metrics, phrases
from gpureport.findings import Amount, NotJudged
from gpureport.metrics import BY_NAME, Scope
from gpureport.recording_advice import RECORD
from gpureport.report.model.report_content import Judgement, NotJudgedLine
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display, terms
from gpureport.report.wording.grouping import group_holders

_FEW = 4
"""Places that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCounts:
    """How many checks were made, and what became of them over all runs.

    Attributes:
        found: checks that found something in any run.
        clear: checks that were assessed and found nothing.
        missing: checks that some step could not assess in any of its runs, and that found nothing elsewhere.
        partly: checks among the others that some run could not assess.
    """

    found: int
    clear: int
    missing: int
    partly: int

    @property
    def assessed(self) -> int:
        """Checks that were assessed."""
        return self.found + self.clear


@dataclass(frozen=True, slots=True)
class _Case:
    """A check that could not be made on a device of a run, or on the whole run."""

    run: ReportRun
    entry: NotJudged


def count_checks(runs: Sequence[ReportRun], asked: Collection[str]) -> CheckCounts:
    """Return what became of the checks.

    Args:
        runs: the runs.
        asked: the kinds that were to be looked for.
    """
    steps: dict[str, list[set[str]]] = {}
    for run in runs:
        steps.setdefault(run.step, []).append({entry.kind for entry in run.analysis.not_judged})
    found = {finding.kind for run in runs for finding in run.analysis.findings}
    missing = set().union(*(set.intersection(*each) for each in steps.values())) - found
    partly = set().union(*(kinds for each in steps.values() for kinds in each)) - missing
    clear = set(asked) - missing - found
    return CheckCounts(found=len(found), clear=len(clear), missing=len(missing), partly=len(partly))


def judgement(runs: Sequence[ReportRun], asked: Collection[str]) -> Judgement:
    """Return how much was assessed and what was not, and what to record, once for all of it."""
    limits = dict.fromkeys(display.clean_sentence(limit) for run in runs for limit in run.analysis.limits)
    lacking = [entry for run in runs for entry in run.analysis.not_judged if RECORD in entry.recording]
    metrics = (name for entry in lacking for name in entry.metrics)
    commands = recording_advice.list_raw_commands(metrics) if lacking else ()
    counts = count_checks(runs, asked)
    return Judgement(
        sentence=_describe_counts(counts, len(runs)),
        checks=counts.assessed + counts.missing,
        missing=counts.missing,
        partly=counts.partly,
        lines=tuple(_lines(runs)),
        limits=tuple(limits),
        advice=recording_advice.RECORDS_MISSING if lacking else "",
        command=commands[0] if commands else "",
        other_commands=commands[1:],
    )


def _describe_counts(counts: CheckCounts, runs: int) -> str:
    if counts.assessed == 0:
        return "No check could be made with this data."
    parts = [(counts.found, "found"), (counts.clear, "clear"), (counts.missing, "not assessed")]
    named = ", ".join(f"{count} {outcome}" for count, outcome in parts if count)
    checks = display.plural(counts.assessed + counts.missing, "check")
    return f"{checks}: {named}{_describe_partly(counts, runs)}."


def _describe_partly(counts: CheckCounts, runs: int) -> str:
    if not counts.partly:
        return ""
    where = "in some runs" if runs > 1 else "on some GPUs"
    return f" ({counts.partly} more {where})" if counts.missing else f" ({counts.partly} not assessed {where})"


def _lines(runs: Sequence[ReportRun]) -> Iterator[NotJudgedLine]:
    """Yield a line for each thing that is missing."""
    cases = [_Case(run, entry) for run in runs for entry in run.analysis.not_judged]
    for same in group_holders((_remedy_key(case.entry), case) for case in cases).values():
        places = group_holders((case.entry.kind, _place(case, len(runs))) for case in same)
        everywhere = {run.label for run in runs}
        alike = len({frozenset(each) for each in places.values()}) == 1
        shared = set(next(iter(places.values())))
        yield NotJudgedLine(
            kinds=tuple(
                f"{terms.kind_title(display.clean(kind))}{'' if alike else _partly(each, runs)}"
                for kind, each in places.items()
            ),
            where=""
            if not alike or shared == everywhere
            else _name_places(list(dict.fromkeys(places[same[0].entry.kind])), len(runs)),
            reason="; ".join(_reasons([case.entry for case in same])),
            recording=display.clean(_describe_need([case.entry for case in same])),
        )


def _remedy_key(entry: NotJudged) -> str | tuple[str | Scope, ...]:
    """Return what entries share that one recording answers."""
    if entry.needed_seconds is not None:
        return "longer"
    scopes = {BY_NAME[name].scope for name in entry.metrics}
    return (RECORD, *scopes) if entry.recording == RECORD and len(scopes) == 1 else f"other {entry.recording}"


def _reasons(entries: Sequence[NotJudged]) -> Iterator[str]:
    """Yield each reason once: what was not recorded in one list, and others with the range of their amounts."""
    absent: list[NotJudged] = []
    others: list[NotJudged] = []
    for entry in entries:
        (absent if entry.code == missing_metrics.NOT_RECORDED else others).append(entry)
    names = dict.fromkeys(terms.column_title(name) for entry in absent for name in entry.metrics)
    if names:
        yield f"Not recorded: {display.join_words(list(names))}"
    by_reason = group_holders((entry.template or entry.reason, entry.amounts) for entry in others)
    for reason, amounts in by_reason.items():
        text = terms.humanize(display.clean_sentence(_with_ranges(reason, amounts)))
        yield display.lower_first(text) if names else text


def _describe_need(entries: Sequence[NotJudged]) -> str:
    """Return what checks need besides what the end of the list says."""
    needed = [entry.needed_seconds for entry in entries if entry.needed_seconds is not None]
    if needed:
        least, most = min(needed), max(needed)
        others = f"; for all of them, at least {phrases.duration(most)}" if most > least else ""
        return f"{missing_metrics.name_length(least)}{others}"
    return "" if entries[0].recording == RECORD else entries[0].recording


def _with_ranges(template: str, amounts: Sequence[tuple[Amount, ...]]) -> str:
    """Return a reason with the least and the most of each amount that it names."""
    return template.format(*map(_range, zip(*amounts, strict=True))) if amounts[0] else template


def _range(amounts: Sequence[Amount]) -> str:
    least, most = (pick(amounts, key=lambda amount: amount.value) for pick in (min, max))
    return least.words if least.words == most.words else f"{least.text} to {most.words}"


def _place(case: _Case, runs: int) -> str:
    """Return the run and the device of a case, without the run where there is only one."""
    where = [case.run.label] if runs > 1 else []
    return ": ".join([*where, *([case.run.device(case.entry.device)] if case.entry.device else [])])


def _partly(places: Sequence[str], runs: Sequence[ReportRun]) -> str:
    """Return in how many of several runs, or on which devices of one; empty where it is everywhere."""
    if len(runs) == 1:
        named = [place for place in dict.fromkeys(places) if place]
        return f" ({_join_places(named)})" if named else ""
    count = len({place.partition(": ")[0] for place in places})
    return f" ({count} of {len(runs)} runs)" if count < len(runs) else ""


def _name_places(places: list[str], runs: int) -> str:
    """Return in how many of several runs, where they are too many to name, or each place."""
    whole = len({place.partition(": ")[0] for place in places})
    return f"{whole} of {runs} runs" if runs > 1 and whole > _FEW else _join_places(places)


def _join_places(places: list[str]) -> str:
    shown = [place for place in places if place]
    more = len(shown) - _FEW
    return ", ".join(shown) if more <= 0 else f"{', '.join(shown[:_FEW])} and {more} more"
