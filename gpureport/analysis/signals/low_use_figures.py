"""What low use of several GPUs comes to, as figures, evidence and words."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job import events
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.low_use import LowUse
from gpureport.analysis.signals.utilisation_levels import build_level_evidence
from gpureport.findings import Evidence, Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class LowUseFigures:
    """Low use of several GPUs taken together."""

    devices: tuple[str, ...]
    spans: Spans
    seconds: float
    mean: float
    lost: float
    samples: int

    def describe(self, everybody: Collection[str]) -> str:
        """Return the beginning of a sentence: how little the GPUs worked."""
        whose = phrases.capitalize(phrases.gpu_names(self.devices, tuple(everybody)))
        return f"{whose} averaged {phrases.percent(self.mean)} utilisation over {phrases.duration(self.seconds)}"


def find_cause(context: Context, devices: Collection[str]) -> str | None:
    """Return the cause `requests` if idle gaps of the same GPUs have it, else None."""
    gaps = (gap for gap in context.findings("idle_gap") if gap.cause == events.REQUESTS)
    return events.REQUESTS if any(set(gap.devices) & set(devices) for gap in gaps) else None


def summarise_low_use(context: Context, low: LowUse, devices: Sequence[str]) -> LowUseFigures:
    """Return the figures of several GPUs together; each must have episodes."""
    spans = [low.spans[name] for name in devices]
    low_seconds = sum(intervals.total_seconds(one) for one in spans)
    lost = sum(measure_kernel_free_seconds(context, context.series[name], low.spans[name]) for name in devices)
    return LowUseFigures(
        devices=tuple(devices),
        spans=intervals.union(np.concatenate(spans)),
        seconds=max(intervals.total_seconds(one) for one in spans),
        mean=1 - lost / low_seconds,
        lost=lost,
        samples=sum(
            one.count_readings(UTILISATION, intervals.contains(low.spans[one.device.id], one.times))
            for one in (context.series[name] for name in devices)
        ),
    )


def measure_kernel_free_seconds(context: Context, series: DeviceSeries, spans: Spans) -> float:
    """Return the GPU time in the stretches in which no kernel ran."""
    start, end = series.averaging_windows(context.whole)
    unused = 1 - np.clip(series.values(UTILISATION), 0, 1)
    return float(np.nansum(unused * intervals.overlap_seconds(start, end, spans)))


def build_use_evidence(context: Context, low: LowUse, figures: LowUseFigures, enter: Threshold) -> tuple[Evidence, ...]:
    """Return how low the use was: the lowest rolling mean against its limit, then mean and levels of all episodes."""
    lowest = "mean of the median GPU" if low.is_short_job else f"lowest mean over {phrases.duration(low.mean_seconds)}"
    return (
        compare_with_limit(UTILISATION, lowest, low.lowest, "<=", enter),
        Evidence(metric=UTILISATION, statistic="mean", observed=figures.mean, unit="1"),
        *build_level_evidence({name: context.series[name] for name in figures.devices}, low.spans),
    )


def build_duration_evidence(low: LowUse, figures: LowUseFigures, over: Threshold, shortest: Threshold) -> Evidence:
    """Return how long the episodes, or the work of a short job, lasted, against the shortest that counts."""
    return compare_with_limit(
        "duration",
        "work" if low.is_short_job else "total of one GPU",
        figures.seconds,
        ">=",
        shortest if low.is_short_job else over,
    )
