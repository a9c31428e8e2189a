"""The rows of several logs as those of one run: rotated logs and nodes, logs that add metrics, logs of the machine."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import AbsentCells, LogGap, Quality, Rejected, gap_seconds, merge_quality
from gpureport.errors import SourceError
from gpureport.importers.grouping import find_nodes, match_devices, merge_devices, name_device
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


def join_logs(logs: Sequence[Log], tz: str | None) -> tuple[Tables, Outcome, list[dict[str, str]]]:
    """Return the rows by device of several main logs that are one run, what is known of it, and names of devices.

    A GPU is told by its uuid, else its PCI address, its serial number or its id. A device that goes on in a later log
    is one device. Where two logs hold an id at the same time, and neither a uuid or serial number nor what they say of
    that time tells that it is one GPU, the logs are those of different nodes, and every device is named by its node.
    Rows that stand in two logs are taken once. The names are those in the run by the ids of each log.

    Raises:
        SourceError: when their times cannot be compared, or a log of the machine shares no time with the others.
    """
    check_time_bases([log.given for log in logs], [log.outcome for log in logs], tz)
    gpu_logs = [log.outcome for log in logs if not log.given.beside]
    span = min(outcome.span[0] for outcome in gpu_logs), max(outcome.span[1] for outcome in gpu_logs)
    for log in logs:
        if shared_time(log.span, span) < 0:
            what = "it covers another time than the GPU logs"
            hint = "check its clock, give --tz, or leave it out"
            raise SourceError(log.given.locator, what, hint, code="no_shared_time")
    spans = [{device: _span(table) for device, table in log.tables.items()} for log in logs]
    nodes, notes = find_nodes(logs, spans)
    known: dict[str, Device] = {}
    names: list[dict[str, str]] = [{} for _ in logs]
    parts: dict[str, dict[int, pa.Table]] = {}
    intervals: dict[str, float] = {}
    order = sorted(range(len(logs)), key=lambda place: min(start for start, _ in spans[place].values()))
    for place in order:
        for device in (device for device in logs[place].outcome.devices if device.id in spans[place]):
            named = name_device(device, nodes[place], known, taken=names[place].values())
            known[named.id] = merge_devices(known[named.id], named) if named.id in known else named
            names[place][device.id] = named.id
            parts.setdefault(named.id, {})[place] = sort_by_time(logs[place].tables[device.id], named.id)
            if (interval := logs[place].outcome.intervals.get(device.id)) is not None:
                intervals.setdefault(named.id, interval)
    twice: Counter[int] = Counter()
    tables: Tables = {}
    for name, own in parts.items():
        fresh = []
        for (place, table), repeated in zip(own.items(), _find_repeated([*own.values()]), strict=True):
            twice[place] += int(repeated.sum())
            fresh.append(table.filter(columns.to_arrow(~repeated, pa.bool_())) if repeated.any() else table)
        tables[name] = sort_by_time(pa.concat_tables(fresh, promote_options="default"))
    accounts = {place: _rename_account(logs[place], names[place], twice[place]) for place in order}
    outcome = Outcome(
        devices=tuple(known.values()),
        quality=_merge_accounts(accounts, parts, intervals, notes),
        span=span,
        intervals=intervals,
        columns=tuple(dict.fromkeys(column for log in logs for column in log.outcome.columns)),
        timezone=gpu_logs[0].timezone if len({each.timezone for each in gpu_logs}) == 1 else None,
        tags=merge_pairs(each.tags for each in gpu_logs),
    )
    return tables, outcome, names


def _span(table: pa.Table) -> Span:
    times = columns.integers(table.column("timestamp"))
    return int(times[0]), int(times[-1])


def _find_repeated(tables: Sequence[pa.Table]) -> list[BoolArray]:
    """Return for each log of a device which of its rows stand in an earlier one, with the same time and values."""
    found, spans = [], list(map(_span, tables))
    known = np.zeros(0, dtype=np.uint64)
    for place, (table, (start, end)) in enumerate(zip(tables, spans, strict=True)):
        is_asked = any(start <= earlier[1] for earlier in spans[:place])
        is_kept = any(later[0] <= end for later in spans[place + 1 :])
        keys = hash_rows(table) if is_asked or is_kept else known
        found.append(np.isin(keys, known) if is_asked else np.zeros(len(table), dtype=np.bool_))
        known = np.concatenate([known, keys]) if is_kept else known
    return found


def _rename_account(log: Log, names: dict[str, str], twice: int) -> Quality:
    """Return the account of a log, its devices called as in the run, without rows that another log holds."""
    account = log.outcome.quality
    rejected = (Rejected(reason=TWICE, rows=twice, first_line=None),) if twice else ()
    return replace(
        account,
        rows_kept=account.rows_kept - twice,
        rejected=(*account.rejected, *rejected),
        gaps=tuple(replace(gap, device=names[gap.device]) for gap in account.gaps),
        clock_steps=tuple(replace(step, device=names[step.device]) for step in account.clock_steps),
        log_events=tuple(
            replace(event, device=names.get(event.device or "", event.device)) for event in account.log_events
        ),
        notes=tuple(f"{log.given.locator}: {note}" for note in (*account.notes, *log.file.account.notes())),
    )


def _merge_accounts(
    accounts: dict[int, Quality],
    parts: dict[str, dict[int, pa.Table]],
    intervals: dict[str, float],
    notes: Sequence[str],
) -> Quality:
    """Return the account of several logs; what one missed and another holds is no gap."""
    gaps: list[LogGap] = []
    starts, ends = [], []
    for device, own in sorted(parts.items()):
        logs = [
            (_span(table), [(gap.start, gap.end) for gap in accounts[place].gaps if gap.device == device])
            for place, table in own.items()
        ]
        limit = gap_seconds(intervals.get(device, _FINEST)) * 1e6
        gaps += [LogGap(device=device, start=start, end=end) for start, end in _find_gaps(logs, limit)]
        starts.append(min(span[0] for span, _ in logs))
        ends.append(max(span[1] for span, _ in logs))
    length = (max(ends) - min(starts)) * len(parts)
    sampled = sum(ends) - sum(starts) - sum(gap.end - gap.start for gap in gaps)
    rejected: dict[str, Rejected] = {}
    absent = Counter[tuple[str, str]]()
    for account in accounts.values():
        for cells in account.absent_cells:
            absent[cells.column, cells.reason] += cells.cells
        for entry in account.rejected:
            first = rejected.get(entry.reason, replace(entry, rows=0))
            rejected[entry.reason] = replace(first, rows=first.rows + entry.rows)
    return replace(
        merge_quality([*accounts.values()]),
        rejected=tuple(rejected.values()),
        absent_cells=tuple(AbsentCells(column=c, reason=r, cells=n) for (c, r), n in sorted(absent.items())),
        gaps=tuple(gaps),
        coverage_ratio=sampled / length if length else None,
        notes=(*notes, *(note for account in accounts.values() for note in account.notes)),
    )


def _find_gaps(logs: Sequence[tuple[Span, Sequence[Span]]], limit: float) -> Iterator[Span]:
    """Yield the stretches in which no log of a device has a sample.

    Args:
        logs: first and last sample of each log, and its gaps.
        limit: time between two logs above which it is a gap, in microseconds.
    """
    known = {gap for _, own in logs for gap in own}
    pieces: list[Span] = []
    for span, own in logs:
        bounds = [span[0], *(moment for gap in sorted(own) for moment in gap), span[1]]
        pieces += zip(bounds[::2], bounds[1::2], strict=True)
    ended: int | None = None
    for start, end in sorted(pieces):
        if ended is not None and start > ended and ((ended, start) in known or start - ended > limit):
            yield ended, start
        ended = end if ended is None else max(ended, end)


@dataclass(slots=True)
class _Account:
    """What became of a log that was joined to a main one.

    It added metrics, and holds values that the main one holds as well. Its devices are those that no other log has, by
    their ids in the log, as they are called in the run.
    """

    added: dict[str, None] = field(default_factory=dict)
    held: int = 0
    joined: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    devices: dict[str, Device] = field(default_factory=dict)


class Companions:
    """Logs that add metrics to the rows of a run, as dmon or pmon beside a query, or further GPUs.

    A row of the main log gets the reading of its GPU that lies nearest in time, at most an interval of the companion
    away. Where several readings lie nearest to one row, shares and rates are their mean. A metric that the main log
    holds for a GPU stays as it is.

    Attributes:
        outcomes: what is known of each log that was joined.
    """

    def __init__(self, tables: Tables, outcome: Outcome, *, has_host: bool) -> None:
        """Take the rows of the main logs, to which others are joined, and what is known of them."""
        self._tables, self._outcome = tables, outcome
        self._known = {device.id: device for device in outcome.devices}
        self._rates = dict(outcome.intervals)
        self._has_host = has_host
        self.outcomes: list[Outcome] = []

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of the main logs, with what the others say of them."""
        return tuple(self._known[device.id] for device in self._outcome.devices)

    def join(self, log: Log, main: str, own: Collection[str]) -> None:
        """Join a log.

        Args:
            log: the log.
            main: what a person calls the main log that it is of.
            own: ids in the run of the devices of that one.
        """
        account = _Account()
        node = next(
            (device.node for device in self._known.values() if device.id in own and device.scope is Scope.GPU), None
        )
        # it calls GPUs by their numbers alone, whatever node they belong to
        here = {f"gpu:{device.index}": device for device in self._known.values() if device.node == node}
        bare = [replace(device, id=name) for name, device in here.items() if device.scope is Scope.GPU]
        pairs = {other.id: here[one.id] for one, other in match_devices(bare, log.gpus)}
        for device in log.outcome.devices:
            rows = log.tables.get(device.id)
            rate = log.outcome.intervals.get(device.id, 1.0)
            if rows is None:
                continue
            if device.id in pairs:
                name = pairs[device.id].id
                self._known[name] = merge_devices(self._known[name], replace(device, id=name, node=node))
                rates = self._rates.get(name, 1.0), rate
                self._tables[name] = _join_columns(account, self._tables[name], rows, rates)
            elif device.scope is Scope.HOST and (self._has_host or HOST in self._tables):
                account.rejected[SECOND_HOST] += len(rows)
            else:
                added = name_device(device, node, self._known, taken=list(self._known))
                account.devices[device.id] = self._known[added.id] = added
                self._tables[added.id], self._rates[added.id] = sort_by_time(rows, added.id), rate
        self.outcomes.append(_describe_companion(log, account, main))


def _describe_companion(log: Log, account: _Account, main: str) -> Outcome:
    quality, names = log.outcome.quality, {own: device.id for own, device in account.devices.items()}
    notes = [*quality.notes, *log.file.account.notes()]
    if account.joined:
        metrics = f"{len(account.added)} metric{'' if len(account.added) == 1 else 's'}"
        held = f"; {account.held:,} values not used, because {main} holds those metrics" if account.held else ""
        notes.append(
            f"{log.given.locator}: {account.joined:,} rows joined by time to those of {main}, adding {metrics}{held}."
        )
    left = tuple(Rejected(reason=reason, rows=n, first_line=None) for reason, n in account.rejected.items() if n)
    quality = replace(
        quality,
        rows_kept=quality.rows_kept - account.joined - account.rejected.total(),
        continued=quality.continued + account.joined,
        rejected=(*quality.rejected, *left),
        duplicates=quality.duplicates if names else 0,
        gaps=tuple(replace(gap, device=names[gap.device]) for gap in quality.gaps if gap.device in names),
        clock_steps=tuple(
            replace(step, device=names[step.device]) for step in quality.clock_steps if step.device in names
        ),
        notes=tuple(notes),
    )
    intervals = {names[device]: rate for device, rate in log.outcome.intervals.items() if device in names}
    return replace(log.outcome, devices=tuple(account.devices.values()), intervals=intervals, quality=quality)


def _join_columns(account: _Account, whole: pa.Table, rows: pa.Table, rates: tuple[float, float]) -> pa.Table:
    """Return rows of a GPU with the metrics of a companion that they lack."""
    every = [max(round(rate * 1e6), 1) for rate in rates]
    times, others = (columns.integers(table.column("timestamp")) for table in (whole, rows))
    nearest, distance = find_nearest(others, times)
    near = distance <= max(every)
    account.joined += int(near.sum())
    account.rejected[NO_MAIN_ROW] += int((~near).sum())
    source, far = find_nearest(times, others)
    picks: Any = pa.array(source, mask=far > every[1])
    for name in rows.column_names:
        if name in KEYS or rows.column(name).null_count == len(rows):
            continue
        if name in whole.column_names and whole.column(name).null_count < len(whole):
            account.held += len(rows) - rows.column(name).null_count
            continue
        account.added[name] = None
        values: Any = rows.column(name).take(picks)
        metric = BY_NAME.get(name)
        if pa.types.is_floating(values.type) and metric is not None and metric.kind is MetricKind.GAUGE:
            # of counters and states the mean says nothing
            read = columns.floats(rows.column(name))
            known = near & ~np.isnan(read)
            counts = np.bincount(nearest[known], minlength=len(whole))
            means = np.bincount(nearest[known], read[known], len(whole)) / np.maximum(counts, 1)
            values = columns.nan_to_null(np.where(counts > 1, means, columns.floats(values)), values.type)
        if name in whole.column_names:
            whole = whole.drop_columns([name])
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
