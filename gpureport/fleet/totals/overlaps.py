"""Runs that used the same GPU at the same time, so that its time is counted twice."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from math import fsum

from gpureport.fleet.fleet_report import Overlap
from gpureport.fleet.totals.priced_gpu import PricedGpu

_MOST = 20
"""Overlaps that are listed."""

Pair = tuple[float, PricedGpu, PricedGpu]
"""Seconds that two runs share on a GPU, the earlier run first."""


def find_overlaps(gpus: Sequence[PricedGpu]) -> tuple[tuple[Overlap, ...], float]:
    """Return the longest overlaps, and the seconds of all of them; times with and without a zone do not compare."""
    cards: defaultdict[tuple[str, bool], list[PricedGpu]] = defaultdict(list)
    for gpu in gpus:
        if gpu.summary.uuid and gpu.summary.started is not None and gpu.summary.ended is not None:
            cards[gpu.summary.uuid, gpu.summary.timezone is None].append(gpu)
    found = [pair for own in cards.values() for pair in _compare_runs(own)]
    longest = nsmallest(_MOST, found, key=_rank)
    overlaps = (
        Overlap(card=one.summary.uuid or "", runs=(one.run, other.run), seconds=seconds)
        for seconds, one, other in longest
    )
    return tuple(overlaps), fsum(seconds for seconds, _, _ in found)


def _rank(pair: Pair) -> tuple[float, str, str, str]:
    seconds, one, other = pair
    return -seconds, one.summary.uuid or "", one.summary.run_id, other.summary.run_id


def _compare_runs(gpus: Sequence[PricedGpu]) -> Iterator[Pair]:
    """Yield the overlaps on one GPU: each run with those that begin before it ends."""
    spans = sorted(((gpu.summary.started or 0, gpu.summary.ended or 0, gpu) for gpu in gpus), key=_by_start)
    under_way: list[tuple[int, PricedGpu]] = []
    for start, end, gpu in spans:
        under_way = [(until, other) for until, other in under_way if until > start]
        for until, other in under_way:
            if other.summary.run_id != gpu.summary.run_id:
                yield (min(end, until) - start) / 1e6, other, gpu
        under_way.append((end, gpu))


def _by_start(span: tuple[int, int, PricedGpu]) -> tuple[int, int, str]:
    return span[0], span[1], span[2].summary.run_id
