"""What a log holds, learned by reading it once, and what two logs say of each other: time, zone and readings."""

from collections.abc import Iterable, Sequence
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakSet
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import columns
from gpureport.columns import FloatArray, IntArray
from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import Input, Outcome, ReadOptions, TrainingFile
from gpureport.importers.source_text import FileState, RawFile
from gpureport.metrics import Scope
from gpureport.record_folder import RUN_FILE, name_log
from gpureport.series_table import KEY_FIELDS, sort_by_time

Span = tuple[int, int]
"""First and last time, in microseconds."""
Tables = dict[str, pa.Table]
Readings = tuple[IntArray, npt.NDArray[np.uint64], dict[str, FloatArray]]
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
_SLACK = 5_000_000
"""Time that two rotated logs may share without any look at what they say of it, in microseconds (pragmatic)."""
_MOST_HELD = 256 * 2**20
"""Bytes of rows that are held until they are asked for; what is beyond is read again."""


class Log:
    """A log that was read: what is known of it, and its rows, held or to be read again.

    Attributes:
        outcome, gpus: what is known of it, and its GPUs.
        span, spans: first and last time, and those of each device.
        interval: median seconds between samples; 1 where a GPU has a single one.
        metrics, is_complete: columns that hold a value, and whether all are among them that most checks need.
        recording: the folder into which `gpureport record` wrote it; None for any other log.
        rank: sorts the main log first: the most metrics that checks need, then the finest, then the richest.
        held: bytes of the rows that are held.
    """

    def __init__(self, given: Input, options: ReadOptions, file: RawFile | None = None) -> None:
        """Read a log; a `SourceError` says that it holds nothing that can be used."""
        self.given, self.file, self._options = given, file or RawFile(given.path), options
        try:
            extraction = given.importer.extract(self.file, options)
            tables = read_devices(extraction.batches())
        except SourceError as error:
            raise error.at(given.locator) from error
        self.outcome = extraction.outcome()
        times = {device: columns.integers(table.column("timestamp")) for device, table in tables.items()}
        self.spans = {device: (int(own[0]), int(own[-1])) for device, own in times.items()}
        held = (name for table in tables.values() for name in table.column_names if table[name].null_count < len(table))
        self.metrics = set(held) - KEYS
        self.is_complete = self.metrics >= CORE_METRICS
        self.span = self.outcome.span
        self.gpus = tuple(device for device in self.outcome.devices if device.scope is Scope.GPU)
        rates = sorted(self.outcome.intervals.get(device.id, 1.0) for device in self.gpus) or [1.0]
        self.interval = rates[len(rates) // 2]
        folder = given.path.parent
        self.recording = folder if name_log(given.path) and (folder / RUN_FILE).is_file() else None
        core = len(self.metrics & CORE_METRICS)
        self.rank = -core, round(self.interval, 1), -len(self.metrics), self.file.sha256()
        self.held = sum(table.nbytes for table in tables.values())
        if self.held + sum(log.held for log in _holding) > _MOST_HELD:
            self.held = 0
        self._tables = tables if self.held else None
        _holding.add(self)
        self._readings: dict[str, Readings] = {}

    @property
    def tables(self) -> Tables:
        """Its rows by device, in the order of time; whoever asks for them holds them from then on."""
        if self._tables is None:
            self._tables = self._read_again()
        return self._tables

    def _read_again(self) -> Tables:
        return read_devices(self.given.importer.extract(self.file.again(), self._options).batches())

    def take(self) -> Tables:
        """Return its rows, which are not held any longer."""
        tables, self._tables, self.held = self.tables, None, 0
        return tables

    def readings(self, device: str) -> Readings:
        """Return the times of a device, a number for each row, and what tells a GPU from others."""
        if not self._readings:
            for name, table in (self._tables or self._read_again()).items():
                values = {told: columns.floats(table.column(told)) for told in _TELLING if told in table.column_names}
                times = columns.integers(table.column("timestamp"))
                self._readings[name] = times, hash_rows(table), values
        return self._readings[device]


_holding: WeakSet[Log] = WeakSet()


def read_devices(batches: Iterable[pa.Table]) -> Tables:
    """Return the rows of each device in the order of time, of tables of one device each."""
    kept: dict[str, list[pa.Table]] = {}
    for batch in batches:
        kept.setdefault(batch.column("device")[0].as_py(), []).append(batch)
    return {
        device: sort_by_time(pa.concat_tables(tables, promote_options="default"), device)
        for device, tables in kept.items()
    }


_surveyed: dict[tuple[Path, FileState, str, str], Log | None] = {}
"""Logs that were read to find which run they are of, until they are read as that run."""


def _key(given: Input, options: ReadOptions) -> tuple[Path, FileState, str, str]:
    return given.path.resolve(), FileState.from_path(given.path), given.importer.kind, repr(options)


def survey_log(given: Input, options: ReadOptions) -> Log | None:
    """Return a log of GPUs; None where it cannot be read, which is said when it is read as a run, or has no times."""
    key = _key(given, options)
    if key not in _surveyed:
        try:
            log = Log(given, options)
            _surveyed[key] = log if log.gpus and not log.outcome.quality.synthetic_time else None
        except SourceError:
            _surveyed[key] = None
    found = copy(_surveyed[key])
    if found is not None:
        found.given = given
    return found


def take_survey(given: Input, options: ReadOptions, *, held: bool = True) -> Log | None:
    """Return a log that was surveyed, which the caller owns from now on: one whose rows are `held`, or any."""
    found = _surveyed.pop(_key(given, options), None)
    if found is None or (held and not found.held):
        return None
    found.given = given
    return found


def shared_time(one: Span, other: Span) -> int:
    """Return the time that two spans have in common, in microseconds; negative where they lie apart."""
    return min(one[1], other[1]) - max(one[0], other[0])


def spans_overlap(one: Span, other: Span) -> bool:
    """Return whether two spans share more time than a rotation may leave in both logs."""
    shared, shorter = shared_time(one, other), min(one[1] - one[0], other[1] - other[0])
    return shared > min(_SLACK, shorter / 2) or shared == shorter == 0


def any_overlap(spans: Sequence[Span]) -> bool:
    """Return whether any two of several spans overlap."""
    return any(spans_overlap(one, other) for n, one in enumerate(spans) for other in spans[n + 1 :])


def check_time_bases(inputs: Sequence[Input | TrainingFile], outcomes: Sequence[Outcome], tz: str | None) -> None:
    """Make sure that times of several sources are all UTC, or all local times without a zone.

    Args:
        inputs: the sources.
        outcomes: what is known of each, in the same order.
        tz: zone of stamps that name none, None when unknown.

    Raises:
        SourceError: when some are UTC and others name no zone.
    """
    first, base = inputs[0].locator, outcomes[0]
    if tz is not None or base.quality.synthetic_time:
        return
    for each, outcome in zip(inputs[1:], outcomes[1:], strict=True):
        if (outcome.timezone is None) == (base.timezone is None) or outcome.quality.synthetic_time:
            continue
        if outcome.timezone is not None:
            what = f"its times are {outcome.timezone}, those of {first} name no zone"
        else:
            what = f"its times name no zone, those of {first} are {base.timezone}"
        hint = "give the zone of the other with --tz, such as Europe/Berlin"
        raise SourceError(each.locator, what, hint, code="times_not_comparable")


def format_span(span: Span) -> str:
    """Return the first and last time of a source, in its own zone or in UTC."""
    start, end = (datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S") for at in span)
    return f"{start} to {end}"


def find_nearest(times: IntArray, stamps: IntArray) -> tuple[IntArray, IntArray]:
    """Return for each time the place of the nearest stamp, the earlier of two, and how far away it is."""
    after = np.clip(np.searchsorted(stamps, times), 0, len(stamps) - 1)
    before = np.maximum(after - 1, 0)
    place = np.where(np.abs(stamps[before] - times) <= np.abs(stamps[after] - times), before, after)
    return place, np.abs(stamps[place] - times)


_EQUAL, _OTHER = 0.5, 0.01
"""Rows of the shorter log that a copy of a part holds, and of those at the same time with other values, by the equal
ones, up to which one of the two is damaged (pragmatic)."""
_PAIRS = 30
"""Readings of both at nearly the same time that a judgement needs (pragmatic)."""
_TELLING = ("gpu_temperature_celsius", "gpu_power_watts")
"""Work in step looks the same on GPUs of one job; heat and power tell two boards apart even then."""
_STEP = 1.0
"""Degrees or watts by which two readings of one GPU may lie apart whatever else is known (pragmatic)."""
_BOARDS = 0.01
"""Share of the mean power up to which two recorders of one GPU differ; boards of a model differ by several per cent."""


def hash_rows(table: pa.Table) -> npt.NDArray[np.uint64]:
    """Return a number for each row: its time and every value it holds; columns it holds nothing in do not matter."""
    keys = columns.integers(table.column("timestamp")).view(np.uint64)
    for name in sorted(set(table.column_names) - KEYS):
        column: Any = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.combine_chunks()
            texts = np.array([crc32(text.encode()) for text in column.dictionary.to_pylist()] or [0], dtype=np.uint64)
            bits = texts[columns.integers(column.indices)]
        else:
            # 0.0 and -0.0 are one value
            bits = (columns.floats(column) + 0.0).view(np.uint64)
        mixed = (keys ^ (bits + np.uint64(crc32(name.encode())))) * np.uint64(0xBF58476D1CE4E5B9)
        keys = np.where(columns.valid(column), mixed ^ (mixed >> np.uint64(29)), keys)
    return keys


def read_same_gpus(one: Log, other: Log, pairs: Iterable[tuple[str, str]], *, copies: bool) -> bool:
    """Return whether two logs of the same time read the same GPUs, given the ids in both of those that may be the same.

    They do where readings of nearly the same moments lie about as near to each other as successive ones of one log; and
    where `copies` count, if most rows of the shorter one stand in both.
    """
    pace = round(max(one.interval, other.interval) * 1e6)
    found = {_compare_device(one.readings(here), other.readings(there), pace, copies=copies) for here, there in pairs}
    return True in found and False not in found


def _compare_device(one: Readings, other: Readings, pace: int, *, copies: bool) -> bool | None:
    """Return what readings of the same time tell of two GPUs being one; None where they tell nothing."""
    (times, keys, values), (other_times, other_keys, other_values) = one, other
    inside = (other_times >= times[0]) & (other_times <= times[-1])
    place, far = find_nearest(other_times[inside], times)
    shorter = min(len(place), int(((times >= other_times[0]) & (times <= other_times[-1])).sum()))
    equal = int((keys[place] == other_keys[inside]).sum())
    if copies and equal and equal >= _EQUAL * shorter and int((far == 0).sum()) - equal <= 1 + _OTHER * equal:
        return True
    told = None
    for name in values.keys() & other_values.keys():
        mine, theirs = values[name][place][far <= pace], other_values[name][inside][far <= pace]
        known = ~np.isnan(mine - theirs)
        mine, theirs = mine[known], theirs[known]
        if len(mine) < _PAIRS:
            continue
        apart = float(np.abs(mine - theirs).mean())
        moves = max(float(np.nanmean(np.abs(np.diff(own[name])))) for own in (values, other_values))
        error = 3 * float((mine - theirs).std()) / len(mine) ** 0.5
        bias = abs(float((mine - theirs).mean())) - error - _STEP - _BOARDS * float(mine.mean())
        if apart > 2 * moves + _STEP or (name == "gpu_power_watts" and bias > 0):
            return False
        # boards that do nothing look alike
        any_two = float(np.abs(np.random.default_rng(0).permutation(mine) - theirs).mean())
        told = told or (any_two > _STEP and apart <= any_two / 2) or None
    return told
