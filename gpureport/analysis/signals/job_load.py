"""What the job itself asked of the CPU: a job that hardly asks for it is not proven to lack it."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis.job.phases import JOB
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals import low_use
from gpureport.analysis.signals.core_count import CORES, CPU
from gpureport.analysis.signals.waits import wait_episodes
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import BoolArray, FloatArray

HARDLY = pragmatic(
    0.5, "cores", "a thread that always has work gets half a core even where another program wants the same one"
)
"""Cores below which a job hardly uses the CPU."""
FULL = pragmatic(0.75, "1", "as of a CPU that GPUs wait for")
"""Use of the CPU above which a job may lack it."""
BESIDE_OTHERS = "not shown beside other programs"
"""Cause of low use where other programs fill the CPU and the job hardly uses it: either may be what GPUs wait for."""
_HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLoad:
    """A CPU that programs outside the job keep busy."""

    cpu: float
    job: float


def is_hardly_used(job: FloatArray, cpu: FloatArray, cores: float) -> BoolArray:
    """Return where a job uses less than half a core, and less than half of the load; False where that is not known.

    Args:
        job: cores that the job kept busy.
        cpu: use of the CPU, as a ratio.
        cores: cores of the machine; NaN where not known, which leaves the least that the load can be: that of one.
    """
    load = np.minimum(cpu * np.fmax(cores, 1.0), 1.0)
    few: BoolArray = job < HARDLY.value * load
    return few


def is_mostly_hardly_used(few: BoolArray, cpu: FloatArray, length: int) -> BoolArray:
    """Return around which bins a job hardly uses the CPU for half of the time or more in which the CPU was watched.

    Args:
        few: in which bins it hardly uses the CPU; False where that is not known.
        cpu: use of the CPU in the same bins; NaN where it was not watched.
        length: bins that the share is taken over.
    """
    mostly: BoolArray = wait_episodes.compute_rolling_share(cpu, length, lambda _: few) >= _HALF
    return mostly


def count_cores(host: DeviceSeries) -> float:
    """Return the cores that the log of a host counted, NaN where it counted none."""
    counted = host.values(CORES)
    known = counted[~np.isnan(counted)]
    return float(known.max()) if len(known) else float("nan")


def find_other_load(context: Context, device: str, spans: Spans) -> OtherLoad | None:
    """Return the load beside a GPU where other programs fill the CPU and the job hardly uses it, else None.

    A host that recorded neither for most of the time shows neither.

    Args:
        context: the run.
        device: the GPU.
        spans: when it is asked for.
    """
    return context.cached((OtherLoad, device, spans.tobytes()), lambda: _measure_other_load(context, device, spans))


def _measure_other_load(context: Context, device: str, spans: Spans) -> OtherLoad | None:
    node = context.series[device].device.node
    for host in context.hosts().values():
        is_beside = host.device.node in {None, node}
        if not is_beside or not low_use.is_watched(host, (CPU, JOB), spans):
            continue
        values = [host.find_values(metric, spans) for metric in (CPU, JOB)]
        if not all(map(len, values)):
            continue
        cpu, job = (float(np.median(one)) for one in values)
        if cpu >= FULL.value and is_hardly_used(np.array([job]), np.array([cpu]), count_cores(host))[0]:
            return OtherLoad(cpu=cpu, job=job)
    return None
