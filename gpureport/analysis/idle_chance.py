"""How many low samples in a row would surprise, where each sample is a point and not the whole interval."""

from dataclasses import dataclass, field

import numpy as np

from gpureport.analysis.idle_power import RelativePower
from gpureport.columns import BoolArray, FloatArray, IntArray

_DENSE = 0.2
_LONG_RUN = 0.6
_LONG_ROWS = 4
_EDGE, _EDGES = 0.5, 0.4
"""Share of the usual work below which a reading beside a low run is its edge, and share of such that show a beat.

Chosen: where utilisation covers half of an interval, one in five of those beside pauses is, and half of those of beats.
"""
_RUN, _RUNS, _APART = 3, 8, 20
"""Readings of a low run and runs that show a beat, and readings from one run to the next at most. Chosen."""
_EVEN = 0.3
"""How far eight of ten lengths or distances of a beat lie apart, of the usual one; at least two readings. Chosen."""
_OTHER = 3
"""How much longer than the usual run of a beat one is that is none of it. Chosen, not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """The samples of one GPU that a run of low ones is judged by.

    Attributes:
        low: which samples are low.
        job: which lie in the job window.
        first: first row of each run of low samples.
        stop: past-the-end row of each run.
        level: probability with which chance samples may hold such a run anywhere.
        neighbours: samples each side that are looked at.
        rows: number of samples in the job window.
    """

    low: BoolArray
    job: BoolArray
    first: IntArray
    stop: IntArray
    level: float
    neighbours: int
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        """Count the samples of the job once."""
        object.__setattr__(self, "rows", int(self.job.sum()))

    def needed(self, begin: int, past: int) -> int:
        """Return the shortest run that surprises in the place of rows [begin, past).

        With a share p of low samples around, of m, k in a row are expected m * p^k times by chance. Long low runs
        around are left out of p: they are gaps themselves. Where low samples are common, the run could have come
        up anywhere in the job, and m is all its samples.
        """
        left, right = max(begin - self.neighbours, 0), min(past + self.neighbours, len(self.low))
        around = self.job[left:right].copy()
        around[begin - left : past - left] = False
        longest = max(_LONG_ROWS, _LONG_RUN * (past - begin))
        near = slice(int(np.searchsorted(self.stop, left, side="right")), int(np.searchsorted(self.first, right)))
        for start, end in zip(self.first[near].tolist(), self.stop[near].tolist(), strict=True):
            if end - start >= longest:
                around[max(start - left, 0) : end - left] = False
        count = int(around.sum())
        if count == 0:
            return 1
        share = (float(self.low[left:right][around].sum()) + 0.5) / (count + 1)
        places = count if share < _DENSE else max(self.rows, count)
        return int(np.ceil(np.log(self.level / places) / np.log(share)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Whether low samples may be an accident of sampling: by how many there are around, and by power beside them.

    Attributes:
        chance: how many would surprise.
        power: the power beside the samples.
        resting: height up to which it is that of rest.
        decisive: whether power sees what happens between samples, so that rest at each of them leaves no doubt.
        fewest: samples of a run at least.
    """

    chance: Chance
    power: RelativePower
    resting: float
    decisive: bool
    fewest: int

    def judge(self, begin: int, past: int, samples: int) -> tuple[int, float | None, bool]:
        """Return how many samples would surprise, the highest power of rows [begin, past), and whether doubt remains.

        Args:
            begin: first row of a run.
            past: past-the-end row.
            samples: its readings.
        """
        needed, highest_power = max(self.chance.needed(begin, past), self.fewest), self.power.highest(begin, past)
        doubtful = (samples < needed and not self.confirms(highest_power)) or self.power.works(begin, past)
        return needed, highest_power, doubtful

    def confirms(self, highest_power: float | None) -> bool:
        """Whether the highest power in a run says that the GPU was at rest all the time."""
        return self.decisive and highest_power is not None and highest_power <= self.resting


def beat_readings(values: FloatArray, chance: Chance) -> int:
    """Return below how many readings a run is one of a beat between steps and samples, 0 where there is no beat.

    Steps about as long as the distance of samples are met by one sample after the other a little later in the step:
    utilisation falls and rises slowly, and is low for some samples every few, though no pause is long. A pause begins
    and ends between two samples, and work beside it reads as everywhere else.

    Args:
        values: utilisation, one value a sample.
        chance: the samples, and the runs of low ones.
    """
    inside = (chance.first > 0) & (chance.stop < len(values)) & (chance.stop - chance.first >= _RUN)
    before, after = chance.first[inside] - 1, chance.stop[inside]
    within = chance.job[before] & chance.job[after]
    before, after = before[within], after[within]
    if len(before) < _RUNS or not (_is_even(after - before) and _is_even(np.diff(before), _APART)):
        return 0
    edges = values[np.append(before, after)] < _EDGE * np.median(values[chance.job & ~chance.low])
    return _OTHER * int(np.median(after - before - 1)) if edges.mean() >= _EDGES else 0


def _is_even(readings: IntArray, most: float = np.inf) -> bool:
    """Return whether lengths, or distances, are nearly all alike, and as usual no more than `most` readings."""
    low, usual, high = np.quantile(readings, [0.1, 0.5, 0.9])
    return bool(usual <= most and high - low <= max(2.0, _EVEN * usual))
