"""Light work: a GPU that does a little all the time beside a machine at a limit waits for it; it does not rest."""

from collections.abc import Collection

import numpy as np

from gpureport.analysis.rulebook import read_limits
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.findings import Interval

_LEAST_USE = 0.005
_NEARLY_ALL, _MOSTLY = 0.9, 0.5  # share of the samples with light use (a display shows less), of those at a limit
_SHORTEST_BEFORE = 120.0  # s; loading a model before the work takes less
_HELD, _ONE_CORE = read_limits("unused_gpu").context, read_limits("cpu_bound_single")
_MACHINE = {
    "cpu_utilization_ratio": read_limits("cpu_bound").cpu,
    "cpu_iowait_ratio": read_limits("io_bound").iowait,
}
_CORE = dict.fromkeys(("cpu_busiest_core_ratio", "process_cpu_cores"), _ONE_CORE.core)


def find_light_work(
    gpu: DeviceSeries, hosts: Collection[DeviceSeries], within: Interval, until: int | None = None
) -> Interval | None:
    """Return from the first to the last sample of light work of a GPU.

    Args:
        gpu: the GPU.
        hosts: the machines of a run.
        within: the time that is looked at.
        until: when its sustained activity begins, which light work must reach; None where it has none.
    """
    rows = np.arange(len(gpu))[gpu.rows_between(within.start, (within.end if until is None else until) + 1)]
    used, held = gpu.values("gpu_utilization_ratio")[rows], gpu.values("gpu_memory_used_bytes")[rows]
    is_light = (used >= _LEAST_USE) & ~(held < _HELD)
    last = len(rows) if until is not None else int(np.max(np.flatnonzero(is_light), initial=-1)) + 1
    backwards = is_light[:last][::-1]
    dense = np.flatnonzero(backwards & (np.cumsum(backwards) >= _NEARLY_ALL * np.arange(1, last + 1)))
    if not len(dense):
        return None
    start, end = int(gpu.start[rows[last - 1 - dense[-1]]]) - gpu.shift, int(gpu.end[rows[last - 1]]) - gpu.shift
    # one thread that is busy before the work loads for it
    shortest, limits = (_ONE_CORE.shortest_job, _MACHINE | _CORE) if until is None else (_SHORTEST_BEFORE, _MACHINE)
    if end - start < shortest * 1e6:
        return None
    for host in hosts:
        part = host.rows_between(start + host.shift, end + host.shift)
        at_limit = np.any([host.values(metric)[part] >= limit for metric, limit in limits.items()], axis=0)
        if host.device.node in {None, gpu.device.node} and at_limit.sum() >= max(_MOSTLY * len(at_limit), 1):
            return Interval(start, end if until is None else until)
    return None
