"""What logs of one run hold, and which of them hold the same device at the same time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from gpureport.recording import Device

Span = tuple[int, int]
Pair = tuple[int, int]
"""Two logs by their places among all, the lower first."""
SLACK = 5_000_000
"""Time that two rotated logs may share without any look at what they say of it, in microseconds (pragmatic)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogContents:
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


class Relation(Enum):
    """What two logs that hold a device at the same time are to each other, by what they say of the device.

    ONE hold the same GPU by its uuid or serial number; APART hold two under one id; UNTOLD say nothing but the id.
    """

    ONE = "one"
    APART = "apart"
    UNTOLD = "untold"


def compare_logs(logs: Sequence[LogContents]) -> dict[Pair, Relation]:
    """Return the pairs of logs that hold a device at the same time, and what they are to each other."""
    pairs = combinations(range(len(logs)), 2)
    found = {(one, other): _compare_pair(logs[one], logs[other]) for one, other in pairs}
    return {pair: relation for pair, relation in found.items() if relation is not None}


def _compare_pair(one: LogContents, other: LogContents) -> Relation | None:
    found = None
    for mine in one.devices:
        for theirs in other.devices:
            if not spans_overlap(one.spans[mine.id], other.spans[theirs.id]):
                continue
            told = _are_same_device(mine, theirs)
            if told:
                return Relation.ONE
            if mine.id == theirs.id and found is not Relation.APART:
                found = Relation.UNTOLD if told is None else Relation.APART
    return found


def _are_same_device(one: Device, other: Device) -> bool | None:
    """Return whether two devices are one by what no two GPUs share, None when they do not both say it."""
    pairs = ((one.uuid, other.uuid), (one.serial, other.serial))
    return next((mine == theirs for mine, theirs in pairs if mine is not None and theirs is not None), None)


def spans_overlap(one: Span, other: Span) -> bool:
    """Return whether two spans share more time than a rotation may leave in both logs."""
    shared = min(one[1], other[1]) - max(one[0], other[0])
    shorter = min(one[1] - one[0], other[1] - other[0])
    return shared > min(SLACK, shorter / 2) or shared == shorter == 0


def any_overlap(spans: Iterable[Span]) -> bool:
    """Return whether any two of several spans overlap; only those that touch are compared."""
    going_on: list[Span] = []
    for span in sorted(spans):
        going_on = [other for other in going_on if other[1] >= span[0]]
        if any(spans_overlap(other, span) for other in going_on):
            return True
        going_on.append(span)
    return False
