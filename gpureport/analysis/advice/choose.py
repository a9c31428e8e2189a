"""Chooses the steps in `steps.toml` that fit a finding and that no known fact rules out."""

import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

from gpureport.analysis import phrases
from gpureport.analysis.job import params
from gpureport.analysis.job.events import DATA, REQUESTS
from gpureport.analysis.job.params import CoreCount, Framework, JobParams, find_framework
from gpureport.analysis.results import DeviceStatistics, MetricSummary
from gpureport.analysis.rulebook import KINDS
from gpureport.analysis.rules.waits import BESIDE_OTHERS, CORES, HARDLY, WAIT_KINDS
from gpureport.analysis.series import CORE, CPU, IOWAIT, JOB, POWER, UTILISATION
from gpureport.findings import AdvisedStep, Finding
from gpureport.metrics import Scope, find_gpu
from gpureport.recording import Run

_WORKERS = "loader_workers"
_MOST_NAMED = 3  # maximum number of steps in a recommendation
_FULL_CPU, _BUSY_CPU, _IDLE_CPU, _PEGGED_CORE, _FULL_HOST = 0.90, 0.75, 0.50, 0.90, 0.90
_BUSY_GPU, _ROOMY_GPU, _FULL_GPU = 0.95, 0.85, 0.90
_FEW_SAMPLES = 8
"""Batch size below which tensor cores stay unused, since their tiles are multiples of 8 (NVIDIA)."""
_PREFETCHED = 4  # batches that each worker loads ahead; twice PyTorch's default
_DERIVED = 1.05  # ratio due to rounding in values computed from an amount and a share
_UNSET = {"prefetch_factor": 2.0, "accumulation": 1.0, "workers": None, "batch": None, "gpu_count": None}
"""Default values of settings, or None if unknown. All other settings are off by default."""
USUAL_CHECK = "The next report no longer lists the finding, and work per GPU-hour does not fall."
_FEWEST, _MOST = 2, 8  # workers if the main process loads data, and the maximum if cores are unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Facts about the run or one finding that decide which advice fits."""

    gpus: int
    gpus_a_machine: int = 1
    compute_capability: tuple[int, int] | None = None
    gpu_used: float | None = None
    gpu_memory: float | None = None
    preallocated: bool | None = None
    cpu_used: float | None = None
    busiest_core: float | None = None
    host_memory: float | None = None
    setup: JobParams = field(default_factory=JobParams)
    framework: Framework | None = None
    link_reduced: bool | None = None
    job_hardly_uses_cpu: bool = False
    power_limit_reached: bool | None = None
    trains: bool = True
    input_waits: bool = False
    whole_gpus: bool = True
    reduced_links: frozenset[str] = frozenset()
    full_links: frozenset[str] = frozenset()

    @property
    def cores(self) -> CoreCount | None:
        return self.setup.count_cores(self.gpus_a_machine)

    @property
    def most_workers(self) -> float:
        return inf if self.job_hardly_uses_cpu else self.cores.most_workers if self.cores else _MOST


_Told = Callable[[RunFacts], bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    setting: str
    rises: bool

    def is_made(self, before: float | None, after: float | None) -> bool:
        low, high = map(self._known, (before, after) if self.rises else (after, before))
        noise = _DERIVED if self.setting in {"gpu_memory", "power_limit"} else 1.0
        return low is not None and high is not None and high > noise * low

    def may_be_made(self, before: float | None, after: float | None) -> bool:
        return (self._known(before) is None) != (self._known(after) is None)

    def _known(self, value: float | None) -> float | None:
        is_param = self.setting not in {"gpu_memory", "power_limit"}
        return _UNSET.get(self.setting, 0.0) if value is None and is_param else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One way to save GPU time, as described in `steps.toml`.

    `needs` maps each condition's text to its function. `frameworks` contains None if the framework
    may be unknown. `taken` names the check for whether a run took the step; `changes` also show it.
    """

    name: str
    chapter: str
    title: str
    do: str
    when: str
    risk: str = "Low."
    check: str = USUAL_CHECK
    source: str
    needs: dict[str, _Told]
    frameworks: tuple[Framework | None, ...]
    taken: str
    changes: tuple[SettingChange, ...]
    tries: str = ""

    def is_taken(self, facts: RunFacts) -> bool | None:
        return _tell_taken(self.taken)[0](facts) if self.taken else None


def gather_facts(
    run: Run, statistics: Sequence[DeviceStatistics], findings: Sequence[Finding], unjudged: Collection[str]
) -> RunFacts:
    scopes = {device.id: device.scope for device in run.devices}
    gpus_of, hosts = ([one for one in statistics if scopes[one.device] is scope] for scope in (Scope.GPU, Scope.HOST))
    room = [one.memory_headroom_ratio for one in gpus_of if one.memory_headroom_ratio is not None]
    of_memory = [found for found in findings if found.kind in {"mem_headroom", "mem_pressure"}]
    shares = [one.observed for found in of_memory for one in found.evidence if one.unit == "1"]
    unknown = "mem_prealloc" in unjudged or not room or not all(found.ruled_out for found in of_memory)
    used = [one.mean for one in _summaries(gpus_of, UTILISATION)]
    known_gpus = [find_gpu(gpu.model) for gpu in run.gpus]
    capabilities = [each.compute_capability for each in known_gpus if each and each.compute_capability]
    reduced = frozenset(name for found in findings if found.kind == "pcie_degraded" for name in found.devices)
    pairs = [(f"pcie_link_{what}", f"pcie_link_{what}_max") for what in ("generation", "width")]
    links = {one.device: [tuple(map(one.metric, pair)) for pair in pairs] for one in gpus_of}
    full = {name for name, both in links.items() if all(one and most and one.max >= most.max for one, most in both)}
    counted = min((one.max for one in _summaries(hosts, CORES)), default=None)
    return RunFacts(
        gpus=len(run.gpus),
        gpus_a_machine=max(Counter(gpu.node for gpu in run.gpus).values(), default=1),
        compute_capability=min(capabilities) if capabilities and len(capabilities) == len(known_gpus) else None,
        gpu_used=sum(used) / len(used) if used else None,
        gpu_memory=max(shares, default=1 - min(room)) if room else None,
        preallocated=any(found.kind == "mem_prealloc" for found in findings) or (None if unknown else False),
        cpu_used=max((one.p50 for one in _summaries(hosts, CPU)), default=None),
        busiest_core=max((one.p50 for one in _summaries(hosts, CORE)), default=None),
        host_memory=max((share for host in hosts if (share := _measure_host_memory(host)) is not None), default=None),
        setup=params.read_params(run.params_and_tags, counted),
        # only cores that the job itself keeps busy count
        job_hardly_uses_cpu=max((one.mean for one in _summaries(hosts, JOB)), default=inf) < HARDLY.value,
        framework=find_framework(run.params_and_tags),
        trains=not any(found.cause == REQUESTS for found in findings),
        whole_gpus=not any(gpu.mig for gpu in run.gpus),
        reduced_links=reduced,
        full_links=frozenset(full - reduced),
    )


def adapt_facts(known: RunFacts, finding: Finding) -> RunFacts:
    devices, evidence = set(finding.devices), {(one.metric, one.statistic, one.unit): one for one in finding.evidence}
    is_full = bool(devices) and known.full_links >= devices
    power = (one for one in finding.evidence if finding.kind == "power_limited" and one.metric == POWER)
    # a job that waits for the CPU needs more of it, even if its mean use is low
    waits_for_cpu = finding.kind in {"cpu_bound", "cpu_bound_single"}
    # only findings about the CPU measure both CPU and GPU
    is_measured = any(metric in {CPU, IOWAIT} for metric, *_ in evidence)
    use = ((UTILISATION, "mean", "1"), (CPU, "median", "1"))
    gpu, cpu = (evidence.get(key) if is_measured else None for key in use)
    return replace(
        known,
        link_reduced=True if known.reduced_links & devices else False if is_full else None,
        input_waits=finding.kind in {*WAIT_KINDS, "workers_headroom"} or finding.cause in {DATA, BESIDE_OTHERS},
        power_limit_reached=next((one.relation == ">=" for one in power), None),
        job_hardly_uses_cpu=finding.cause == BESIDE_OTHERS or (known.job_hardly_uses_cpu and not waits_for_cpu),
        gpu_used=gpu.observed if gpu else known.gpu_used,
        cpu_used=cpu.observed if cpu else known.cpu_used,
    )


def _summaries(statistics: Iterable[DeviceStatistics], metric: str) -> list[MetricSummary]:
    return [found for one in statistics if (found := one.metric(metric)) is not None]


def _measure_host_memory(host: DeviceStatistics) -> float | None:
    share, used, total = (host.metric(f"host_memory_{name}") for name in ("used_ratio", "used_bytes", "total_bytes"))
    return share.p95 if share else (used.p95 / total.max if used and total and total.max else None)


def _exceeds(facts: RunFacts, name: str, limit: float = 0.0) -> bool | None:
    setting = getattr(facts.setup, name)
    return None if setting is None else bool(setting.value > limit)


def _not(told: bool | None) -> bool | None:
    return None if told is None else not told


def _below(value: float | None, limit: float) -> bool | None:
    return None if value is None else value < limit


def _is_memory_free(facts: RunFacts) -> bool | None:
    """Return whether enough GPU memory is free for larger batches, or None if unknown."""
    is_needed = facts.preallocated is False or (facts.preallocated is None and (facts.gpu_memory or 0.0) >= _FULL_GPU)
    return _below(facts.gpu_memory, _ROOMY_GPU) or (False if is_needed else None)


CONDITIONS: dict[str, _Told] = {
    "cores_free": lambda facts: facts.job_hardly_uses_cpu or _below(facts.cpu_used, _FULL_CPU),
    "cpu_busy": lambda facts: _not(_below(facts.cpu_used, _BUSY_CPU)),
    "host_memory_free": lambda facts: _below(facts.host_memory, _FULL_HOST),
    "has_workers": lambda facts: _exceeds(facts, "workers"),
    "one_core": lambda facts: (
        _below(facts.cpu_used, _BUSY_CPU) is not False and _not(_below(facts.busiest_core, _PEGGED_CORE))
    ),
    "gpu_memory_free": _is_memory_free,
    "gpu_memory_full": lambda facts: _not(_below(facts.gpu_memory, _FULL_GPU)) if facts.preallocated is False else None,
    "gpu_time_free": lambda facts: _below(facts.gpu_used, _BUSY_GPU),
    "tensor_cores": lambda facts: facts.compute_capability and facts.compute_capability >= (7, 0),
    "full_precision": lambda facts: _not(_exceeds(facts, "precision")),
    "not_compiled": lambda facts: _not(_exceeds(facts, "compiled")),
    "fixed_shapes": lambda _facts: None,
    "input_waits": lambda facts: facts.input_waits or facts.setup.workers is not None or None,
    "from_scratch": lambda facts: _not(_exceeds(facts, "pretrained")),
    "link_reduced": lambda facts: facts.link_reduced,
    "power_limit_reached": lambda facts: facts.power_limit_reached,
    "several_gpus": lambda facts: facts.gpus > 1 if facts.gpus else None,
    "trains": lambda facts: facts.trains,
    "whole_gpus": lambda facts: facts.whole_gpus,
}


def _has_worker_per_core(facts: RunFacts) -> bool | None:
    """Return whether each process has a loader worker per core, or None if unknown or irrelevant."""
    workers, cores = facts.setup.workers, facts.cores
    if workers is None or not workers.value:
        return None if workers is None else False
    if cores is None or facts.job_hardly_uses_cpu:
        return None
    idle = facts.cpu_used is None or facts.cpu_used < _IDLE_CPU
    has_few = idle and 2 * workers.value * cores.gpus <= cores.cores
    return True if workers.value >= cores.most_workers else False if has_few else None


def _prefetches_far_ahead(facts: RunFacts) -> bool | None:
    factor, ahead = facts.setup.prefetch_factor, facts.setup.prefetch
    is_far = (factor and factor.value >= _PREFETCHED) or (ahead and ahead.value)
    return True if is_far else False if (factor and factor.value <= 1) or ahead else None


_TAKEN: dict[str, tuple[_Told, tuple[str, ...]]] = {
    "workers_match_cores": (_has_worker_per_core, ("workers", "cores_per_process", "cores")),
    "fewest_workers": (lambda facts: _not(_exceeds(facts, "workers", 1)) or None, ("workers",)),
    "prefetch": (_prefetches_far_ahead, ("prefetch_factor", "prefetch")),
    # training from scratch may be intended
    "pretrained": (lambda facts: _exceeds(facts, "pretrained") or None, ("pretrained",)),
    "accumulation": (lambda facts: _exceeds(facts, "accumulation", 1), ("accumulation",)),
    "large_batch": (lambda facts: _exceeds(facts, "batch", _FEW_SAMPLES - 1) and None, ("batch",)),
}
"""Checks for whether a run took a step, and the settings they read. Any other name is a setting that must be on."""


def _tell_taken(name: str) -> tuple[_Told, tuple[str, ...]]:
    return _TAKEN.get(name) or (lambda facts: _exceeds(facts, name), (name,))


def _read_steps(content: dict[str, Any]) -> Iterator[Step]:
    sources, words = content["sources"], content["conditions"]
    for chapter, steps in content["steps"].items():
        for name, said in steps.items():
            fits = said.pop("fits", {})
            raises, lowers = fits.get("raises", []), fits.get("lowers", [])
            needs = {words[each]: CONDITIONS[each] for each in fits.get("needs", ())}
            own = (kind.meaning for kind in KINDS.values() if any(name in each for each in kind.steps.values()))
            when = f"{phrases.capitalize(phrases.join_words(list(needs)))}." if needs else next(own, "")
            yield Step(
                **{"title": phrases.capitalize(name.replace("_", " ")), "when": when} | said,
                name=name,
                chapter=chapter,
                source="; ".join(source for source, on in sources.items() if name in on),
                needs=needs,
                frameworks=tuple(Framework(each) if each else None for each in fits.get("frameworks", ())),
                taken=fits.get("taken", raises[0] if len(raises) == 1 and hasattr(JobParams(), raises[0]) else ""),
                changes=tuple(SettingChange(setting=each, rises=each in raises) for each in [*raises, *lowers]),
            )


_SAID = tomllib.loads(Path(__file__).with_name("steps.toml").read_text(encoding="utf-8"))
TRIES: dict[str, dict[str, list[str]]] = _SAID["tries"]
STEPS = {step.name: step for step in _read_steps(_SAID)}


def list_steps(finding: Finding) -> tuple[str, ...]:
    steps = KINDS[finding.kind].steps
    return steps.get(finding.cause or "", steps.get("", ()))


def choose_steps(finding: Finding, known: RunFacts) -> tuple[AdvisedStep, ...]:
    """Return the steps that fit: those not yet taken first, those with unknown conditions last."""
    facts = adapt_facts(known, finding)
    chosen = [step for name in list_steps(finding) if (step := _fit_step(name, facts)) is not None]
    is_untaken = {step: STEPS[step.name].is_taken(facts) is False for step in chosen}
    return tuple(sorted(chosen, key=lambda step: 0 if is_untaken[step] else 1 + bool(step.unknown)))


def choose_workers_trial(known: RunFacts) -> AdvisedStep | None:
    return _fit_step(_WORKERS, known) if known.setup.workers is not None else None


def _fit_step(name: str, facts: RunFacts) -> AdvisedStep | None:
    step = STEPS[name]
    held = {words: holds(facts) for words, holds in step.needs.items()}
    if (step.frameworks and facts.framework not in step.frameworks) or False in held.values() or step.is_taken(facts):
        return None
    return AdvisedStep(
        name=name,
        unknown=tuple(words for words, holds in held.items() if holds is None),
        suggestion=_suggest_workers(facts) if name == _WORKERS else "",
    )


def write_recommendation(finding: Finding, known: RunFacts) -> str:
    if not finding.steps:
        return "Nothing to do, according to the log."
    facts = adapt_facts(known, finding)
    told = (_tell_taken(taken) for name in list_steps(finding) if (taken := STEPS[name].taken))
    settings = (getattr(facts.setup, param) for holds, named in told if holds(facts) is not None for param in named)
    said = list(dict.fromkeys(setting.text for setting in settings if setting is not None))
    titles = "; ".join(STEPS[step.name].title for step in finding.steps[:_MOST_NAMED])
    return f"With {phrases.join_words(said)}: {titles}." if said else f"{titles}."


def _suggest_workers(facts: RunFacts) -> str:
    cores, setting, most = facts.cores, facts.setup.workers, "at most one per core"
    if facts.job_hardly_uses_cpu:
        cores, most = None, "even more than one per core, since the job hardly uses the CPU"
    elif cores:
        most = f"at most {cores.most_workers}{'' if cores.gpus == 1 else ' for each GPU'}: {cores.words}"
    if setting is None or not isfinite(setting.value):
        return f"Double their number, to {most}."
    wanted, now = min(max(2 * round(setting.value), _FEWEST), facts.most_workers), round(setting.value)
    return f"Try {f'{wanted} instead of' if cores or wanted > now else 'more than'} {now} ({most})."
