"""The report on many runs as JSON: the model, name by name."""

import json
import math
from dataclasses import fields, is_dataclass
from typing import TypeAlias

from gpureport.fleet.fleet_report import FleetReport, TimeUse
from gpureport.report.formats.analysis_json import iso_time

SCHEMA = "gpureport.fleet/1"
_DIGITS = 6

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


def render(report: FleetReport) -> str:
    """Return the report as JSON: null for what is not known; times as ISO 8601."""
    zone = "UTC" if report.is_zoned else None
    times = {"started": report.started, "ended": report.ended}
    shown = {name: None if time is None else iso_time(time, zone) for name, time in times.items()}
    content = {"schema": SCHEMA, **_plain_fields(report), **shown}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _plain(value: object) -> JsonValue:
    if isinstance(value, float):
        return round(value, _DIGITS) if math.isfinite(value) else None
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value)
    return value if isinstance(value, bool | int | str) else None


def _plain_fields(value: object) -> dict[str, JsonValue]:
    known = {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}  # type: ignore[arg-type]  # a dataclass
    return known | ({"lost_ratio": _plain(value.lost_ratio)} if isinstance(value, TimeUse) else {})
