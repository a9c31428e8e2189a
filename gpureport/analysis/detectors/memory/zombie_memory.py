"""Memory that is still held after the work has ended."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.load import CPU
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_KIND = "zombie_memory"
_USED = "gpu_memory_used_bytes"
_CORE = "cpu_busiest_core_ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZombieMemory(ClassRule):
    """A GPU that worked keeps over half of its peak memory at the last sample, two minutes after any GPU worked.

    Memory that was in use before the work began does not count. Nor does memory while the CPU still works for the
    job: one core is full, or the mean load is at least half of that during the job.
    """

    name = _KIND
    requires = ((UTILISATION,), (_USED,))
    wants = (CPU, _CORE)
    whole_log = True

    held: Threshold = pragmatic(0.5, "1", "a process that ends gives back all of it; a context alone is far less")
    idle: Threshold = pragmatic(120.0, "s", "saving results and tearing down takes less")
    least: Threshold = pragmatic(2.0**30, "By", "less is a context, a display or a monitor")
    before: ClassVar[float] = 10.0  # s; a log that begins with the job shows it no earlier
    core: Threshold = pragmatic(0.9, "1", "one process at work keeps a core full")
    load: Threshold = pragmatic(0.5, "1", "of the load during the job; what is left of a dead job does not compute")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield one finding for each GPU whose memory stayed."""
        if context.window is None:
            return
        rest = Interval(context.window.end, context.whole.end)
        if context.whole.seconds < self.idle.value:
            yield missing_metrics.too_short(_KIND, context.whole.seconds, self.idle.value)
            return
        if rest.seconds < self.idle.value:
            return
        for device in context.active:
            series = context.series[device]
            if not series.is_recorded(_USED):
                yield missing_metrics.not_recorded(_KIND, device, _USED)
            elif self._has_stayed(series, context.window, rest) and not self._is_cpu_working(context, series, rest):
                yield self._build_finding(context, series, rest)

    def _has_stayed(self, series: DeviceSeries, window: Interval, rest: Interval) -> bool:
        used = series.values(_USED)
        known = np.flatnonzero(~np.isnan(used))
        peak, last = float(np.nanmax(used)), known[-1]
        is_late = series.times[last] - rest.start >= self.idle.value * 1e6
        first = known[0]
        is_early = window.start - series.times[first] >= self.before * 1e6
        was_there = is_early and used[first] > self.held.value * peak
        return bool(is_late and not was_there and used[last] > self.held.value * peak and peak >= self.least.value)

    def _is_cpu_working(self, context: Context, series: DeviceSeries, rest: Interval) -> bool:
        for host in context.hosts().values():
            if host.device.node not in {None, series.device.node} or context.window is None:
                continue
            core, after, during = (
                _median_within(host, _CORE, rest),
                _median_within(host, CPU, rest),
                _median_within(host, CPU, context.window),
            )
            if core >= self.core.value or after >= max(self.load.value * during, 0.1):
                return True
        return False

    def _build_finding(self, context: Context, series: DeviceSeries, rest: Interval) -> Finding:
        used = series.values(_USED)
        known = used[~np.isnan(used)]
        peak, last = float(known.max()), float(known[-1])
        watched = any(not np.isnan(_median_within(host, CPU, rest)) for host in context.hosts().values())
        return Finding(
            kind=_KIND,
            severity=Severity.WARNING,
            confidence=Confidence.HIGH if watched else Confidence.MEDIUM,
            devices=(series.device.id,),
            intervals=(rest,),
            evidence=(
                compare_with_limit(_USED, "last, of the peak", last / peak, ">", self.held),
                compare_with_limit("time without work", "to the last sample", rest.seconds, ">=", self.idle),
                Evidence(metric=_USED, statistic="last", observed=last, unit="By"),
            ),
            lost_gpu_seconds=None,
            samples=series.count_readings(_USED, series.times >= rest.start),
            ruled_out=("the job's end on the CPU: it was idle as well",) if watched else (),
            summary=(
                f"{phrases.duration(rest.seconds)} after the last work, {phrases.gpu_name(series.device.id)} still had "
                f"{phrases.size(last)} in use" + ("." if watched else "; whether the CPU still worked is not known.")
            ),
            recommendation=KINDS[_KIND].advice[""],
        )


def _median_within(series: DeviceSeries, metric: str, when: Interval) -> float:
    """Return the median of a metric within an interval, NaN without values."""
    values = series.values(metric)[series.rows_between(when.start, when.end)]
    return float(np.nanmedian(values)) if len(values) and not np.isnan(values).all() else float("nan")
