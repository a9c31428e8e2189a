"""Host memory while GPUs wait for CPU or storage: room for more loader workers, or too little of it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals import core_count
from gpureport.analysis.signals.core_count import CPU, CoreCount
from gpureport.analysis.thresholds import literature, pragmatic
from gpureport.columns import FloatArray
from gpureport.findings import Confidence, Evidence, Finding, NotJudged, Severity, Threshold

RATIO = "host_memory_used_ratio"
USED = "host_memory_used_bytes"
TOTAL = "host_memory_total_bytes"
_WAITS = ("cpu_bound", "io_bound")
_ROOM = "workers_headroom"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMemory(ClassRule):
    """Host memory in use while GPUs wait for the CPU or for storage, for at least a minute.

    workers_headroom: the p95 is below 70% of what is installed, and the median CPU use below 90%, so that a core is
    free. host_memory_pressure: the p95 is at least 90%. The page cache does not count as used where it was recorded
    separately. There is no room if params say that each process already has a worker for every core.
    """

    name = "host_memory"
    requires = ((UTILISATION,), (CPU, "cpu_iowait_ratio"), (RATIO, USED))
    after = _WAITS
    wants = (RATIO, TOTAL, core_count.CORES)

    roomy: Threshold = literature(
        0.70, "1", "published advice: add workers where the GPU waits and host memory is free"
    )
    full: Threshold = pragmatic(0.90, "1", "hardly any page cache is left")
    cores: Threshold = pragmatic(0.90, "1", "above it no core is left for another worker")
    shortest: Threshold = pragmatic(60.0, "s", "a shorter wait does not call for other settings")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding for each host beside whose GPUs wait."""
        for host, series in context.hosts().items():
            gpus_of_host = [n for n, one in context.gpus().items() if series.device.node in {None, one.device.node}]
            waits = [intervals.collect_finding_spans(context.findings_on(name), name, _WAITS) for name in gpus_of_host]
            spans = intervals.union(np.concatenate([intervals.NO_SPANS, *waits]))
            if intervals.total_seconds(spans) < self.shortest.value:
                continue
            used = _find_values_inside(series, compute_memory_ratio(series), spans)
            if len(used) == 0:
                yield from (missing_metrics.not_recorded(kind, host, RATIO) for kind in self.kinds)
                continue
            settings = core_count.read_host_params(context, series)
            has_all_workers = core_count.has_worker_per_core(settings, len(gpus_of_host))
            yield from (
                each
                for each in self._judge_host(
                    host, series, spans, used, core_count.count_cores(settings, len(gpus_of_host))
                )
                if not (has_all_workers and each.kind == _ROOM)
            )

    def _judge_host(
        self, host: str, series: DeviceSeries, spans: Spans, used: FloatArray, cores: CoreCount | None
    ) -> Iterator[Finding | NotJudged]:
        peak = float(np.quantile(used, 0.95))
        cpu = series.find_values(CPU, spans)
        busy = float(np.median(cpu)) if len(cpu) else float("nan")
        waited = phrases.duration(intervals.total_seconds(spans))
        if peak >= self.full.value:
            yield self._build_finding(
                "host_memory_pressure",
                host,
                spans,
                len(used),
                (_build_peak_evidence(peak, self.full, ">="),),
                f"Host memory was {phrases.percent(peak)} full while GPUs waited for {waited}.",
            )
        elif peak < self.roomy.value and np.isnan(busy):
            yield missing_metrics.not_recorded("workers_headroom", host, CPU)
        elif peak < self.roomy.value and busy < self.cores.value:
            yield self._build_finding(
                "workers_headroom",
                host,
                spans,
                len(used),
                (
                    _build_peak_evidence(peak, self.roomy, "<"),
                    compare_with_limit(CPU, "median", busy, "<", self.cores),
                    *([cores.evidence] if cores else []),
                ),
                core_count.append_core_count(
                    f"GPUs waited for {waited} while host memory was {phrases.percent(peak)} full and the CPU "
                    f"{phrases.percent(busy)} busy.",
                    cores,
                ),
            )

    def _build_finding(  # noqa: PLR0913, PLR0917 - what the two kinds differ in
        self, kind: str, host: str, spans: Spans, samples: int, evidence: tuple[Evidence, ...], summary: str
    ) -> Finding:
        is_nearly_full = kind == "host_memory_pressure"
        return Finding(
            kind=kind,
            severity=Severity.WARNING if is_nearly_full else Severity.INFO,
            confidence=Confidence.MEDIUM,
            devices=(host,),
            intervals=intervals.to_intervals(spans),
            evidence=evidence,
            lost_gpu_seconds=None,
            samples=samples,
            summary=summary,
            recommendation=KINDS["host_memory_pressure" if is_nearly_full else "workers_headroom"].advice[""],
        )


def compute_memory_ratio(series: DeviceSeries) -> FloatArray:
    """Return the share of host memory in use in each row, NaN where it is not known."""
    known = series.values(RATIO)
    if not series.is_recorded(TOTAL):
        return known
    # a total is often written once
    total = float(np.nanmax(series.values(TOTAL)))
    return np.where(np.isnan(known), series.values(USED) / total if total > 0 else np.nan, known)


def _find_values_inside(series: DeviceSeries, values: FloatArray, spans: Spans) -> FloatArray:
    inside = values[intervals.contains(spans, series.times - series.shift)]
    return inside[~np.isnan(inside)]


def _build_peak_evidence(ratio: float, limit: Threshold, relation: str) -> Evidence:
    return compare_with_limit(RATIO, "p95 while GPUs wait", ratio, relation, limit)
