"""What would narrow an interval, in words."""

from math import ceil

from gpureport.comparison.statistics.more_data import MoreData
from gpureport.report.wording import display

_LONGEST = 86_400.0
"""Seconds of a run beyond which nobody is asked for longer ones."""

_MINUTE = 60.0


def describe_more_data(more: MoreData, noun: str) -> str:
    """Return what to record: more runs or longer ones; empty where no reasonable number of either helps.

    Args:
        more: what would narrow the interval enough.
        noun: the runs that are counted, such as `baseline runs`.
    """
    ways = [] if more.runs is None else [f"{more.runs} {noun}"]
    if more.seconds <= _LONGEST:
        ways.append(f"runs of about {display.duration(ceil(more.seconds / _MINUTE) * _MINUTE)}")
    return f"take {' or '.join(ways)}" if ways else ""
