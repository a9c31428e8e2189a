"""The columns of a source as a table: heading, what they became, and a cell as an example."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from gpureport.cli.messages.styled_text import make_printable
from gpureport.importers.protocol.interpretation import Role
from gpureport.metrics import BY_NAME, CLOCK_EVENT_BITS
from gpureport.redaction import HIDDEN, redact_value

if TYPE_CHECKING:
    from gpureport.importers.protocol.interpretation import InterpretedColumn

_UNITS = {"1": "0 to 1", "By": "bytes", "W": "W", "Hz": "Hz", "Cel": "°C", "s": "s", "By/s": "bytes/s", "J": "J"}
_LONGEST = 40
_WIDEST = 44


def column_table(columns: Sequence["InterpretedColumn"], gpus_by: Sequence[str]) -> list[str]:
    """Return a line a column.

    Args:
        columns: the columns.
        gpus_by: fields that identify GPUs.
    """
    rows = [(_heading(column), describe_target(column, gpus_by), format_example(column)) for column in columns]
    first, second = (min(max((len(row[place]) for row in rows), default=0), _WIDEST) for place in (0, 1))
    return [f"{heading:<{first}}  {what:<{second}}  {shown}".rstrip() for heading, what, shown in rows]


def _heading(column: "InterpretedColumn") -> str:
    written, unit = shorten_text(column.heading), f" [{column.unit}]" if column.unit else ""
    return written if written in {column.source, f"{column.source}{unit}"} else f"{written} = {column.source}{unit}"


def describe_target(column: "InterpretedColumn", gpus_by: Sequence[str]) -> str:
    """Return what a column became, with its base unit."""
    metric = BY_NAME.get(column.target)
    unit = f" [{_UNITS[metric.unit]}]" if metric is not None and metric.unit in _UNITS else ""
    return {
        Role.TIME: "time of the row",
        Role.IDENTITY: "identifies the GPU" if column.source in gpus_by else f"GPU attribute: {column.target}",
        Role.ATTRIBUTE: f"GPU attribute: {column.target}",
        Role.SERIES: f"{column.target}{unit}",
        Role.CLOCK_EVENTS: "clock_event_* (a column a bit)",
        Role.EXTRA: f"{column.target} (kept as text)",
    }[column.role]


def format_example(column: "InterpretedColumn") -> str:
    """Return a cell and what it became, empty where there is none."""
    if column.value is None:
        return ""
    if column.role is Role.EXTRA and redact_value(column.source, column.cell) != column.cell:
        return HIDDEN
    value = _value(column)
    bare = column.assumed and not column.unit and column.cell[-1:].isdigit()
    taken = f" (taken as {column.assumed})" if bare and column.assumed != "C" else ""
    return (
        shorten_text(column.cell)
        if value == column.cell
        else f"{shorten_text(column.cell)}{taken} -> {shorten_text(value)}"
    )


def _value(column: "InterpretedColumn") -> str:
    value = column.value
    if column.role is Role.TIME and isinstance(value, int):
        return format_time(value, None)
    if column.role is Role.CLOCK_EVENTS and isinstance(value, int):
        return ", ".join(name for name, bit in CLOCK_EVENT_BITS.items() if value & bit) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:.10g}"
    return str(value)


def format_time(micros: int, zone: str | None) -> str:
    """Return a time to the millisecond, with its offset where the zone is known."""
    when = datetime.fromtimestamp(micros / 1e6, UTC)
    when = when.replace(tzinfo=None) if zone is None else when.astimezone(ZoneInfo(zone))
    return when.isoformat(sep=" ", timespec="milliseconds")


def shorten_text(text: str, longest: int = _LONGEST) -> str:
    """Return text on one line that a terminal can print, shortened."""
    text = make_printable(text).strip()
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
