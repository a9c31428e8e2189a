"""How many CPU cores a job has for its GPUs: a fact to set beside what the CPU was measured to do."""

from dataclasses import dataclass, replace
from math import floor

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.job.params import JobParams, Setting, read_params
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.findings import Evidence

CORES, CPU = "cpu_logical_cores", "cpu_utilization_ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreCount:
    """Cores and the GPUs that share them: those of a machine, or of one process where params state that.

    Attributes:
        cores: logical cores.
        gpus: GPUs that they serve.
        is_of_process: whether they are those of one process of the job, which is taken to run one GPU.
    """

    cores: float
    gpus: int
    is_of_process: bool = False

    @property
    def most_workers(self) -> int:
        """Loader workers of one process at one a core: PyTorch warns of more (PyTorch documentation, torch.utils.data).

        A process that shares its core with others has one at least.
        """
        return max(floor(self.cores / self.gpus), 1)

    @property
    def words(self) -> str:
        """The fact: `the machine has 16 cores for 2 GPUs`."""
        cores = phrases.count_of(round(self.cores), "core")
        if self.is_of_process:
            return f"each process has {cores}"
        return f"the machine has {cores} for {phrases.count_of(self.gpus, 'GPU')}"

    @property
    def evidence(self) -> Evidence:
        """The same as evidence, which no limit belongs to."""
        return Evidence(metric=CORES, statistic="for each GPU", observed=self.cores / self.gpus, unit="")


def count_cores(params: JobParams, gpus: int) -> CoreCount | None:
    """Return the cores that params state, None where they do not."""
    if params.cores_per_process is not None and params.cores_per_process.value > 0:
        return CoreCount(cores=params.cores_per_process.value, gpus=1, is_of_process=True)
    if params.cores is not None and params.cores.value > 0 and gpus:
        return CoreCount(cores=params.cores.value, gpus=gpus)
    return None


def has_worker_per_core(params: JobParams, gpus: int) -> bool:
    """Return whether params say that each process has as many loader workers as there are cores for it.

    Args:
        params: what params and tags say.
        gpus: GPUs that share the cores of a machine, each with a process of its own.
    """
    cores = count_cores(params, gpus)
    return params.workers is not None and cores is not None and params.workers.value >= cores.most_workers


def read_host_params(context: Context, host: DeviceSeries) -> JobParams:
    """Return what params say, with the cores that the log of a host counted where they do not say that."""
    params = read_params(context.recording.run.params_and_tags)
    counted = host.values(CORES)
    known = counted[~np.isnan(counted)]
    return add_counted_cores(params, float(known.max()) if len(known) else None)


def add_counted_cores(params: JobParams, counted: float | None) -> JobParams:
    """Return params with the cores that a host log counted, where they state none themselves."""
    if counted is None or not counted or params.cores is not None:
        return params
    return replace(params, cores=Setting(text=phrases.count_of(round(counted), "core"), value=counted))


def append_core_count(summary: str, cores: CoreCount | None) -> str:
    """Return the summary of a finding with the cores beside it, where they are known."""
    return f"{summary} {phrases.capitalize(cores.words)}." if cores else summary


def find_core_count(context: Context, host: DeviceSeries) -> CoreCount | None:
    """Return the cores of a host and the GPUs beside it, None where no param or host log states them."""
    gpus = [one for one in context.gpus().values() if host.device.node in {None, one.device.node}]
    return count_cores(read_host_params(context, host), len(gpus))
