"""Runs of a comparison that used the same GPUs at the same time, whose readings are of both."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from gpureport import label_tags
from gpureport.recording import Run

_MOSTLY = 0.5
"""Share of the shorter run in which another ran from which the readings are of both (pragmatic)."""

_UUID = "uuid"

Card = tuple[str, str]
"""A GPU by its uuid, else by its node and its number there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrentRuns:
    """Two runs that used the same GPUs at the same time.

    Attributes:
        names: what a person calls them, the earlier in the comparison first.
        gpus: how many GPUs they shared.
        node: where the GPUs are known by their numbers there alone; empty where uuids tell. Jobs that each see one GPU
            of a node call it 0, so they may not have shared it.
    """

    names: tuple[str, str]
    gpus: int
    node: str


def find_concurrent_runs(runs: Iterable[Run]) -> ConcurrentRuns | None:
    """Return the first two runs that shared a GPU for most of the shorter one; None where none are known to have."""
    for one, other in combinations(runs, 2):
        shared = set(_list_cards(one)) & set(_list_cards(other))
        if shared and one.id != other.id and _are_concurrent(one, other):
            nodes = {place for place, _ in shared if place != _UUID}
            return ConcurrentRuns(names=(one.name, other.name), gpus=len(shared), node=min(nodes, default=""))
    return None


def _list_cards(run: Run) -> Iterator[Card]:
    """Yield the GPUs of a run that are known by more than their number."""
    whole = label_tags.find_label(run.params_and_tags, "node")
    for gpu in run.gpus:
        node = gpu.node or whole
        if gpu.uuid or node:
            yield (_UUID, gpu.uuid) if gpu.uuid else (node or "", gpu.id.rpartition("/")[2])


def _are_concurrent(one: Run, other: Run) -> bool:
    """Return whether two runs overlap; times with and without a zone, or made up, do not compare."""
    if (one.timezone is None) != (other.timezone is None):
        return False
    if one.quality.synthetic_time or other.quality.synthetic_time:
        return False
    shared = min(one.ended, other.ended) - max(one.started, other.started)
    return shared > _MOSTLY * min(one.ended - one.started, other.ended - other.started)
