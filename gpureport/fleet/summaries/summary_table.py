"""Summaries as an Arrow table, a row for each, so that any tool reads what is kept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import pyarrow as pa

from gpureport.analysis.results import GPU_TIME_CLASSES
from gpureport.findings import Severity
from gpureport.fleet.gpu_summary import FindingSummary, GpuHealth, GpuSummary, HealthCheck

_TEXT = pa.dictionary(pa.int32(), pa.string())
_PAIRS = pa.map_(pa.string(), pa.string())
_FINDING = pa.struct(
    [
        ("kind", pa.string()),
        ("cause", pa.string()),
        ("severity", pa.string()),
        ("count", pa.int32()),
        ("lost_gpu_seconds", pa.float64()),
        ("fingerprint", pa.string()),
        ("is_consequence", pa.bool_()),
        ("steps", pa.list_(pa.string())),
    ]
)
_SUFFIX = "_seconds"
_LOST = "lost_seconds"
"""Derived from the classes: for other tools alone."""

SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("run_id", _TEXT, nullable=False),
        pa.field("run_name", _TEXT, nullable=False),
        pa.field("source", _TEXT),
        pa.field("step", _TEXT),
        pa.field("node", _TEXT),
        pa.field("device", _TEXT),
        pa.field("uuid", _TEXT),
        pa.field("model", _TEXT),
        pa.field("started", pa.timestamp("us")),
        pa.field("ended", pa.timestamp("us")),
        pa.field("timezone", _TEXT),
        pa.field("observed_seconds", pa.float64()),
        *(pa.field(f"{name}{_SUFFIX}", pa.float64()) for name in GPU_TIME_CLASSES),
        pa.field(_LOST, pa.float64()),
        pa.field("energy_joules", pa.float64()),
        pa.field("utilisation", pa.float64()),
        pa.field("memory_peak_bytes", pa.int64()),
        pa.field("memory_total_bytes", pa.int64()),
        pa.field("findings", pa.list_(_FINDING), nullable=False),
        pa.field("not_judged", pa.list_(pa.string()), nullable=False),
        pa.field("max_temperature_celsius", pa.float64()),
        pa.field("heat_slowed_seconds", pa.float64()),
        pa.field("hardware_slowed_seconds", pa.float64()),
        pa.field("ecc_corrected", pa.int64()),
        pa.field("ecc_uncorrected", pa.int64()),
        pa.field("remapped_rows", pa.int64()),
        pa.field("gpu_lost", _TEXT, nullable=False),
        pa.field("slow_link", _TEXT, nullable=False),
        pa.field("work_amount", pa.float64()),
        pa.field("work_unit", _TEXT),
        pa.field("params", _PAIRS, nullable=False),
        pa.field("tags", _PAIRS, nullable=False),
        pa.field("error", _TEXT, nullable=False),
    ]
)
"""Columns of the table; null is not recorded. Times without a zone are local, as in `Run`."""

_HEALTH = tuple(field.name for field in fields(GpuHealth))
_NESTED = {"seconds", "findings", "health", "params", "tags"}
_PLAIN = tuple(field.name for field in fields(GpuSummary) if field.name not in _NESTED)


def to_table(summaries: Sequence[GpuSummary]) -> "pa.Table":
    """Return summaries as a table, in their order."""
    return pa.Table.from_pylist([_to_row(each) for each in summaries], schema=SCHEMA)


def _to_row(summary: GpuSummary) -> dict[str, Any]:
    return {
        **{name: getattr(summary, name) for name in (*_PLAIN, "params", "tags")},
        **{name: getattr(summary.health, name) for name in _HEALTH},
        **{f"{name}{_SUFFIX}": amount for name, amount in summary.seconds},
        _LOST: summary.lost_seconds if summary.seconds else None,
        "findings": [asdict(each) for each in summary.findings],
    }


def from_table(table: "pa.Table") -> list[GpuSummary]:
    """Return the summaries a table holds, in its order; one of an earlier version may lack columns of this one.

    Raises:
        KeyError, TypeError, ValueError: when it is none of this layout. `ArrowException` where a column has another
            type.
    """
    # as integers: a timestamp without a zone would become a naive datetime
    plain = [pa.field(field.name, pa.int64()) if pa.types.is_timestamp(field.type) else field for field in SCHEMA]
    for field in SCHEMA:
        if field.nullable and field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return [_from_row(row) for row in table.select(SCHEMA.names).cast(pa.schema(plain)).to_pylist()]


def _from_row(row: Mapping[str, Any]) -> GpuSummary:
    health = {name: row[name] for name in _HEALTH}
    checks = {name: HealthCheck(row[name]) for name in ("gpu_lost", "slow_link")}
    plain = {name: row[name] for name in _PLAIN}
    seconds = ((name, row[f"{name}{_SUFFIX}"]) for name in GPU_TIME_CLASSES)
    return GpuSummary(
        **plain | {"not_judged": tuple(row["not_judged"])},
        seconds=tuple((name, amount) for name, amount in seconds if amount is not None),
        findings=tuple(_load_findings(row["findings"])),
        health=GpuHealth(**health | checks),
        params=tuple(row["params"]),
        tags=tuple(row["tags"]),
    )


def _load_findings(entries: Iterable[Mapping[str, Any]]) -> Iterable[FindingSummary]:
    for entry in entries:
        typed = {"severity": Severity(entry["severity"]), "steps": tuple(entry["steps"])}
        yield FindingSummary(**{**entry, **typed})
