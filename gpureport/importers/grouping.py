"""Which logs of GPUs are one run: those of one machine and the same minutes, and a log a node."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gpureport.importers.machines import match_devices, state_same_device
from gpureport.importers.surveys import Log, any_overlap, compare_readings, shared_time
from gpureport.recording import Device

_SAME_MINUTES, _COVERED = 0.8, 0.5
"""Share of the longer log that two recorders of one run have in common, and of the shorter one that must lie in the
time of the main log where it adds metrics (pragmatic)."""
_TOGETHER = 60_000_000
"""Microseconds by which logs of different GPUs or nodes of one run begin and end apart at most: one job starts and ends
all of them, while jobs of their own in the same minutes seldom do both together (pragmatic)."""
_SIMILAR_INTERVALS = 2.0
"""They are written with intervals that differ by no more than this factor (pragmatic)."""
_NAMED, _ALIKE, _POSSIBLE = 3, 2, 1
"""What speaks for two logs being of one machine: a uuid or serial number, their readings, nothing against it."""


@dataclass(slots=True, eq=False)
class Group:
    """Logs of one run: a main log for each node, and logs that add to the main log at a place."""

    mains: list[Log]
    companions: list[tuple[Log, int]] = field(default_factory=list)

    @property
    def logs(self) -> list[tuple[Log, int]]:
        """All its logs, each with the place of its main log."""
        return [*((main, place) for place, main in enumerate(self.mains)), *self.companions]


def group_logs(
    logs: Sequence[Log],
    may_join: Callable[[Log, Log], bool],
    may_add: Callable[[Log, Log, bool], bool],
    *,
    zone_known: bool,
) -> list[Group]:
    """Return the runs that logs belong to. A log that spans several runs is a companion in each.

    Args:
        logs: the logs, in any order.
        may_join: whether two logs were given in a way that lets them be one run.
        may_add: whether two logs may be of different GPUs of one run, or of different nodes where the last is true.
        zone_known: whether the times of all can be compared.
    """
    groups: list[Group] = []
    starts, ends = np.zeros(len(logs), dtype=np.int64), np.zeros(len(logs), dtype=np.int64)
    recorded: dict[Path, Group] = {}
    for log in sorted(logs, key=lambda each: each.rank):
        near = np.flatnonzero((starts[: len(groups)] <= log.span[1]) & (ends[: len(groups)] >= log.span[0])).tolist()
        own = recorded.get(log.recording) if log.recording else None
        able = [
            group
            for group in ([groups[place] for place in near] if own is None else [own])
            if (zone_known or (group.mains[0].outcome.timezone is None) == (log.outcome.timezone is None))
            and may_join(group.mains[0], log)
        ]
        # logs that one recorder wrote are one run, whatever they read
        homes = [(group, 0) for group in able] if own is not None else _find_homes(able, log)
        for group, place in homes or ():
            group.companions.append((log, place))
        if homes:
            continue
        if homes is not None or not any(_add_devices(group, log, may_add) for group in able):
            starts[len(groups)], ends[len(groups)] = log.span
            groups.append(Group([log]))
            if log.recording is not None:
                recorded[log.recording] = groups[-1]
    return groups


def _find_homes(groups: Sequence[Group], log: Log) -> list[tuple[Group, int]] | None:
    """Return the runs that a log adds to, with the place of the main log; None where it is of none.

    Of several at the same time it is the one that a uuid or its readings tell, else none is returned.
    """
    matches = [
        (match, group, place)
        for group in groups
        for each, place in group.logs
        if _share_minutes(group.mains[place], log) and (match := _match(each, log))
    ]
    if not matches:
        return None
    best = max(match for match, _, _ in matches)
    chosen = list(dict.fromkeys((group, place) for match, group, place in matches if match == best))
    return [] if any_overlap([group.mains[place].span for group, place in chosen]) else chosen


def _share_minutes(main: Log, log: Log) -> bool:
    """Return whether a log covers the minutes of the main one; a log that adds metrics may be shorter or longer."""
    shared = shared_time(main.span, log.span)
    shorter, longer = sorted((main.span[1] - main.span[0], log.span[1] - log.span[0]))
    return shared >= 0 and shared >= (_COVERED * shorter if log.metrics - main.metrics else _SAME_MINUTES * longer)


def _match(main: Log, log: Log) -> int:
    """Return what speaks for two logs of the same time being of one machine; 0 where nothing does."""
    pairs = match_devices(main.gpus, log.gpus)
    if any(state_same_device(one, other) for one, other in pairs):
        return _NAMED
    if not pairs or any(_models_differ(one, other) for one, other in pairs):
        return 0
    if not _are_of_one_tool(main, log):
        return _POSSIBLE
    alike = compare_readings(main, log, [(one.id, other.id) for one, other in pairs], copies=False)
    return _ALIKE if alike else 0


def _are_of_one_tool(main: Log, log: Log) -> bool:
    """Return whether a log says as much as the main one, or nothing that it lacks: it is no tool that adds metrics."""
    return log.is_complete or not log.metrics - main.metrics


def _models_differ(one: Device, other: Device) -> bool:
    """Return whether two GPUs are of different models; tools shorten names."""
    known = one.model is not None and other.model is not None
    return known and str(one.model) not in str(other.model) and str(other.model) not in str(one.model)


def _run_together(main: Log, log: Log) -> bool:
    """Return whether two logs are of other GPUs of one run: same begin, end, interval and model."""
    longer = max(each.span[1] - each.span[0] for each in (main, log))
    apart = max(abs(mine - theirs) for mine, theirs in zip(main.span, log.span, strict=True))
    slower, faster = sorted((main.interval, log.interval), reverse=True)
    return (
        shared_time(main.span, log.span) >= max(_SAME_MINUTES * longer, 1)
        and apart <= _TOGETHER
        and slower <= _SIMILAR_INTERVALS * faster
        and not any(_models_differ(main.gpus[0], each) for each in log.gpus)
    )


def _add_devices(group: Group, log: Log, may_add: Callable[[Log, Log, bool], bool]) -> bool:
    """Add a log to a run as further GPUs of its machine, or where it holds the same ids as another node."""
    main, known = group.mains[0], [device for each, _ in group.logs for device in each.gpus]
    has_same_ids = bool({device.id for device in known} & {device.id for device in log.gpus})
    is_node = has_same_ids or len(group.mains) > 1
    if not may_add(main, log, is_node) or not _run_together(main, log):
        return False
    if is_node:
        # the nodes of a job are recorded by one command
        if log.given.importer.kind != main.given.importer.kind or not (
            log.metrics == main.metrics or (log.is_complete and main.is_complete)
        ):
            return False
        pairs = [(one.id, other.id) for one, other in match_devices(main.gpus, log.gpus)]
        if compare_readings(main, log, pairs):
            # it is a copy of a part of the other
            return False
        group.mains.append(log)
    elif match_devices(known, log.gpus):
        return False
    else:
        group.companions.append((log, 0))
    return True
