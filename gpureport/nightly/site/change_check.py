"""The rule of `--fail-on-change`: no job got worse in this night, by the history."""

from collections.abc import Collection, Iterator

from gpureport.checks.limit import NO_REASON, Why
from gpureport.findings import Check, CheckOutcome
from gpureport.nightly.changes.latest_night import LatestNight
from gpureport.nightly.site.night_wording import describe_event, describe_standing_event, format_group
from gpureport.report.wording import display

ORIGIN = "--fail-on-change"
_RULE, _STANDING_RULE = "no change for the worse", "no standing change for the worse"


def check_for_worse_change(
    night: LatestNight, date: str, groups: Collection[tuple[str, str]], *, standing: bool = False
) -> Iterator[Check]:
    """Yield a check for each group of runs: whether this night first shows that it got worse, and that it still is.

    Args:
        night: the latest night of the history.
        date: the night that is checked.
        groups: step and GPUs of its runs.
        standing: whether a change that an earlier night showed breaks the rule as well, as long as it holds.
    """
    for group in sorted(groups):
        outcome, observed, reason = _judge_group(night, date, group, standing=standing)
        yield Check(
            limit=_STANDING_RULE if standing else _RULE,
            run=group[0] or format_group(*group),
            outcome=outcome,
            observed=observed,
            reason=reason.text,
            reason_code=reason.code,
            origin=ORIGIN,
        )


def _judge_group(
    night: LatestNight, date: str, group: tuple[str, str], *, standing: bool
) -> tuple[CheckOutcome, str, Why]:
    """Return the outcome for one group, what was observed, and why it could not be assessed."""
    if night.date != date:
        return CheckOutcome.CANNOT_JUDGE, "", Why("later_night", f"the history holds a later night, {night.date}")
    new = [event for event in night.new_events if event.group == group and event.verdict == "worse"]
    worse = [event for event in new if not event.is_undone]
    said = [describe_event(event) for event in worse]
    if standing:
        said += [describe_standing_event(event) for event in night.standing_events if event.group == group]
    if said:
        return CheckOutcome.BROKEN, " ".join(said), NO_REASON
    needed = dict(night.nights_needed).get(group, 0)
    if needed:
        few = f"{display.plural(needed, 'more night')} needed before changes show"
        return CheckOutcome.CANNOT_JUDGE, "", Why("few_nights", few)
    gone = [trend.kind.title for trend in night.unrecorded if trend.group == group]
    if gone:
        known = f"recorded before, but not in this night: {'; '.join(gone)}"
        return CheckOutcome.CANNOT_JUDGE, "", Why("not_recorded", known)
    return CheckOutcome.PASSED, "no change for the worse", NO_REASON
