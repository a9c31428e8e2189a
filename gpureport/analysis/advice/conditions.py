"""Preconditions of the steps, looked up in a recording. Their limits are a matter of judgement."""

from gpureport.analysis.advice.run_facts import RunFacts
from gpureport.analysis.advice.step import Condition

_TENSOR_CORES = (7, 0)
_FULL_CPU, _BUSY_CPU = 0.90, 0.75
_PEGGED = 0.90
_FULL_HOST = 0.90
_ROOMY_GPU, _FULL_GPU = 0.85, 0.90
_BUSY_GPU = 0.95
_PAIR = 2


def _cores(facts: RunFacts) -> bool | None:
    if facts.job_hardly_uses_cpu:
        return True
    return None if facts.cpu_used is None else facts.cpu_used < _FULL_CPU


def _busy_cpu(facts: RunFacts) -> bool | None:
    return None if facts.cpu_used is None else facts.cpu_used >= _BUSY_CPU


def _host_memory(facts: RunFacts) -> bool | None:
    return None if facts.host_memory is None else facts.host_memory < _FULL_HOST


def _some_workers(facts: RunFacts) -> bool | None:
    return None if facts.setup.workers is None else facts.setup.workers.value > 0


def _pegged(facts: RunFacts) -> bool | None:
    if facts.busiest_core is None:
        return None if facts.cpu_used is None or facts.cpu_used < _BUSY_CPU else False
    return facts.busiest_core >= _PEGGED and (facts.cpu_used is None or facts.cpu_used < _BUSY_CPU)


def _gpu_memory(facts: RunFacts) -> bool | None:
    """Whether a job needs less than most of the memory: no more than what was in use, however that was taken."""
    if facts.gpu_memory is None:
        return None
    if facts.gpu_memory < _ROOMY_GPU:
        return True
    return False if facts.preallocated is False else None


def _full_memory(facts: RunFacts) -> bool | None:
    if facts.gpu_memory is None or facts.preallocated is not False:
        return None
    return facts.gpu_memory >= _FULL_GPU


def _gpu_time(facts: RunFacts) -> bool | None:
    return None if facts.gpu_used is None else facts.gpu_used < _BUSY_GPU


def _tensor_cores(facts: RunFacts) -> bool | None:
    return None if facts.compute_capability is None else facts.compute_capability >= _TENSOR_CORES


def _full_precision(facts: RunFacts) -> bool | None:
    return None if facts.reduced_precision is None else not facts.reduced_precision


def _not_compiled(facts: RunFacts) -> bool | None:
    return None if facts.setup.compiled is None else not facts.setup.compiled.value


def _from_scratch(facts: RunFacts) -> bool | None:
    return None if facts.setup.pretrained is None else not facts.setup.pretrained.value


CORES_FREE = Condition(words="CPU cores are free (median use below 90%), or the job hardly uses the CPU", holds=_cores)
CPU_BUSY = Condition(words="the CPU is busy (median use of 75% or more)", holds=_busy_cpu)
HOST_MEMORY_FREE = Condition(words="host memory is not full (below 90%)", holds=_host_memory)
HAS_WORKERS = Condition(words="the loader has workers", holds=_some_workers)
ONE_CORE = Condition(words="one CPU core is at its limit while others are free", holds=_pegged)
GPU_MEMORY_FREE = Condition(words="GPU memory is free (the job needs less than 85%)", holds=_gpu_memory)
GPU_MEMORY_FULL = Condition(
    words="GPU memory is full (peak of 90% or more) and was not preallocated", holds=_full_memory
)
GPU_TIME_FREE = Condition(words="the GPU has time to spare (mean utilisation below 95%)", holds=_gpu_time)
TENSOR_CORES = Condition(words="the GPU has tensor cores (compute capability 7.0 or newer)", holds=_tensor_cores)
FULL_PRECISION = Condition(words="the job does not compute in 16 bits yet", holds=_full_precision)
NOT_COMPILED = Condition(words="the model is not compiled", holds=_not_compiled)
FIXED_SHAPES = Condition(words="the model convolves inputs of few shapes", holds=lambda _facts: None)
FROM_SCRATCH = Condition(words="the run trains from scratch", holds=_from_scratch)
LINK_REDUCED = Condition(
    words="the PCIe link runs below its highest width or generation under load", holds=lambda facts: facts.link_reduced
)
POWER_LIMIT_REACHED = Condition(
    words="the GPU comes near its power limit", holds=lambda facts: facts.power_limit_reached
)
SEVERAL_GPUS = Condition(
    words="the job has several GPUs", holds=lambda facts: facts.gpus >= _PAIR if facts.gpus else None
)
