"""Which GPU logs are one run: those of one machine and the same minutes."""

import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from itertools import islice

from gpureport.importers.merging.device_plan import find_same_device
from gpureport.importers.merging.grouped_logs import GroupedLogs, LogGroup
from gpureport.importers.merging.log_survey import LogSurvey
from gpureport.importers.merging.node_names import name_machine
from gpureport.importers.merging.reading_agreement import compare_readings
from gpureport.importers.merging.shared_devices import Span, any_overlap
from gpureport.importers.recorders.same_gpu import Agreement, combine_verdicts, compare_series
from gpureport.recording import Device

_SAME_MINUTES = 0.8
"""Share of the longer log that two recorders of one run have in common (pragmatic)."""
_COVERED = 0.5
"""Share of the shorter log that must lie in the main log's time, where it adds metrics (pragmatic)."""
_TOGETHER = 60_000_000
"""Microseconds by which logs of different GPUs of one run begin and end apart at most: one job starts and stops all of
them, while jobs of their own on other GPUs of the same minutes seldom do both together (pragmatic)."""
_NUMBERS = re.compile(r"\d+|\D+")
"""Numbers of a name, and what stands between them."""
_SIMILAR_INTERVALS = 2.0
"""Logs of different GPUs of one run are written with intervals that differ by no more than this factor (pragmatic)."""


class Match(IntEnum):
    """What speaks for two logs being of one machine: nothing, nothing against it, their readings, or a name."""

    NONE = 0
    POSSIBLE = 1
    READINGS = 2
    NAMED = 3


def group_logs(
    logs: Sequence[LogSurvey],
    *,
    zone_known: bool,
    may_join: Callable[[LogSurvey, LogSurvey], bool],
    may_add_gpus: Callable[[LogSurvey, LogSurvey], bool],
) -> list[LogGroup]:
    """Return the runs that logs belong to. A log that spans several runs is a companion in each.

    Args:
        logs: the logs, in any order.
        zone_known: whether the times of all can be compared.
        may_join: whether two logs were given in a way that lets them be one run.
        may_add_gpus: whether two logs may be of different GPUs of one run.
    """
    runs = GroupedLogs()
    for log in sorted(logs, key=lambda each: each.rank):

        def may_be_run(group: LogGroup, log: LogSurvey = log) -> bool:
            comparable = zone_known or (group.main.outcome.timezone is None) == (log.outcome.timezone is None)
            return comparable and may_join(group.main, log)

        chosen = _choose_groups(list(filter(may_be_run, runs.list_similar(log))), log)
        if not chosen:
            near = filter(may_be_run, runs.list_with_other_gpus(log))
            chosen = list(islice((each for each in near if may_add_gpus(each.main, log) and _adds_gpus(each, log)), 1))
        for group in chosen:
            runs.join(group, log)
        if not chosen:
            runs.add(LogGroup(log))
    return runs.groups


def _choose_groups(groups: Sequence[LogGroup], log: LogSurvey) -> list[LogGroup]:
    """Return the runs that a log belongs to. Of two at the same time it is the one that its name tells, else none.

    Logs that one recorder wrote are one run, whatever they read.
    """
    recorded = [group for group in groups if log.recording is not None and group.main.recording == log.recording]
    if recorded:
        return recorded
    matches = [
        (max(match_logs(each, log) for each in group.logs), group) for group in groups if _shares_time(group.main, log)
    ]
    best = max((match for match, _ in matches), default=Match.NONE)
    if best is Match.NONE:
        return []
    chosen = [group for match, group in matches if match is best]
    spans = [group.main.span for group in chosen]
    if not any_overlap(spans):
        return chosen
    name = name_machine(log.given.path)
    named = [group for group in chosen if name and name_machine(group.main.given.path) == name]
    return named if len(named) == 1 else []


def _shares_time(main: LogSurvey, log: LogSurvey) -> bool:
    """Return whether a log covers the minutes of the main one; a log that adds metrics may be shorter or longer."""
    shared = shared_time(main.span, log.span)
    shorter, longer = sorted((main.span[1] - main.span[0], log.span[1] - log.span[0]))
    if shared < 0:
        return False
    return shared >= (_COVERED * shorter if log.metrics - main.metrics else _SAME_MINUTES * longer)


def shared_time(one: Span, other: Span) -> int:
    """Return the time that two spans have in common, in microseconds; negative where they lie apart."""
    return min(one[1], other[1]) - max(one[0], other[0])


def match_logs(main: LogSurvey, log: LogSurvey) -> Match:
    """Return what speaks for two logs of the same time being of one machine."""
    pairs = match_devices(main.gpus, log.gpus)
    if not pairs:
        return Match.NONE
    if any(mine == theirs for one, other in pairs for mine, theirs in _names(one, other)):
        return Match.NAMED
    if any(_models_differ(one, other) for one, other in pairs):
        return Match.NONE
    pace = round(max(main.interval, log.interval) * 1e6)
    equal_tools = log.is_complete or not log.metrics - main.metrics
    compare = compare_series if equal_tools else compare_readings
    verdict = combine_verdicts(compare(main.series[one.id], log.series[other.id], pace) for one, other in pairs)
    if verdict is Agreement.SAME:
        return Match.READINGS
    return Match.POSSIBLE if verdict is Agreement.UNKNOWN and not equal_tools else Match.NONE


def match_devices(known: Sequence[Device], devices: Sequence[Device]) -> list[tuple[Device, Device]]:
    """Return pairs of a known GPU and the same one of another log, by uuid, bus id, serial number or index."""
    pairs: list[tuple[Device, Device]] = []
    for device in devices:
        taken = {one.id for one, _ in pairs}
        found = find_same_device(device, [each for each in known if each.id not in taken])
        if found is not None:
            pairs.append((found, device))
    return pairs


def _names(one: Device, other: Device) -> list[tuple[str, str]]:
    """Return what both say of themselves that no two GPUs share."""
    both = ((one.uuid, other.uuid), (one.serial, other.serial))
    return [(mine, theirs) for mine, theirs in both if mine is not None and theirs is not None]


def _models_differ(one: Device, other: Device) -> bool:
    """Return whether two GPUs are of different models; tools shorten names."""
    if one.model is None or other.model is None:
        return False
    return one.model not in other.model and other.model not in one.model


def _adds_gpus(group: LogGroup, log: LogSurvey) -> bool:
    """Return whether a log is of further GPUs of a run's machine: same begin, end, interval and model."""
    main = group.main
    shared, longer = shared_time(main.span, log.span), max(each.span[1] - each.span[0] for each in (main, log))
    apart = max(abs(mine - theirs) for mine, theirs in zip(main.span, log.span, strict=True))
    if (
        shared <= 0
        or shared < _SAME_MINUTES * longer
        or apart > _TOGETHER
        or {each.id for each in group.gpus} & {e.id for e in log.gpus}
    ):
        return False
    slower, faster = sorted((main.interval, log.interval), reverse=True)
    alike = slower <= _SIMILAR_INTERVALS * faster and not any(_models_differ(main.gpus[0], each) for each in log.gpus)
    return alike and not match_devices(group.gpus, log.gpus) and not _are_numbered_jobs(main, log)


def _are_numbered_jobs(one: LogSurvey, other: LogSurvey) -> bool:
    """Return whether names differ by numbers that number no GPUs, as those of the logs of different jobs do."""
    parts = [_NUMBERS.findall(each.given.path.stem) for each in (one, other)]
    if len(parts[0]) != len(parts[1]):
        return False
    for mine, theirs in zip(*parts, strict=True):
        if mine != theirs and mine.isdecimal() and theirs.isdecimal():
            return not (_may_number_gpu(int(mine), one) and _may_number_gpu(int(theirs), other))
    return False


def _may_number_gpu(number: int, log: LogSurvey) -> bool:
    """Return whether a number in the name of a log may be that of one of its GPUs, counted from 0 or 1."""
    return any(device.index is not None and number - device.index in {0, 1} for device in log.gpus)
