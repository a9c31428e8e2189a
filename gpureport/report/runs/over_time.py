"""A run over time in buckets: means of what was sampled, and stretches of classes whose sums are its GPU time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpureport.analysis import RULES, trace_gpu_time
from gpureport.analysis.results import GPU_TIME_CLASSES
from gpureport.analysis.rulebook import Rule
from gpureport.columns import FloatArray
from gpureport.report.model.pictures import ClassStretch
from gpureport.report.runs.report_run import ReportRun

_BUCKETS, _FEW_BUCKETS = 120, 60
_FEW_GPUS = 16
"""Most GPUs that have all buckets."""

_ROUNDING = 1e-6
"""Length in seconds below which a stretch is the rounding of a computation."""
SHORTEST = 1e-3
"""Share of a bucket below which values do not cover it; the same in seconds is the shortest axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeSums:
    """Seconds that values stand for, and their sum weighted with them, up to each bound of their stretches."""

    bounds: FloatArray
    seconds: FloatArray
    total: FloatArray

    def means(self, edges: FloatArray) -> FloatArray:
        """Return the mean of each bucket, weighted with the time each value stands for; NaN where none lies in it.

        The rising edges of the buckets cut through values where they must, so that shares stay true and the sampling
        does not beat against the buckets.
        """
        if not len(self.bounds):
            return np.full(len(edges) - 1, np.nan)
        covered = np.diff(np.interp(edges, self.bounds, self.seconds))
        total = np.diff(np.interp(edges, self.bounds, self.total))
        empty = covered <= SHORTEST * np.diff(edges)
        means: FloatArray = np.where(empty, np.nan, total / np.where(empty, 1.0, covered))
        return means


def accumulate(starts: FloatArray, ends: FloatArray, values: FloatArray) -> CumulativeSums:
    """Return values added up over time, each over its stretch; these are in order and apart. NaN is no value."""
    known = ~np.isnan(values)
    bounds = np.maximum.accumulate(np.column_stack([starts[known], ends[known]]).ravel())
    seconds = bounds[1::2] - bounds[::2]
    sums = np.zeros((2, 2 * len(seconds)))
    sums[:, 1::2] = np.cumsum([seconds, seconds * values[known]], axis=1)
    sums[:, 2::2] = sums[:, 1:-1:2]
    return CumulativeSums(bounds=bounds, seconds=sums[0], total=sums[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassHistory:
    """The seconds of each class in equal buckets of a run, by GPU; none where GPU time was not divided.

    `trace` finds those of a GPU when it is asked for, since most of many GPUs never are.
    """

    bucket_seconds: float
    trace: Callable[[Sequence[str]], Mapping[str, Mapping[str, FloatArray]]]
    _traced: dict[str, Mapping[str, FloatArray] | None] = field(default_factory=dict, repr=False, compare=False)

    def list_stretches(self, devices: Sequence[str]) -> tuple[ClassStretch, ...]:
        """Return the stretches of a GPU, or of the mean over several, in order.

        Within a bucket the order of classes is not known. It alternates, so that those of neighbours lie together.
        """
        self.prepare(devices)
        known = [seconds for device in devices if (seconds := self._traced[device]) is not None]
        if not known:
            return ()
        amounts = {name: np.mean([each[name] for each in known], axis=0) for name in GPU_TIME_CLASSES}
        return tuple(_join_buckets(amounts, self.bucket_seconds))

    def prepare(self, devices: Sequence[str]) -> None:
        """Find the seconds of several GPUs at once, which is quicker than one by one."""
        new = [device for device in devices if device not in self._traced]
        found = self.trace(new) if new else {}
        self._traced.update((device, found.get(device)) for device in new)


def trace_classes(run: ReportRun, rules: Sequence[Rule] = RULES) -> ClassHistory:
    """Return the classes of every GPU of a run over time by the rules of its analysis, in buckets."""
    most = _BUCKETS if len(run.run.gpus) <= _FEW_GPUS else _FEW_BUCKETS
    count = min(most, max(int(run.seconds / (run.run.interval or 1.0)), 1))

    def trace(devices: Sequence[str]) -> Mapping[str, Mapping[str, FloatArray]]:
        return trace_gpu_time(run.recording, run.analysis, count, rules, devices) if run.seconds > 0 else {}

    return ClassHistory(bucket_seconds=run.seconds / count, trace=trace)


def _join_buckets(amounts: Mapping[str, FloatArray], bucket_seconds: float) -> Iterator[ClassStretch]:
    """Yield the stretches of all buckets, neighbours of one class as one."""
    key, start, at = "", 0.0, 0.0
    for bucket in range(len(amounts[GPU_TIME_CLASSES[0]])):
        at = bucket * bucket_seconds
        for name in GPU_TIME_CLASSES if bucket % 2 == 0 else GPU_TIME_CLASSES[::-1]:
            length = float(amounts[name][bucket])
            if length < _ROUNDING:
                continue
            if name != key:
                if key:
                    yield ClassStretch(key=key, start=start, end=at)
                key, start = name, at
            at += length
    if key:
        yield ClassStretch(key=key, start=start, end=at)
