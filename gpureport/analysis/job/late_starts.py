"""Whether a GPU that began to work after the first one was still starting up until then."""

from collections.abc import Sequence

import numpy as np

from gpureport import columns
from gpureport.analysis.job.phases import LATE
from gpureport.analysis.results import Job
from gpureport.findings import Interval
from gpureport.recording import Recording

_FEWEST = 3
"""Moments at which training metrics were logged that are no start: one or two are settings and a first evaluation."""


def is_late_start(recording: Recording, job: Job, own: Interval) -> bool:
    """Return whether the time of a job before a GPU began belongs to the start-up of that GPU.

    It does up to a minute after the first GPU, as long as the job does not train yet: ranks start seconds apart. Later
    the GPU rests while the job runs.

    Args:
        recording: the run.
        job: one of its jobs.
        own: from the first to the last work of the GPU.
    """
    start = job.window.start
    return own.start - start <= LATE.value * 1e6 and _count_logged(recording, start, own.start) < _FEWEST


def list_resting_leads(recording: Recording, jobs: Sequence[Job], device: str) -> list[Interval]:
    """Return the time of each job before the first work of a GPU that is not the start-up of that GPU."""
    own = [(job, job.active[device]) for job in jobs if device in job.active]
    return [
        Interval(job.window.start, active.start)
        for job, active in own
        if active.start > job.window.start and not is_late_start(recording, job, active)
    ]


def _count_logged(recording: Recording, start: int, end: int) -> int:
    """Return at how many moments from one time to another training metrics were logged."""
    stamps = recording.training.column("timestamp").drop_null()
    times = columns.integers(stamps)
    return len(np.unique(times[(times >= start) & (times < end)]))
