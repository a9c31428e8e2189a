"""From the recording of a run and its analysis to a summary of each of its GPUs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import fsum

from gpureport import label_tags
from gpureport.analysis import RULES
from gpureport.analysis.results import Analysis, CounterReading, DeviceStatistics
from gpureport.analysis.rulebook import kinds_by_gpu_time_class
from gpureport.comparison import gains
from gpureport.findings import Finding, Severity
from gpureport.fleet.gpu_summary import FindingSummary, GpuSummary
from gpureport.fleet.summaries.gpu_health import read_health
from gpureport.recording import Device, Recording, Run

_RANK = list(Severity)
_CLASSES = {kind: name for name, kinds in kinds_by_gpu_time_class(RULES).items() for kind in kinds}
"""The class of GPU time of each kind that has one."""
_UTILISATION = "gpu_utilization_ratio"
_Times = Mapping[str, Mapping[str, float]]
"""The seconds of each GPU in each class of GPU time."""


def summarise_run(recording: Recording, analysis: Analysis, key: str) -> list[GpuSummary]:
    """Return a summary of each GPU of a run, in its order; a single one without a GPU.

    Args:
        recording: the run and its series.
        analysis: what was found in it.
        key: what the summaries are made from.
    """
    whole = describe_run(recording.run, key)
    if not recording.run.gpus:
        return [replace(whole, not_judged=_list_not_judged(analysis, None))]
    times = {time.device: dict(time.seconds) for time in analysis.gpu_time}
    return [_summarise_gpu(whole, recording, analysis, gpu, times) for gpu in recording.run.gpus]


def describe_run(run: Run, key: str) -> GpuSummary:
    """Return what is known of a run without its series; no time where the date is missing."""
    timeless = run.quality.synthetic_time or run.ended < 365 * 86_400_000_000
    return GpuSummary(
        key=key,
        run_id=run.id,
        run_name=run.name,
        source=run.sources[0].locator if run.sources else None,
        step=run.step,
        started=None if timeless else run.started,
        ended=None if timeless else run.ended,
        timezone=run.timezone,
        work_amount=run.work.amount if run.work else None,
        work_unit=run.work.unit if run.work else None,
        params=run.params,
        tags=run.tags,
    )


def mark_failed(whole: GpuSummary, error: str) -> GpuSummary:
    """Return what is known of a run that failed, with the reason; its key fits no run."""
    return replace(whole, key="", error=error)


def _summarise_gpu(
    whole: GpuSummary, recording: Recording, analysis: Analysis, gpu: Device, times: _Times
) -> GpuSummary:
    run = recording.run
    statistics = next((one for one in analysis.statistics if one.device == gpu.id), None)
    used = statistics.metric(_UTILISATION) if statistics else None
    # of a GPU without samples, or whose rows may be those of another, nothing is known
    unknown = (("no_samples", (run.ended - run.started) / 1e6),)
    return replace(
        whole,
        node=gpu.node or label_tags.find_label(run.params_and_tags, "node"),
        device=gpu.id,
        uuid=gpu.uuid,
        model=gpu.model,
        observed_seconds=statistics.observed_seconds if statistics else None,
        seconds=tuple(times[gpu.id].items()) if gpu.id in times else unknown,
        energy_joules=_read_energy(statistics) if statistics else None,
        utilisation=used.mean if used else None,
        memory_peak_bytes=statistics.memory_peak_bytes if statistics else None,
        memory_total_bytes=gpu.memory_total_bytes,
        findings=tuple(_summarise_findings(analysis, gpu, times)),
        not_judged=_list_not_judged(analysis, gpu.id),
        health=read_health(recording, analysis, gpu.id),
    )


def _read_energy(statistics: DeviceStatistics) -> float | None:
    """Return the energy of a GPU: the integral of its power, else what its counter rose by."""
    counter: CounterReading | None = statistics.energy_counter
    if statistics.energy_joules is not None or counter is None or counter.restarts or counter.impossible:
        return statistics.energy_joules
    return counter.total or None


def _summarise_findings(analysis: Analysis, gpu: Device, times: _Times) -> Iterator[FindingSummary]:
    """Yield what was found on a GPU or on the whole job, in the order of the analysis."""
    is_too_short = gains.is_recording_too_short(analysis)
    groups: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in analysis.findings:
        if not finding.devices or gpu.id in finding.devices:
            groups[finding.fingerprint].append(finding)
    for fingerprint, findings in groups.items():
        worst = max(findings, key=lambda each: each.lost_gpu_seconds or 0.0)
        lost = [each.lost_gpu_seconds for each in findings if each.lost_gpu_seconds is not None]
        yield FindingSummary(
            kind=worst.kind,
            cause=worst.cause,
            severity=max((each.severity for each in findings), key=_RANK.index),
            count=len(findings),
            lost_gpu_seconds=fsum(lost) * _measure_part(worst, gpu.id, times) if lost else None,
            fingerprint=fingerprint,
            is_consequence=all(each.root is not None for each in findings),
            steps=() if lost and is_too_short else tuple(step.name for step in worst.steps),
        )


def _measure_part(finding: Finding, device: str, times: _Times) -> float:
    """Return which part of what a finding lost one of its GPUs lost.

    It is that of the time of its class where there is any, else each has the same.
    """
    concerned = [each for each in finding.devices if each in times] or list(times)
    name = _CLASSES.get(finding.kind, "")
    whole = fsum(times[each].get(name, 0.0) for each in concerned)
    return times.get(device, {}).get(name, 0.0) / whole if whole else 1 / max(len(concerned), 1)


def _list_not_judged(analysis: Analysis, device: str | None) -> tuple[str, ...]:
    kinds = {entry.kind for entry in analysis.not_judged if entry.device in {None, device}}
    return tuple(sorted(kinds))
