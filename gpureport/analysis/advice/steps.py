"""The catalogue of advice as `steps.toml` words it, and what a run tells of its steps.

A condition of a step is the name of a function in CONDITIONS, which returns None where the recording does not tell. Its
limits are a matter of judgement. `taken` is a name in TAKEN: whether params say that the step was taken already.
"""

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpureport.analysis.advice.run_facts import RunFacts
from gpureport.analysis.job.params import Framework
from gpureport.analysis.signals import core_count

_Told = Callable[[RunFacts], bool | None]

_FULL_CPU, _BUSY_CPU, _IDLE_CPU = 0.90, 0.75, 0.50
_PEGGED_CORE, _FULL_HOST, _BUSY_GPU = 0.90, 0.90, 0.95
_ROOMY_GPU, _FULL_GPU = 0.85, 0.90
_TENSOR_CORES = (7, 0)
_FEW_SAMPLES = 8
"""Samples in a batch below which matrix work leaves tensor cores unused, whose tiles are multiples of 8 (NVIDIA)."""
_PREFETCHED = 4
"""Batches each worker loads ahead, twice what PyTorch does of itself."""
_DERIVED = 1.05
"""Ratio up to which totals and limits differ that trackers leave to be derived from an amount and its share."""
_UNSET = {"prefetch_factor": 2.0, "accumulation": 1.0, "workers": None, "batch": None, "gpu_count": None}
"""What settings are where no param names them: None where that is not known, off for any other."""
_OF_THE_GPU = ("gpu_memory", "power_limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """A change of one setting that means a step was taken.

    Attributes:
        setting: a number of `JobParams`, or `gpu_count`, `gpu_memory` or `power_limit` of the recording.
        rises: whether the step raises it, or turns it on; otherwise it lowers it.
    """

    setting: str
    rises: bool

    def is_made(self, before: float | None, after: float | None) -> bool:
        """Return whether the setting moved in the direction of the step; None is a setting that was not recorded."""
        first, last = self._known(before), self._known(after)
        if first is None or last is None:
            return False
        noise = _DERIVED if self.setting in _OF_THE_GPU else 1.0
        return last > noise * first if self.rises else noise * last < first

    def may_be_made(self, before: float | None, after: float | None) -> bool:
        """Return whether the setting is known on one side alone, so that its direction is not known."""
        return (self._known(before) is None) != (self._known(after) is None)

    def _known(self, value: float | None) -> float | None:
        if value is None and self.setting not in _OF_THE_GPU:
            return _UNSET.get(self.setting, 0.0)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do about lost GPU time.

    Attributes:
        name: name in lower case, by which tables point to it.
        chapter: what it acts on.
        title: what it is called.
        do: what to do, in concrete words.
        when: when it helps.
        risk: what it costs or can break.
        check: how to see that it worked.
        source: where the advice comes from.
        needs: conditions that must hold for it to help, in words, with how a run tells.
        frameworks: frameworks it is for, None for a run that names no framework; empty where it is for all.
        taken: how the run tells whether it was taken already, and by which params; None where it cannot.
        changes: changes between two runs, each of which shows that it was taken in the later one.
    """

    name: str
    chapter: str
    title: str
    do: str
    when: str
    risk: str
    check: str
    source: str
    needs: tuple[tuple[str, _Told], ...]
    frameworks: tuple[Framework | None, ...]
    taken: tuple[_Told, tuple[str, ...]] | None
    changes: tuple[SettingChange, ...]

    def is_taken(self, facts: RunFacts) -> bool | None:
        """Return whether params say that it was taken already; None where nothing tells."""
        return None if self.taken is None else self.taken[0](facts)


def _below(name: str, limit: float) -> _Told:
    """Return a condition that a figure of the run lies below a limit."""

    def holds(facts: RunFacts) -> bool | None:
        value = getattr(facts, name)
        return None if value is None else bool(value < limit)

    return holds


def _is_off(name: str) -> _Told:
    """Return a condition that a setting is off, or 0."""

    def holds(facts: RunFacts) -> bool | None:
        setting = getattr(facts.setup, name)
        return None if setting is None else not setting.value

    return holds


def _is_on(name: str, above: float = 0.0) -> _Told:
    """Return a condition that a setting is on, or lies above a number."""

    def holds(facts: RunFacts) -> bool | None:
        setting = getattr(facts.setup, name)
        return None if setting is None else bool(setting.value > above)

    return holds


def _cores_free(facts: RunFacts) -> bool | None:
    return True if facts.job_hardly_uses_cpu else _below("cpu_used", _FULL_CPU)(facts)


def _one_core(facts: RunFacts) -> bool | None:
    if facts.busiest_core is None:
        return None if facts.cpu_used is None or facts.cpu_used < _BUSY_CPU else False
    return facts.busiest_core >= _PEGGED_CORE and (facts.cpu_used is None or facts.cpu_used < _BUSY_CPU)


def _gpu_memory_free(facts: RunFacts) -> bool | None:
    """Whether a job needs less than most of the memory: no more than what was in use, however that was taken."""
    if facts.gpu_memory is None:
        return None
    if facts.gpu_memory < _ROOMY_GPU:
        return True
    return False if facts.preallocated is False else None


def _gpu_memory_full(facts: RunFacts) -> bool | None:
    if facts.gpu_memory is None or facts.preallocated is not False:
        return None
    return facts.gpu_memory >= _FULL_GPU


CONDITIONS: dict[str, _Told] = {
    "cores_free": _cores_free,
    "cpu_busy": lambda facts: None if facts.cpu_used is None else facts.cpu_used >= _BUSY_CPU,
    "host_memory_free": _below("host_memory", _FULL_HOST),
    "has_workers": _is_on("workers"),
    "one_core": _one_core,
    "gpu_memory_free": _gpu_memory_free,
    "gpu_memory_full": _gpu_memory_full,
    "gpu_time_free": _below("gpu_used", _BUSY_GPU),
    "tensor_cores": lambda facts: (
        None if facts.compute_capability is None else facts.compute_capability >= _TENSOR_CORES
    ),
    "full_precision": lambda facts: None if facts.reduced_precision is None else not facts.reduced_precision,
    "not_compiled": _is_off("compiled"),
    "fixed_shapes": lambda _facts: None,
    "from_scratch": _is_off("pretrained"),
    "link_reduced": lambda facts: facts.link_reduced,
    "power_limit_reached": lambda facts: facts.power_limit_reached,
    "several_gpus": lambda facts: facts.gpus > 1 if facts.gpus else None,
}
"""The preconditions of steps by their names in `steps.toml`: whether each holds."""


def _has_worker_per_core(facts: RunFacts) -> bool | None:
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


def _has_large_batch(facts: RunFacts) -> bool | None:
    small = facts.setup.batch is not None and facts.setup.batch.value < _FEW_SAMPLES
    return False if small else None


TAKEN: dict[str, tuple[_Told, tuple[str, ...]]] = {
    "workers_match_cores": (_has_worker_per_core, ("workers", "cores_per_process", "cores")),
    "fewest_workers": (_no_worker_to_spare, ("workers",)),
    "prefetch": (_prefetches_far_ahead, ("prefetch_factor", "prefetch")),
    # whoever trains from scratch may have a reason
    "pretrained": (lambda facts: _is_on("pretrained")(facts) or None, ("pretrained",)),
    "accumulation": (_is_on("accumulation", above=1), ("accumulation",)),
    "large_batch": (_has_large_batch, ("batch",)),
    "reduced_precision": (lambda facts: facts.reduced_precision, ("precision",)),
}
"""How a run tells that a step was taken, and the params that tell it, by their names in `JobParams`.

Any other name in `steps.toml` is a setting that is on.
"""


def _read_steps(content: dict[str, Any]) -> Iterator[Step]:
    sources, words = content["sources"], content["conditions"]
    for chapter, steps in content["steps"].items():
        for name, said in steps.items():
            taken = said.get("taken")
            yield Step(
                name=name,
                chapter=chapter,
                **{key: said[key] for key in ("title", "do", "when", "risk", "check")},
                source="; ".join(sources[each] for each in said["sources"]),
                needs=tuple((words[each], CONDITIONS[each]) for each in said.get("needs", ())),
                frameworks=tuple(Framework(each) if each else None for each in said.get("frameworks", ())),
                taken=TAKEN.get(taken, (_is_on(taken), (taken,))) if taken else None,
                changes=tuple(
                    SettingChange(setting=each, rises=key == "raises")
                    for key in ("raises", "lowers")
                    for each in said.get(key, ())
                ),
            )


STEPS = {
    step.name: step
    for step in _read_steps(tomllib.loads(Path(__file__).with_name("steps.toml").read_text(encoding="utf-8")))
}
"""Every step by name, in the order of the page on advice."""
