"""GPU memory that keeps growing while the job runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import memory_reserved, memory_total
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import FloatArray, IntArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_KIND = "mem_leak"
_USED = "gpu_memory_used_bytes"
_BLOCKS = 40
_QUARTERS = 4
_BESIDE = 1
"""Blocks on either side of the edge of a quarter that its level is the median of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Growth:
    """How the memory of one GPU grew.

    Attributes:
        interval: the time judged.
        rate: bytes a second, the median slope over all pairs of block medians (Theil-Sen).
        ratio: growth over that time, of the memory installed.
        slowest: growth a second of the slowest quarter, of the mean of the quarters.
        left: bytes between its last level and what a job can get.
        samples: readings judged.
    """

    interval: Interval
    rate: float
    ratio: float
    slowest: float
    left: float
    samples: int

    @property
    def seconds_left(self) -> float:
        """Time until memory is full at this rate."""
        return max(self.left, 0.0) / self.rate


@dataclass(frozen=True, slots=True, kw_only=True)
class MemLeak(ClassRule):
    """After start-up, memory in use grows by more than 2% of what is installed, and in every quarter of the time.

    The check looks at the longest stretch of the job in which memory never falls by half, without its first fifth. It
    takes the medians of 40 blocks. The rate is the median slope between any two of them, and each quarter must grow
    at 35% of the mean rate or more. An allocator that warms up, or the high-water mark of varying input lengths,
    grows at first and then stops. Not assessed where memory was preallocated.
    """

    name = _KIND
    requires = ((_USED,),)
    after = ("mem_prealloc",)
    wants = ("gpu_utilization_ratio", "gpu_memory_total_bytes", "gpu_memory_reserved_bytes")

    settled: Threshold = pragmatic(0.2, "1", "share of the job in which a caching allocator still warms up")
    growth: Threshold = pragmatic(0.02, "1", "of the memory; library contexts grow by less")
    quarter: Threshold = pragmatic(0.35, "1", "of the mean rate; what fills up grows slower and slower")
    fewest: ClassVar[float] = 20.0  # rows; five samples a quarter, for a median each
    released: Threshold = pragmatic(0.5, "1", "of the memory in use; another process or a restart begins below it")
    soon: Threshold = pragmatic(86_400.0, "s", "a job that goes on for a day runs out of memory")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding a GPU."""
        for device, series in context.gpus().items():
            if not series.is_recorded(_USED):
                yield missing_metrics.not_recorded(_KIND, device, _USED)
            elif not memory_total(series):
                yield missing_metrics.not_recorded(_KIND, device, "gpu_memory_total_bytes")
            elif context.findings("mem_prealloc", device):
                yield _report_preallocated(device)
            else:
                yield from self._judge_gpu(context, series)

    def _judge_gpu(self, context: Context, series: DeviceSeries) -> Iterator[Finding | NotJudged]:
        times, used = self._find_settled_memory(context, series)
        readings = len(times)
        if readings < self.fewest:
            yield NotJudged(
                kind=_KIND,
                device=series.device.id,
                template=f"only {{}} of GPU memory after start-up; at least {self.fewest:g} are needed",
                amounts=(missing_metrics.count_of(readings, "sample"),),
                recording="a longer log of the whole job, or more frequent samples",
                code=missing_metrics.TOO_FEW_SAMPLES,
            )
            return
        found = _measure_growth(times, used, series)
        if found.ratio > self.growth.value and found.slowest >= self.quarter.value:
            yield self._build_finding(series.device.id, found)

    def _find_settled_memory(self, context: Context, series: DeviceSeries) -> tuple[IntArray, FloatArray]:
        """Return times and values of the longest stretch of the job in which memory was held, its start left out."""
        job = context.window or context.whole
        rows = series.rows_between(job.start, job.end + 1)
        known = ~np.isnan(series.values(_USED)[rows])
        times, used = series.times[rows][known], series.values(_USED)[rows][known]
        if len(times) == 0:
            return times, used
        falls = np.flatnonzero(used[1:] < self.released.value * used[:-1]) + 1
        edges = [0, *falls.tolist(), len(used)]
        first, stop = max(pairwise(edges), key=lambda part: int(times[part[1] - 1] - times[part[0]]))
        times, used = times[first:stop], used[first:stop]
        begin = times[0] + self.settled.value * (times[-1] - times[0])
        return times[times >= begin], used[times >= begin]

    def _build_finding(self, device: str, growth: _Growth) -> Finding:
        left = growth.seconds_left
        sure = Confidence.HIGH if growth.samples >= _BLOCKS else Confidence.MEDIUM
        per_minute = phrases.size(60 * growth.rate)
        return Finding(
            kind=_KIND,
            severity=Severity.PROBLEM if left <= self.soon.value else Severity.WARNING,
            confidence=certainty.lowest_confidence(sure, certainty.confidence_by_readings(growth.samples)),
            devices=(device,),
            intervals=(growth.interval,),
            evidence=self._build_evidence(growth),
            lost_gpu_seconds=None,
            samples=growth.samples,
            ruled_out=(
                "an allocator that warms up: the first fifth of the job is left out",
                "a high-water mark: memory grows in every quarter",
                phrases.NOT_PREALLOCATED,
            ),
            summary=(
                f"The memory of {phrases.gpu_name(device)} grew by {per_minute} a minute and "
                + (f"would be full {phrases.duration(left)} after the log ends." if left > 0 else "is full.")
            ),
            recommendation=KINDS[_KIND].advice[""],
        )

    def _build_evidence(self, growth: _Growth) -> tuple[Evidence, ...]:
        return (
            compare_with_limit(_USED, "growth, of the memory", growth.ratio, ">", self.growth),
            compare_with_limit(_USED, "rate of the slowest quarter, of the mean", growth.slowest, ">=", self.quarter),
            Evidence(metric=_USED, statistic="growth a second", observed=growth.rate, unit="By/s"),
            compare_with_limit(
                "time until memory is full",
                "at this rate",
                growth.seconds_left,
                "<=" if growth.seconds_left <= self.soon.value else ">",
                self.soon,
            ),
        )


def _measure_growth(times: IntArray, used: FloatArray, series: DeviceSeries) -> _Growth:
    """Return how memory grew over samples; each block of a quarter needs some."""
    count = min(_BLOCKS, len(times))
    places = np.linspace(0, len(times), count + 1).round().astype(np.int64)
    seconds = (times - times[0]) / 1e6
    # of times in order the median is the middle one
    when = (seconds[(places[:-1] + places[1:] - 1) // 2] + seconds[(places[:-1] + places[1:]) // 2]) / 2
    level = np.array([np.median(used[a:b]) for a, b in pairwise(places.tolist())])
    one, other = np.triu_indices(count, k=1)
    rate = float(np.median((level[other] - level[one]) / np.maximum(when[other] - when[one], 1e-6)))
    span = Interval(int(times[0]), int(times[-1]))
    quarters = _measure_quarter_rates(when, level)
    mean = float(quarters.mean())
    total = memory_total(series) or 1
    return _Growth(
        interval=span,
        rate=rate,
        ratio=rate * span.seconds / total,
        slowest=float(quarters.min()) / mean if mean > 0 else 0.0,
        left=total - memory_reserved(series) - float(level[-1]),
        samples=series.count_readings(_USED, series.rows_between(span.start, span.end + 1)),
    )


def _measure_quarter_rates(when: FloatArray, level: FloatArray) -> FloatArray:
    """Return the growth a second of each quarter, from the level at its edges: the median of the blocks beside them."""
    edges = np.linspace(0, len(level) - 1, _QUARTERS + 1).round().astype(np.int64)
    beside = [slice(max(edge - _BESIDE, 0), edge + _BESIDE + 1) for edge in edges.tolist()]
    levels = np.array([np.median(level[part]) for part in beside])
    middles = np.array([np.median(when[part]) for part in beside])
    return np.asarray(np.diff(levels) / np.maximum(np.diff(middles), 1e-6), dtype=np.float64)


def _report_preallocated(device: str) -> NotJudged:
    return NotJudged(
        kind=_KIND,
        device=device,
        reason="memory was reserved at once, so what the job uses of it is not known",
        code=missing_metrics.MEMORY_RESERVED,
        recording=(
            "a run without preallocation (JAX: XLA_PYTHON_CLIENT_PREALLOCATE=false, TensorFlow: "
            "TF_FORCE_GPU_ALLOW_GROWTH=true)"
        ),
    )
