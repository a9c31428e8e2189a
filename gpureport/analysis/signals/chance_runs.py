"""How many low samples in a row are too many for chance, where each sample is a point and not the whole interval."""

from dataclasses import dataclass, field

import numpy as np

from gpureport.analysis.series.rest_to_work_power import RestToWorkPower
from gpureport.columns import BoolArray, FloatArray, IntArray

_DENSE = 0.2
_LONG_RUN = 0.6
_LONG_ROWS = 4
_EDGE, _EDGES = 0.5, 0.8
"""A reading beside a low run is an edge if it is below `_EDGE` of normal work. A beat needs at least `_EDGES` x
(covered share of the interval) of the neighbours to be edges.

The end of a pause falls into what a reading covers as often as that is long, and every other such reading is below
half: beside pauses 0.5 of the share of the interval that is covered are edges. Beside the low runs of a beat more are.
"""
_RUN, _RUNS, _APART, _NEARLY_ALL = 3, 8, 20, 0.9
"""Readings of a low run, runs, and readings from nine of ten runs to the next at most, that show a beat."""
_OTHER = 3
"""A low run this many times as long as the beat's usual run is not caused by the beat.

Measured on simulated loops of 0.9 to 1.2 s, 30 to 60% busy, 15 min each, sampled once a second with the windows of
A100, V100 and A10: where steps vary by 5%, 15, 15 and 16 gaps that are none remain of 409, 576 and 86, where they vary
by 15%, 116, 112 and 77 of 161, 211 and 77. Of pauses of 6 and 8 s after 6 to 14 s of work none of 650 is missed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChanceRunTest:
    """The samples of one GPU that a run of low ones is judged by.

    Attributes:
        low: which samples are low.
        job: which lie in the job window.
        first: first row of each run of low samples.
        stop: past-the-end row of each run.
        significance: probability with which chance samples may hold such a run anywhere.
        neighbours: samples each side that are looked at.
        rows: number of samples in the job window.
    """

    low: BoolArray
    job: BoolArray
    first: IntArray
    stop: IntArray
    significance: float
    neighbours: int
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        """Count the samples of the job once."""
        object.__setattr__(self, "rows", int(self.job.sum()))

    def find_shortest_significant_run(self, begin: int, past: int) -> int:
        """Return the shortest run that is too long for chance in the place of rows [begin, past).

        With a share p of low samples around, of m, k in a row are expected m * p^k times by chance. Long low runs
        around are left out of p: they are gaps themselves. Where low samples are common, the run could have come
        up anywhere in the job, and m is all its samples.
        """
        left, right = max(begin - self.neighbours, 0), min(past + self.neighbours, len(self.low))
        is_compared = self.job[left:right].copy()
        is_compared[begin - left : past - left] = False
        longest = max(_LONG_ROWS, _LONG_RUN * (past - begin))
        near = slice(int(np.searchsorted(self.stop, left, side="right")), int(np.searchsorted(self.first, right)))
        for start, end in zip(self.first[near].tolist(), self.stop[near].tolist(), strict=True):
            if end - start >= longest:
                is_compared[max(start - left, 0) : end - left] = False
        count = int(is_compared.sum())
        if count == 0:
            return 1
        share = (float(self.low[left:right][is_compared].sum()) + 0.5) / (count + 1)
        places = count if share < _DENSE else max(self.rows, count)
        return int(np.ceil(np.log(self.significance / places) / np.log(share)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChanceRunDoubt:
    """Whether low samples may be an accident of sampling, by low samples around and by power.

    Attributes:
        chance: how many are too many for chance.
        power: the power beside the samples.
        resting: height up to which it is that of rest.
        decisive: whether power sees what happens between samples, so that rest at each of them leaves no doubt.
        fewest: samples of a run at least.
    """

    chance: ChanceRunTest
    power: RestToWorkPower
    resting: float
    decisive: bool
    fewest: int

    def judge(self, begin: int, past: int, samples: int) -> tuple[int, float | None, bool]:
        """Return how many samples rule out chance, the highest power of rows [begin, past), whether doubt remains."""
        needed, highest_power = (
            max(self.chance.find_shortest_significant_run(begin, past), self.fewest),
            self.power.highest_level(begin, past),
        )
        doubtful = (samples < needed and not self.is_resting(highest_power)) or self.power.is_working(begin, past)
        return needed, highest_power, doubtful

    def is_resting(self, highest_power: float | None) -> bool:
        """Return whether the highest power in a run shows that the GPU rested all the time."""
        return self.decisive and highest_power is not None and highest_power <= self.resting


def find_longest_beat_run(values: FloatArray, chance: ChanceRunTest, covered: float) -> int:
    """Return the readings below which a run may come from a beat of steps and samples, 0 without a beat.

    Steps about as long as the distance of samples are met by one sample after the other a little later in the step:
    utilisation falls and rises slowly, and is low for some samples every few, though no pause is long. A pause begins
    and ends between two samples, and work beside it reads as everywhere else.

    Args:
        values: utilisation, one value a sample.
        chance: the samples, and the runs of low ones.
        covered: share of the distance of samples that a value covers.
    """
    inside = (chance.first > 0) & (chance.stop < len(values)) & (chance.stop - chance.first >= _RUN)
    before, after = chance.first[inside] - 1, chance.stop[inside]
    within = chance.job[before] & chance.job[after]
    before, after = before[within], after[within]
    if len(before) < _RUNS or np.quantile(np.diff(before), _NEARLY_ALL) > _APART:
        return 0
    edges = values[np.append(before, after)] < _EDGE * np.median(values[chance.job & ~chance.low])
    return _OTHER * int(np.median(after - before - 1)) if edges.mean() >= _EDGES * covered else 0
