"""The report on many runs as JSON: the model, name by name."""

from gpureport.fleet.fleet_report import FleetReport, TimeUse
from gpureport.report.formats.analysis_json import iso_time
from gpureport.report.formats.report_json import dump, plain

SCHEMA = "gpureport.fleet/1"


def render(report: FleetReport) -> str:
    """Return the report as JSON: null for what is not known; times as ISO 8601."""
    zone = "UTC" if report.is_zoned else None
    times = {"started": report.started, "ended": report.ended}
    shown = {name: None if time is None else iso_time(time, zone) for name, time in times.items()}
    content = plain(report, {TimeUse: lambda use: {"lost_ratio": use.lost_ratio}})
    return dump({"schema": SCHEMA, **content, **shown})
