"""Runs of a comparison that used the same GPUs at the same time, whose readings are of both."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from gpureport import label_tags
from gpureport.comparison.steps.folder_order import share_a_clock
from gpureport.recording import UUID, Card, Run, identify_card

_MOSTLY = 0.5
"""Share of the shorter run in which another ran from which the readings are of both (pragmatic)."""


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
            known = {card for card in shared if card[0] == UUID}
            node = "" if known else min(place for place, _ in shared)
            return ConcurrentRuns(names=(one.name, other.name), gpus=len(known or shared), node=node)
    return None


def _list_cards(run: Run) -> Iterator[Card]:
    """Yield the GPUs of a run that are known by more than their number."""
    whole = label_tags.find_label(run.params_and_tags, "node")
    for gpu in run.gpus:
        node = gpu.node or whole
        if (card := identify_card(gpu.uuid, node, gpu.id)) is not None:
            yield card


def _are_concurrent(one: Run, other: Run) -> bool:
    """Return whether two runs overlap by most of the shorter one."""
    if not share_a_clock([one, other]):
        return False
    shared = min(one.ended, other.ended) - max(one.started, other.started)
    return shared > _MOSTLY * min(one.ended - one.started, other.ended - other.started)
