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


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerActivity:
    """What the other GPUs did in a gap.

    Attributes:
        utilisation: their mean, the lowest of all; 0 where none is known.
        power_ratio: their mean power as a share of their median at work outside these gaps, the highest of all; NaN
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
        at_work = (used > _AT_WORK) & (power > 0)
        for begin, past in zip(first.tolist(), stop.tolist(), strict=True):
            at_work[begin:past] = False
        # a median of watts above 0
        ratio = average_stretches(power, first, stop) / (np.median(power[at_work]) if at_work.any() else np.nan)
        highest[places] = np.maximum(highest[places], ratio)
    for utilisation, ratio in zip(lowest.tolist(), highest.tolist(), strict=True):
        yield PeerActivity(utilisation=0.0 if utilisation == np.inf else utilisation, power_ratio=ratio)
