"""Turns the points of a tracker's run into device rows, training metrics, work, and an account.

Logs attached to the run replace the tracker's series for the devices that they cover.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import AbsentCells, Quality, Rejected
from gpureport.errors import SourceError
from gpureport.importers.account import BESIDE_A_LOG, CHOSEN, NOT_SELECTED, list_first
from gpureport.importers.clock import Clock, load_zone, measure
from gpureport.importers.columns import Texts, to_arrays
from gpureport.importers.protocol import ReadOptions, RunInfo, SelectedRuns, Tracked
from gpureport.importers.reading import Reading, compute_run_id
from gpureport.importers.sources import Labels, identify_companion
from gpureport.importers.surveys import KEYS, find_span, shared_time
from gpureport.names import choose_throughput
from gpureport.number_format import format_number
from gpureport.parsing import FIRST_MICROSECOND, LAST_MICROSECOND, MOST
from gpureport.rates import count_by_rates
from gpureport.recording import (
    HOST,
    METRIC_TYPES,
    TRAINING_SCHEMA,
    Device,
    Run,
    Source,
    Work,
    empty_training,
)
from gpureport.regular_files import name_by_url

_MOST_STEP = 2**62


class Series(NamedTuple):
    """A series as logged: times in microseconds, values, and steps (NaN if not recorded)."""

    times: IntArray
    values: FloatArray
    steps: "FloatArray | IntArray"

    def taken(self, rows: "IntArray | BoolArray") -> "Series":
        return Series(self.times[rows], self.values[rows], self.steps[rows])


class Meaning(NamedTuple):
    """A series' meaning. `counts` turns values into rates; `primes` drops a monitor's first value."""

    metric: str
    factor: float
    gpu: int | None = None
    counts: bool = False
    primes: bool = False


def make_series(points: Iterable[tuple[int, float, float]]) -> Series:
    times, values, steps = zip(*points, strict=True)
    return Series(np.array(times, np.int64), np.array(values, np.float64), np.array(steps))


def join_series(parts: Iterable[Series]) -> Series:
    return Series(*map(np.concatenate, zip(*parts, strict=True)))


def is_dated(time: Any) -> Any:
    return (time >= FIRST_MICROSECOND) & (time < LAST_MICROSECOND)


def is_measured(values: FloatArray) -> BoolArray:
    return np.abs(values) < MOST


def place_on_ticks(series: Sequence[Series]) -> tuple[IntArray, FloatArray]:
    """Return the times of all points, and each series' last value at those times (NaN if none)."""
    ticks = np.unique(np.concatenate([np.zeros(0, np.int64), *(each.times for each in series)]))
    values = np.full((len(series), len(ticks)), np.nan)
    for row, each in zip(values, series, strict=True):
        row[np.searchsorted(ticks, each.times)] = np.where(is_measured(each.values), each.values, np.nan)
    return ticks, values


def list_rejected(counts: Mapping[str, int]) -> tuple[Rejected, ...]:
    return tuple(Rejected(reason=why, rows=rows, first_line=None) for why, rows in counts.items() if rows)


def list_absent(counts: Mapping[tuple[str, str], int]) -> tuple[AbsentCells, ...]:
    return tuple(AbsentCells(column=name, reason=why, cells=n) for (name, why), n in counts.items() if n)


def build_device_table(
    device: str,
    times: IntArray,
    values: Mapping[str, FloatArray],
    imputed: BoolArray | None = None,
    stage: str | None = None,
) -> "pa.Table":
    """Return a device's rows in time order; non-metric columns are text."""
    rows = np.flatnonzero(~np.isnan([*values.values()]).all(axis=0))
    rows = rows[np.argsort(times[rows], kind="stable")]
    arrays: dict[str, pa.Array[Any]] = {
        "device": columns.category(device, len(rows)),
        "timestamp": columns.to_arrow(times[rows], pa.timestamp("us")),
        "imputed": columns.to_arrow(np.zeros(len(rows)) if imputed is None else imputed[rows], pa.bool_()),
    }
    if stage:
        arrays["stage"] = columns.category(stage, len(rows))
    for name, every in values.items():
        own = every[rows]
        if name in METRIC_TYPES and not np.isnan(own).all():
            arrays |= to_arrays(name, np.rint(own) if pa.types.is_integer(METRIC_TYPES[name]) else own)
        elif not np.isnan(own).all():
            arrays |= to_arrays(name, Texts.of(None if np.isnan(value) else f"{value:g}" for value in own))
    return pa.table(arrays)


def measure_times(
    tables: Iterable["pa.Table"], quality: Quality
) -> tuple[Quality, float | None, tuple[int, int] | None]:
    """Return the account with gaps, and the GPUs' (or else hosts') median interval and span."""
    clocks = []
    for table in tables:
        clocks.append(clock := Clock(table.column("device")[0].as_py()))
        clock.accept(columns.integers(table.column("timestamp")))
    own = [clock for clock in clocks if not clock.device.endswith(HOST)] or clocks
    rates = sorted(rate for clock in own if (rate := clock.interval) is not None)
    span = (min(clock.first or 0 for clock in own), max(clock.last or 0 for clock in own)) if own else None
    return measure(clocks, quality), rates[len(rates) // 2] if rates else None, span


def _read_steps(steps: "FloatArray | IntArray") -> tuple[IntArray, BoolArray]:
    # a fractional step counts as not recorded
    stepped = (np.abs(steps) < _MOST_STEP) & (steps == np.floor(steps))
    return np.where(stepped, steps, 0).astype(np.int64), stepped


def build_training_table(
    names: Iterable[str], codes: IntArray, points: Series, *, dated: bool = True, null: bool = True
) -> "pa.Table":
    steps, stepped = _read_steps(points.steps)
    arrays = [
        columns.to_arrow(points.times, pa.timestamp("us"), np.full(len(codes), dated)),
        columns.to_arrow(steps, pa.int64(), stepped),
        columns.categories(codes, [*names]),
        (columns.nan_to_null if null else columns.to_arrow)(points.values, pa.float64()),
    ]
    return pa.Table.from_arrays(arrays, schema=TRAINING_SCHEMA)


def build_tracked(  # noqa: PLR0913 - what a run consists of
    locator: str,
    series: Mapping[Device, "pa.Table"],
    metrics: Mapping[str, Series],
    *,
    name: str,
    quality: Quality,
    throughput: str | None,
    state: object,
    stage: str | None = None,
    last: int = 0,
    size: int | None = None,
    sources: tuple[Source, ...] = (),
    **about: Any,
) -> Tracked:
    """Build a run; `last` is its last record's time, and `about` has other fields of `Run`."""
    order = sorted(series, key=lambda each: (each.index is None, each.node or "", each.index or 0))
    series = {device: series[device] for device in order}
    metrics = {each: points for each, points in metrics.items() if len(points.times)}
    quality, interval, span = measure_times(series.values(), quality)
    if span is None:
        if not metrics and any(entry.reason == NOT_SELECTED for entry in quality.rejected):
            raise SourceError(locator, "it has none of the selected GPUs", "leave out --gpus", code="gpus_not_held")
        if not metrics:
            raise SourceError(locator, "the run has no metrics", "--list shows all runs", code="no_metrics")
        times = join_series(metrics.values()).times
        span = int(times.min()), int(times.max())
    notes, work = [*quality.notes], None
    if named := choose_throughput([*metrics], throughput):
        found = metrics[named.name]
        found = found.taken(np.isfinite(found.values) & (found.values >= 0))
        found = found.taken(np.unique(found.times, return_index=True)[1])
        counted = count_by_rates(found.times, found.values, found.steps.astype(np.float64), span[0])
        if counted and (amount := counted.within(*span)) > 0:
            work = Work(amount=amount, unit=named.unit or named.name)
            how = f"{named.name}, usually {format_number(np.median(found.values))}/s, times the time between its values"
            notes.append(f"Work done: {amount:,.0f} {work.unit} ({how}).")
    if work is None and throughput is not None:
        available = list_first([*metrics], 4) or "none"
        notes.append(f"No training metric {throughput!r} counts work in this run; its metrics are {available}.")
    training = empty_training()
    if metrics:
        points = join_series(metrics.values())
        codes = np.repeat(np.arange(len(metrics)), [len(each.times) for each in metrics.values()])
        rows = np.lexsort((_read_steps(points.steps)[0], points.times))
        if stage:
            rows = rows[(points.times[rows] >= span[0]) & (points.times[rows] <= span[1])]
        training = build_training_table(metrics, codes[rows], points.taken(rows))
    unseen = (last - span[1]) / 1e6
    if unseen > max(3 * (interval or 0.0), 0):
        what = "before the run ended, so nothing is known about that time; the run's stderr may show why"
        notes.append(f"hardware monitoring ended {unseen:.0f} s {what}")
    lines, kept = (count + len(training) for count in (quality.lines, quality.rows_kept))
    about = {"timezone": "UTC", "interval": interval, "work": work, **about}
    about["quality"] = replace(quality, lines=lines, rows_kept=kept, notes=tuple(notes))
    run = Run(id="", name=name, started=span[0], ended=span[1], sources=(), devices=tuple(series), **about)
    held = {device.id: table for device, table in series.items()}
    said = "\n".join([repr(state), *(each.sha256 for each in sources)])
    return Tracked(run=run, series=held, training=training, state=said, size=size, sources=sources)


# logs attached to a run

_OFFSETS = [quarters * 15 * 60 * 1_000_000 for quarters in sorted(range(-14 * 4, 14 * 4 + 1), key=abs)]
_COVERED, _EQUAL = 0.8, 60_000_000
"""Minimum share of a device's time that a log must cover, and microseconds within which times are equal."""


def attach_log(
    name: str, path: Path, tables: dict[Device, "pa.Table"], lasted: tuple[int, int], options: ReadOptions
) -> tuple[Quality, tuple[Source, ...]]:
    """Replace the tables of devices that a log covers. Return the account and sources that it adds to the run."""

    def refuse(why: str) -> tuple[Quality, tuple[Source, ...]]:
        return Quality(notes=(f"{name} is attached to the run but {why}.",)), ()

    try:
        log = Reading([identify_companion(str(path))], options, Labels(name=name)).recording()
    except SourceError as error:
        return refuse(f"cannot be read: {error.what}")
    offset, zone = 0, f"in {log.run.timezone}"
    if log.run.timezone is None:
        starts, ends = zip(*(map(find_span, tables.values()) if tables else [lasted]), strict=True)
        shared = {
            each: shared_time((log.run.started + each, log.run.ended + each), (min(starts), max(ends)))
            for each in _OFFSETS
        }
        fitting = [each for each, time in shared.items() if time > max(max(shared.values()) - _EQUAL, 0)]
        if len(fitting) > 1:
            return refuse("was not used. Give its time zone with --tz")
        hours, minutes = divmod(abs(offset := next(iter(fitting), 0)) // 60_000_000, 60)
        zone = f"read as UTC{'-' if offset > 0 else '+'}{hours:02d}:{minutes:02d}, so that the log fits the run best"
    known, replaced, taken = {device.id: device for device in tables}, 0, list[str]()
    for device in log.run.devices:
        same, rows = known.get(device.id), log.rows_of(device.id)
        times = columns.integers(rows.column("timestamp")) + offset
        start, end = find_span(tables[same]) if same else lasted
        covered = shared_time((int(times[0]), int(times[-1])), (start, end))
        if covered < max(_COVERED * (end - start), 0) or (not same and any(each.node for each in known.values())):
            continue
        own = device
        if same:
            before = tables.pop(same)
            replaced += sum(len(before) - before.column(each).null_count for each in set(before.column_names) - KEYS)
            # add facts that only the tracker has
            names = ("memory_total_bytes", "power_limit_watts", "model")
            own = replace(device, **{each: getattr(device, each) or getattr(same, each) for each in names})
        moved = columns.to_arrow(times, pa.timestamp("us"))
        tables[own] = rows.set_column(rows.column_names.index("timestamp"), "timestamp", moved)
        taken.append(device.id)
    if not taken:
        why = "it covers too little of the run, or the run has several nodes and the file does not name its node"
        return refuse(f"was not used, because {why}")
    used = f"{name} is attached to the run and replaces its series for {', '.join(taken)}; its timestamps are {zone}."
    quality = log.run.quality
    added = replace(
        quality,
        rows_kept=quality.rows_kept - replaced,
        rejected=(*quality.rejected, *list_rejected({BESIDE_A_LOG: replaced})),
        notes=(used, *quality.notes),
        unfinished=False,
    )
    return added, tuple(replace(source, locator=name) for source in log.run.sources)


# reading


class TrackedReading:
    """Provides a tracker's run as a `Reading`; without `sizes`, any run may be stored."""

    sizes: tuple[int, ...] = ()

    def __init__(
        self, chosen: SelectedRuns, info: RunInfo, options: ReadOptions, labels: Labels, *, strict: bool
    ) -> None:
        if options.tz:
            load_zone(options.tz)
        self._kind, self._info, self._options, self._strict = chosen.tracker.kind, info, options, strict
        # a worker process receives only this run, not all runs
        self._record = partial(chosen.tracker.record, chosen.store, info, chosen.selection)
        self.labels, self.file_labels = labels, Labels()
        self.locator = f"{self._kind}:{chosen.store.where}#{info.id}"

    @cached_property
    def _tracked(self) -> Tracked:
        if self._info.fault is not None:
            raise self._info.fault
        tracked = self._record(self._options)
        rejected = [entry for entry in tracked.run.quality.rejected if entry.reason not in CHOSEN]
        if self._strict and rejected:
            what = f"points were rejected: {', '.join(f'{each.rows} {each.reason}{each.at}' for each in rejected)}"
            raise SourceError(self.locator, what, "leave out --strict", code="points_rejected")
        return tracked

    @property
    def sources(self) -> tuple[Source, ...]:
        state = sha256(self._tracked.state.encode()).hexdigest()
        own = Source(kind=self._kind, locator=self.locator, sha256=state, bytes=self._tracked.size)
        return (own, *self._tracked.sources)

    @property
    def run_id(self) -> str:
        return compute_run_id([f"{self._kind} {self._info.key or self._info.id}"], self._options)

    def batches(self) -> Iterator["pa.Table"]:
        yield from self._tracked.series.values()

    def run(self) -> Run:
        run, zone = self._tracked.run, self._options.tz or self._tracked.run.timezone
        sources = tuple(replace(each, locator=name_by_url(each.locator)) for each in self.sources)
        quality = replace(run.quality, notes=tuple(map(name_by_url, run.quality.notes)))
        return self.labels.applied(replace(run, id=self.run_id, timezone=zone, sources=sources, quality=quality))

    def training(self) -> "pa.Table":
        return self._tracked.training

    def columns(self) -> tuple[tuple[str, str], ...]:
        return ()

    recording = Reading.recording
