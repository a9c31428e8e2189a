"""What one log holds, learned by reading it once: its devices, their times and metrics."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.errors import SourceError
from gpureport.importers.decoding.raw_file import FileState, RawFile
from gpureport.importers.merging.shared_devices import Span
from gpureport.importers.protocol.importer import Input, Outcome, ReadOptions
from gpureport.importers.recorders.same_gpu import METRICS, Series
from gpureport.metrics import Scope
from gpureport.record_folder import RUN_FILE, name_log
from gpureport.recording import Device
from gpureport.series_table import KEY_FIELDS, sort_by_time

KEYS = frozenset(field.name for field in KEY_FIELDS)
"""Columns that say whose a row is and when, not what was measured."""
CORE_METRICS = frozenset(
    {
        "gpu_utilization_ratio",
        "gpu_memory_used_bytes",
        "gpu_power_watts",
        "gpu_temperature_celsius",
        "gpu_sm_clock_hertz",
        "clock_event_sw_power_cap",
    }
)
"""What most checks need; the log that holds the most of it is the main one (pragmatic)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSurvey:
    """What one GPU log holds.

    Attributes:
        given: the log.
        outcome: what is known after its last batch.
        metrics: columns that hold at least one value.
        series: readings of each GPU that tell GPUs apart.
        sha256: hash of its bytes.
    """

    given: Input
    outcome: Outcome
    metrics: frozenset[str]
    series: dict[str, Series]
    sha256: str

    @property
    def span(self) -> Span:
        """Its first and last time, in microseconds."""
        return self.outcome.span

    @property
    def gpus(self) -> tuple[Device, ...]:
        """Its GPUs."""
        return tuple(device for device in self.outcome.devices if device.scope is Scope.GPU)

    @property
    def interval(self) -> float:
        """Median seconds between samples; 1 where a GPU has a single one."""
        rates = sorted(self.outcome.intervals.get(device.id, 1.0) for device in self.gpus)
        return rates[len(rates) // 2] if rates else 1.0

    @property
    def is_complete(self) -> bool:
        """Whether it holds all that most checks need."""
        return self.metrics >= CORE_METRICS

    @property
    def recording(self) -> Path | None:
        """The folder into which `gpureport record` wrote it; None for any other log."""
        path = self.given.path
        return path.parent if name_log(path) and (path.parent / RUN_FILE).is_file() else None

    @property
    def rank(self) -> tuple[int, float, int, str]:
        """Key that sorts the main log first: the most metrics that checks need, then the finest, then the richest."""
        return -len(self.metrics & CORE_METRICS), round(self.interval, 1), -len(self.metrics), self.sha256


_known: dict[tuple[Path, FileState, str, str], LogSurvey | None] = {}
"""Surveys of this process: sources are grouped before each is read as a run."""


def survey_log(given: Input, options: ReadOptions) -> LogSurvey | None:
    """Return what a log holds, None where it cannot be read or has no time stamps."""
    key = given.path.resolve(), FileState.from_path(given.path), given.importer.kind, repr(options)
    if key not in _known:
        _known[key] = _survey(given, options)
    found = _known[key]
    return found and replace(found, given=given)


def _survey(given: Input, options: ReadOptions) -> LogSurvey | None:
    file = RawFile(given.path)
    try:
        extraction = given.importer.extract(file, options)
        tables = read_devices(extraction.batches())
    except SourceError:
        # the error is raised again when the log is read as a run
        return None
    outcome = extraction.outcome()
    if outcome.quality.synthetic_time or not any(device.scope is Scope.GPU for device in outcome.devices):
        return None
    metrics = {
        name
        for table in tables.values()
        for name in table.column_names
        if name not in KEYS and table.column(name).null_count < len(table)
    }
    series = {device: _read_series(table) for device, table in tables.items()}
    return LogSurvey(given=given, outcome=outcome, metrics=frozenset(metrics), series=series, sha256=file.sha256())


def read_devices(batches: Iterator[pa.Table]) -> dict[str, pa.Table]:
    """Return the rows of each device in the order of time.

    Args:
        batches: tables of one device each.
    """
    kept: dict[str, list[pa.Table]] = {}
    for batch in batches:
        kept.setdefault(batch.column("device")[0].as_py(), []).append(batch)
    return {
        device: sort_by_time(pa.concat_tables(tables, promote_options="default"), device)
        for device, tables in kept.items()
    }


def _read_series(table: pa.Table) -> Series:
    """Return the readings of one GPU that tell it from others."""
    none = np.full(len(table), np.nan)
    return Series(
        times=columns.integers(table.column("timestamp")),
        values={name: columns.floats(table.column(name)) if name in table.column_names else none for name in METRICS},
    )
