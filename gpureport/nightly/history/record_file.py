"""A record as one small Parquet file, a row per figure, so that any tool reads all as one table."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from io import BytesIO
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from gpureport.findings import Check, CheckOutcome
from gpureport.nightly.history.night_figures import BY_NAME, Figure
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun

FORMAT = 1
"""Version of the layout. 1 (2026-11): a row for each figure of a run; a row with a reason for a source without data."""

_TEXT = pa.dictionary(pa.int32(), pa.string())
_KEY = b"gpureport.history"
_CHECKS = b"gpureport.checks"
"""Key of the checks, which are JSON in the metadata: a table of figures has no place for them."""

SCHEMA = pa.schema(
    [
        pa.field("night", pa.date32(), nullable=False),
        pa.field("label", _TEXT),
        pa.field("recorded", pa.timestamp("us"), nullable=False),
        pa.field("version", _TEXT, nullable=False),
        pa.field("command", _TEXT, nullable=False),
        pa.field("part", pa.int32(), nullable=False),
        pa.field("status", _TEXT, nullable=False),
        pa.field("reason", _TEXT),
        pa.field("source", _TEXT, nullable=False),
        pa.field("run_id", _TEXT),
        pa.field("run_name", _TEXT),
        pa.field("step", _TEXT),
        pa.field("gpu_model", _TEXT),
        pa.field("gpus", pa.int32()),
        pa.field("driver", _TEXT),
        pa.field("started", pa.timestamp("us")),
        pa.field("params", _TEXT),
        pa.field("metric", _TEXT),
        pa.field("unit", _TEXT),
        pa.field("value", pa.float64()),
    ],
    metadata={_KEY: str(FORMAT).encode()},
)
"""Columns of the file; null is not recorded."""

MEASURED, NO_DATA = "measured", "no data"


def dump_record(night: NightlyRecord) -> bytes:
    """Return a record as the bytes of a Parquet file."""
    table = pa.Table.from_pylist(list(_rows(night)), schema=SCHEMA)
    if night.checks:
        checks = json.dumps([asdict(check) for check in night.checks], ensure_ascii=False, allow_nan=False)
        table = table.replace_schema_metadata({**SCHEMA.metadata, _CHECKS: checks.encode()})
    file = BytesIO()
    parquet.write_table(table, file, compression="zstd", write_page_checksum=True, write_statistics=False)
    return file.getvalue()


def _rows(night: NightlyRecord) -> Iterator[dict[str, Any]]:
    shared = {
        "night": date.fromisoformat(night.date),
        "label": night.label or None,
        "recorded": night.recorded,
        "version": night.version,
        "command": night.command,
    }
    for place, run in enumerate(night.runs):
        row = {
            **shared,
            "part": place,
            "status": NO_DATA if run.run_id is None else MEASURED,
            "reason": run.reason or None,
            "source": run.source,
            "run_id": run.run_id,
            "run_name": run.name or None,
            "step": run.step or None,
            "gpu_model": run.model or None,
            "gpus": run.gpus if run.run_id else None,
            "driver": run.driver or None,
            "started": run.started,
            "params": json.dumps(dict(run.params), sort_keys=True, ensure_ascii=False) if run.run_id else None,
        }
        yield from (row | _figure_cells(figure) for figure in run.figures) if run.figures else [row]


def _figure_cells(figure: Figure) -> dict[str, Any]:
    kind = BY_NAME.get(figure.name)
    return {"metric": figure.name, "unit": kind.unit if kind else None, "value": figure.value}


def load_record(content: bytes) -> NightlyRecord:
    """Return a record from the bytes of a Parquet file.

    Raises:
        ArrowException, OSError: when it is damaged.
        ValueError: when it is not a record, or of a newer version.
    """
    file = parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    metadata = file.schema_arrow.metadata or {}
    version = int(metadata.get(_KEY, b"0"))
    if not 0 < version <= FORMAT:
        msg = f"format {version} is not {FORMAT}" if version else "not a night of a history"
        raise ValueError(msg)
    # as integers: a timestamp without a zone would become a naive datetime
    whole = [pa.field(field.name, pa.int64()) if pa.types.is_timestamp(field.type) else field for field in SCHEMA]
    rows = file.read().cast(pa.schema(whole)).to_pylist()
    first = rows[0]
    return NightlyRecord(
        date=first["night"].isoformat(),
        label=first["label"] or "",
        command=first["command"],
        version=first["version"],
        recorded=first["recorded"],
        runs=tuple(_load_run(list(group)) for _, group in groupby(rows, key=lambda row: row["part"])),
        checks=tuple(_load_check(each) for each in json.loads(metadata.get(_CHECKS, b"[]"))),
    )


def _load_check(fields: dict[str, Any]) -> Check:
    bounds = fields["bounds"]
    known = fields | {
        "outcome": CheckOutcome(fields["outcome"]),
        "bounds": None if bounds is None else (bounds[0], bounds[1]),
    }
    return Check(**known)


def _load_run(rows: list[dict[str, Any]]) -> NightlyRun:
    row = rows[0]
    return NightlyRun(
        source=row["source"],
        run_id=row["run_id"],
        name=row["run_name"] or "",
        step=row["step"] or "",
        model=row["gpu_model"] or "",
        gpus=row["gpus"] or 0,
        started=row["started"],
        params=tuple(sorted(dict(json.loads(row["params"] or "{}")).items())),
        driver=row["driver"] or "",
        figures=tuple(Figure(name=each["metric"], value=each["value"]) for each in rows if each["metric"]),
        reason=row["reason"] or "",
    )
