"""Whether a GPU that began to work after the first one was still starting up until then."""

import numpy as np

from gpureport import columns
from gpureport.analysis.job.phases import LATE
from gpureport.analysis.results import Job
from gpureport.analysis.rules.rule import Context
from gpureport.columns import IntArray
from gpureport.findings import Interval

_FEWEST_MOMENTS = 3.0  # moments; one or two are settings, and an evaluation before the first step of training
"""Moments at which training metrics were logged from which a job trains."""


def was_starting_up(context: Context, job: Job, own: Interval) -> bool:
    """Return whether the time of a job before a GPU began, if there is any, belongs to the start-up of that GPU.

    It does up to a minute after the first GPU, as long as the job does not train yet: ranks start seconds apart. Later
    the GPU rests while the job runs.

    Args:
        context: the run.
        job: one of its jobs.
        own: from the first to the last work of the GPU.
    """
    start = job.window.start
    is_soon = own.start - start <= LATE * 1e6
    return is_soon and _count_logged_moments(context, start, own.start) < _FEWEST_MOMENTS


def list_resting_leads(context: Context, device: str) -> list[Interval]:
    """Return the time of each job before the first work of a GPU that is not the start-up of that GPU."""
    own = [(job, job.active[device]) for job in context.jobs if device in job.active]
    return [
        Interval(job.window.start, active.start)
        for job, active in own
        if active.start > job.window.start and not was_starting_up(context, job, active)
    ]


def _count_logged_moments(context: Context, start: int, end: int) -> int:
    """Return at how many moments from one time to another training metrics were logged."""
    moments = context.cached("moments at which training metrics were logged", lambda: _list_logged_moments(context))
    first, stop = np.searchsorted(moments, [start, end])
    return int(stop - first)


def _list_logged_moments(context: Context) -> IntArray:
    return np.unique(columns.integers(context.recording.training.column("timestamp").drop_null()))
