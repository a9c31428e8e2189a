"""A difference between steps as a change: per cent first, then the interval, the verdict and an arrow."""

from math import isfinite

from gpureport.comparison.verdict import Delta, Verdict
from gpureport.report.model.head import Change
from gpureport.report.wording import display
from gpureport.report.wording.differences.comparison_reasons import count_family, describe_interval
from gpureport.report.wording.differences.difference_wording import describe_verdict
from gpureport.report.wording.differences.relative_changes import format_percent_change, format_percent_range
from gpureport.report.wording.display import drop_equal_ends

_UNDIRECTED = frozenset(("gpu_memory_used_bytes", "gpu_power_watts", "gpu_sm_clock_hertz", "gpu_graphics_clock_hertz"))
"""Figures of which more is neither better nor worse."""


def build_change(delta: Delta | None) -> Change | None:
    """Return a difference as a change; None where there is none to tell."""
    if delta is None or delta.difference is None:
        return None
    verdict = "" if delta.metric in _UNDIRECTED or delta.verdict is Verdict.DIFFERS else describe_verdict(delta)
    ends = delta.interval if delta.interval and all(map(isfinite, delta.interval)) else None
    if delta.metric.endswith("_ratio"):
        text, interval = display.percentage_points(delta.difference), _format_points(ends, delta.before)
    elif delta.before:
        text = format_percent_change(1 + delta.difference / delta.before)
        interval = format_percent_range((1 + ends[0] / delta.before, 1 + ends[1] / delta.before)) if ends else ""
    else:
        return None
    stayed = not any(digit in "123456789" for digit in text)
    arrow = "" if stayed else "up" if delta.difference > 0 else "down"
    comparisons = count_family(delta.reason) if verdict else None
    return Change(
        text=text,
        interval=describe_interval(drop_equal_ends(interval), comparisons),
        verdict=verdict,
        comparisons=comparisons,
        arrow=arrow,
    )


def build_plain_change(before: float | None, after: float | None) -> Change | None:
    """Return a change of two values that are not judged; None where either is missing."""
    if not before or after is None:
        return None
    text = format_percent_change(after / before)
    stayed = not any(digit in "123456789" for digit in text)
    return Change(text=text, arrow="" if stayed else "up" if after > before else "down")


def _format_points(ends: tuple[float, float] | None, before: float | None) -> str:
    """Return an interval of a share's change in points, cut where the share would leave 0 to 100%."""
    if ends is None:
        return ""
    least, most = (-1.0, 1.0) if before is None else (-before, 1 - before)
    low, high = (display.percentage_points(min(max(end, least), most)) for end in ends)
    return f"{low.partition(display.GAP)[0]} to {high}"
