"""How many low samples in a row would surprise, where each sample is a point and not the whole interval."""

from dataclasses import dataclass, field

import numpy as np

from gpureport.analysis.idle_power import RelativePower
from gpureport.columns import BoolArray, IntArray

_DENSE = 0.2
_LONG_RUN = 0.6
_LONG_ROWS = 4


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
        confirmed = self.decisive and highest_power is not None and highest_power <= self.resting
        return needed, highest_power, (samples < needed and not confirmed) or self.power.works(begin, past)
