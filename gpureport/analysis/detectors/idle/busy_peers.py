"""What the other GPUs of a job did in the gaps of each: one pass over the GPUs, each looked at for all gaps at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.stretch_means import average_stretches, find_stretch_rows
from gpureport.columns import FloatArray, IntArray
from gpureport.findings import Interval

POWER = "gpu_power_watts"
HANG = 60.0  # s; ranks of one job do not wait this long for each other
PEERS = 0.9  # share of the gap in which another GPU worked, with room for its own pauses
_AT_WORK = 0.5
"""Utilisation above which a GPU works more than not."""
_MOST_ROWS = 2**20
"""Rows within gaps that are looked at together, at least one gap at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerActivity:
    """What the other GPUs did in a gap.

    Attributes:
        utilisation: their mean, the lowest of all; 0 where none is known.
        power_ratio: their mean power as a share of their median at work outside the gap, the highest of all; NaN
            without that of every one.
    """

    utilisation: float
    power_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gaps:
    """Gaps of several GPUs: owner, start and end a gap."""

    owners: tuple[str, ...]
    starts: IntArray
    ends: IntArray

    def select(self, places: IntArray) -> "_Gaps":
        owners = tuple(self.owners[place] for place in places.tolist())
        return _Gaps(owners=owners, starts=self.starts[places], ends=self.ends[places])


def find_peer_activity(
    peers: Mapping[str, DeviceSeries], gaps_by_device: Mapping[str, Sequence[Interval]], still: float
) -> dict[str, list[PeerActivity | None]]:
    """Return what the other GPUs did in each gap; None for a short one, and for one in which no other worked.

    Args:
        peers: the GPUs that work in the job, keyed by device id; each is no peer of its own.
        gaps_by_device: the gaps, keyed by device id.
        still: utilisation up to which a GPU does not work.
    """
    every = [(device, gap) for device, gaps in gaps_by_device.items() for gap in gaps]
    gaps = _Gaps(
        owners=tuple(device for device, _ in every),
        starts=np.array([gap.start for _, gap in every], dtype=np.int64),
        ends=np.array([gap.end for _, gap in every], dtype=np.int64),
    )
    seconds = (gaps.ends - gaps.starts) / 1e6
    long = np.flatnonzero(seconds >= HANG)
    busy = long[_measure_longest_work(peers, gaps.select(long), still) >= PEERS * seconds[long]]
    activities = dict(zip(busy.tolist(), _measure_activity(peers, gaps.select(busy)), strict=True))
    places = iter(range(len(every)))
    return {device: [activities.get(next(places)) for _ in own] for device, own in gaps_by_device.items()}


def _list_foreign_gaps(peers: Mapping[str, DeviceSeries], gaps: _Gaps) -> Iterator[tuple[DeviceSeries, IntArray]]:
    """Yield each peer with the places of the gaps of other GPUs."""
    owners = np.array(gaps.owners, dtype=np.str_)
    for name, series in peers.items() if len(owners) else ():
        yield series, np.flatnonzero(owners != name)


def _measure_longest_work(peers: Mapping[str, DeviceSeries], gaps: _Gaps, still: float) -> FloatArray:
    """Return for how many seconds of each gap the GPU worked that worked most in it; -1 where there is no other."""
    longest = np.full(len(gaps.owners), -1.0)
    for series, places in _list_foreign_gaps(peers, gaps):
        rows = series.values(UTILISATION) > still
        busy = intervals.rows_to_spans(series.start, series.end, rows) - series.shift
        worked = intervals.overlap_seconds(gaps.starts[places], gaps.ends[places], busy)
        longest[places] = np.maximum(longest[places], worked)
    return longest


def _measure_activity(peers: Mapping[str, DeviceSeries], gaps: _Gaps) -> Iterator[PeerActivity]:
    lowest, highest = np.full(len(gaps.owners), np.inf), np.full(len(gaps.owners), -np.inf)
    for series, places in _list_foreign_gaps(peers, gaps):
        first, stop = find_stretch_rows(series, gaps.starts[places], gaps.ends[places])
        used, power = series.values(UTILISATION), series.values(POWER)
        lowest[places] = np.fmin(lowest[places], average_stretches(used, first, stop))
        at_work = np.flatnonzero((used > _AT_WORK) & (power > 0))
        outside = compute_medians_outside(power[at_work], *np.searchsorted(at_work, [first, stop]))
        # a median of watts above 0
        ratio = average_stretches(power, first, stop) / outside
        highest[places] = np.maximum(highest[places], ratio)
    for utilisation, ratio in zip(lowest.tolist(), highest.tolist(), strict=True):
        yield PeerActivity(utilisation=0.0 if utilisation == np.inf else utilisation, power_ratio=ratio)


def compute_medians_outside(values: FloatArray, first: IntArray, stop: IntArray) -> FloatArray:
    """Return the median of the values outside each stretch of rows [first, stop); NaN where none are left."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(values))
    left = len(values) - (stop - first)
    medians = np.full(len(first), np.nan)
    lengths = np.cumsum(stop - first)
    chunks = np.flatnonzero(np.diff(lengths // _MOST_ROWS)) + 1
    for part in np.split(np.flatnonzero(left > 0), np.searchsorted(np.flatnonzero(left > 0), chunks)):
        middles = [_find_places_outside(ranks, first[part], stop[part], each) for each in _middles(left[part])]
        medians[part] = sum(values[order[place]] for place in middles) / 2
    return medians


def _middles(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the places of the two middle ones of so many values, the same one twice where the count is odd."""
    return (counts - 1) // 2, counts // 2


def _find_places_outside(ranks: IntArray, first: IntArray, stop: IntArray, places: IntArray) -> IntArray:
    """Return which place of all ordered values the given place of those outside each stretch is.

    As many places further as values of the stretch lie up to there: the least solution, found from below.
    """
    lengths = stop - first
    owners = np.repeat(np.arange(len(first)), lengths)
    inside = ranks[np.arange(len(owners)) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)]
    found, last = places, None
    while last is None or (found != last).any():
        last = found
        found = places + np.bincount(owners[inside <= last[owners]], minlength=len(first))
    return found
