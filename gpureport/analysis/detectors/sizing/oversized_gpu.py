"""Jobs that a smaller kind of GPU could hold and finish in the same time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpureport import gpus
from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import memory_peak, memory_total
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Confidence, Evidence, Finding, NotJudged, Severity, Threshold
from gpureport.gpus import Gpu
from gpureport.recording_advice import RECORD

_KIND = "oversized_gpu"
_USED = "gpu_memory_used_bytes"
_ON_DEMAND = "a run without preallocation (XLA_PYTHON_CLIENT_PREALLOCATE=false, TF_FORCE_GPU_ALLOW_GROWTH=true)"
_AMPERE = (8, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SmallerGpu:
    """A smaller model, the busy share it would have, and the share of its memory the peak would take."""

    gpu: Gpu
    busy: float
    memory: float
    slower: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OversizedGpu(ClassRule):
    """Peak memory and busy time of the job would fit a smaller GPU of the GPU table.

    The peak takes less than 60% of this GPU's memory and at most 80% of the smaller GPU's. The smaller GPU is slower
    in memory bandwidth or 16-bit matrix arithmetic, whichever falls more: at that speed, mean utilisation within the
    job stays at or below 80%. A smaller GPU has less memory and a lower power limit. For a GPU of compute capability
    8.0 or higher, it also has at least 8.0. The GPU with the highest figures decides. Not assessed where memory was
    preallocated, nor for jobs of less than ten minutes.
    """

    name = _KIND
    requires = ((UTILISATION,), (_USED,))
    after = ("mem_prealloc",)
    wants = ("gpu_memory_total_bytes",)

    roomy: Threshold = pragmatic(0.60, "1", "more may have been preallocated before the log began")
    fits: Threshold = pragmatic(0.80, "1", "of the smaller memory; a library may take more on another GPU")
    busy: Threshold = pragmatic(0.80, "1", "busy time there, with room for bursts and errors")
    shortest: Threshold = pragmatic(600.0, "s", "shorter runs are trials, not the job")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding for each model, or why there is none."""
        if context.window is None:
            return
        for series in _group_by_model(context):
            yield from self._judge_model(context, series, context.window.seconds)

    def _judge_model(
        self, context: Context, peers: list[DeviceSeries], seconds: float
    ) -> Iterator[Finding | NotJudged]:
        names = tuple(one.device.id for one in peers)
        known = gpus.find_gpu(peers[0].device.model)
        peaks = [memory_peak(one) for one in peers]
        totals = [memory_total(one) for one in peers]
        if seconds < self.shortest.value:
            yield missing_metrics.too_short(_KIND, seconds, self.shortest.value, "the job worked for")
        elif any(context.findings("mem_prealloc", name) for name in names):
            reason = "memory was reserved at once, so the real need is not known"
            yield _report_unjudged(reason, _ON_DEMAND, missing_metrics.MEMORY_RESERVED)
        elif known is None or _look_up_size(known) is None:
            model = peers[0].device.model
            reason = f"the GPU table does not say how fast {model or 'this GPU'} is"
            # a model that the table lacks stays unknown, whatever is recorded
            yield _report_unjudged(reason, "" if model else RECORD, "gpu_not_in_table")
        elif any(peak is None for peak in peaks) or not all(totals):
            yield missing_metrics.not_recorded(_KIND, None, _USED, "gpu_memory_total_bytes")
        else:
            peak = max(peak for peak in peaks if peak is not None)
            total = min(total for total in totals if total)
            used = max(_average_utilisation(context, one) for one in peers)
            fit = None if peak >= self.roomy.value * total else self._find_smaller_gpu(known, peak, total, used)
            if fit:
                yield self._build_finding(context, names, fit, peak, used)

    def _find_smaller_gpu(self, known: Gpu, peak: int, total: int, used: float) -> _SmallerGpu | None:
        own = _look_up_size(known)
        fitting: list[tuple[float, _SmallerGpu]] = []
        for gpu in gpus.load_gpus():
            size = _look_up_size(gpu)
            if own is None or size is None or size.memory >= total or size.power >= own.power:
                continue
            if known.compute_capability >= _AMPERE > gpu.compute_capability:
                continue
            slower = max(own.bandwidth / size.bandwidth, own.arithmetic / size.arithmetic, 1.0)
            fit = _SmallerGpu(gpu=gpu, busy=used * slower, memory=peak / size.memory, slower=slower)
            if fit.busy <= self.busy.value and fit.memory <= self.fits.value:
                fitting.append((size.power, fit))
        return min(fitting, key=lambda each: each[0])[1] if fitting else None

    def _build_finding(
        self, context: Context, names: tuple[str, ...], fit: _SmallerGpu, peak: int, used: float
    ) -> Finding:
        return Finding(
            kind=_KIND,
            severity=Severity.INFO,
            confidence=Confidence.LOW,
            devices=names,
            intervals=(),
            evidence=(
                Evidence(metric=UTILISATION, statistic="mean within the job, highest GPU", observed=used, unit="1"),
                compare_with_limit(
                    UTILISATION, f"the same at the speed of {fit.gpu.model}, at most", fit.busy, "<=", self.busy
                ),
                compare_with_limit(_USED, f"max, of the memory of {fit.gpu.model}", fit.memory, "<=", self.fits),
            ),
            lost_gpu_seconds=None,
            samples=sum(context.series[name].count_readings(UTILISATION, slice(None)) for name in names),
            ruled_out=(phrases.NOT_PREALLOCATED,),
            summary=(
                f"{phrases.add_article(fit.gpu.model)} may suffice: {phrases.gpu_names(names, tuple(context.gpus()))} "
                f"used up to {phrases.size(peak)} of memory and averaged {phrases.percent(used)} utilisation."
            ),
            recommendation=KINDS[_KIND].advice[""],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _GpuSize:
    """How large a model is: bytes a job can get, bytes a second, operations a second, watts."""

    memory: float
    bandwidth: float
    arithmetic: float
    power: float


def _look_up_size(gpu: Gpu) -> _GpuSize | None:
    cells = (
        gpu.memory_total_bytes,
        gpu.memory_bandwidth_bytes_per_second,
        gpu.tensor_operations_per_second,
        gpu.power_limit_default_watts,
    )
    if any(cell is None for cell in cells):
        return None
    memory, bandwidth, arithmetic, power = (cell.value for cell in cells if cell)
    reserved = gpu.memory_reserved_bytes.value if gpu.memory_reserved_bytes else 0.0
    return _GpuSize(memory=memory - reserved, bandwidth=bandwidth, arithmetic=arithmetic, power=power)


def _group_by_model(context: Context) -> Iterator[list[DeviceSeries]]:
    models: dict[str | None, list[DeviceSeries]] = {}
    for name in context.active:
        models.setdefault(context.series[name].device.model, []).append(context.series[name])
    yield from models.values()


def _average_utilisation(context: Context, series: DeviceSeries) -> float:
    window = context.window or context.whole
    used = series.values(UTILISATION)[series.rows_between(window.start, window.end)]
    return float(np.nanmean(used)) if len(used) and not np.isnan(used).all() else 1.0


def _report_unjudged(reason: str, recording: str, code: str) -> NotJudged:
    return NotJudged(kind=_KIND, device=None, reason=reason, recording=recording, code=code)
