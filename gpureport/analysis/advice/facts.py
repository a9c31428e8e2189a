"""What a run tells that decides which advice fits; None is always: the recording does not tell."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from gpureport import gpus
from gpureport.analysis import precision_params
from gpureport.analysis.base import DeviceStatistics, MetricSummary
from gpureport.findings import Finding
from gpureport.metrics import Scope
from gpureport.recording import Run

UTILISATION = "gpu_utilization_ratio"
CPU = "cpu_utilization_ratio"
_BUSIEST = "cpu_busiest_core_ratio"
_IOWAIT = "cpu_iowait_ratio"
_HOST_MEMORY = "host_memory_used_ratio"
_HOST_USED, _HOST_TOTAL = "host_memory_used_bytes", "host_memory_total_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What preconditions of advice are held against.

    Attributes:
        gpus: how many GPUs the run had.
        compute_capability: the lowest among the GPUs whose model is known and listed.
        gpu_used: mean utilisation of the GPUs, as a ratio.
        gpu_memory: share of the memory that the fullest GPU filled: of what a job can get where a finding says it,
            else of the memory installed.
        preallocated: whether a framework took the memory at once, so that its use says nothing.
        cpu_used: median use of the CPU, as a ratio.
        busiest_core: median use of the busiest core.
        host_memory: share of the host's memory in use, 95 % of the time at most.
        reduced_precision: whether params say that arithmetic is done in 16 bits or fewer.
        workers: loader workers, by the params.
    """

    gpus: int
    compute_capability: tuple[int, int] | None = None
    gpu_used: float | None = None
    gpu_memory: float | None = None
    preallocated: bool | None = None
    cpu_used: float | None = None
    busiest_core: float | None = None
    host_memory: float | None = None
    reduced_precision: bool | None = None
    workers: int | None = None


def facts(
    run: Run, statistics: Sequence[DeviceStatistics], findings: Sequence[Finding], unjudged: Collection[str]
) -> Facts:
    """Return what a run tells.

    Args:
        run: the run.
        statistics: the figures of its devices.
        findings: what was found.
        unjudged: kinds that could not be judged.
    """
    scopes = {device.id: device.scope for device in run.devices}
    gpus_of = [one for one in statistics if scopes[one.device] is Scope.GPU]
    hosts = [one for one in statistics if scopes[one.device] is Scope.HOST]
    kinds = {finding.kind for finding in findings}
    room = [one.memory_headroom_ratio for one in gpus_of if one.memory_headroom_ratio is not None]
    unsure = any(finding.kind in {"mem_headroom", "mem_pressure"} and not finding.ruled_out for finding in findings)
    allocation = "mem_prealloc" in kinds or (None if unsure or "mem_prealloc" in unjudged or not room else False)
    used = [one.mean for one in _of(gpus_of, UTILISATION)]
    return Facts(
        gpus=len(run.gpus),
        compute_capability=_capability(run),
        gpu_used=sum(used) / len(used) if used else None,
        gpu_memory=_filled(findings, 1 - min(room)) if room else None,
        preallocated=allocation,
        cpu_used=max((one.p50 for one in _of(hosts, CPU)), default=None),
        busiest_core=max((one.p50 for one in _of(hosts, _BUSIEST)), default=None),
        host_memory=max((share for host in hosts if (share := _host_memory(host)) is not None), default=None),
        reduced_precision=None if (said := precision_params.said(run.params)) is None else not said[1],
        workers=_workers(run),
    )


def _filled(findings: Sequence[Finding], installed: float) -> float:
    """Return the share of the memory in use at the peak, as a finding on it says so that both tell one number."""
    told = [
        evidence.observed
        for finding in findings
        if finding.kind in {"mem_headroom", "mem_pressure"}
        for evidence in finding.evidence
        if evidence.unit == "1"
    ]
    return max(told, default=installed)


def beside(known: Facts, finding: Finding) -> Facts:
    """Return the facts with what a finding measured during its own episodes in place of the whole run's.

    Only findings that looked at the CPU beside the GPU did: of a gap the GPU's own mean says nothing new.
    """
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


def _of(statistics: Iterable[DeviceStatistics], metric: str) -> list[MetricSummary]:
    return [found for one in statistics if (found := one.metric(metric)) is not None]


def _host_memory(host: DeviceStatistics) -> float | None:
    """Return the share of a host's memory in use, 95 % of the time at most."""
    share, used, total = (host.metric(name) for name in (_HOST_MEMORY, _HOST_USED, _HOST_TOTAL))
    if share is not None:
        return share.p95
    return used.p95 / total.max if used is not None and total is not None and total.max else None


def _capability(run: Run) -> tuple[int, int] | None:
    known = [gpus.find(gpu.model) for gpu in run.gpus]
    told = [each.compute_capability for each in known if each and each.compute_capability]
    return min(told) if told and len(told) == len(known) else None


def _workers(run: Run) -> int | None:
    for key, value in sorted(run.params):
        if key.lower().rpartition("/")[2].rpartition(".")[2] in {"num_workers", "dataloader_num_workers", "workers"}:
            return int(value) if value.isdecimal() else None
    return None
