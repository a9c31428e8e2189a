"""Reasons for verdicts, and caveats of a comparison, in words."""

from collections.abc import Sequence

from gpureport.analysis import phrases
from gpureport.comparison.across import BATCH_DOUBTS, BatchDoubt, PeakDoubt
from gpureport.comparison.changes import FindingChange
from gpureport.comparison.comparable import Comparability
from gpureport.comparison.evidence import Reason, ReasonKind
from gpureport.comparison.figures import ShortRun
from gpureport.comparison.quality_at_work import NoWork
from gpureport.report.wording import display
from gpureport.report.wording.words import WORDS, say

SINGLE_RUN_SCATTER = "intervals assume that a single run varies as much as repeated ones"
"""How rules judge a change if one side has a single run."""


def describe_reason(reason: Reason | None) -> str:
    if reason is None:
        return ""
    if reason.kind is ReasonKind.NOT_COMPARABLE:
        return WORDS[f"differs.{reason.check}"]
    return say(
        f"reason.{reason.kind}",
        run=reason.run,
        amount=f"{reason.amount:.0f}",
        least=f"{reason.least:.0f}",
        share=display.percent(reason.amount),
        long=phrases.duration(reason.amount),
        longer=phrases.duration(reason.least),
        state=describe_state(reason),
    )


def describe_state(drift: Reason) -> str:
    """Return how the machine drifted: `started 12 °C warmer and ran at a 6% lower clock`."""
    warmer = "warmer" if drift.amount > 0 else "cooler"
    lower = "lower" if drift.least < 1 else "higher"
    size = display.percent(abs(drift.least - 1))
    return f"started {abs(drift.amount):.0f} °C {warmer} and ran at a {size} {lower} clock"


def count_family(reason: Reason | None) -> int | None:
    """Return the number of comparisons if only the Holm correction prevents a clear verdict."""
    return round(reason.amount) if reason is not None and reason.kind is ReasonKind.MANY_COMPARISONS else None


def describe_interval(interval: str, comparisons: int | None) -> str:
    interval = display.drop_equal_ends(interval)
    return f"{interval}, one of {comparisons} comparisons" if interval and comparisons is not None else interval


def describe_left_out(runs: Sequence[ShortRun]) -> str:
    stopped, brief = [run for run in runs if run.stopped], [run for run in runs if not run.stopped]
    said = []
    if stopped:
        verb = "were" if len(stopped) > 1 else "was"
        said.append(f"{_name_lengths(stopped)} did less than a third of the work and {verb} left out.")
    if len(brief) == 1:
        said.append(f"{brief[0].run} has only {display.duration(brief[0].seconds)} of steady state and was left out.")
    elif brief:
        said.append(f"Left out for lack of steady state: {_name_lengths(brief)}.")
    return display.clean_sentence(" ".join(said))


def _name_lengths(runs: Sequence[ShortRun]) -> str:
    return display.join_words([f"{run.run} ({display.duration(run.seconds)})" for run in runs])


def describe_memory_reason(reason: PeakDoubt | BatchDoubt) -> str:
    return BATCH_DOUBTS[reason] if isinstance(reason, BatchDoubt) else WORDS[f"peak.{reason}"]


def describe_no_work(reason: NoWork | None) -> str:
    return "" if reason is None else WORDS[f"no_work.{reason}"]


def describe_unknown_change(change: FindingChange) -> str:
    if change.unknown is None:
        return ""
    return f"{change.step if change.before else change.base}: {WORDS[f'unknown.{change.unknown}']}"


def describe_check(check: Comparability) -> str:
    if check.agree:
        return ""
    if check.check == "timezone":
        return WORDS["agree.timezone"]
    return f"{WORDS['agree.unknown'] if check.agree is None else ''}{WORDS[f'differs.{check.check}']}"
