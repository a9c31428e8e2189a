"""Work that was stated for a run and cannot be what its training log counts."""

from dataclasses import dataclass

from gpureport.comparison.steps.sampled_run import SampledRun

MOST = 2.0
"""Ratio of stated and logged work from which one of them is wrong (pragmatic).

Counts of one job differ by less: a log may leave out the first batches, the last ones, or an evaluation. A log of one
process of two lies at the ratio itself; the work of another job, such as all of a data set, is far beyond it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkContradiction:
    """Work of a run by what was stated, and by its training log.

    Attributes:
        run: name of the run.
        stated: amount that was stated.
        logged: amount that the log counts within the recording.
        unit: unit that was stated.
    """

    run: str
    stated: float
    logged: float
    unit: str

    @property
    def ratio(self) -> float:
        """How many times as much one of them is as the other."""
        return max(self.stated / self.logged, self.logged / self.stated)


def find_work_contradiction(run: SampledRun) -> WorkContradiction | None:
    """Return how the stated work of a run contradicts its training log; None where it does not, or units differ.

    A log may hold a part of the run, so that more was done than it counts; at its rate the whole run could have done
    no more than a multiple of that.
    """
    info, speed = run.analysis.run, run.logged_work
    rate = speed.work.rate if speed is not None else None
    if speed is None or rate is None or info.work is None or info.work.amount <= 0:
        return None
    stated, logged = info.work.amount, speed.work.within(info.started, info.ended)
    possible = max(rate * (info.ended - info.started) / 1e6, logged)
    if logged <= 0 or logged <= MOST * stated <= MOST * MOST * possible:
        return None
    return WorkContradiction(run=info.name, stated=stated, logged=logged, unit=info.work.unit)
