"""When the job's own processes were seen to begin and to end, as `gpureport record` logs them."""

from collections.abc import Iterable

import numpy as np

from gpureport.analysis.results import ObservedJob
from gpureport.analysis.series.device_series import DeviceSeries

JOB = "job_cpu_cores"


def find_observed_job(hosts: Iterable[DeviceSeries]) -> ObservedJob:
    """Return when the processes of a job were first and last seen, where the log shows time without them around it.

    With several hosts it is the earliest and the latest; nothing is known where one of them did not watch the job.

    Args:
        hosts: the hosts of a run, with all of their samples.
    """
    starts: list[int | None] = []
    ends: list[int | None] = []
    for host in hosts:
        seen = np.flatnonzero(~np.isnan(host.values(JOB)))
        if not len(seen):
            return ObservedJob()
        first, last = int(seen[0]), int(seen[-1])
        starts.append(int(host.times[first]) if first > 0 else None)
        ends.append(int(host.times[last]) if last < len(host) - 1 else None)
    known_starts = [start for start in starts if start is not None]
    known_ends = [end for end in ends if end is not None]
    return ObservedJob(
        started=min(known_starts) if starts and len(known_starts) == len(starts) else None,
        ended=max(known_ends) if ends and len(known_ends) == len(ends) else None,
    )
