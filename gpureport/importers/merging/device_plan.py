"""Which devices of several logs are the same, and their names in the run; reads no log."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from gpureport.importers.merging.node_names import name_nodes
from gpureport.importers.merging.shared_devices import LogContents, Pair, Relation, compare_logs
from gpureport.recording import Device

_NAMES = ("uuid", "bus_id", "serial")
"""What identifies a GPU of a machine, the most reliable first."""
_NAMED = 3
"""At most so many logs are named in a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlan:
    """The devices of several logs and their names in the run.

    Attributes:
        order: the logs by time.
        names: for each log, as given, the id in the run of each of its device ids.
        devices: the devices of the run.
        notes: how devices were identified, where a reader must know.
    """

    order: tuple[int, ...]
    names: tuple[dict[str, str], ...]
    devices: tuple[Device, ...]
    notes: tuple[str, ...] = ()


def plan_devices(logs: Sequence[LogContents], alike: Collection[Pair] = ()) -> DevicePlan:
    """Return what the devices are called when the logs are one run.

    A GPU is told by its uuid, else its PCI address, its serial number or its id. A device that goes on in a later
    log is one device. Where two logs hold an id at the same time, and neither a uuid or serial number nor what they
    say of that time tells that it is one GPU, the logs are those of different nodes, and every device is named by its
    node.

    Args:
        logs: the logs.
        alike: those that do not say whose their devices are, and say the same of the time they share.
    """
    order = sorted(range(len(logs)), key=lambda place: logs[place].start)
    machines = _MachineGroups.from_logs(logs, alike)
    nodes = machines.nodes(logs)
    known: dict[str, Device] = {}
    names: list[dict[str, str]] = [{} for _ in logs]
    for place in order:
        for device in logs[place].devices:
            named = _named(device, nodes[place], known, taken=names[place].values())
            known[named.id] = merge_devices(known[named.id], named) if named.id in known else named
            names[place][device.id] = named.id
    notes = tuple(machines.notes(logs, nodes))
    return DevicePlan(order=tuple(order), names=tuple(names), devices=tuple(known.values()), notes=notes)


@dataclass(frozen=True, slots=True)
class _MachineGroups:
    """Logs grouped by machine.

    Attributes:
        leaders: for each log the first one of the same machine, as far as is known.
        clashes: logs of different machines.
        alike: pairs of one machine, because they agree.
        guessed: pairs taken for different machines, because they disagree.
    """

    leaders: list[int]
    clashes: set[Pair]
    alike: list[Pair]
    guessed: list[Pair]

    @classmethod
    def from_logs(cls, logs: Sequence[LogContents], alike: Collection[Pair]) -> "_MachineGroups":
        """Group the logs by machine."""
        found = compare_logs(logs)
        if any(not logs[one].beside for one, _ in found.keys() - set(alike) - _ones(found)):
            # hosts of several nodes have host logs of their own, whatever they say
            alike = [pair for pair in alike if not logs[pair[0]].beside]
        leaders = _leaders(len(logs), {*alike, *_ones(found)})
        apart = [pair for pair in found if leaders[pair[0]] != leaders[pair[1]]]
        clashes = {(leaders[one], leaders[other]) for one, other in apart}
        guessed = [pair for pair in apart if found[pair] is Relation.UNTOLD]
        return cls(leaders, clashes, sorted(alike), guessed)

    def nodes(self, logs: Sequence[LogContents]) -> list[str | None]:
        """Return the node of each log."""
        if not self.clashes:
            return [None] * len(logs)
        leading = sorted(set(self.leaders))
        places = {leader: place for place, leader in enumerate(leading)}
        clashes = {(places[one], places[other]) for one, other in self.clashes}
        names = name_nodes([logs[leader] for leader in leading], clashes)
        return [names[places[leader]] for leader in self.leaders]

    def notes(self, logs: Sequence[LogContents], nodes: Sequence[str | None]) -> Iterator[str]:
        """Yield what a reader must know."""
        if self.guessed:
            places = sorted({place for pair in self.guessed for place in pair})
            machines = _listed(list(dict.fromkeys(nodes[place] or logs[place].locator for place in places)))
            yield (
                f"{_listed([logs[place].locator for place in places])} hold the same numbers at the same time with "
                f"other readings, so they are taken for logs of several machines: {machines}. "
                "A uuid among their columns would tell."
            )
        if self.alike:
            places = sorted({place for pair in self.alike for place in pair})
            yield (
                f"{_listed([logs[place].locator for place in places])} say the same of the time they share, so they "
                "are taken for logs of one machine."
            )


def _ones(found: dict[Pair, Relation]) -> set[Pair]:
    return {pair for pair, relation in found.items() if relation is Relation.ONE}


def _leaders(count: int, pairs: Collection[Pair]) -> list[int]:
    """Return for each log the first of those that pairs connect it with."""
    leaders = list(range(count))
    for pair in pairs:
        low, high = sorted(leaders[place] for place in pair)
        leaders = [low if leader == high else leader for leader in leaders]
    return leaders


def _listed(names: list[str]) -> str:
    """Return names in words, the first of many only."""
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} more"]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _named(device: Device, node: str | None, known: dict[str, Device], taken: Collection[str]) -> Device:
    """Return a device under the id it has in the run; `taken` are those of other devices of its log."""
    here = [each for each in known.values() if each.node == node]
    same = find_same_device(device, [each for each in here if each.id not in taken], node)
    if same is not None:
        return replace(device, id=same.id, index=same.index, node=node)
    index = device.index
    if index is not None and _id(device.id, node) in known:
        indices = {each.index for each in here}
        index = next(free for free in range(len(indices) + 1) if free not in indices)
    return replace(device, id=_id(device.id if index is None else f"gpu:{index}", node), index=index, node=node)


def find_same_device(device: Device, here: Sequence[Device], node: str | None = None) -> Device | None:
    """Return the known device that a device is, by the surest of what both say of themselves.

    GPUs of one board share its serial number, so that among several the one of the same id is meant.
    """
    own = _id(device.id, node)
    likely = [each for each in here if not _differ(each, device)]
    for name in _NAMES:
        value = getattr(device, name)
        found = [each for each in likely if value is not None and getattr(each, name) == value]
        if found:
            return next((each for each in found if each.id == own), found[0])
    return next((each for each in likely if each.id == own), None)


def _differ(one: Device, other: Device) -> bool:
    """Return whether the surest of what both say of themselves is not the same."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in _NAMES)
    return next((mine != theirs for mine, theirs in pairs if mine is not None and theirs is not None), False)


def _id(own: str, node: str | None) -> str:
    return own if node is None else f"{node}/{own}"


def merge_devices(known: Device, device: Device) -> Device:
    """Return what two logs say of a device: what the first says, the lowest limit, the largest memory."""
    filled = {
        name: getattr(known, name) if getattr(known, name) not in {None, "unknown"} else getattr(device, name)
        for name in Device.__dataclass_fields__
    }
    for name, pick in (("power_limit_watts", min), ("memory_total_bytes", max), ("memory_reserved_bytes", max)):
        held = [value for value in (getattr(known, name), getattr(device, name)) if value is not None]
        filled[name] = pick(held) if held else None
    return Device(**filled)
