"""The history: an append-only folder of records, so folders can be merged by copying.

A record is a Parquet file with a row per figure, so any tool can read the folder as a table.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from datetime import date
from io import BytesIO
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from gpureport.errors import StoreError
from gpureport.findings import Check, CheckOutcome
from gpureport.nightly.figures import BY_NAME, Figure
from gpureport.nightly.records import NightlyRecord, NightlyRun
from gpureport.places import Place, map_places
from gpureport.redaction import redact_start
from gpureport.store import atomic_writes

FORMAT = 1
"""Layout 1: one row per figure of a run, and one per source without data."""
FOLDER = "history"
_SUFFIX = ".parquet"
_DAMAGE = (
    *(OSError, ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, RecursionError),
    pa.ArrowException,
)
"""Exceptions that reading a damaged night may raise."""
_KEY = b"gpureport.history"
_CHECKS = b"gpureport.checks"
"""Metadata key of the checks, which are JSON."""
_TEXT, _TIME = pa.dictionary(pa.int32(), pa.string()), pa.timestamp("us")
_COLUMNS = {
    "night": pa.date32(),
    "label": _TEXT,
    "recorded": _TIME,
    "version": _TEXT,
    "command": _TEXT,
    "part": pa.int32(),
    "status": _TEXT,
    "reason": _TEXT,
    "source": _TEXT,
    "run_id": _TEXT,
    "run_name": _TEXT,
    "step": _TEXT,
    "gpu_model": _TEXT,
    "gpus": pa.int32(),
    "driver": _TEXT,
    "started": _TIME,
    "params": _TEXT,
    "metric": _TEXT,
    "unit": _TEXT,
    "value": pa.float64(),
}
_NEVER_NULL = {"night", "recorded", "version", "command", "part", "status", "source"}
SCHEMA = pa.schema(
    [pa.field(name, kind, nullable=name not in _NEVER_NULL) for name, kind in _COLUMNS.items()],
    metadata={_KEY: str(FORMAT).encode()},
)
"""Columns of the file; null means not recorded."""


_TEXTS = {"source": "source", "run_id": "run_id", "run_name": "name", "step": "step"}
_TEXTS |= {"gpu_model": "model", "driver": "driver", "reason": "reason"}


def dump_record(night: NightlyRecord) -> bytes:
    table = pa.Table.from_pylist(list(_list_rows(night)), schema=SCHEMA)
    if night.checks:
        checks = json.dumps([asdict(check) for check in night.checks], ensure_ascii=False, allow_nan=False)
        table = table.replace_schema_metadata({**SCHEMA.metadata, _CHECKS: checks.encode()})
    file = BytesIO()
    parquet.write_table(table, file, compression="zstd", write_page_checksum=True, write_statistics=False)
    return file.getvalue()


def _list_rows(night: NightlyRecord) -> Iterator[dict[str, Any]]:
    for place, run in enumerate(night.runs):
        is_measured = run.run_id is not None
        row = {
            "night": date.fromisoformat(night.date),
            "label": night.label or None,
            "recorded": night.recorded,
            "version": night.version,
            "command": night.command,
            "part": place,
            "status": "measured" if is_measured else "no data",
            "started": run.started,
            **{column: getattr(run, name) or None for column, name in _TEXTS.items()},
            "gpus": run.gpus if is_measured else None,
            "params": json.dumps(dict(run.params), sort_keys=True, ensure_ascii=False) if is_measured else None,
        }
        for figure in run.figures:
            unit = BY_NAME[figure.name].unit if figure.name in BY_NAME else None
            yield row | {"metric": figure.name, "unit": unit, "value": figure.value}
        if not run.figures:
            yield row


def load_record(content: bytes) -> NightlyRecord:
    file = parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    metadata = file.schema_arrow.metadata or {}
    version = int(metadata.get(_KEY, b"0"))
    if not 0 < version <= FORMAT:
        raise ValueError(f"format {version} is not {FORMAT}" if version else "it is not a nightly record")
    # read times as integers, as those without a zone would become naive datetimes
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
        checks=tuple(
            Check(**each | {"outcome": CheckOutcome(each["outcome"]), "bounds": each["bounds"] and (*each["bounds"],)})
            for each in json.loads(metadata.get(_CHECKS, b"[]"))
        ),
    )


def _load_run(rows: list[dict[str, Any]]) -> NightlyRun:
    row = rows[0]
    return NightlyRun(
        gpus=row["gpus"] or 0,
        started=row["started"],
        params=tuple(sorted(dict(json.loads(row["params"] or "{}")).items())),
        figures=tuple(Figure(name=each["metric"], value=each["value"]) for each in rows if each["metric"]),
        **{name: row[column] or "" for column, name in _TEXTS.items()} | {"run_id": row["run_id"]},
    )


class History:
    def __init__(self, store: Place) -> None:
        self.folder = store / FOLDER

    def append(self, night: NightlyRecord) -> Place:
        """Write a record atomically to a file named after its content, and return the file.

        An existing file is kept unless its runs have since been recorded differently; if so, it becomes the latest.
        """
        path = self.folder / f"{night.id}{_SUFFIX}"
        with atomic_writes.raise_store_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            atomic_writes.remove_stale_files(self.folder)
            ids, is_there = {run.run_id for run in night.measured_runs}, path.exists()
            latest = keep_latest_records(self.read_all()) if is_there else []
            others = [each for each in latest if each.date == night.date and each.file != path.stem]
            if not is_there or any(run.run_id in ids for each in others for run in each.measured_runs):
                atomic_writes.write_bytes(path, dump_record(night), self.folder)
        return path

    def read_all(self, known: Iterable[NightlyRecord] = ()) -> list[NightlyRecord]:
        records = {night.file: night for night in known}
        try:
            # a folder that cannot be listed must not be treated as empty
            found: list[Place] = list(self.folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            what = f"cannot be listed ({error.strerror})"
            hint = "make the folder readable, or choose another store with --store"
            raise StoreError(str(self.folder), what, hint, code="unreadable") from error
        files = sorted(path for path in found if path.suffix == _SUFFIX and not path.name.startswith("."))
        unknown = [path for path in files if path.stem not in records]
        records.update(zip((path.stem for path in unknown), map_places(_read_file, unknown), strict=True))
        return [records[path.stem] for path in files]


def _read_file(path: Place) -> NightlyRecord:
    """Return a file's record, without text that has since become secret."""
    try:
        night = load_record(path.read_bytes())
        if night.id != path.stem:
            raise ValueError("its content does not match its name")
        return replace(night.redacted(), file=path.stem)
    except _DAMAGE as error:
        what = f"cannot be read as a night ({redact_start(' '.join(str(error).split()))})"
        raise StoreError(str(path), what, "restore it, or remove it and record again", code="damaged_night") from error


def keep_latest_records(nights: Iterable[NightlyRecord]) -> list[NightlyRecord]:
    """Return records that contain each run once, as last recorded, and no gaps that a later call filled.

    A source without data is a gap. A later call on the same night fills the gap with a run from a source of the same
    name and step. A run from the same call does not, because it comes from another file of that name.
    """
    ordered = sorted(nights, key=lambda night: (night.recorded, night.page))
    kept: dict[tuple[str | int, ...], tuple[NightlyRecord, NightlyRun]] = {}
    for night in ordered:
        for run in night.measured_runs:
            kept[night.date, str(run.run_id)] = night, run
        named: Counter[tuple[str, str]] = Counter()
        others = (each for each in ordered if each is not night and each.date == night.date)
        later = [each for each in others if each.recorded >= night.recorded]
        filled = {(run.step, run.source) for other in later for run in other.measured_runs}
        for run in night.missing_runs:
            named[run.step, run.source] += 1
            if (run.step, run.source) not in filled:
                kept[night.date, run.step, run.source, named[run.step, run.source]] = night, run
    shown, left = {(id(night), id(run)) for night, run in kept.values()}, []
    for night in ordered:
        if runs := tuple(run for run in night.runs if (id(night), id(run)) in shown):
            # leave out checks of runs that were recorded again
            gone = {run.name for run in night.measured_runs} - {run.name for run in runs}
            left.append(replace(night, runs=runs, checks=tuple(each for each in night.checks if each.run not in gone)))
    return sorted(left, key=lambda night: (night.date, night.recorded, night.id))


def first_night_of_run(nights: Iterable[NightlyRecord], run_id: str) -> str | None:
    return min((night.date for night in nights for run in night.measured_runs if run.run_id == run_id), default=None)
