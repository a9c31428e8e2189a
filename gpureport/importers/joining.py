"""Joins several logs into one run: rotated logs, logs from several nodes, and logs with more metrics."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray
from gpureport.data_quality import merge_quality
from gpureport.errors import SourceError
from gpureport.importers import surveys
from gpureport.importers.account import NO_MAIN_ROW, SECOND_HOST, TWICE, list_first
from gpureport.importers.protocol import Outcome
from gpureport.importers.sources import strip_suffixes
from gpureport.importers.tracker_series import list_absent, list_rejected, measure_times
from gpureport.metrics import BY_NAME, MetricKind, Scope
from gpureport.names import merge_pairs
from gpureport.recording import Device, sort_by_time

_COMMON = re.compile(r"(?:^|[-_.])(?:nvidia[-_]?smi|smi|gpus?|hosts?|cpu|metrics|log)(?=$|[-_.])", re.IGNORECASE)
"""Matches parts of log names that do not identify a node."""
_SHORT = 2  # what is left of a file name must be longer to be a node's name
_JOINED, _HELD = "joined", "held"


class _Joined:
    """A run's joined logs: devices, rows and intervals by id, and machines with a host log."""

    def __init__(self) -> None:
        self.known, self.tables, self.rates = dict[str, Device](), surveys.Tables(), dict[str, float]()
        self.machines = set[str]()


def join_logs(logs: Sequence[surveys.Log], tz: str | None) -> tuple[surveys.Tables, list[Outcome]]:
    """Return each device's rows, one outcome for all main logs, and one for each other log."""
    mains = [log for log in logs if log.given.companion_of is None and not log.given.beside]
    companions = [log for log in logs if log.given.companion_of is not None]
    # a single reading counts as 1 s; metrics are added to the host log with the shortest interval
    hosts = [log for log in logs if log.given.beside]
    hosts.sort(key=lambda log: (log.interval, -log.outcome.quality.rows_kept))
    for log in logs[1:]:
        surveys.check_clocks(logs[0].given.locator, logs[0].outcome, log.given.locator, log.outcome, tz)
    _find_nodes(mains, hosts)
    joined, outcomes = _Joined(), list[Outcome]()
    if mains:
        outcomes = [_join_mains(sorted(mains, key=lambda log: min(log.spans.values())), joined)]
    own = list(joined.known)
    for log in (*hosts, *companions):
        if mains:
            surveys.check_shared_time(log.given.locator, log.span, outcomes[0].span)
        main = mains[log.given.companion_of or 0] if mains else hosts[0]
        log.node = main.node if log in companions else log.node
        outcomes.append(_add_log(joined, log, main.given.locator))
        joined.machines |= {log.machine} - {""}
    if mains:
        outcomes[0] = replace(outcomes[0], devices=tuple(joined.known[device] for device in own))
    return joined.tables, outcomes


def _find_nodes(mains: Sequence[surveys.Log], hosts: Sequence[surveys.Log]) -> None:
    logs = [*mains, *hosts]
    leaders = list(range(len(mains)))
    apart = []
    for one, other in combinations(leaders, 2):
        told = surveys.relate_logs(mains[one], mains[other])
        if told == "same":
            low, high = sorted((leaders[one], leaders[other]))
            leaders = [low if leader == high else leader for leader in leaders]
        elif told:
            apart.append((one, other))
    apart = [(leaders[one], leaders[other]) for one, other in apart if leaders[one] != leaders[other]]
    if not apart:
        return
    paths = [Path(log.given.locator) for log in logs]
    names: list[str] = []
    for level in (
        [log.machine for log in logs],
        [_name_node(strip_suffixes(path.name)) for path in paths],
        [path.resolve().parent.name for path in paths],
        [f"node{number}" for number in range(1, len(paths) + 1)],
    ):
        names = [re.sub(r"[^\w.-]+", "_", name).strip("-_.")[:40] for name in level]
        if all(names[: len(mains)]) and all(names[one] != names[other] for one, other in apart):
            break
    for leader, log in zip(leaders, mains, strict=True):
        log.node = names[leader]
    for name, log in zip(names[len(mains) :], hosts, strict=True):
        log.node = name if len(hosts) > 1 or name in {main.node for main in mains} else None


def _name_node(name: str) -> str:
    left = _COMMON.sub("", name).strip("-_.")
    # for example, too little is left of `gpu-a`
    return left if len(left) > _SHORT or name.startswith(left) else name[0] + _COMMON.sub("", name[1:])


def _join_mains(logs: Sequence[surveys.Log], joined: _Joined) -> Outcome:
    outcomes = [_add_log(joined, log) for log in logs]
    if len(logs) == 1:
        return logs[0].outcome
    whole = merge_quality([each.quality for each in outcomes])
    zones = {each.timezone for each in outcomes}
    absent = Counter[tuple[str, str]]()
    for cells in whole.absent_cells:
        absent[cells.column, cells.reason] += cells.cells
    twice = sum(entry.rows for entry in whole.rejected if entry.reason == TWICE)
    quality = replace(
        whole,
        rejected=(*(entry for entry in whole.rejected if entry.reason != TWICE), *list_rejected({TWICE: twice})),
        absent_cells=list_absent(dict(sorted(absent.items()))),
    )
    if not quality.synthetic_time:
        # one log may contain what another log missed
        quality = measure_times(joined.tables.values(), quality)[0]
    machines = sorted({log.node for log in logs if log.node is not None})
    if machines and not all(device.uuid or device.serial for device in joined.known.values()):
        note = (
            "Logs from the same time have the same GPU indices, so they were read as logs from several machines: "
            f"{list_first(machines, 3)}. A uuid column would show whether this is right."
        )
        quality = replace(quality, notes=(*quality.notes, note))
    return Outcome(
        # known after the other logs are joined
        devices=(),
        quality=quality,
        span=(min(each.span[0] for each in outcomes), max(each.span[1] for each in outcomes)),
        intervals=dict(joined.rates),
        columns=tuple(dict.fromkeys(column for each in outcomes for column in each.columns)),
        timezone=zones.pop() if len(zones) == 1 else None,
        tags=merge_pairs(each.tags for each in outcomes),
    )


def _name_device(device: Device, node: str | None, known: dict[str, Device], taken: Collection[str]) -> str:
    before = "" if node is None else f"{node}/"
    here = [each for each in known.values() if each.node == node]
    free = [each for each in here if each.id not in taken]
    same = surveys.find_same_device(replace(device, id=before + device.id), free)
    if same is None:
        index, own = device.index, device.id
        if index is not None:
            if before + own in known:
                indices = {each.index for each in here}
                index = min({*range(len(indices) + 1)} - indices)
            own = f"gpu:{index}"
        known[before + own] = replace(device, id=before + own, index=index, node=node)
        return before + own
    # facts are from the first log, except for the lowest limit and the largest memory
    filled, more = asdict(same), asdict(device)
    filled |= {name: more[name] for name, value in filled.items() if value in {None, "unknown"}} | {"node": node}
    for name, pick in (("power_limit_watts", min), ("memory_total_bytes", max), ("memory_reserved_bytes", max)):
        filled[name] = filled[name] if more[name] is None else pick(filled[name], more[name])
    known[same.id] = Device(**filled)
    return same.id


def _add_log(joined: _Joined, log: surveys.Log, main: str = "") -> Outcome:
    """Add the rows of a log, which may accompany `main`. Return its outcome with only the devices it adds."""
    tables, account, names, taken = joined.tables, Counter[str](), dict[str, str](), list[str]()
    held, copied = log.take(), list[bool]()
    for device in (device for device in log.outcome.devices if device.id in held):
        rows, rate = held[device.id], log.outcome.intervals.get(device.id)
        is_host = bool(main) and device.scope is Scope.HOST
        is_second = f"{log.node}/{device.id}".removeprefix("None/") in tables
        if is_host and is_second and (not log.given.beside or log.machine in joined.machines):
            account[SECOND_HOST] += len(rows)
            continue
        taken.append(name := _name_device(device, log.node, joined.known, taken))
        before = tables.get(name)
        is_known = _find_known(rows, before)
        copied.append(bool(is_known.all()))
        if before is None or not main:
            names[device.id] = name
            if rate is not None:
                joined.rates.setdefault(name, rate)
        if before is None:
            tables[name] = sort_by_time(rows, name)
            continue
        is_apart = not surveys.spans_overlap(log.spans[device.id], surveys.find_span(before))
        if not main and is_known.any():
            account[TWICE] += int(is_known.sum())
            rows = rows.filter(columns.to_arrow(~is_known, pa.bool_()))
        if not main or (is_host and is_apart):
            tables[name] = surveys.stack_rows([before, rows], name)
            continue
        if is_host and (twice := sorted({*before.column_names} & {*rows.column_names} - surveys.KEYS)):
            what = f"several host logs for one run contain {twice[0]}"
            raise SourceError(log.given.locator, what, "give one of them, or merge them", code="metric_in_two_logs")
        every = joined.rates.get(name) or 1.0, rate or 1.0
        tables[name] = _join_columns(before, rows, every, account, covering=is_host)
    quality, added, unused = log.outcome.quality, account.pop(_JOINED, 0), account.pop(_HELD, 0)
    also = f"; {unused:,} values were not used, because {main} already has those metrics" if unused else ""
    said = f"{log.given.locator}: {added:,} rows were joined by time to the rows of {main}{also}."
    if is_copy := bool(copied) and all(copied):
        said = f"{log.given.locator} is a copy of rows in {main or 'another log of this run'}, so it was left out."
    notes = quality.notes if main else tuple(f"{log.given.locator}: {note}" for note in quality.notes)
    events = (replace(event, device=names.get(event.device or "", event.device)) for event in quality.log_events)
    quality = replace(
        quality,
        rows_kept=quality.rows_kept - added - account.total(),
        continued=quality.continued + added,
        rejected=(*quality.rejected, *list_rejected(account)),
        duplicates=quality.duplicates if names else 0,
        gaps=tuple(replace(gap, device=names[gap.device]) for gap in quality.gaps if gap.device in names),
        clock_steps=tuple(replace(at, device=names[at.device]) for at in quality.clock_steps if at.device in names),
        log_events=tuple(events),
        notes=(*notes, said) if added or is_copy else notes,
    )
    intervals = {names[own]: rate for own, rate in log.outcome.intervals.items() if own in names}
    devices = tuple(joined.known[name] for name in names.values())
    return replace(log.outcome, devices=devices, intervals=intervals, quality=quality)


def _find_known(rows: pa.Table, before: pa.Table | None) -> BoolArray:
    if (
        before is None
        or not {*rows.column_names} <= {*before.column_names}
        or surveys.shared_time(surveys.find_span(rows), surveys.find_span(before)) < 0
    ):
        return np.zeros(len(rows), dtype=np.bool_)
    return np.isin(surveys.hash_rows(rows), surveys.hash_rows(before.select(rows.column_names)))


def _join_columns(
    whole: pa.Table, rows: pa.Table, rates: tuple[float, float], account: Counter[str], *, covering: bool
) -> pa.Table:
    """Add missing metrics to a device's rows by averaging the nearest readings in another log.

    Readings that are means over time are `covering`: a row gets the one that covers its middle.
    """
    every = [max(round(rate * 1e6), 1) for rate in rates]
    times, others = (columns.integers(table.column("timestamp")) for table in (whole, rows))
    nearest, distance = surveys.find_nearest(others, times)
    near = distance <= max(every)
    source, far = surveys.find_nearest(times, others)
    is_known = far <= every[1]
    if covering:
        middles = times - every[0] // 2
        source = np.minimum(np.searchsorted(others, middles), len(others) - 1)
        # a host reading covers the interval before its stamp, or slightly more
        is_known = (others[source] >= middles) & (others[source] - middles <= 1.25 * every[1])
        near = np.isin(np.arange(len(others)), source[is_known])
    account.update({_JOINED: int(near.sum()), NO_MAIN_ROW: int((~near).sum())})
    picks: Any = pa.array(source, mask=~is_known)
    for name in rows.column_names:
        column = rows.column(name)
        if name in surveys.KEYS or column.null_count == len(rows):
            continue
        if name in whole.column_names:
            if whole.column(name).null_count < len(whole):
                account[_HELD] += len(rows) - column.null_count
                continue
            whole = whole.drop_columns([name])
        values: Any = column.take(picks)
        metric = BY_NAME.get(name)
        if not covering and pa.types.is_floating(values.type) and metric and metric.kind is MetricKind.GAUGE:
            # the mean of counters or states has no meaning
            read = columns.floats(column)
            known = near & ~np.isnan(read)
            counts = np.bincount(nearest[known], minlength=len(whole))
            means = np.bincount(nearest[known], read[known], len(whole)) / np.maximum(counts, 1)
            values = columns.nan_to_null(np.where(counts > 1, means, columns.floats(values)), values.type)
        whole = whole.append_column(pa.field(name, values.type), values)
    return whole
