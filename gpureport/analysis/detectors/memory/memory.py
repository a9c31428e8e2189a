"""How full GPU memory was: room for a larger batch, nearness to running out, and preallocation that hides both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.detectors.memory.memory_use import FEWEST_SAMPLES, USED, MemoryUse, is_constant
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job import jobs
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import memory_peak, memory_reserved, memory_total
from gpureport.analysis.thresholds import literature, pragmatic
from gpureport.findings import Confidence, Evidence, Finding, NotJudged, Severity, Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(ClassRule):
    """The peak below 70% of what a job can get (headroom), or at 95% and more (pressure), unless preallocated.

    Preallocated: one step takes at least 60% of the memory, which then stays within 1.2% until it is released. Memory
    that keeps its first value may have been preallocated before the log began; confidence is low then, and medium in
    less than a minute in which 60% and more was in use, or with fewer than five readings of the fullest GPU. With
    samples a minute or more apart, one step cannot be seen, and confidence in preallocation is low. Of a GPU that never
    worked, less than 5% in use says nothing.
    """

    name = "memory"
    requires = ((USED,),)
    wants = ("gpu_memory_total_bytes", "gpu_memory_reserved_bytes")

    roomy: Threshold = pragmatic(
        0.70, "1", "published advice: raise the batch where memory use is low; with less free, there is no room for it"
    )
    used: Threshold = pragmatic(0.05, "1", "a context alone takes less; a GPU that never worked is unused then")
    full: Threshold = pragmatic(0.95, "1", "a workspace or a longer sequence takes more than what is left")
    step: Threshold = literature(
        0.60, "1", "JAX documentation: 75% is taken at once by default; TensorFlow takes nearly all"
    )
    steady: ClassVar[Threshold] = pragmatic(0.012, "1", "library contexts still grow after the step")
    trim: ClassVar[float] = 2.0  # s; the allocation itself takes a moment
    shortest: Threshold = pragmatic(60.0, "s", "shorter holding is no policy of an allocator")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding a kind; the fullest GPU decides, all that meet the condition are named."""
        uses = []
        for device, series in context.gpus().items():
            peak, total = memory_peak(series), memory_total(series)
            if peak is None or not total:
                missing = USED if peak is None else "gpu_memory_total_bytes"
                yield from (missing_metrics.not_recorded(kind, device, missing) for kind in self.kinds)
                continue
            if len(series) < FEWEST_SAMPLES:
                yield from (missing_metrics.too_short(kind, 0.0, self.shortest.value) for kind in self.kinds)
                continue
            # as little as a context takes is nothing that an allocator reserves
            flat = peak >= self.used.value * total and is_constant(series, self.steady.value * total)
            if context.whole.seconds < self.shortest.value and (flat or self._holds_most(peak, total)):
                yield missing_metrics.too_short("mem_prealloc", context.whole.seconds, self.shortest.value)
            step, spread = self._measure_preallocation(series, total)
            capacity = total - memory_reserved(series)
            use = MemoryUse(
                device=device,
                peak=peak,
                capacity=capacity,
                samples=series.count_readings(USED, series.find_known_rows(USED)),
                step_ratio=step,
                range_ratio=spread,
                is_constant=flat,
                is_conclusive=self._is_long(series) or not self._holds_most(peak, total),
                interval=series.interval,
            )
            uses.append(use)
        preallocated = [use for use in uses if self._is_taken_at_once(use.step_ratio, use.range_ratio)]
        others = [use for use in uses if not self._is_taken_at_once(use.step_ratio, use.range_ratio)]
        measurable = [use for use in others if use.ratio >= self.used.value or use.device in context.active]
        full_gpus = [use for use in measurable if use.ratio >= self.full.value]
        everybody = tuple(context.gpus())
        if preallocated:
            yield self._build_preallocation_finding(preallocated, everybody)
        if full_gpus:
            yield self._build_pressure_finding(full_gpus, everybody)
        elif measurable and not preallocated and max(use.ratio for use in measurable) < self.roomy.value:
            yield self._build_headroom_finding(measurable)

    def is_preallocated(self, series: DeviceSeries) -> bool | None:
        """Return whether the memory of a GPU was preallocated; None if the log cannot show it.

        It cannot of memory that kept its first value, which may have been taken before the log began, nor of less than
        a minute in which most of the memory was in use.
        """
        peak, total = memory_peak(series), memory_total(series)
        if peak is None or not total or not (self._is_long(series) or not self._holds_most(peak, total)):
            return None
        if peak < self.used.value * total:
            return False
        step, spread = self._measure_preallocation(series, total)
        if self._is_taken_at_once(step, spread):
            return True
        return None if is_constant(series, self.steady.value * total) else False

    def _is_taken_at_once(self, step: float, spread: float) -> bool:
        return step >= self.step.value and spread < self.steady.value

    def _holds_most(self, peak: int, total: int) -> bool:
        """Return whether as much was in use as preallocation takes: of less, no step can have taken that much."""
        return peak >= self.step.value * total

    def _is_long(self, series: DeviceSeries) -> bool:
        return bool(series.times[-1] - series.times[0] >= self.shortest.value * 1e6)

    def _measure_preallocation(self, series: DeviceSeries, total: int) -> tuple[float, float]:
        """Return the largest step and the range that memory kept to after it, both of the memory installed."""
        used, times = series.known_values(USED), series.times[series.find_known_rows(USED)]
        if len(used) < FEWEST_SAMPLES or float(used.max() - used.min()) / total < self.step.value:
            # no step can be larger than the range, and a smaller one is not looked at
            return 0.0, 1.0
        before = np.minimum(
            np.searchsorted(times, times - 1_000_000, side="left"), np.maximum(np.arange(len(times)) - 1, 0)
        )
        rise = used - used[before]
        at = int(np.argmax(rise))
        level = used[at]
        released = np.flatnonzero(used[at:] < level / 2)
        end = at + (int(released[0]) if len(released) else len(used) - at)
        trim = max(self.trim, series.interval * 1.01) * 1e6
        if (used[end:][times[end:] >= times[end - 1] + trim][:1] > jobs.PROCESS_MEMORY.value).any():
            # given back by a process that goes on
            return float(rise[at]) / total, 1.0
        settled = used[at:end][(times[at:end] >= times[at] + trim) & (times[at:end] <= times[end - 1] - trim)]
        long = times[end - 1] - times[at] >= self.shortest.value * 1e6
        spread = float(settled.max() - settled.min()) / total if len(settled) and long else 1.0
        return float(rise[at]) / total, spread

    def _build_preallocation_finding(self, preallocated: list[MemoryUse], everybody: Sequence[str]) -> Finding:
        most = max(preallocated, key=lambda use: use.step_ratio)
        coarse = most.interval >= certainty.COARSE_SECONDS
        within = f"between two samples {phrases.duration(most.interval)} apart" if coarse else "at once"
        return _build_finding(
            "mem_prealloc",
            preallocated,
            Severity.INFO,
            (
                compare_with_limit(USED, "largest step, of the memory", most.step_ratio, ">=", self.step),
                compare_with_limit(USED, "range after it, of the memory", most.range_ratio, "<", self.steady),
            ),
            f"{phrases.capitalize(_name_gpus(preallocated, everybody))} took {phrases.percent(most.step_ratio)} of "
            f"{'its' if len(preallocated) == 1 else 'their'} memory {within}; the real need is not known.",
        )

    def _build_pressure_finding(self, full_gpus: list[MemoryUse], everybody: Sequence[str]) -> Finding:
        worst = max(full_gpus, key=lambda use: use.ratio)
        left = phrases.size_of(worst.capacity - worst.peak, worst.capacity)
        return _build_finding(
            "mem_pressure",
            full_gpus,
            Severity.WARNING,
            _build_peak_evidence(worst, self.full, ">="),
            f"The memory of {_name_gpus(full_gpus, everybody)} was {phrases.percent(worst.ratio)} full: only "
            f"{left} was left.",
        )

    def _build_headroom_finding(self, roomy_gpus: list[MemoryUse]) -> Finding:
        worst = max(roomy_gpus, key=lambda use: use.ratio)
        left = worst.capacity - worst.peak
        several = len(roomy_gpus) > 1
        return _build_finding(
            "mem_headroom",
            roomy_gpus,
            Severity.INFO,
            _build_peak_evidence(worst, self.roomy, "<"),
            f"{'At least ' if several else ''}{phrases.percent(left / worst.capacity)} of the memory of "
            f"{'each GPU' if several else phrases.gpu_name(worst.device)} was never used: "
            f"{phrases.size_of(left, worst.capacity)}.",
        )


def _build_finding(
    kind: str, uses: list[MemoryUse], severity: Severity, evidence: tuple[Evidence, ...], summary: str
) -> Finding:
    is_constant = kind != "mem_prealloc" and any(use.is_constant for use in uses)
    is_measured = kind != "mem_prealloc" and not is_constant and all(use.is_conclusive for use in uses)
    confidence = Confidence.HIGH if is_measured else Confidence.LOW if is_constant else Confidence.MEDIUM
    # coarse samples blur how fast memory was taken, but not how full it was
    step = max(use.interval for use in uses) if kind == "mem_prealloc" else 0.0
    confidence = certainty.lowest_confidence(
        confidence, certainty.confidence_by_readings(max(use.samples for use in uses), step)
    )
    if is_constant:
        summary += " It never changed, so it may be reserved, not needed."
    return Finding(
        kind=kind,
        severity=severity,
        confidence=confidence,
        devices=tuple(use.device for use in uses),
        intervals=(),
        evidence=evidence,
        lost_gpu_seconds=None,
        samples=sum(use.samples for use in uses),
        ruled_out=(phrases.NOT_PREALLOCATED,) if is_measured else (),
        summary=summary,
        recommendation=KINDS[kind].advice[""],
    )


def _build_peak_evidence(use: MemoryUse, limit: Threshold, relation: str) -> tuple[Evidence, ...]:
    return (
        compare_with_limit(USED, "max, of installed less reserved memory", use.ratio, relation, limit),
        Evidence(metric=USED, statistic="free at the peak", observed=use.capacity - use.peak, unit="By"),
    )


def _name_gpus(uses: list[MemoryUse], everybody: Sequence[str]) -> str:
    return phrases.gpu_names([use.device for use in uses], everybody)
