"""Which devices of several logs are the same, of which machine they are, and what they are called in the run."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from gpureport.importers.run_facts import strip_suffixes
from gpureport.importers.surveys import Log, Span, compare_readings, spans_overlap
from gpureport.record_folder import name_log, read_run_file
from gpureport.recording import Device

Pair = tuple[int, int]
"""Two logs by their places among all, the lower first."""
_IDENTITY = ("uuid", "bus_id", "serial")
"""What identifies a GPU of a machine, the most reliable first."""
_NAMED = 3
"""At most so many logs are named in a note."""
_COMMON = re.compile(r"(?:^|[-_.])(?:nvidia[-_]?smi|smi|gpus?|hosts?|cpu|metrics|log)(?=$|[-_.])", re.IGNORECASE)


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
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} more"]
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
