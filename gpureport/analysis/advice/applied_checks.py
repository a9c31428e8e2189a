"""Whether a step was applied already, as the params and tags of the run say it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpureport.analysis.advice.run_facts import RunFacts
from gpureport.analysis.signals import core_count

if TYPE_CHECKING:
    from gpureport.analysis.job.job_params import Setting

_IDLE_CPU = 0.50
"""Median use below which most cores do nothing; where it is not known, the step asks for it."""
_FEW_SAMPLES = 8
"""Samples in a batch below which matrix work leaves tensor cores unused, whose tiles are multiples of 8 (NVIDIA)."""
_PREFETCHED = 4
"""Batches each worker loads ahead, twice what PyTorch does of itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedCheck:
    """How a run tells whether a step was applied.

    Attributes:
        is_applied: whether it was; None where nothing tells.
        settings: which params tell it, by their names in `JobParams`.
    """

    is_applied: Callable[[RunFacts], bool | None]
    settings: tuple[str, ...]


def _switch(name: str) -> AppliedCheck:

    def is_applied(facts: RunFacts) -> bool | None:
        setting: Setting | None = getattr(facts.setup, name)
        return None if setting is None else setting.value > 0

    return AppliedCheck(is_applied=is_applied, settings=(name,))


def _as_many_workers_as_cores(facts: RunFacts) -> bool | None:
    """Whether each process has a worker a core; not so without workers, or with half the cores at rest.

    Workers of a job that hardly uses the CPU wait for something else: how many there are says nothing.
    """
    workers, cores = facts.setup.workers, core_count.count_cores(facts.setup, facts.gpus_a_machine)
    if workers is None or not workers.value:
        return None if workers is None else False
    if cores is None or facts.job_hardly_uses_cpu:
        return None
    if core_count.has_worker_per_core(facts.setup, facts.gpus_a_machine):
        return True
    idle = facts.cpu_used is None or facts.cpu_used < _IDLE_CPU
    return False if idle and 2 * workers.value * cores.gpus <= cores.cores else None


def _no_worker_to_spare(facts: RunFacts) -> bool | None:
    workers = facts.setup.workers
    return None if workers is None or workers.value > 1 else True


def _prefetches_far_ahead(facts: RunFacts) -> bool | None:
    factor, ahead = facts.setup.prefetch_factor, facts.setup.prefetch
    if (factor and factor.value >= _PREFETCHED) or (ahead and ahead.value):
        return True
    return False if (factor and factor.value <= 1) or ahead else None


def _accumulates_gradients(facts: RunFacts) -> bool | None:
    return None if facts.setup.accumulation is None else facts.setup.accumulation.value > 1


def _starts_from_weights(facts: RunFacts) -> bool | None:
    """Whether training starts from trained weights: whoever trains from scratch may have a reason."""
    return True if facts.setup.pretrained is not None and facts.setup.pretrained.value else None


def _large_batch(facts: RunFacts) -> bool | None:
    small = facts.setup.batch is not None and facts.setup.batch.value < _FEW_SAMPLES
    return False if small else None


WORKERS_MATCH_CORES = AppliedCheck(
    is_applied=_as_many_workers_as_cores, settings=("workers", "cores_per_process", "cores")
)
FEWEST_WORKERS = AppliedCheck(is_applied=_no_worker_to_spare, settings=("workers",))
PREFETCH = AppliedCheck(is_applied=_prefetches_far_ahead, settings=("prefetch_factor", "prefetch"))
PINNED_MEMORY = _switch("pin_memory")
OVERLAPPED_COPIES = _switch("non_blocking")
PERSISTENT_WORKERS = _switch("persistent_workers")
COMPILED_MODEL = _switch("compiled")
CUDA_GRAPHS = _switch("cuda_graphs")
CUDNN_AUTOTUNING = _switch("cudnn_benchmark")
PRETRAINED_WEIGHTS = AppliedCheck(is_applied=_starts_from_weights, settings=("pretrained",))
ASYNCHRONOUS_CHECKPOINTS = _switch("asynchronous_checkpoints")
GRADIENT_ACCUMULATION = AppliedCheck(is_applied=_accumulates_gradients, settings=("accumulation",))
LARGE_BATCH = AppliedCheck(is_applied=_large_batch, settings=("batch",))
REDUCED_PRECISION = AppliedCheck(is_applied=lambda facts: facts.reduced_precision, settings=("precision",))
