"""GPUs that work only part of the time, though nothing that was recorded of the machine holds them back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.detectors.low_use.low_use_rule import LowUseRule
from gpureport.analysis.job.phases import JOB, UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals import core_count, job_load, low_use, low_use_figures
from gpureport.analysis.signals.core_count import CPU, CoreCount
from gpureport.analysis.signals.low_use import LowUse
from gpureport.analysis.signals.low_use_figures import LowUseFigures
from gpureport.analysis.signals.waits import waiting_gpus
from gpureport.findings import Confidence, Evidence, Finding, Severity
from gpureport.recording_advice import RECORD

_KIND = "underutilised"
_CORE, _IOWAIT = "cpu_busiest_core_ratio", "cpu_iowait_ratio"
_CAUSES = (_CORE, _IOWAIT)
_OPEN = {_CORE: "one core", _IOWAIT: "storage"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Underutilised(LowUseRule):
    """Mean utilisation outside idle gaps between 8 and 64% for two minutes or 30 samples, and no wait explains it.

    The time of low use ends when the mean rises above 72%. Log gaps, idle gaps, start-up and waits for the CPU, one
    core, storage or copies are not part of it, nor is a job whose GPUs work unevenly. Where samples are far apart,
    the mean of the whole time must lie below 70% by three standard errors. A CPU series is needed: without one the
    finding is `low_util_cause_unknown`, as it is where other programs fill the CPU. The finding says which causes
    were looked for, since one core and storage need series of their own. A shorter job, from 30 s on, is assessed by
    the mean of all its work, with low confidence.
    """

    name = _KIND
    requires = ((UTILISATION,), (CPU,))
    after = (*low_use.EXPLAINING_KINDS, "imbalance")
    wants = (*_CAUSES, core_count.CORES, JOB)

    def group_gpus(self, context: Context, low: LowUse) -> Sequence[Sequence[str]]:
        """Return the GPUs whose CPU was recorded and not full, and that uneven work does not explain."""
        covered = [
            name
            for name, spans in low.spans.items()
            if low_use.is_cpu_recorded(context, name, spans)
            and not _is_explained_by_imbalance(context, spans)
            and job_load.find_other_load(context, name, spans) is None
        ]
        return [covered]

    def build_finding(self, context: Context, low: LowUse, figures: LowUseFigures) -> Finding:
        """Return the finding over these GPUs."""
        cause = low_use_figures.find_cause(context, figures.devices)
        levels = {name: _average_host_metric(context, name, figures) for name in (CPU, *_CAUSES)}
        known = {name: level for name, level in levels.items() if not np.isnan(level)}
        # for a shorter time, one full core is no finding, and so not ruled out either
        shortest = waiting_gpus.find_shortest_one_core_wait(context.window or context.whole).value
        too_brief = [_CORE] if low.is_short_job and figures.seconds < shortest else []
        unknown = [name for name in _CAUSES if name not in known or name in too_brief]
        absent = [name for name in unknown if name not in known]
        cores = _find_core_count(context, figures)
        return Finding(
            kind=_KIND,
            severity=Severity.WARNING,
            confidence=Confidence.LOW if unknown or low.is_short_job else Confidence.MEDIUM,
            devices=figures.devices,
            intervals=intervals.to_intervals(figures.spans),
            evidence=(
                *low_use_figures.build_use_evidence(context, low, figures, self.enter),
                *(Evidence(metric=name, statistic="mean", observed=at, unit="1") for name, at in known.items()),
                low_use_figures.build_duration_evidence(low, figures, self.over, self.shortest),
                *([cores.evidence] if cores else []),
            ),
            lost_gpu_seconds=figures.lost,
            cause=cause,
            samples=figures.samples,
            ruled_out=(
                "idle gaps and log gaps, which are counted on their own",
                "waiting for the CPU as a whole",
                *(f"{_RULED_OUT[name]}" for name in _CAUSES if name not in unknown),
            ),
            summary=core_count.append_core_count(
                f"{figures.describe(context.gpus())}; {_describe_free_host(unknown)}.",
                cores,
            ),
            recommendation=" ".join(
                [KINDS["underutilised"].advice[cause or ""], *_advise_recording(absent, too_brief)]
            ),
        )


def _describe_free_host(unknown: Sequence[str]) -> str:
    """Return what of the host was not the bottleneck, and which causes the log leaves open."""
    cpu = "the CPU as a whole" if _CORE in unknown else "CPU"
    free = f"{cpu} was not the bottleneck" if _IOWAIT in unknown else f"neither {cpu} nor storage was the bottleneck"
    left = " or ".join(name for metric, name in _OPEN.items() if metric in unknown)
    free = f"the {free}" if free.startswith("CPU") else free
    return f"{free}; whether {left} was is not known" if left else free


def _advise_recording(absent: Sequence[str], too_brief: Sequence[str]) -> Iterator[str]:
    """Yield what to record to leave fewer causes open.

    Args:
        absent: metrics of causes that were not recorded.
        too_brief: those of causes that the job was too short for.
    """
    if absent:
        yield f"To learn whether {' or '.join(_OPEN[name] for name in absent)} was the bottleneck: {RECORD}."
    if too_brief:
        yield "To tell more, record a minute or more of the job."


_RULED_OUT = {_CORE: "waiting for one core", _IOWAIT: "waiting for storage"}


def _is_explained_by_imbalance(context: Context, spans: Spans) -> bool:
    """Whether GPUs that differ from their peers explain most of the stretches, of the peers that wait for them too."""
    uneven = (part for found in context.findings("imbalance") for part in found.intervals)
    differs = intervals.to_spans(uneven)
    shared = intervals.total_seconds(intervals.intersection(spans, differs))
    return 2 * shared >= intervals.total_seconds(spans)


def _find_core_count(context: Context, figures: LowUseFigures) -> CoreCount | None:
    """Return the cores of the machine of the first GPU whose host states them."""
    counts = (core_count.find_core_count(context, host) for host in _list_hosts(context, figures))
    return next((count for count in counts if count is not None), None)


def _list_hosts(context: Context, figures: LowUseFigures) -> list[DeviceSeries]:
    nodes = {context.series[name].device.node for name in figures.devices}
    return [host for host in context.hosts().values() if host.device.node is None or host.device.node in nodes]


def _average_host_metric(context: Context, metric: str, figures: LowUseFigures) -> float:
    """Return the mean of a host metric over the stretches, NaN where it was not recorded."""
    values = [host.find_values(metric, figures.spans) for host in _list_hosts(context, figures)]
    known = np.concatenate([np.zeros(0), *values])
    return float(known.mean()) if len(known) else float("nan")
