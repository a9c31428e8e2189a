"""Surveys a log in one pass, and compares logs by time, GPU identity and readings."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import columns
from gpureport.errors import SourceError
from gpureport.importers.columns import Texts, Values
from gpureport.importers.extraction import hash_values
from gpureport.importers.gpu_devices import SURE
from gpureport.importers.protocol import Input, Outcome, ReadOptions
from gpureport.importers.reading import errors_at, survey_key, surveyed
from gpureport.importers.source_text import RawFile
from gpureport.metrics import Scope
from gpureport.names import group_pairs
from gpureport.record_folder import name_log, read_run_file
from gpureport.recording import KEY_FIELDS, Device, sort_by_time

Span = tuple[int, int]  # first and last microsecond
Tables = dict[str, pa.Table]
Hashes = npt.NDArray[np.uint64]
KEYS = frozenset(field.name for field in KEY_FIELDS)
"""Columns that identify a row's device and time but contain no measurement."""
CORE_METRICS = {"gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts", "gpu_temperature_celsius"}
CORE_METRICS |= {"gpu_sm_clock_hertz", "clock_event_sw_power_cap"}
_SLACK = 5_000_000
"""Maximum overlap of two rotated logs, in microseconds."""
_MOST_HELD = 256 * 2**20
"""Maximum size of the rows in memory, in bytes; other rows are read again."""
_EQUAL, _OTHER = 0.5, 0.01
"""Minimum share of equal rows in copies, and maximum share of simultaneous rows that differ."""


class Log:
    """A surveyed log, with rows in memory or read again; `rank` sorts the main log first."""

    def __init__(self, given: Input, options: ReadOptions, file: RawFile | None = None) -> None:
        self.given, self.file, self._options = given, file or RawFile(given.path), options
        with errors_at(given.locator):
            extraction = given.importer.extract(self.file, options)
            tables = read_devices(extraction.batches())
        self.outcome = extraction.outcome()
        self.span = self.outcome.span
        self.spans = {device: find_span(table) for device, table in tables.items()}
        held = (name for table in tables.values() for name in table.column_names if table[name].null_count < len(table))
        self.metrics = set(held) - KEYS
        self.is_complete = self.metrics >= CORE_METRICS
        self.gpus = tuple(device for device in self.outcome.devices if device.scope is Scope.GPU)
        rates = sorted(self.outcome.intervals.get(each.id) or 1.0 for each in self.gpus or self.outcome.devices)
        self.interval = rates[len(rates) // 2]
        self.rank = -len(self.metrics & CORE_METRICS), round(self.interval, 1), -len(self.metrics), self.file.sha256()
        self.held = sum(table.nbytes for table in tables.values())
        if self.held + sum(log.held for log in surveyed.values() if log is not None) > _MOST_HELD:
            self.held = 0
        self._tables = tables if self.held else None
        self.node: str | None = None
        recorded = read_run_file(given.path.parent) if name_log(given.path) else None
        self.machine = recorded.host if recorded else ""

    def adds_to(self, other: "Log") -> bool:
        return not self.is_complete and bool(self.metrics - other.metrics)

    def _read_again(self) -> Tables:
        return read_devices(self.given.importer.extract(self.file.again(), self._options).batches())

    def take(self) -> Tables:
        tables, self._tables, self.held = self._tables or self._read_again(), None, 0
        return tables

    @cached_property
    def keys(self) -> dict[str, tuple[columns.IntArray, Hashes]]:
        """The times of each device, and a hash of each row."""
        tables = self._tables or self._read_again()
        return {name: (columns.integers(own.column("timestamp")), hash_rows(own)) for name, own in tables.items()}


def read_devices(batches: Iterable[pa.Table]) -> Tables:
    named = ((batch.column("device")[0].as_py(), batch) for batch in batches)
    return {device: stack_rows(tables, device) for device, tables in group_pairs(named).items()}


def stack_rows(tables: Sequence[pa.Table], device: str) -> pa.Table:
    return sort_by_time(pa.concat_tables(tables, promote_options="default"), device)


def survey_log(given: Input, options: ReadOptions) -> Log | None:
    key = survey_key(given, options)
    if key not in surveyed:
        with suppress(SourceError):
            log = Log(given, options)
            surveyed[key] = log if log.gpus and not log.outcome.quality.synthetic_time else None
    return surveyed.setdefault(key, None)


def find_span(table: pa.Table) -> Span:
    times = columns.integers(table.column("timestamp"))
    return int(times[0]), int(times[-1])


def shared_time(one: Span, other: Span) -> int:
    """Return the overlap of two spans in microseconds, negative if they are apart."""
    return min(one[1], other[1]) - max(one[0], other[0])


def spans_overlap(one: Span, other: Span) -> bool:
    """Return whether two spans overlap more than rotated logs do."""
    shared, shorter = shared_time(one, other), min(one[1] - one[0], other[1] - other[0])
    return shared > min(_SLACK, shorter / 2) or shared == shorter == 0


def any_overlap(spans: Sequence[Span]) -> bool:
    return any(spans_overlap(one, other) for n, one in enumerate(spans) for other in spans[n + 1 :])


def have_one_clock(one: Outcome, other: Outcome, tz: str | None) -> bool:
    """Return whether two logs' times are comparable: with `tz`, or if both or neither are in UTC."""
    return tz is not None or (one.timezone is None) == (other.timezone is None)


def check_clocks(first: str, base: Outcome, locator: str, outcome: Outcome, tz: str | None) -> None:
    is_counted = base.quality.synthetic_time or outcome.quality.synthetic_time
    if not is_counted and not have_one_clock(base, outcome, tz):
        what = f"its times are {outcome.timezone or 'local'}, but the times of {first} are {base.timezone or 'local'}"
        hint = "give the time zone of the local times with --tz, such as Europe/Berlin"
        raise SourceError(locator, what, hint, code="times_not_comparable")


def check_shared_time(locator: str, span: Span, main: Span) -> None:
    if shared_time(span, main) < 0:
        times = [f"{datetime.fromtimestamp(at // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}" for at in (*span, *main)]
        what = "its time span ({} to {}) does not overlap that of the GPU log ({} to {})".format(*times)
        raise SourceError(locator, what, "check its clock, give --tz, or leave it out", code="no_shared_time")


def find_nearest(times: columns.IntArray, stamps: columns.IntArray) -> tuple[columns.IntArray, columns.IntArray]:
    """Return the index of the timestamp nearest to each time (the earlier of two), and its distance."""
    after = np.clip(np.searchsorted(stamps, times), 0, len(stamps) - 1)
    before = np.maximum(after - 1, 0)
    place = np.where(np.abs(stamps[before] - times) <= np.abs(stamps[after] - times), before, after)
    return place, np.abs(stamps[place] - times)


def _is_same(one: Device, other: Device, names: Sequence[str]) -> bool | None:
    pairs = ((getattr(one, name), getattr(other, name)) for name in names)
    return next((mine == theirs for mine, theirs in pairs if mine is not None and theirs is not None), None)


def models_differ(one: Device, other: Device) -> bool:
    mine, theirs = one.model or "", other.model or ""
    return mine not in theirs and theirs not in mine


def find_same_device(device: Device, known: Sequence[Device]) -> Device | None:
    told = [(_is_same(each, device, SURE), each) for each in known]
    named = [each for same, each in told if same]
    by_id = (each for same, each in told if same is not False and each.id == device.id)
    return next((each for each in named if each.id == device.id), named[0] if named else next(by_id, None))


def match_devices(known: Sequence[Device], devices: Sequence[Device]) -> list[tuple[Device, Device]]:
    pairs: dict[str, tuple[Device, Device]] = {}
    for device in devices:
        if (found := find_same_device(device, [each for each in known if each.id not in pairs])) is not None:
            pairs[found.id] = found, device
    return list(pairs.values())


def relate_logs(one: Log, other: Log, *, copies: bool = True) -> str:
    """Return how two logs are related, judged by GPUs that both record at once, or "" if there are none.

    They are the `same` if a uuid, a serial number or (with `copies`) most rows are equal, `apart` if
    identities conflict, and otherwise `untold`.
    """
    together = {
        (mine, theirs)
        for mine, span in one.spans.items()
        for theirs, other_span in other.spans.items()
        if spans_overlap(span, other_span)
    }
    matched = match_devices(one.gpus or one.outcome.devices, other.gpus or other.outcome.devices)
    pairs = [(mine, theirs) for mine, theirs in matched if (mine.id, theirs.id) in together]
    if any(_is_same(mine, theirs, ("uuid", "serial")) for mine, theirs in pairs):
        return "same"
    if not pairs or any(models_differ(mine, theirs) for mine, theirs in pairs):
        return "apart" if any(mine == theirs for mine, theirs in together) else ""
    for first, second in pairs if copies else ():
        (times, keys), (other_times, other_keys) = one.keys[first.id], other.keys[second.id]
        inside = (other_times >= times[0]) & (other_times <= times[-1])
        place, far = find_nearest(other_times[inside], times)
        shorter = min(len(place), int(((times >= other_times[0]) & (times <= other_times[-1])).sum()))
        equal = int((keys[place] == other_keys[inside]).sum())
        if equal > 0 and equal >= _EQUAL * shorter and int((far == 0).sum()) - equal <= 1 + _OTHER * equal:
            return "same"
    return "untold"


def hash_rows(table: pa.Table) -> Hashes:
    held: dict[str, Values] = {}
    for name in {*table.column_names} - KEYS:
        column: Any = table.column(name).combine_chunks()
        if not pa.types.is_dictionary(column.type):
            held[name] = columns.floats(column)
            continue
        held[name] = Texts(columns.integers(column.indices, null=-1).astype(np.int32), column.dictionary.to_pylist())
    times = columns.integers(table.column("timestamp")).view(np.uint64)
    return hash_values(held, len(table)) ^ times * np.uint64(0x9E3779B97F4A7C15)
