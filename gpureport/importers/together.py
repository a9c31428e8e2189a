"""Which devices of several logs of one run are the same, and what they are called; nothing is read here."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.recording import Device

Span = tuple[int, int]
SLACK = 5_000_000
"""Time that two rotated logs may share, in microseconds (pragmatic)."""
_SUFFIX = re.compile(r"\.(?:gz|zst|bz2|xz|csv|log|txt|out|\d+)$|[-_.]\d{8}(?:[-_T]?\d{4,6})?$", re.IGNORECASE)
_COMMON = re.compile(r"(?:^|[-_.])(?:nvidia[-_]?smi|smi|gpus?|hosts?|cpu|metrics|log)(?=$|[-_.])", re.IGNORECASE)
_LONGEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """What one log of a run holds.

    Attributes:
        locator: what a person called it.
        devices: its devices.
        spans: first and last time of each, in microseconds, by id.
        beside: whether it lies beside the logs of GPUs.
    """

    locator: str
    devices: tuple[Device, ...]
    spans: dict[str, Span]
    beside: bool = False

    @property
    def start(self) -> int:
        """Its first time."""
        return min(start for start, _ in self.spans.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the devices of several logs are called in their run.

    Attributes:
        order: the logs by time.
        names: for each log, as given, the id in the run of each of its device ids.
        devices: the devices of the run.
    """

    order: tuple[int, ...]
    names: tuple[dict[str, str], ...]
    devices: tuple[Device, ...]


def plan(logs: Sequence[Logged]) -> Plan:
    """Return what the devices are called when the logs are one run.

    A GPU is told by its uuid, else its PCI address, else its id. A device that goes on in a later log is one
    device. Where two logs hold an id at the same time and no uuid says that it is one GPU, the logs are those of
    different nodes, and every device is named by its node.

    Raises:
        SourceError: when two logs hold the same GPU at the same time.
    """
    order = sorted(range(len(logs)), key=lambda place: logs[place].start)
    clashes = [pair for pair in combinations(range(len(logs)), 2) if _clash(*(logs[place] for place in pair))]
    nodes = node_names(logs, clashes) if clashes else [None] * len(logs)
    known: dict[str, Device] = {}
    names: list[dict[str, str]] = [{} for _ in logs]
    for place in order:
        for device in logs[place].devices:
            named = _named(device, nodes[place], known)
            known[named.id] = _merged(known[named.id], named) if named.id in known else named
            names[place][device.id] = named.id
    return Plan(order=tuple(order), names=tuple(names), devices=tuple(known.values()))


def _clash(one: Logged, other: Logged) -> bool:
    """Return whether two logs hold an id at the same time that is not one device."""
    for mine in one.devices:
        for theirs in other.devices:
            if not overlap(one.spans[mine.id], other.spans[theirs.id]):
                continue
            if mine.uuid is not None and mine.uuid == theirs.uuid:
                what = f"it holds {theirs.id} at the same time as {one.locator}"
                raise SourceError(other.locator, what, "leave one of them out")
            if mine.id == theirs.id:
                return True
    return False


def overlap(one: Span, other: Span) -> bool:
    """Return whether two spans share more time than a rotation may leave in both logs."""
    shared = min(one[1], other[1]) - max(one[0], other[0])
    shorter = min(one[1] - one[0], other[1] - other[0])
    return shared > min(SLACK, shorter / 2) or shared == shorter == 0


def _named(device: Device, node: str | None, known: dict[str, Device]) -> Device:
    """Return a device under the id it has in the run."""
    here = [each for each in known.values() if each.node == node]
    same = _same(device, here, node)
    if same is not None:
        return replace(device, id=same.id, index=same.index, node=node)
    index = device.index
    if index is not None and _id(device.id, node) in known:
        taken = {each.index for each in here}
        index = next(free for free in range(len(taken) + 1) if free not in taken)
    return replace(device, id=_id(device.id if index is None else f"gpu:{index}", node), index=index, node=node)


def _same(device: Device, here: Sequence[Device], node: str | None) -> Device | None:
    """Return the known device that a device is, by the surest of what both say of themselves."""
    for name in ("uuid", "bus_id"):
        value = getattr(device, name)
        found = next((each for each in here if value is not None and getattr(each, name) == value), None)
        if found is not None and (name == "uuid" or None in {found.uuid, device.uuid}):
            return found
    found = next((each for each in here if each.id == _id(device.id, node)), None)
    return found if found is not None and not _differ(found, device) else None


def _differ(one: Device, other: Device) -> bool:
    """Return whether the surest of what both say of themselves is not the same."""
    pairs = ((one.uuid, other.uuid), (one.bus_id, other.bus_id))
    return next((mine != theirs for mine, theirs in pairs if mine is not None and theirs is not None), False)


def _id(own: str, node: str | None) -> str:
    return own if node is None else f"{node}/{own}"


def _merged(known: Device, device: Device) -> Device:
    """Return what two logs say of a device: what the first says, the lowest limit, the largest memory."""
    filled = {
        name: getattr(known, name) if getattr(known, name) not in {None, "unknown"} else getattr(device, name)
        for name in Device.__dataclass_fields__
    }
    for name, pick in (("power_limit_watts", min), ("memory_total_bytes", max), ("memory_reserved_bytes", max)):
        held = [value for value in (getattr(known, name), getattr(device, name)) if value is not None]
        filled[name] = pick(held) if held else None
    return Device(**filled)


def node_names(logs: Sequence[Logged], clashes: Sequence[tuple[int, int]]) -> list[str | None]:
    """Return a node for each log, from file or folder names: the shortest that tell apart those that clash.

    A host log that bears the name of no GPU log is one of no particular node.
    """
    for level in _LEVELS:
        names = [level(Path(log.locator)) for log in logs]
        told = all(names[one] != names[other] for one, other in clashes)
        if told and all(name or log.beside for name, log in zip(names, logs, strict=True)):
            break
    else:
        names = [f"{name}-{place}" for place, name in enumerate(names)]
    gpus = {name for name, log in zip(names, logs, strict=True) if not log.beside}
    clashing = {place for pair in clashes for place in pair}
    return [name if name in gpus or place in clashing else None for place, name in enumerate(names)]


def bare(name: str) -> str:
    """Return a file name without the suffixes of its kind, its compression and its rotation."""
    while (shorter := _SUFFIX.sub("", name)) not in {name, ""}:
        name = shorter
    return name


def _clean(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip("-_.")[:_LONGEST]


def _folder(path: Path) -> str:
    return _clean(path.resolve().parent.name)


_LEVELS: tuple[Callable[[Path], str], ...] = (
    lambda path: _clean(_COMMON.sub("", bare(path.name))),
    _folder,
    lambda path: _clean(path.name),
    lambda path: _clean(f"{_folder(path)}-{path.name}"),
)
