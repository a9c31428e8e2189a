"""The rows of several logs as those of one run: rotated logs and nodes, logs that add metrics, logs of the machine."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import AbsentCells, LogGap, Quality, Rejected, gap_seconds, merge_quality
from gpureport.errors import SourceError
from gpureport.importers.nodes import find_nodes, match_devices, merge_devices, name_device
from gpureport.importers.protocol.importer import Outcome
from gpureport.importers.protocol.reject_reasons import NO_MAIN_ROW, SECOND_HOST, TWICE
from gpureport.importers.surveys import KEYS, Log, Span, Tables, check_time_bases, find_nearest, hash_rows, shared_time
from gpureport.label_tags import merge_pairs
from gpureport.metrics import BY_NAME, MetricKind, Scope
from gpureport.recording import HOST, Device
from gpureport.series_table import sort_by_time

_FINEST = 1e-3
_COVERS = 1.25
"""Intervals before its time stamp that a reading of the machine covers at most."""


class JoinedLogs:
    """Several main logs that are one run, read one after the other.

    A GPU is told by its uuid, else its PCI address, its serial number or its id. A device that goes on in a later log
    is one device. Where two logs hold an id at the same time, and neither a uuid or serial number nor what they say of
    that time tells that it is one GPU, the logs are those of different nodes, and every device is named by its node.
    Rows that stand in two logs are taken once.

    Attributes:
        names: for each log the ids in the run by those in the log.
    """

    def __init__(self, logs: Sequence[Log], tz: str | None) -> None:
        """Name the devices.

        Raises:
            SourceError: when times cannot be compared, or a log of the machine shares no time with the others.
        """
        check_time_bases([log.given for log in logs], [log.outcome for log in logs], tz)
        spans = [log.span for log in logs if not log.given.beside]
        self._span = min(start for start, _ in spans), max(end for _, end in spans)
        for log in logs:
            if shared_time(log.span, self._span) < 0:
                what = "it covers another time than the GPU logs"
                hint = "check its clock, give --tz, or leave it out"
                raise SourceError(log.given.locator, what, hint, code="no_shared_time")
        self._logs = logs
        self._order = sorted(range(len(logs)), key=lambda place: min(start for start, _ in logs[place].spans.values()))
        nodes, self._notes = find_nodes(logs)
        self._known: dict[str, Device] = {}
        self._intervals: dict[str, float] = {}
        self._twice: Counter[int] = Counter()
        self.names: list[dict[str, str]] = [{} for _ in logs]
        for place in self._order:
            log, names = logs[place], self.names[place]
            for device in (device for device in log.outcome.devices if device.id in log.spans):
                named = name_device(device, nodes[place], self._known, taken=names.values())
                same = self._known.get(named.id)
                self._known[named.id] = named if same is None else merge_devices(same, named)
                names[device.id] = named.id
                if (interval := log.outcome.intervals.get(device.id)) is not None:
                    self._intervals.setdefault(named.id, interval)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows of each device of one log after the other."""
        kept: dict[str, npt.NDArray[np.uint64]] = {}
        for turn, place in enumerate(self._order):
            for device, table in self._logs[place].take().items():
                name, (start, end) = self.names[place][device], self._logs[place].spans[device]
                is_asked = any(start <= span[1] for span in self._spans(name, self._order[:turn]))
                is_kept = any(span[0] <= end for span in self._spans(name, self._order[turn + 1 :]))
                known = kept.get(name, np.zeros(0, dtype=np.uint64))
                keys = hash_rows(table) if is_asked or is_kept else known
                if is_kept:
                    kept[name] = np.concatenate([known, keys])
                if is_asked and (repeated := np.isin(keys, known)).any():
                    self._twice[place] += int(repeated.sum())
                    table = table.filter(columns.to_arrow(~repeated, pa.bool_()))  # noqa: PLW2901 - what is left of it
                if len(table):
                    yield sort_by_time(table, name)

    def _spans(self, name: str, places: Sequence[int]) -> Iterator[Span]:
        """Yield when logs hold a device of the run."""
        for place in places:
            yield from (self._logs[place].spans[own] for own, called in self.names[place].items() if called == name)

    def outcome(self) -> Outcome:
        """Return what is known of the run, after the last batch."""
        outcomes = [log.outcome for log in self._logs]
        zones = {log.outcome.timezone for log in self._logs if not log.given.beside}
        return Outcome(
            devices=tuple(self._known.values()),
            quality=self._merge_accounts(),
            span=self._span,
            intervals=self._intervals,
            columns=tuple(dict.fromkeys(column for outcome in outcomes for column in outcome.columns)),
            timezone=zones.pop() if len(zones) == 1 else None,
            tags=merge_pairs(log.outcome.tags for log in self._logs if not log.given.beside),
        )

    def _merge_accounts(self) -> Quality:
        """Return the account of all logs: what one missed and another holds is no gap, and no row counts twice."""
        accounts = [_rename_account(self._logs[place], self.names[place]) for place in self._order]
        pieces: dict[str, list[Span]] = {}
        for place, account in zip(self._order, accounts, strict=True):
            for own, name in self.names[place].items():
                start, end = self._logs[place].spans[own]
                gaps = sorted((gap.start, gap.end) for gap in account.gaps if gap.device == name)
                bounds = [start, *(moment for gap in gaps for moment in gap), end]
                pieces.setdefault(name, []).extend(zip(bounds[::2], bounds[1::2], strict=True))
        whole = merge_quality(accounts)
        stated = {(gap.device, gap.start, gap.end) for gap in whole.gaps}
        missed = [
            gap
            for device, sampled in sorted(pieces.items())
            for gap in _find_gaps(device, sampled, gap_seconds(self._intervals.get(device, _FINEST)) * 1e6, stated)
        ]
        starts = [min(start for start, _ in sampled) for sampled in pieces.values()]
        ends = [max(end for _, end in sampled) for sampled in pieces.values()]
        length = (max(ends) - min(starts)) * len(ends)
        covered = sum(ends) - sum(starts) - sum(gap.end - gap.start for gap in missed)
        rejected: dict[str, Rejected] = {}
        twice = Rejected(reason=TWICE, rows=self._twice.total(), first_line=None)
        for entry in (*whole.rejected, *([twice] if twice.rows else ())):
            first = rejected.get(entry.reason, replace(entry, rows=0))
            rejected[entry.reason] = replace(first, rows=first.rows + entry.rows)
        absent = Counter[tuple[str, str]]()
        for cells in whole.absent_cells:
            absent[cells.column, cells.reason] += cells.cells
        return replace(
            whole,
            rows_kept=whole.rows_kept - twice.rows,
            rejected=tuple(rejected.values()),
            absent_cells=tuple(AbsentCells(column=c, reason=r, cells=n) for (c, r), n in sorted(absent.items())),
            gaps=tuple(missed),
            coverage_ratio=covered / length if length else None,
            notes=(*self._notes, *whole.notes),
        )


def _rename_account(log: Log, names: dict[str, str]) -> Quality:
    """Return the account of a log with the names of its devices in the run, without those that are not among them."""
    account = log.outcome.quality
    return replace(
        account,
        gaps=tuple(replace(gap, device=names[gap.device]) for gap in account.gaps if gap.device in names),
        clock_steps=tuple(
            replace(step, device=names[step.device]) for step in account.clock_steps if step.device in names
        ),
        log_events=tuple(
            replace(event, device=names.get(event.device or "", event.device)) for event in account.log_events
        ),
        notes=tuple(f"{log.given.locator}: {note}" for note in (*account.notes, *log.file.account.notes())),
    )


def _find_gaps(device: str, sampled: Sequence[Span], limit: float, stated: Collection[object]) -> Iterator[LogGap]:
    """Yield the stretches in which no log of a device has a sample.

    Args:
        device: the device.
        sampled: the stretches without a gap of each log.
        limit: time between two logs above which it is a gap, in microseconds.
        stated: device, start and end of the gaps that a log has by itself.
    """
    ended: int | None = None
    for start, end in sorted(sampled):
        if ended is not None and start > ended and (start - ended > limit or (device, ended, start) in stated):
            yield LogGap(device=device, start=ended, end=start)
        ended = end if ended is None else max(ended, end)


def join_companions(
    tables: Tables, outcome: Outcome, companions: Sequence[tuple[Log, str, Collection[str]]], *, has_host: bool
) -> tuple[Outcome, list[Outcome]]:
    """Join logs that add metrics to the rows of a run, as dmon or pmon beside a query, or further GPUs.

    A row of the main log gets the reading of its GPU that lies nearest in time, at most an interval of the companion
    away. Where several readings lie nearest to one row, shares and rates are their mean. A metric that the main log
    holds for a GPU stays as it is.

    Args:
        tables: the rows of the main logs by device, which are completed.
        outcome: what is known of the main logs.
        companions: each log, what a person calls its main log, and the ids in the run of the devices of that.
        has_host: whether the run has a host log.

    Returns:
        What is known of the main logs, with what the others say of their devices, and of each log that was joined.
    """
    known, rates = {device.id: device for device in outcome.devices}, dict(outcome.intervals)
    joined = []
    for log, main, own in companions:
        node = next((each.node for each in known.values() if each.id in own and each.scope is Scope.GPU), None)
        # it calls GPUs by their numbers alone, whatever node they belong to
        here = {f"gpu:{device.index}": device for device in known.values() if device.node == node}
        bare = [replace(device, id=name) for name, device in here.items() if device.scope is Scope.GPU]
        pairs = {other.id: here[one.id] for one, other in match_devices(bare, log.gpus)}
        names: dict[str, Device] = {}
        account: Counter[str] = Counter()
        added: set[str] = set()
        for device in (device for device in log.outcome.devices if device.id in log.tables):
            rows, rate = log.tables[device.id], log.outcome.intervals.get(device.id, 1.0)
            if device.id in pairs:
                name = pairs[device.id].id
                known[name] = merge_devices(known[name], replace(device, id=name, node=node))
                tables[name] = _join_columns(tables[name], rows, (rates.get(name, 1.0), rate), account, added)
            elif device.scope is Scope.HOST and (has_host or HOST in tables):
                account[SECOND_HOST] += len(rows)
            else:
                named = name_device(device, node, known, taken=list(known))
                names[device.id] = known[named.id] = named
                tables[named.id], rates[named.id] = sort_by_time(rows, named.id), rate
        joined.append(_describe_companion(log, names, account, main, len(added)))
    return replace(outcome, devices=tuple(known[device.id] for device in outcome.devices)), joined


_JOINED, _HELD = "joined", "held"
"""Rows that were joined to those of the main log, and values that the main log holds as well."""


def _describe_companion(log: Log, names: dict[str, Device], account: Counter[str], main: str, metrics: int) -> Outcome:
    """Return what is known of a log that was joined, its own devices called as in the run."""
    ids = {own: device.id for own, device in names.items()}
    quality = _rename_account(log, ids)
    notes = [*log.outcome.quality.notes, *log.file.account.notes()]
    rows, held = account.pop(_JOINED, 0), account.pop(_HELD, 0)
    if rows:
        counted = f"{metrics} metric{'' if metrics == 1 else 's'}"
        also = f"; {held:,} values not used, because {main} holds those metrics" if held else ""
        notes.append(f"{log.given.locator}: {rows:,} rows joined by time to those of {main}, adding {counted}{also}.")
    left = tuple(Rejected(reason=reason, rows=n, first_line=None) for reason, n in account.items() if n)
    quality = replace(
        quality,
        rows_kept=quality.rows_kept - rows - account.total(),
        continued=quality.continued + rows,
        rejected=(*quality.rejected, *left),
        duplicates=quality.duplicates if names else 0,
        notes=tuple(notes),
    )
    intervals = {ids[device]: rate for device, rate in log.outcome.intervals.items() if device in ids}
    return replace(log.outcome, devices=tuple(names.values()), intervals=intervals, quality=quality)


def _join_columns(
    whole: pa.Table, rows: pa.Table, rates: tuple[float, float], account: Counter[str], added: set[str]
) -> pa.Table:
    """Return rows of a GPU with the metrics of a companion that they lack."""
    every = [max(round(rate * 1e6), 1) for rate in rates]
    times, others = (columns.integers(table.column("timestamp")) for table in (whole, rows))
    nearest, distance = find_nearest(others, times)
    near = distance <= max(every)
    account[_JOINED] += int(near.sum())
    account[NO_MAIN_ROW] += int((~near).sum())
    source, far = find_nearest(times, others)
    picks: Any = pa.array(source, mask=far > every[1])
    for name in rows.column_names:
        column = rows.column(name)
        if name in KEYS or column.null_count == len(rows):
            continue
        if name in whole.column_names:
            if whole.column(name).null_count < len(whole):
                account[_HELD] += len(rows) - column.null_count
                continue
            whole = whole.drop_columns([name])
        added.add(name)
        values: Any = column.take(picks)
        metric = BY_NAME.get(name)
        if pa.types.is_floating(values.type) and metric is not None and metric.kind is MetricKind.GAUGE:
            # of counters and states the mean says nothing
            read = columns.floats(column)
            known = near & ~np.isnan(read)
            counts = np.bincount(nearest[known], minlength=len(whole))
            means = np.bincount(nearest[known], read[known], len(whole)) / np.maximum(counts, 1)
            values = columns.nan_to_null(np.where(counts > 1, means, columns.floats(values)), values.type)
        whole = whole.append_column(pa.field(name, values.type), values)
    return whole


def join_hosts(logs: Sequence[Log]) -> tuple[pa.Table, list[Outcome]]:
    """Return several logs of one machine as one series, and what is known of each.

    A row of the finest log gets the reading of another one that covers the middle of the time it covers itself. Where a
    log is coarser its readings so stand in several rows. Readings that cover no row become rows of their own.

    Raises:
        SourceError: when two hold the same column.
    """
    tables = [log.tables[HOST] for log in logs]
    held: dict[str, Log] = {}
    for log, table in zip(logs, tables, strict=True):
        if twice := [name for name in table.column_names if name in held]:
            names = f"{held[twice[0]].given.locator}, {log.given.locator}"
            what = f"several host logs for one run hold {twice[0]}"
            raise SourceError(names, what, "give one, or join them before", code="metric_in_two_logs")
        held |= dict.fromkeys(set(table.column_names) - KEYS, log)
    # what a single reading covers is a second
    every = [round(log.outcome.intervals.get(HOST, 1.0) * 1e6) or 1_000_000 for log in logs]
    base = min(range(len(logs)), key=lambda place: (every[place], -len(tables[place])))
    whole, outcomes = tables[base], [log.outcome for log in logs]
    for place, (log, table) in enumerate(zip(logs, tables, strict=True)):
        if place == base:
            continue
        times, others = (columns.integers(each.column("timestamp")) for each in (whole, table))
        rows, known = _find_covering(times - every[base] // 2, others, every[place])
        picks: Any = pa.array(rows, mask=~known)
        taken = table.take(picks)
        for name in (name for name in table.column_names if name not in KEYS):
            whole = whole.append_column(name, taken.column(name))
        used = np.zeros(len(others), dtype=np.bool_)
        used[rows[known]] = True
        if not used.all():
            own = table.filter(columns.to_arrow(~used, pa.bool_()))
            whole = sort_by_time(pa.concat_tables([whole, own], promote_options="default"))
        quality, count = log.outcome.quality, int((~used).sum())
        note = f"{log.given.locator}: {int(used.sum())} readings joined by time to rows of {logs[base].given.locator}."
        outcomes[place] = replace(
            log.outcome,
            devices=(),
            quality=replace(
                quality,
                rows_kept=count,
                continued=quality.continued + quality.rows_kept - count,
                gaps=(),
                notes=(*quality.notes, note),
            ),
        )
    return whole, outcomes


def _find_covering(middles: IntArray, stamps: IntArray, every: int) -> tuple[IntArray, BoolArray]:
    """Return for each time the reading that covers it, and where there is one."""
    rows = np.searchsorted(stamps, middles)
    inside = np.minimum(rows, len(stamps) - 1)
    known: BoolArray = (rows < len(stamps)) & (stamps[inside] - middles <= _COVERS * every)
    return inside, known
