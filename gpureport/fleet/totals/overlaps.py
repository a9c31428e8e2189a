"""Runs that used the same GPU at the same time, so that its time is counted twice."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from math import fsum
from typing import TYPE_CHECKING

from gpureport.fleet.fleet_report import Overlap
from gpureport.fleet.totals.priced_gpu import PricedGpu

if TYPE_CHECKING:
    from gpureport.recording import Card

_MOST = 20
"""Overlaps that are listed."""

Pair = tuple[float, PricedGpu, PricedGpu]
"""Seconds that two runs share on a GPU, the earlier run first."""


def find_overlaps(gpus: Sequence[PricedGpu]) -> tuple[tuple[Overlap, ...], float]:
    """Return the longest overlaps, and the seconds that count more than once, each as often as it is too many.

    Times with and without a zone do not compare.
    """
    cards: defaultdict[tuple[Card, bool], list[PricedGpu]] = defaultdict(list)
    for gpu in gpus:
        card = gpu.summary.card
        if card and gpu.summary.started is not None and gpu.summary.ended is not None:
            cards[card, gpu.summary.timezone is None].append(gpu)
    longest = nsmallest(_MOST, (pair for own in cards.values() for pair in _compare_runs(own)), key=_rank)
    overlaps = (
        Overlap(card=name_card(one), runs=(one.run, other.run), seconds=seconds) for seconds, one, other in longest
    )
    return tuple(overlaps), fsum(_measure_excess(own) for own in cards.values())


def name_card(gpu: PricedGpu) -> str:
    """Return the uuid of a GPU, or its node and number there."""
    uuid, place = gpu.summary.uuid, gpu.summary.card
    return uuid or " ".join(place or ())


def _rank(pair: Pair) -> tuple[float, str, str, str]:
    seconds, one, other = pair
    return -seconds, name_card(one), one.summary.run_id, other.summary.run_id


def _compare_runs(gpus: Sequence[PricedGpu]) -> Iterator[Pair]:
    """Yield the overlaps on one GPU: each run with those that begin before it ends."""
    under_way: list[tuple[int, PricedGpu]] = []
    for start, end, gpu in _sort_spans(gpus):
        under_way = [(until, other) for until, other in under_way if until > start]
        for until, other in under_way:
            if other.summary.run_id != gpu.summary.run_id:
                yield (min(end, until) - start) / 1e6, other, gpu
        under_way.append((end, gpu))


def _measure_excess(gpus: Sequence[PricedGpu]) -> float:
    """Return by how much the seconds of all runs of one GPU exceed those with any run."""
    spans = _sort_spans([*{gpu.summary.run_id: gpu for gpu in gpus}.values()])
    excess, busy_until = 0, spans[0][0]
    for start, end, _ in spans:
        excess += max(min(end, busy_until) - start, 0)
        busy_until = max(busy_until, end)
    return excess / 1e6


def _sort_spans(gpus: Sequence[PricedGpu]) -> list[tuple[int, int, PricedGpu]]:
    return sorted(((gpu.summary.started or 0, gpu.summary.ended or 0, gpu) for gpu in gpus), key=_by_start)


def _by_start(span: tuple[int, int, PricedGpu]) -> tuple[int, int, str]:
    return span[0], span[1], span[2].summary.run_id
