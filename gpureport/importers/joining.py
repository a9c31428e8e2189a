"""The rows of several logs as those of one run: rotated logs and nodes, logs that add metrics, logs of the machine."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import columns
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
_JOINED, _HELD = "joined", "held"
"""Rows of a companion that were joined to those of the main log, and values that the main log holds as well."""


class JoinedLogs:
    """Several main logs that are one run, read one after the other; rows that stand in two are taken once.

    A device that goes on in a later log is one device. Logs of different nodes, as `find_nodes` tells them apart, name
    every device by its node.

    Attributes:
        names: for each log the ids in the run by those in the log.
    """

    def __init__(self, logs: Sequence[Log], tz: str | None) -> None:
        """Name the devices.

        Raises:
            SourceError: when times cannot be compared, or a log of the machine shares no time with the others.
        """
        check_time_bases([log.given for log in logs], [log.outcome for log in logs], tz)
        mains = [log for log in logs if not log.given.beside]
        self._span = min(log.span[0] for log in mains), max(log.span[1] for log in mains)
        for log in logs:
            if shared_time(log.span, self._span) < 0:
                what = "it covers another time than the GPU logs"
                hint = "check its clock, give --tz, or leave it out"
                raise SourceError(log.given.locator, what, hint, code="no_shared_time")
        self._logs, (nodes, self._notes) = logs, find_nodes(logs)
        self._known: dict[str, Device] = {}
        self._held: dict[str, dict[int, Span]] = {}
        self._intervals: dict[str, float] = {}
        self._twice = 0
        self.names: list[dict[str, str]] = [{} for _ in logs]
        self._order = sorted(range(len(logs)), key=lambda place: min(start for start, _ in logs[place].spans.values()))
        for place in self._order:
            log, names = logs[place], self.names[place]
            for device in (device for device in log.outcome.devices if device.id in log.spans):
                named = name_device(device, nodes[place], self._known, taken=names.values())
                names[device.id] = name = named.id
                self._known[name] = merge_devices(self._known.get(name, named), named)
                self._held.setdefault(name, {})[place] = log.spans[device.id]
                if device.id in log.outcome.intervals:
                    self._intervals.setdefault(name, log.outcome.intervals[device.id])

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows of each device of one log after the other."""
        kept: dict[str, npt.NDArray[np.uint64]] = {}
        for place in self._order:
            for device, table in self._logs[place].take().items():
                name, rows = self.names[place][device], table
                spans, turn = [*self._held[name].values()], [*self._held[name]].index(place)
                is_asked = any(spans[turn][0] <= end for _, end in spans[:turn])
                is_kept = any(start <= spans[turn][1] for start, _ in spans[turn + 1 :])
                known = kept.get(name, np.zeros(0, dtype=np.uint64))
                keys = hash_rows(table) if is_asked or is_kept else known
                if is_kept:
                    kept[name] = np.concatenate([known, keys])
                if is_asked and (repeated := np.isin(keys, known)).any():
                    self._twice += int(repeated.sum())
                    rows = table.filter(columns.to_arrow(~repeated, pa.bool_()))
                if len(rows):
                    yield sort_by_time(rows, name)

    def outcome(self) -> Outcome:
        """Return what is known of the run, after the last batch."""
        mains = [log.outcome for log in self._logs if not log.given.beside]
        return Outcome(
            devices=tuple(self._known.values()),
            quality=self._merge_accounts(),
            span=self._span,
            intervals=self._intervals,
            columns=tuple(dict.fromkeys(column for log in self._logs for column in log.outcome.columns)),
            timezone=mains[0].timezone if len({each.timezone for each in mains}) == 1 else None,
            tags=merge_pairs(each.tags for each in mains),
        )

    def _merge_accounts(self) -> Quality:
        """Return the account of all logs: what one missed and another holds is no gap, and no row counts twice."""
        accounts = [_rename_account(log, names) for log, names in zip(self._logs, self.names, strict=True)]
        whole = merge_quality([accounts[place] for place in self._order])
        gaps = [gap for name in sorted(self._held) for gap in self._find_gaps(name, accounts)]
        starts = [min(start for start, _ in held.values()) for held in self._held.values()]
        ends = [max(end for _, end in held.values()) for held in self._held.values()]
        length = (max(ends) - min(starts)) * len(ends)
        sampled = sum(ends) - sum(starts) - sum(gap.end - gap.start for gap in gaps)
        rejected: dict[str, Rejected] = {}
        for entry in (*whole.rejected, Rejected(reason=TWICE, rows=self._twice, first_line=None)):
            first = rejected.get(entry.reason, replace(entry, rows=0))
            rejected[entry.reason] = replace(first, rows=first.rows + entry.rows)
        absent = Counter[tuple[str, str]]()
        for cells in whole.absent_cells:
            absent[cells.column, cells.reason] += cells.cells
        return replace(
            whole,
            rows_kept=whole.rows_kept - self._twice,
            rejected=tuple(entry for entry in rejected.values() if entry.rows),
            absent_cells=tuple(AbsentCells(column=c, reason=r, cells=n) for (c, r), n in sorted(absent.items())),
            gaps=tuple(gaps),
            coverage_ratio=sampled / length if length else None,
            notes=(*self._notes, *whole.notes),
        )

    def _find_gaps(self, device: str, accounts: Sequence[Quality]) -> Iterator[LogGap]:
        """Yield the stretches in which no log of a device has a sample: gaps of one, or between two."""
        pieces: list[Span] = []
        stated: set[Span] = set()
        for place, (start, end) in self._held[device].items():
            own = sorted((gap.start, gap.end) for gap in accounts[place].gaps if gap.device == device)
            stated.update(own)
            bounds = [start, *(moment for gap in own for moment in gap), end]
            pieces += zip(bounds[::2], bounds[1::2], strict=True)
        limit = gap_seconds(self._intervals.get(device, _FINEST)) * 1e6
        ended = min(pieces)[0]
        for start, end in sorted(pieces):
            if start - ended > limit or (ended, start) in stated:
                yield LogGap(device=device, start=ended, end=start)
            ended = max(ended, end)


def _rename_account(log: Log, names: dict[str, str]) -> Quality:
    """Return the account of a log with the names of its devices in the run, without those that are not among them."""
    account = log.outcome.quality
    return replace(
        account,
        gaps=tuple(replace(each, device=names[each.device]) for each in account.gaps if each.device in names),
        clock_steps=tuple(
            replace(each, device=names[each.device]) for each in account.clock_steps if each.device in names
        ),
        log_events=tuple(
            replace(each, device=names.get(each.device or "", each.device)) for each in account.log_events
        ),
        notes=tuple(f"{log.given.locator}: {note}" for note in (*account.notes, *log.file.account.notes())),
    )


def join_companions(
    tables: Tables, outcome: Outcome, companions: Sequence[tuple[Log, str, Collection[str]]], *, has_host: bool
) -> tuple[Outcome, list[Outcome]]:
    """Join logs that add metrics to the rows of a run, as dmon or pmon beside a query, or further GPUs.

    The rows of the main logs in `tables` are completed. A companion stands with what a person calls its main log, and
    the ids in the run of the devices of that. Returned is what is known of the main logs, with what the others say of
    their devices, and of each log that was joined.
    """
    known, rates, joined = {device.id: device for device in outcome.devices}, dict(outcome.intervals), []
    for log, main, own in companions:
        node = next((each.node for each in known.values() if each.id in own and each.scope is Scope.GPU), None)
        # it calls GPUs by their numbers alone, whatever node they belong to
        here = {f"gpu:{each.index}": each for each in known.values() if each.node == node and each.scope is Scope.GPU}
        bare = [replace(device, id=name) for name, device in here.items()]
        pairs = {other.id: here[one.id].id for one, other in match_devices(bare, log.gpus)}
        added: dict[str, Device] = {}
        account: Counter[str] = Counter()
        metrics: set[str] = set()
        for device in (device for device in log.outcome.devices if device.id in log.spans):
            rows, rate = log.tables[device.id], log.outcome.intervals.get(device.id, 1.0)
            if (name := pairs.get(device.id)) is not None:
                known[name] = merge_devices(known[name], replace(device, id=name, node=node))
                tables[name] = _join_columns(tables[name], rows, (rates.get(name, 1.0), rate), account, metrics)
            elif device.scope is Scope.HOST and (has_host or HOST in tables):
                account[SECOND_HOST] += len(rows)
            else:
                named = name_device(device, node, known, taken=list(known))
                added[device.id] = known[named.id] = named
                tables[named.id], rates[named.id] = sort_by_time(rows, named.id), rate
        joined.append(_describe_companion(log, added, account, main, len(metrics)))
    return replace(outcome, devices=tuple(known[device.id] for device in outcome.devices)), joined


def _describe_companion(log: Log, added: dict[str, Device], account: Counter[str], main: str, metrics: int) -> Outcome:
    """Return what is known of a log that was joined: the devices it added, and what became of its rows."""
    names = {own: device.id for own, device in added.items()}
    notes = [*log.outcome.quality.notes, *log.file.account.notes()]
    rows, held = account.pop(_JOINED, 0), account.pop(_HELD, 0)
    if rows:
        said = f"{rows:,} readings joined by time to rows of {main}"
        if not log.given.beside:
            counted = f"{metrics} metric{'' if metrics == 1 else 's'}"
            also = f"; {held:,} values not used, because {main} holds those metrics" if held else ""
            said = f"{rows:,} rows joined by time to those of {main}, adding {counted}{also}"
        notes.append(f"{log.given.locator}: {said}.")
    quality = _rename_account(log, names)
    left = (Rejected(reason=reason, rows=n, first_line=None) for reason, n in account.items() if n)
    quality = replace(
        quality,
        rows_kept=quality.rows_kept - rows - account.total(),
        continued=quality.continued + rows,
        rejected=(*quality.rejected, *left),
        duplicates=quality.duplicates if added else 0,
        notes=tuple(notes),
    )
    intervals = {names[own]: rate for own, rate in log.outcome.intervals.items() if own in names}
    return replace(log.outcome, devices=tuple(added.values()), intervals=intervals, quality=quality)


def _join_columns(  # noqa: PLR0913 - two tables, how they are joined, and what is counted
    whole: pa.Table,
    rows: pa.Table,
    rates: tuple[float, float],
    account: Counter[str],
    metrics: set[str],
    *,
    covering: bool = False,
) -> pa.Table:
    """Return rows of a device with the metrics of a companion that they lack.

    A row gets the reading that lies nearest in time, at most an interval of the companion away. Where several readings
    lie nearest to one row, shares and rates are their mean. Of a coarser log of means, `covering`, it gets the reading
    that covers the middle of the time that the row covers.
    """
    every = [max(round(rate * 1e6), 1) for rate in rates]
    times, others = (columns.integers(table.column("timestamp")) for table in (whole, rows))
    nearest, distance = find_nearest(others, times)
    near = distance <= max(every)
    source, far = find_nearest(times, others)
    is_known = far <= every[1]
    if covering:
        middles = times - every[0] // 2
        source = np.minimum(np.searchsorted(others, middles), len(others) - 1)
        is_known = (others[source] >= middles) & (others[source] - middles <= _COVERS * every[1])
        near = np.isin(np.arange(len(others)), source[is_known])
    account.update({_JOINED: int(near.sum()), NO_MAIN_ROW: int((~near).sum())})
    picks: Any = pa.array(source, mask=~is_known)
    for name in rows.column_names:
        column = rows.column(name)
        if name in KEYS or column.null_count == len(rows):
            continue
        if name in whole.column_names:
            if whole.column(name).null_count < len(whole):
                account[_HELD] += len(rows) - column.null_count
                continue
            whole = whole.drop_columns([name])
        metrics.add(name)
        values: Any = column.take(picks)
        metric = BY_NAME.get(name)
        if not covering and pa.types.is_floating(values.type) and metric and metric.kind is MetricKind.GAUGE:
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
    log is coarser its readings so stand in several rows. Readings that cover no row are counted and left out.

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
    rates = [log.outcome.intervals.get(HOST, 0.0) or 1.0 for log in logs]
    base = min(range(len(logs)), key=lambda place: (rates[place], -len(tables[place])))
    whole, outcomes = tables[base], [log.outcome for log in logs]
    for place in (place for place in range(len(logs)) if place != base):
        account: Counter[str] = Counter()
        whole = _join_columns(whole, tables[place], (rates[base], rates[place]), account, set(), covering=True)
        outcomes[place] = _describe_companion(logs[place], {}, account, logs[base].given.locator, 0)
    return whole, outcomes
