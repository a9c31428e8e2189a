"""GPU logs that add metrics to the rows of a run's main log, as dmon or pmon beside a query, or further GPUs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import Quality, Rejected
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.merging.device_plan import merge_devices
from gpureport.importers.merging.log_groups import match_devices
from gpureport.importers.merging.log_survey import KEYS, read_devices
from gpureport.importers.protocol.importer import Extraction, Input, Outcome, ReadOptions
from gpureport.importers.protocol.reject_reasons import NO_MAIN_ROW, SECOND_HOST
from gpureport.metrics import BY_NAME, MetricKind, Scope
from gpureport.recording import HOST, Device

Tables = dict[str, pa.Table]


@dataclass(slots=True)
class _Companion:
    """One log while it is joined, with what became of its rows and values.

    Attributes:
        given: the log.
        file: its bytes.
        extraction: its reader; None before it is read.
        added: metrics that it gave to rows of the main log.
        held: values that the main log holds as well.
        joined: rows that became part of rows of the main log.
        rejected: rows that were left out, by reason.
        devices: GPUs that no other log has, as they are called in the run.
        own: the ids of these in the run, by those of the log.
    """

    given: Input
    file: RawFile
    extraction: Extraction | None = None
    added: dict[str, None] = field(default_factory=dict)
    held: int = 0
    joined: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    devices: list[Device] = field(default_factory=list)
    own: dict[str, str] = field(default_factory=dict)


class CompanionLogs:
    """The companions of a run's main logs being read.

    A row of the main log gets the reading of its GPU that lies nearest in time, at most an interval of the companion
    away. Where several readings lie nearest to one row, shares and rates are their mean. A metric that the main log
    holds for a GPU stays as it is.
    """

    def __init__(self, inputs: Sequence[Input], options: ReadOptions) -> None:
        self._companions = [_Companion(given, RawFile(given.path)) for given in inputs]
        self._options = options
        self._known: dict[str, Device] = {}
        self._host_logged = False

    @property
    def files(self) -> list[RawFile]:
        """The bytes of each."""
        return [each.file for each in self._companions]

    @property
    def inputs(self) -> list[Input]:
        """The logs as given."""
        return [each.given for each in self._companions]

    def joined(
        self,
        base: Iterator[pa.Table],
        outcome: Callable[[], Outcome],
        read: Callable[[Extraction, str], Iterator[pa.Table]],
        gpus_of: Callable[[int], Sequence[Device]],
        own_host: bool,
    ) -> Iterator[pa.Table]:
        """Yield the series of the main logs with those of the companions.

        Args:
            base: batches of the main logs.
            outcome: tells what is known of them after the last batch.
            read: reads a companion.
            gpus_of: the GPUs of a main log by its place, as they are called in the run.
            own_host: whether the run has a host log.
        """
        tables = read_devices(base)
        found = outcome()
        self._known = {device.id: device for device in found.devices}
        rates = dict(found.intervals)
        self._host_logged = own_host
        for each in self._companions:
            each.extraction = each.given.importer.extract(each.file, self._options)
            own = read_devices(read(each.extraction, each.given.locator))
            self._join(each, own, tables, rates, gpus_of(each.given.companion_of or 0))
        yield from tables.values()

    def _join(
        self, each: _Companion, own: Tables, tables: Tables, rates: dict[str, float], main: Sequence[Device]
    ) -> None:
        """Put the rows of one companion into the tables of the run."""
        if each.extraction is None:
            return
        outcome = each.extraction.outcome()
        node = main[0].node if main else None
        gpus = [device for device in outcome.devices if device.scope is Scope.GPU]
        # a companion calls GPUs by their numbers alone, whatever node they belong to
        here = {f"gpu:{device.index}": device for device in self._known.values() if device.node == node}
        bare = [replace(device, id=name) for name, device in here.items() if device.scope is Scope.GPU]
        pairs = {other.id: here[one.id] for one, other in match_devices(bare, gpus)}
        for device in outcome.devices:
            rows = own.get(device.id)
            if rows is None:
                continue
            if device.id in pairs:
                name = pairs[device.id].id
                self._known[name] = merge_devices(self._known[name], replace(device, id=name, node=node))
                rate = outcome.intervals.get(device.id, 1.0)
                tables[name] = self._join_columns(each, tables[name], rows, (rates.get(name, 1.0), rate))
            elif device.scope is Scope.HOST and (self._host_logged or HOST in tables):
                _count(each.rejected, SECOND_HOST, len(rows))
            else:
                named = self._add_device(each, device, node)
                tables[named] = _rename(rows, named)
                rates[named] = outcome.intervals.get(device.id, 1.0)

    def _add_device(self, each: _Companion, device: Device, node: str | None) -> str:
        """Return the id in the run of a device that no log before has."""
        index, taken = device.index, {known.index for known in self._known.values() if known.node == node}
        if index is not None and index in taken:
            index = next(free for free in range(len(taken) + 1) if free not in taken)
        own = device.id if index is None else f"gpu:{index}"
        name = own if node is None else f"{node}/{own}"
        self._known[name] = replace(device, id=name, index=index, node=node)
        each.devices.append(self._known[name])
        each.own[device.id] = name
        return name

    def _join_columns(self, each: _Companion, whole: pa.Table, rows: pa.Table, rates: tuple[float, float]) -> pa.Table:
        """Return rows of a GPU with the metrics of the companion that they lack."""
        every = [max(round(rate * 1e6), 1) for rate in rates]
        times, others = (columns.integers(table.column("timestamp")) for table in (whole, rows))
        nearest, distance = _find_nearest(others, times)
        near = distance <= max(every)
        each.joined += int(near.sum())
        _count(each.rejected, NO_MAIN_ROW, int((~near).sum()))
        source, far = _find_nearest(times, others)
        picks: Any = pa.array(source, mask=far > every[1])
        for name in rows.column_names:
            if name in KEYS or rows.column(name).null_count == len(rows):
                continue
            if name in whole.column_names and whole.column(name).null_count < len(whole):
                each.held += len(rows) - rows.column(name).null_count
                continue
            each.added[name] = None
            values: Any = rows.column(name).take(picks)
            if _is_averaged(name, values.type):
                values = _average(values, columns.floats(rows.column(name)), nearest, near)
            if name in whole.column_names:
                whole = whole.drop_columns([name])
            whole = whole.append_column(pa.field(name, values.type), values)
        return whole

    def devices(self, outcome: Outcome) -> tuple[Device, ...]:
        """Return the devices of the main logs, with what the companions say of them."""
        return tuple(self._known.get(device.id, device) for device in outcome.devices)

    def outcomes(self, mains: Sequence[Input]) -> list[Outcome]:
        """Return what is known of each companion, after the last batch; `mains` are the logs they are joined to."""
        return [
            self._outcome(each, mains[each.given.companion_of or 0].locator)
            for each in self._companions
            if each.extraction is not None
        ]

    def _outcome(self, each: _Companion, main: str) -> Outcome:
        outcome = each.extraction.outcome() if each.extraction else Outcome(devices=(), quality=Quality(), span=(0, 0))
        quality, names = outcome.quality, each.own
        left = tuple(Rejected(reason=reason, rows=n, first_line=None) for reason, n in each.rejected.items() if n)
        account = replace(
            quality,
            rows_kept=quality.rows_kept - each.joined - sum(each.rejected.values()),
            continued=quality.continued + each.joined,
            rejected=(*quality.rejected, *left),
            duplicates=quality.duplicates if names else 0,
            gaps=tuple(replace(gap, device=names[gap.device]) for gap in quality.gaps if gap.device in names),
            clock_steps=tuple(
                replace(step, device=names[step.device]) for step in quality.clock_steps if step.device in names
            ),
            notes=(*quality.notes, *each.file.account.notes(), *_describe(each, main)),
        )
        intervals = {names[device]: rate for device, rate in outcome.intervals.items() if device in names}
        return replace(outcome, devices=tuple(each.devices), intervals=intervals, quality=account)


def _describe(each: _Companion, main: str) -> Iterator[str]:
    """Yield what became of the rows and values of a companion."""
    if each.joined:
        metrics = f"{len(each.added)} metric{'' if len(each.added) == 1 else 's'}"
        values = f"; {each.held:,} values not used, because {main} holds those metrics" if each.held else ""
        yield f"{each.given.locator}: {each.joined:,} rows joined by time to those of {main}, adding {metrics}{values}."


def _find_nearest(times: IntArray, stamps: IntArray) -> tuple[IntArray, IntArray]:
    """Return for each time the place of the nearest stamp, the earlier of two, and how far away it is."""
    after = np.clip(np.searchsorted(stamps, times), 0, len(stamps) - 1)
    before = np.maximum(after - 1, 0)
    place = np.where(np.abs(stamps[before] - times) <= np.abs(stamps[after] - times), before, after)
    return place, np.abs(stamps[place] - times)


def _is_averaged(name: str, kind: pa.DataType) -> bool:
    """Return whether the mean of several readings says what one says: not of counters and states."""
    metric = BY_NAME.get(name)
    return pa.types.is_floating(kind) and metric is not None and metric.kind is MetricKind.GAUGE


def _average(
    picked: "pa.ChunkedArray[Any]", values: columns.FloatArray, places: IntArray, near: BoolArray
) -> "pa.Array[Any]":
    """Return picked values, or the mean where several readings lie nearest to a row."""
    known = near & ~np.isnan(values)
    counts = np.bincount(places[known], minlength=len(picked))
    sums = np.bincount(places[known], weights=values[known], minlength=len(picked))
    several = counts > 1
    merged = np.where(several, sums / np.maximum(counts, 1), columns.floats(picked))
    return columns.nan_to_null(merged, picked.type)


def _rename(rows: pa.Table, name: str) -> pa.Table:
    place = rows.column_names.index("device")
    return rows.set_column(place, rows.schema.field(place), pa.chunked_array([columns.category(name, len(rows))]))


def _count(counts: dict[str, int], reason: str, rows: int) -> None:
    counts[reason] = counts.get(reason, 0) + rows
