"""Which logs of GPUs are one run, and which of their devices are the same: logs of one machine, and a log a node."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from gpureport.importers.run_facts import strip_suffixes
from gpureport.importers.surveys import Log, Span, any_overlap, compare_readings, shared_time, spans_overlap
from gpureport.record_folder import name_log, read_run_file
from gpureport.recording import Device

Pair = tuple[int, int]
"""Two logs by their places among all, the lower first."""
_IDENTITY = ("uuid", "bus_id", "serial")
"""What identifies a GPU of a machine, the most reliable first."""
_LISTED = 3
"""At most so many logs are named in a note."""
_COMMON = re.compile(r"(?:^|[-_.])(?:nvidia[-_]?smi|smi|gpus?|hosts?|cpu|metrics|log)(?=$|[-_.])", re.IGNORECASE)
_SAME_MINUTES, _COVERED = 0.8, 0.5
"""Share of the longer log that two recorders of one run have in common, and of the shorter one that must lie in the
time of the main log where it adds metrics (pragmatic)."""
_TOGETHER, _INTERVALS = 5_000_000, 3
"""Microseconds by which logs of different GPUs or nodes of one run begin and end apart at most, or so many intervals if
that is longer: one command starts and ends their recorders, while jobs of a cluster may well begin in the same minute
(pragmatic)."""
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
        and apart <= max(_TOGETHER, _INTERVALS * slower * 1e6)
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


def find_same_device(device: Device, known: Sequence[Device]) -> Device | None:
    """Return the known device that a device is, by the surest of what both say of themselves, else by its id.

    GPUs of one board share its serial number, so that among several the one of the same id is meant.
    """
    likely = [each for each in known if not _contradict(each, device)]
    for name in _IDENTITY:
        value = getattr(device, name)
        found = [each for each in likely if value is not None and getattr(each, name) == value]
        if found:
            return next((each for each in found if each.id == device.id), found[0])
    return next((each for each in likely if each.id == device.id), None)


def _contradict(one: Device, other: Device) -> bool:
    """Return whether the surest of what both say of themselves is not the same."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in _IDENTITY)
    return next((mine != theirs for mine, theirs in pairs if mine is not None and theirs is not None), False)


def match_devices(known: Sequence[Device], devices: Sequence[Device]) -> list[tuple[Device, Device]]:
    """Return pairs of a known GPU and the same one of another log."""
    pairs: list[tuple[Device, Device]] = []
    for device in devices:
        taken = {one.id for one, _ in pairs}
        found = find_same_device(device, [each for each in known if each.id not in taken])
        if found is not None:
            pairs.append((found, device))
    return pairs


def state_same_device(one: Device, other: Device) -> bool | None:
    """Return whether two devices are one by what no two GPUs share, None when they do not both say it."""
    pairs = ((one.uuid, other.uuid), (one.serial, other.serial))
    return next((mine == theirs for mine, theirs in pairs if mine is not None and theirs is not None), None)


def merge_devices(known: Device, device: Device) -> Device:
    """Return what two logs say of a device: what the first says, the lowest limit, the largest memory."""
    filled = {
        name: getattr(known, name) if getattr(known, name) not in {None, "unknown"} else getattr(device, name)
        for name in Device.__dataclass_fields__
    }
    for name, pick in (("power_limit_watts", min), ("memory_total_bytes", max), ("memory_reserved_bytes", max)):
        held = [value for value in (getattr(known, name), getattr(device, name)) if value is not None]
        filled[name] = pick(held) if held else None
    return replace(known, **filled)


def find_nodes(logs: Sequence[Log], spans: Sequence[dict[str, Span]]) -> tuple[list[str | None], list[str]]:
    """Return the node of each log, None where all are of one machine, and how that is known."""
    found = {
        pair: told
        for pair in combinations(range(len(logs)), 2)
        if (told := _relate(pair, logs, spans)) != "apart in time"
    }
    ones = {pair for pair, told in found.items() if told == "one"}
    alike = [
        (one, other)
        for (one, other), told in found.items()
        if told == "untold"
        and compare_readings(logs[one], logs[other], [(each, each) for each in spans[one] if each in spans[other]])
    ]
    if any(not logs[one].given.beside for one, _ in found.keys() - set(alike) - ones):
        # hosts of several nodes have host logs of their own, whatever they say
        alike = [pair for pair in alike if not logs[pair[0]].given.beside]
    leaders = list(range(len(logs)))
    for pair in (*alike, *ones):
        low, high = sorted(leaders[place] for place in pair)
        leaders = [low if leader == high else leader for leader in leaders]
    apart = [pair for pair in found if leaders[pair[0]] != leaders[pair[1]]]
    nodes: list[str | None] = [None] * len(logs)
    if apart:
        names = _name_nodes(
            [logs[leader] for leader in leaders], {(leaders[one], leaders[other]) for one, other in apart}
        )
        nodes = [names[leader] for leader in leaders]
    notes = []
    if guessed := sorted({place for pair in apart if found[pair] == "untold" for place in pair}):
        machines = list_some([nodes[place] or logs[place].given.locator for place in guessed])
        notes.append(
            f"{list_some([logs[place].given.locator for place in guessed])} hold the same numbers at the same time "
            f"with other readings, so they are taken for logs of several machines: {machines}. "
            "A uuid among their columns would tell."
        )
    if alike:
        copies = sorted({place for pair in alike for place in pair})
        notes.append(
            f"{list_some([logs[place].given.locator for place in copies])} say the same of the time they share, so "
            "they are taken for logs of one machine."
        )
    return nodes, notes


def _relate(pair: Pair, logs: Sequence[Log], spans: Sequence[dict[str, Span]]) -> str:
    """Return what two logs are to each other that hold a device at the same time, by what they say of it."""
    (one, mine), (other, theirs) = ((logs[place].outcome.devices, spans[place]) for place in pair)
    found = "apart in time"
    for here in one:
        for there in other:
            if not (here.id in mine and there.id in theirs and spans_overlap(mine[here.id], theirs[there.id])):
                continue
            stated = state_same_device(here, there)
            if stated:
                return "one"
            if here.id == there.id and found != "apart":
                found = "untold" if stated is None else "apart"
    return found


def list_some(names: Sequence[str]) -> str:
    """Return names in words, the first of many only."""
    names = list(dict.fromkeys(names))
    if len(names) > _LISTED + 1:
        names = [*names[:_LISTED], f"{len(names) - _LISTED} more"]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _name_nodes(logs: Sequence[Log], clashes: Collection[Pair]) -> list[str | None]:
    """Return a node for each log, by its recording, or by file or folder: the shortest names that differ.

    A host log that bears the name of no GPU log is one of no particular node.
    """

    def clean(name: str) -> str:
        return re.sub(r"[^\w.-]+", "_", name).strip("-_.")[:40]

    paths = [Path(log.given.locator) for log in logs]
    recorded = [read_run_file(path.parent) if name_log(path) else None for path in paths]
    folders = [path.resolve().parent.name for path in paths]
    names: list[str] = []
    for level in (
        [run.host if run else "" for run in recorded],
        [_COMMON.sub("", strip_suffixes(path.name)) for path in paths],
        folders,
        [path.name for path in paths],
        [f"{folder}-{path.name}" for folder, path in zip(folders, paths, strict=True)],
    ):
        names = [clean(name) for name in level]
        if all(names[one] != names[other] for one, other in clashes) and all(
            name or log.given.beside for name, log in zip(names, logs, strict=True)
        ):
            break
    else:
        names = [f"{name}-{place}" for place, name in enumerate(names)]
    gpus = {name for name, log in zip(names, logs, strict=True) if not log.given.beside}
    clashing = {place for pair in clashes for place in pair}
    return [name if name in gpus or place in clashing else None for place, name in enumerate(names)]


def name_device(device: Device, node: str | None, known: dict[str, Device], taken: Collection[str]) -> Device:
    """Return a device under the id it has in the run; `taken` are those of other devices of its log."""
    before = "" if node is None else f"{node}/"
    here = [each for each in known.values() if each.node == node]
    same = find_same_device(replace(device, id=before + device.id), [each for each in here if each.id not in taken])
    if same is not None:
        return replace(device, id=same.id, index=same.index, node=node)
    index, own = device.index, device.id
    if index is not None:
        if before + own in known:
            indices = {each.index for each in here}
            index = next(free for free in range(len(indices) + 1) if free not in indices)
        own = f"gpu:{index}"
    return replace(device, id=before + own, index=index, node=node)
