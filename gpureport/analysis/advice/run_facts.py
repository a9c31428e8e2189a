"""Facts of a run that decide which advice fits. None means that the recording does not say."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from gpureport import gpus
from gpureport.analysis.job import params
from gpureport.analysis.job.params import Framework, JobParams, Setting, find_framework
from gpureport.analysis.job.phases import JOB
from gpureport.analysis.results import DeviceStatistics, MetricSummary
from gpureport.analysis.signals import core_count, job_load
from gpureport.analysis.signals.core_count import CPU
from gpureport.findings import Finding
from gpureport.metrics import Scope
from gpureport.recording import Run

UTILISATION = "gpu_utilization_ratio"
_BUSIEST = "cpu_busiest_core_ratio"
_IOWAIT = "cpu_iowait_ratio"
_HOST_MEMORY = "host_memory_used_ratio"
_LINK, _LIMITED = "pcie_degraded", "power_limited"
_CPU_WAITS = {"cpu_bound", "cpu_bound_single"}
"""Kinds whose episodes say that the job wants more of the CPU, whatever it used of it over the run."""
_LANES, _COMMON_GENERATION, _HALF = 16.0, 4.0, 0.5
"""Lanes of a full link, the generation assumed for an unknown model, and half of what a link carries."""
_HOST_USED, _HOST_TOTAL = "host_memory_used_bytes", "host_memory_total_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Facts that the preconditions of advice are checked against.

    Attributes:
        gpus: how many GPUs the run had.
        gpus_a_machine: how many of them one machine had at most.
        compute_capability: the lowest among the GPUs whose model is known and listed.
        gpu_used: mean utilisation of the GPUs, as a ratio.
        gpu_memory: share of the memory that the fullest GPU filled: of what a job can get where a finding says it,
            else of the memory installed.
        preallocated: whether a framework took the memory at once, so that its use says nothing.
        cpu_used: median use of the CPU, as a ratio.
        busiest_core: median use of the busiest core.
        host_memory: share of the host's memory in use, 95% of the time at most.
        reduced_precision: whether params say that arithmetic is done in 16 bits or fewer.
        setup: what params and tags say of the loader, the machine and the training loop.
        framework: the framework that params and tags name.
        reduced_links: GPUs whose PCIe link runs below its highest generation or width under load.
        full_links: GPUs of which it is known that theirs does not.
        link_reduced: the same of the GPUs of one finding.
        job_hardly_uses_cpu: whether the job kept less than half a core busy, as recorded or as a finding says.
        power_limit_reached: whether a GPU with a lowered power limit comes near it.
    """

    gpus: int
    gpus_a_machine: int = 1
    compute_capability: tuple[int, int] | None = None
    gpu_used: float | None = None
    gpu_memory: float | None = None
    preallocated: bool | None = None
    cpu_used: float | None = None
    busiest_core: float | None = None
    host_memory: float | None = None
    reduced_precision: bool | None = None
    setup: JobParams = params.NO_PARAMS
    framework: Framework | None = None
    reduced_links: frozenset[str] = frozenset()
    full_links: frozenset[str] = frozenset()
    link_reduced: bool | None = None
    power_limit_reached: bool | None = None
    job_hardly_uses_cpu: bool = False

    @property
    def others_fill_cpu(self) -> bool:
        """Whether the CPU is as full as one that GPUs wait for, and the job hardly uses it."""
        return self.job_hardly_uses_cpu and self.cpu_used is not None and self.cpu_used >= job_load.FULL.value


def gather_facts(
    run: Run, statistics: Sequence[DeviceStatistics], findings: Sequence[Finding], unjudged: Collection[str]
) -> RunFacts:
    """Return the facts of a run."""
    scopes = {device.id: device.scope for device in run.devices}
    models = {device.id: device.model for device in run.devices}
    gpus_of = [one for one in statistics if scopes[one.device] is Scope.GPU]
    hosts = [one for one in statistics if scopes[one.device] is Scope.HOST]
    kinds = {finding.kind for finding in findings}
    room = [one.memory_headroom_ratio for one in gpus_of if one.memory_headroom_ratio is not None]
    unsure = any(finding.kind in {"mem_headroom", "mem_pressure"} and not finding.ruled_out for finding in findings)
    allocation = "mem_prealloc" in kinds or (None if unsure or "mem_prealloc" in unjudged or not room else False)
    used = [one.mean for one in _list_summaries(gpus_of, UTILISATION)]
    labels = run.params_and_tags
    precision = params.find_precision_param(labels)
    reduced = frozenset(name for finding in findings if finding.kind == _LINK for name in finding.devices)
    return RunFacts(
        gpus=len(run.gpus),
        gpus_a_machine=max(Counter(gpu.node for gpu in run.gpus).values(), default=1),
        compute_capability=_find_lowest_capability(run),
        gpu_used=sum(used) / len(used) if used else None,
        gpu_memory=_find_filled_share(findings, 1 - min(room)) if room else None,
        preallocated=allocation,
        cpu_used=max((one.p50 for one in _list_summaries(hosts, CPU)), default=None),
        busiest_core=max((one.p50 for one in _list_summaries(hosts, _BUSIEST)), default=None),
        host_memory=max((share for host in hosts if (share := _measure_host_memory(host)) is not None), default=None),
        reduced_precision=None if precision is None else not precision[1],
        setup=core_count.add_counted_cores(read_setup(labels), _count_cores(hosts)),
        job_hardly_uses_cpu=_hardly_uses_cpu(hosts),
        framework=find_framework(labels),
        reduced_links=reduced,
        full_links=frozenset(one.device for one in gpus_of if _has_full_link(models[one.device], one, findings))
        - reduced,
    )


def _hardly_uses_cpu(hosts: Sequence[DeviceStatistics]) -> bool:
    """Return whether the job kept less than half a core busy on every host that recorded its share, and one did.

    How much of the load that is does not matter: on a machine at rest the job may be all of it.
    """
    cores = [one.mean for one in _list_summaries(hosts, JOB)]
    return bool(cores) and max(cores) < job_load.HARDLY.value


def read_setup(labels: Iterable[tuple[str, str]]) -> JobParams:
    """Return what params and tags say of how the job was set up, its precision included."""
    known = list(labels)
    return replace(params.read_params(known), precision=_precision(params.find_precision_param(known)))


def _precision(said: tuple[str, bool] | None) -> Setting | None:
    """Return the param that states the precision; its value is 1 for less than 32 bits, else 0."""
    return None if said is None else Setting(text=said[0], value=float(not said[1]))


def _has_full_link(model: str | None, gpu: DeviceStatistics, findings: Sequence[Finding]) -> bool:
    """Whether a PCIe link ran at its best: at the highest logged, else with 16 lanes of the model's generation.

    Where only the highest was logged, copies that fill more than half of it show this: no lesser link carries them.
    """
    names = ("pcie_link_generation", "pcie_link_width")
    seen, possible = ([_find_highest(gpu, f"{name}{end}") for name in names] for end in ("", "_max"))
    known = gpus.find_gpu(model)
    generation = known.pcie_generation.value if known and known.pcie_generation else _COMMON_GENERATION
    wanted = (possible[0] or generation, possible[1] or _LANES)
    if seen == [None, None] and None not in possible:
        return any(gpu.device in finding.devices and _carries_most(finding) for finding in findings)
    return all(value is not None and value >= limit for value, limit in zip(seen, wanted, strict=True))


def _carries_most(finding: Finding) -> bool:
    """Whether copies filled more than half of what a link carries."""
    return any(one.metric == "PCIe traffic" and one.observed > _HALF for one in finding.evidence)


def _find_filled_share(findings: Sequence[Finding], installed: float) -> float:
    """Return the share of the memory in use at the peak: that of a finding on it, so that both show one number."""
    shares = [
        evidence.observed
        for finding in findings
        if finding.kind in {"mem_headroom", "mem_pressure"}
        for evidence in finding.evidence
        if evidence.unit == "1"
    ]
    return max(shares, default=installed)


def adapt_facts(known: RunFacts, finding: Finding) -> RunFacts:
    """Return the facts with what a finding measured in its own episodes in place of the means of the run.

    Only findings that compare the CPU with the GPU measure both.
    """
    known = replace(
        known,
        link_reduced=_has_reduced_link(known, finding),
        power_limit_reached=_reaches_power_limit(finding),
        job_hardly_uses_cpu=finding.cause == job_load.BESIDE_OTHERS
        or (known.job_hardly_uses_cpu and finding.kind not in _CPU_WAITS),
    )
    if not any(evidence.metric in {CPU, _IOWAIT} for evidence in finding.evidence):
        return known
    measured = {
        (evidence.metric, evidence.statistic): evidence.observed
        for evidence in finding.evidence
        if evidence.unit == "1"
    }
    return replace(
        known,
        gpu_used=measured.get((UTILISATION, "mean"), known.gpu_used),
        cpu_used=measured.get((CPU, "median"), known.cpu_used),
    )


def _find_highest(gpu: DeviceStatistics, metric: str) -> float | None:
    found = gpu.metric(metric)
    return None if found is None else found.max


def _has_reduced_link(known: RunFacts, finding: Finding) -> bool | None:
    """Whether the PCIe link of a GPU of the finding runs below its best."""
    if known.reduced_links & set(finding.devices):
        return True
    return False if finding.devices and known.full_links >= set(finding.devices) else None


def _reaches_power_limit(finding: Finding) -> bool | None:
    """Whether power comes near the limit, as a finding on a lowered limit says."""
    near = (one for one in finding.evidence if finding.kind == _LIMITED and one.metric == "gpu_power_watts")
    return next((one.relation == ">=" for one in near), None)


def _list_summaries(statistics: Iterable[DeviceStatistics], metric: str) -> list[MetricSummary]:
    return [found for one in statistics if (found := one.metric(metric)) is not None]


def _count_cores(hosts: Sequence[DeviceStatistics]) -> float | None:
    """Return how many cores a host log counted, on the machine with the fewest."""
    return min((one.max for one in _list_summaries(hosts, core_count.CORES)), default=None)


def _measure_host_memory(host: DeviceStatistics) -> float | None:
    """Return the share of a host's memory in use, 95% of the time at most."""
    share, used, total = (host.metric(name) for name in (_HOST_MEMORY, _HOST_USED, _HOST_TOTAL))
    if share is not None:
        return share.p95
    return used.p95 / total.max if used is not None and total is not None and total.max else None


def _find_lowest_capability(run: Run) -> tuple[int, int] | None:
    known = [gpus.find_gpu(gpu.model) for gpu in run.gpus]
    capabilities = [each.compute_capability for each in known if each and each.compute_capability]
    return min(capabilities) if capabilities and len(capabilities) == len(known) else None
