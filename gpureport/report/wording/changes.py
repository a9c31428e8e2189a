"""How a figure changed from one step to another, in per cent."""

from gpureport.comparison.steps.steps import Delta
from gpureport.report.model.head import Change
from gpureport.report.wording import relative_changes
from gpureport.report.wording.difference_wording import describe_verdict

_NONE = "0%"


def build_change(delta: Delta | None, *, since: str = "") -> Change | None:
    """Return a difference in per cent with its interval and verdict; None where it cannot be told in per cent.

    Args:
        delta: one figure of a step against an earlier one; None where they were not set side by side.
        since: which step it is measured from, where that is not the one before.
    """
    if delta is None or not delta.difference or not delta.before:
        return None
    before = delta.before
    text = relative_changes.format_percent_change(1 + delta.difference / before)
    if text == _NONE:
        return None
    ends = delta.interval and (1 + delta.interval[0] / before, 1 + delta.interval[1] / before)
    between = relative_changes.format_percent_range(ends) if ends else ""
    return Change(
        text=text,
        # a figure that every run repeats has an interval without width
        interval=between if ends and relative_changes.format_percent_change(ends[0]) != text else "",
        verdict=describe_verdict(delta),
        arrow="up" if delta.difference > 0 else "down",
        since=since,
    )
