"""From when to when the runs were recorded, in words."""

from calendar import monthrange
from datetime import UTC, date, datetime

from gpureport.fleet.fleet_report import FleetReport
from gpureport.report.wording import display

_EDGE = 2
"""Days that may lack at either end of a month that is named whole."""

_DAYS_FROM = 2 * 86_400
"""Length in seconds from which a period is counted in days."""


def name_period(report: FleetReport) -> str:
    """Return when the runs ran, such as `in October` or `in 18 days`; empty without times."""
    if report.started is None or report.ended is None:
        return ""
    start, end = _read_day(report.started), _read_day(report.ended)
    last = monthrange(start.year, start.month)[1]
    if (start.year, start.month) == (end.year, end.month) and start.day <= 1 + _EDGE and end.day >= last - _EDGE:
        return f"in {start:%B}"
    seconds = (report.ended - report.started) / 1e6
    if seconds < _DAYS_FROM:
        return f"in {display.duration(seconds)}"
    return f"in {(end - start).days + 1} days"


def format_period(report: FleetReport) -> str:
    """Return the first and the last day: `1 to 31 October 2026`; empty without times."""
    if report.started is None or report.ended is None:
        return ""
    start, end = _read_day(report.started), _read_day(report.ended)
    if start == end:
        return format_day(end)
    if start.year != end.year:
        return f"{format_day(start)} to {format_day(end)}"
    return f"{start.day}{'' if start.month == end.month else f' {start:%B}'} to {format_day(end)}"


def format_day(day: date) -> str:
    """Return a day: `31 October 2026`."""
    return f"{day.day} {day:%B} {day.year}"


def _read_day(microseconds: int) -> date:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).date()
