"""What the job itself asked of the CPU: a job that hardly asks for it is not proven to lack it."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis.rules.rule import Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals import core_count
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import BoolArray, FloatArray

CPU = "cpu_utilization_ratio"
JOB = "job_cpu_cores"
HARDLY = pragmatic(
    0.5, "", "cores; a thread that always has work gets half a core even where another program wants the same one"
)
"""Cores below which a job hardly uses the CPU."""
FULL = pragmatic(0.75, "1", "as of a CPU that GPUs wait for")
"""Use of the CPU above which a job may lack it."""
BESIDE_OTHERS = "not shown beside other programs"
"""Cause of low use where other programs fill the CPU and the job hardly uses it: either may be what GPUs wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLoad:
    """A CPU that programs outside the job keep busy.

    Attributes:
        cpu: median use of the CPU, as a ratio.
        job: cores that the job kept busy, the median.
    """

    cpu: float
    job: float


def is_hardly_used(job: FloatArray, cpu: FloatArray, cores: float) -> BoolArray:
    """Return where a job uses less than half a core, and less than half of the load; False where that is not known.

    Args:
        job: cores that the job kept busy.
        cpu: use of the CPU, as a ratio.
        cores: cores of the machine; NaN where not known.
    """
    load = np.fmin(cpu * cores, 1.0)
    few: BoolArray = job < HARDLY.value * load
    return few


def count_cores(host: DeviceSeries) -> float:
    """Return the cores that the log of a host counted, NaN where it counted none."""
    counted = host.values(core_count.CORES)
    known = counted[~np.isnan(counted)]
    return float(known.max()) if len(known) else float("nan")


def find_other_load(context: Context, device: str, spans: Spans) -> OtherLoad | None:
    """Return the load beside a GPU where other programs fill the CPU and the job hardly uses it, else None.

    Args:
        context: the run.
        device: the GPU.
        spans: when it is asked for.
    """
    node = context.series[device].device.node
    for host in context.hosts().values():
        cpu, job = (host.find_values(metric, spans) for metric in (CPU, JOB))
        if host.device.node not in {None, node} or not len(cpu) or not len(job):
            continue
        load = OtherLoad(cpu=float(np.median(cpu)), job=float(np.median(job)))
        if load.cpu >= FULL.value and is_hardly_used(np.array([load.job]), np.array([load.cpu]), count_cores(host))[0]:
            return load
    return None
