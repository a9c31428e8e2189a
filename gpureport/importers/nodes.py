"""Which GPUs of several logs of a run are one, and of which machine each log is: by their names, else by readings."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from gpureport.importers.run_facts import strip_suffixes
from gpureport.importers.surveys import Log, read_same_gpus, spans_overlap
from gpureport.record_folder import name_log, read_run_file
from gpureport.recording import Device

Pair = tuple[int, int]
"""Two logs by their places among all, the lower first."""
_IDENTITY = ("uuid", "bus_id", "serial")
"""What identifies a GPU of a machine, the most reliable first."""
_UNIQUE = ("uuid", "serial")
"""What no two GPUs of different machines share."""
_LISTED = 3
"""At most so many logs are named in a note."""
_COMMON = re.compile(r"(?:^|[-_.])(?:nvidia[-_]?smi|smi|gpus?|hosts?|cpu|metrics|log)(?=$|[-_.])", re.IGNORECASE)


def state_same_device(one: Device, other: Device, names: Sequence[str] = _UNIQUE) -> bool | None:
    """Return whether two devices are one by the first of these attributes that both have; None where there is none."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in names)
    return next((mine == theirs for mine, theirs in pairs if mine is not None and theirs is not None), None)


def models_differ(one: Device, other: Device) -> bool:
    """Return whether two GPUs are of different models; tools shorten names."""
    known = one.model is not None and other.model is not None
    return known and str(one.model) not in str(other.model) and str(other.model) not in str(one.model)


def find_same_device(device: Device, known: Sequence[Device]) -> Device | None:
    """Return the known device that a device is, by the surest of what both say of themselves, else by its id.

    GPUs of one board share its serial number, so that among several the one of the same id is meant.
    """
    told = [(state_same_device(each, device, _IDENTITY), each) for each in known]
    named = [each for same, each in told if same]
    by_id = (each for same, each in told if same is not False and each.id == device.id)
    return next((each for each in named if each.id == device.id), named[0] if named else next(by_id, None))


def match_devices(known: Sequence[Device], devices: Sequence[Device]) -> list[tuple[Device, Device]]:
    """Return pairs of a known GPU and the same one of another log."""
    pairs: list[tuple[Device, Device]] = []
    for device in devices:
        taken = {one.id for one, _ in pairs}
        found = find_same_device(device, [each for each in known if each.id not in taken])
        pairs += [] if found is None else [(found, device)]
    return pairs


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


def find_nodes(logs: Sequence[Log]) -> tuple[list[str | None], list[str]]:
    """Return the node of each log, None where all are of one machine, and how that is known."""
    pairs = combinations(range(len(logs)), 2)
    told = {pair: same for pair in pairs if (same := relate_logs(logs[pair[0]], logs[pair[1]]))}
    if any(same in {"apart", "untold"} and not logs[one].given.beside for (one, _), same in told.items()):
        # hosts of several nodes have host logs of their own, whatever they say
        told |= {pair: "untold" for pair, same in told.items() if same == "alike" and logs[pair[0]].given.beside}
    leaders = list(range(len(logs)))
    for pair in (pair for pair, same in told.items() if same in {"same", "alike"}):
        low, high = sorted(leaders[place] for place in pair)
        leaders = [low if leader == high else leader for leader in leaders]
    apart = [pair for pair in told if leaders[pair[0]] != leaders[pair[1]]]
    nodes: list[str | None] = [None] * len(logs)
    if apart:
        clashes = {(leaders[one], leaders[other]) for one, other in apart}
        names = _name_nodes([logs[leader] for leader in leaders], clashes)
        nodes = [names[leader] for leader in leaders]
    notes = []
    if guessed := sorted({place for pair in apart if told[pair] == "untold" for place in pair}):
        machines = _list_some([nodes[place] or logs[place].given.locator for place in guessed])
        notes.append(
            f"{_list_some([logs[place].given.locator for place in guessed])} hold the same numbers at the same time "
            f"with other readings, so they are taken for logs of several machines: {machines}. "
            "A uuid among their columns would tell."
        )
    if copies := sorted({place for pair, same in told.items() if same == "alike" for place in pair}):
        notes.append(
            f"{_list_some([logs[place].given.locator for place in copies])} say the same of the time they share, so "
            "they are taken for logs of one machine."
        )
    return nodes, notes


def relate_logs(one: Log, other: Log, *, copies: bool = True) -> str:
    """Return what two logs are to each other by the GPUs that both hold at the same time; empty where there is none.

    They are of one machine where a uuid or serial number is the `same`, and of machines `apart` where names contradict
    each other. Where nothing is stated they are `alike` by their readings, and by equal rows if `copies` count, or
    `untold`.
    """
    together = {
        (mine, theirs)
        for mine, span in one.spans.items()
        for theirs, other_span in other.spans.items()
        if spans_overlap(span, other_span)
    }
    matched = match_devices(one.gpus or one.outcome.devices, other.gpus or other.outcome.devices)
    pairs = [(mine, theirs) for mine, theirs in matched if (mine.id, theirs.id) in together]
    if any(state_same_device(mine, theirs) for mine, theirs in pairs):
        return "same"
    if not pairs or any(models_differ(mine, theirs) for mine, theirs in pairs):
        return "apart" if any(mine == theirs for mine, theirs in together) else ""
    ids = [(mine.id, theirs.id) for mine, theirs in pairs]
    return "alike" if read_same_gpus(one, other, ids, copies=copies) else "untold"


def _list_some(names: Sequence[str]) -> str:
    """Return names in words, the first of many only."""
    names = list(dict.fromkeys(names))
    if len(names) > _LISTED + 1:
        names = [*names[:_LISTED], f"{len(names) - _LISTED} more"]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _name_nodes(logs: Sequence[Log], clashes: Collection[Pair]) -> list[str | None]:
    """Return a node for each log, by its recording, or by file or folder: the shortest names that differ.

    A host log that bears the name of no GPU log is one of no particular node.
    """
    paths = [Path(log.given.locator) for log in logs]
    recorded = [read_run_file(path.parent) if name_log(path) else None for path in paths]
    folders = [path.resolve().parent.name for path in paths]
    levels = (
        [run.host if run else "" for run in recorded],
        [_COMMON.sub("", strip_suffixes(path.name)) for path in paths],
        folders,
        [f"{folder[:15]}-{path.name[:15]}-{n}" for n, (folder, path) in enumerate(zip(folders, paths, strict=True))],
    )
    names: list[str] = []
    for level in levels:
        names = [re.sub(r"[^\w.-]+", "_", name).strip("-_.")[:40] for name in level]
        differ = all(names[one] != names[other] for one, other in clashes)
        if differ and all(name or log.given.beside for name, log in zip(names, logs, strict=True)):
            break
    gpus = {name for name, log in zip(names, logs, strict=True) if not log.given.beside}
    clashing = {place for pair in clashes for place in pair}
    return [name if name in gpus or place in clashing else None for place, name in enumerate(names)]
