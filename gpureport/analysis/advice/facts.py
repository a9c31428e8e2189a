"""Facts of a run that decide which advice fits. None means that the recording does not say."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from gpureport import gpus
from gpureport.analysis.job import params
from gpureport.analysis.job.events import DATA, REQUESTS
from gpureport.analysis.job.params import CoreCount, Framework, JobParams, find_framework
from gpureport.analysis.names import CORE, CPU, IOWAIT, JOB, POWER, UTILISATION
from gpureport.analysis.results import DeviceStatistics, MetricSummary
from gpureport.analysis.rules.waits import BESIDE_OTHERS, CORES, HARDLY, WAIT_KINDS
from gpureport.findings import Finding
from gpureport.metrics import Scope
from gpureport.recording import TRACKER_KINDS, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Facts for the conditions of advice, of the run or as one finding measured them.

    Use is a share: of GPUs the mean, of the CPU and its busiest core the median, of host memory the p95; `gpu_memory`
    is of the fullest GPU, `compute_capability` the lowest. `job_hardly_uses_cpu` is less than half a core;
    `host_cleared`: neither CPU nor storage is the bottleneck; `whole_host`: a tracker logged every GPU of a host.
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
    link_reduced: bool | None = None
    job_hardly_uses_cpu: bool = False
    power_limit_reached: bool | None = None
    trains: bool = True
    input_waits: bool = False
    whole_gpus: bool = True
    whole_host: bool = False
    reduced_links: frozenset[str] = frozenset()
    full_links: frozenset[str] = frozenset()

    @property
    def cores(self) -> CoreCount | None:
        """The cores beside the GPUs of a machine, or of a process."""
        return self.setup.count_cores(self.gpus_a_machine)


def gather_facts(
    run: Run, statistics: Sequence[DeviceStatistics], findings: Sequence[Finding], unjudged: Collection[str]
) -> RunFacts:
    """Return the facts of a run."""
    devices = {device.id: device for device in run.devices}
    gpus_of = [one for one in statistics if devices[one.device].scope is Scope.GPU]
    hosts = [one for one in statistics if devices[one.device].scope is Scope.HOST]
    room = [one.memory_headroom_ratio for one in gpus_of if one.memory_headroom_ratio is not None]
    of_memory = [found for found in findings if found.kind in {"mem_headroom", "mem_pressure"}]
    shares = [one.observed for found in of_memory for one in found.evidence if one.unit == "1"]
    unknown = "mem_prealloc" in unjudged or not room or not all(found.ruled_out for found in of_memory)
    used = [one.mean for one in _list_summaries(gpus_of, UTILISATION)]
    precision = params.find_precision_param(run.params_and_tags)
    job_cores = [one.mean for one in _list_summaries(hosts, JOB)]
    known_gpus = [gpus.find_gpu(gpu.model) for gpu in run.gpus]
    capabilities = [each.compute_capability for each in known_gpus if each and each.compute_capability]
    reduced = frozenset(name for found in findings if found.kind == "pcie_degraded" for name in found.devices)
    full = {one.device for one in gpus_of if _has_full_link(one)}
    counted = min((one.max for one in _list_summaries(hosts, CORES)), default=None)
    return RunFacts(
        gpus=len(run.gpus),
        gpus_a_machine=max(Counter(gpu.node for gpu in run.gpus).values(), default=1),
        compute_capability=min(capabilities) if capabilities and len(capabilities) == len(known_gpus) else None,
        gpu_used=sum(used) / len(used) if used else None,
        gpu_memory=max(shares, default=1 - min(room)) if room else None,
        preallocated=any(found.kind == "mem_prealloc" for found in findings) or (None if unknown else False),
        cpu_used=max((one.p50 for one in _list_summaries(hosts, CPU)), default=None),
        busiest_core=max((one.p50 for one in _list_summaries(hosts, CORE)), default=None),
        host_memory=max((share for host in hosts if (share := _measure_host_memory(host)) is not None), default=None),
        reduced_precision=None if precision is None else not precision[1],
        setup=params.read_params(run.params_and_tags, counted),
        # whose load that is does not matter: a resting machine may have the job alone
        job_hardly_uses_cpu=bool(job_cores) and max(job_cores) < HARDLY.value,
        framework=find_framework(run.params_and_tags),
        trains=not any(found.cause == REQUESTS for found in findings),
        whole_host=len(run.gpus) > 1 and any(source.kind in {*TRACKER_KINDS, "wandb"} for source in run.sources),
        whole_gpus=not any(gpu.mig for gpu in run.gpus),
        reduced_links=reduced,
        full_links=frozenset(full - reduced),
    )


def adapt_facts(known: RunFacts, finding: Finding) -> RunFacts:
    """Return the facts with what a finding measured in its episodes in place of means of the run."""
    devices = set(finding.devices)
    is_full = bool(devices) and known.full_links >= devices
    power = (one for one in finding.evidence if finding.kind == "power_limited" and one.metric == POWER)
    # whoever waits for the CPU wants more of it, whatever the mean use
    waits_for_cpu = finding.kind in {"cpu_bound", "cpu_bound_single"}
    adapted = replace(
        known,
        link_reduced=True if known.reduced_links & devices else False if is_full else None,
        input_waits=finding.kind in {*WAIT_KINDS, "workers_headroom"} or finding.cause in {DATA, BESIDE_OTHERS},
        power_limit_reached=next((one.relation == ">=" for one in power), None),
        job_hardly_uses_cpu=finding.cause == BESIDE_OTHERS or (known.job_hardly_uses_cpu and not waits_for_cpu),
    )
    # only findings that compare the CPU with the GPU measure both
    if not any(one.metric in {CPU, IOWAIT} for one in finding.evidence):
        return adapted
    measured = {(one.metric, one.statistic): one.observed for one in finding.evidence if one.unit == "1"}
    return replace(
        adapted,
        gpu_used=measured.get((UTILISATION, "mean"), known.gpu_used),
        cpu_used=measured.get((CPU, "median"), known.cpu_used),
    )


def _has_full_link(gpu: DeviceStatistics) -> bool:
    """Whether a PCIe link ran at the highest generation and width logged."""
    names = ("pcie_link_generation", "pcie_link_width")
    pairs = [(gpu.metric(name), gpu.metric(f"{name}_max")) for name in names]
    return all(seen is not None and most is not None and seen.max >= most.max for seen, most in pairs)


def _list_summaries(statistics: Iterable[DeviceStatistics], metric: str) -> list[MetricSummary]:
    return [found for one in statistics if (found := one.metric(metric)) is not None]


def _measure_host_memory(host: DeviceStatistics) -> float | None:
    """Return the share of a host's memory in use, 95% of the time at most."""
    share, used, total = (host.metric(f"host_memory_{name}") for name in ("used_ratio", "used_bytes", "total_bytes"))
    if share is not None:
        return share.p95
    return used.p95 / total.max if used is not None and total is not None and total.max else None
