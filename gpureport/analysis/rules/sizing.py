"""How well GPU and job fit: too large GPUs, full precision, and time after the last improvement."""

from collections.abc import Iterator, Sequence

import numpy as np

from gpureport.analysis import doubts, phrases
from gpureport.analysis.job import params
from gpureport.analysis.names import MEMORY, UTILISATION
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import memory_peak, memory_total
from gpureport.findings import Confidence, Finding, Interval, Severity
from gpureport.metrics import Gpu, find_gpu, load_gpus
from gpureport.recording_advice import RECORD

_TENSOR = "gpu_tensor_active_ratio"
_ON_DEMAND = "a run without preallocation (XLA_PYTHON_CLIENT_PREALLOCATE=false, TF_FORCE_GPU_ALLOW_GROWTH=true)"
_AMPERE = (8, 0)
_PRECISION = """\
the params of the run (precision, amp, fp16, bf16, dtype) with its tracker or --param precision=VALUE, or \
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"""


@rule("oversized_gpu")
def find_oversized_gpus(context: Context, limits: Limits) -> Found:
    window = context.window or Interval(0, 0)
    for peers in (list(each.values()) for each in context.peers()):
        model = peers[0].device.model
        own = find_gpu(model)
        peaks, totals = [memory_peak(one) for one in peers], [memory_total(one) for one in peers]
        if window.seconds < limits.shortest:
            yield doubts.too_short("oversized_gpu", window.seconds, limits.shortest, "the job worked for")
        elif any(context.findings("mem_prealloc", one.device.id) for one in peers):
            reason = "memory was reserved at once, so the real need is not known"
            yield doubts.denied("oversized_gpu", doubts.MEMORY_RESERVED, reason, _ON_DEMAND)
        elif own is None or not _size(own):
            # a model outside the table stays unknown
            reason = f"the GPU table does not say how fast {model or 'this GPU'} is"
            yield doubts.denied("oversized_gpu", "gpu_not_in_table", reason, "" if model else RECORD)
        elif None in peaks or not all(totals):
            yield doubts.not_recorded("oversized_gpu", None, MEMORY, "gpu_memory_total_bytes")
        elif max(peak or 0 for peak in peaks) < limits.roomy * min(total or 0 for total in totals):
            loads = [one.values(UTILISATION)[one.rows_between(window.start, window.end)] for one in peers]
            used = max(1.0 if np.isnan(load).all() else float(np.nanmean(load)) for load in loads)
            yield from _compare_sizes(context, limits, own, peers, used)


def _size(gpu: Gpu) -> tuple[float, float, float, float] | None:
    """Return what a job can get of a model: bytes, bytes a second, operations a second, watts."""
    memory, reserved = gpu.memory_total_bytes, gpu.memory_reserved_bytes
    speed, arithmetic = gpu.memory_bandwidth_bytes_per_second, gpu.tensor_operations_per_second
    power = gpu.power_limit_default_watts
    if not (memory and speed and arithmetic and power):
        return None
    return memory.value - (reserved.value if reserved else 0), speed.value, arithmetic.value, power.value


def _compare_sizes(
    context: Context, limits: Limits, own: Gpu, peers: Sequence[DeviceSeries], used: float
) -> Iterator[Finding]:
    peak, total = max(memory_peak(one) or 0 for one in peers), min(memory_total(one) or 0 for one in peers)
    _, speed, arithmetic, power = _size(own) or (0.0,) * 4
    fitting, names = [], [one.device.id for one in peers]
    for gpu in load_gpus():
        is_older = own.compute_capability >= _AMPERE > gpu.compute_capability
        if (size := _size(gpu)) and size[0] < total and size[3] < power and not is_older:
            busy, memory = used * max(speed / size[1], arithmetic / size[2], 1.0), peak / size[0]
            if busy <= limits.busy and memory <= limits.fits:
                fitting.append((size[3], gpu.model, busy, memory))
    if fitting:
        _, smaller, busy, memory = min(fitting, key=lambda each: each[0])
        at_its_speed = f"the same at the speed of {smaller}, at most"
        yield context.finding(
            "oversized_gpu",
            Severity.INFO,
            Confidence.LOW,
            names,
            [
                measured(UTILISATION, "mean within the job, highest GPU", used),
                limits.compare(UTILISATION, at_its_speed, busy, "<=", "busy"),
                limits.compare(MEMORY, f"max, of the memory of {smaller}", memory, "<=", "fits"),
            ],
            samples=sum(one.count_readings(UTILISATION, slice(None)) for one in peers),
            ruled_out=[phrases.NOT_PREALLOCATED],
            smaller=phrases.add_article(smaller),
            peak=phrases.size(peak),
            used=phrases.percent(used),
        )


@rule("full_precision")
def find_full_precision(context: Context, limits: Limits) -> Found:
    param, is_full = params.find_precision_param(context.recording.run.params_and_tags) or ("", True)
    tensor, uncounted = dict[str, float](), list[str]()
    for name in context.active:
        series = context.series[name]
        known = find_gpu(series.device.model)
        if known is None:
            reason = f"the compute capability of {series.device.model or 'the GPU'} is not known"
            yield doubts.denied("full_precision", "gpu_not_in_table", reason, _PRECISION, name)
        elif known.compute_capability >= (limits.capability, 0):
            values, used = series.values(_TENSOR), series.values(UTILISATION)
            working = ~(series.values("gpu_sm_active_ratio") < limits.worked) & ~(used <= limits.at_work)
            seconds = np.where(working & ~np.isnan(values), series.seconds, 0.0)
            if seconds.sum() >= limits.busy:
                tensor[name] = float(np.nansum(values * seconds) / seconds.sum())
            else:
                uncounted.append(name)
    low, told = {name: share for name, share in tensor.items() if share < limits.active}, is_full and not tensor
    if devices := list(low) or (uncounted if told and param else []):
        share = max(low.values(), default=0.0)
        yield context.finding(
            "full_precision",
            Severity.INFO,
            Confidence.HIGH if low else Confidence.MEDIUM,
            devices,
            [limits.compare(_TENSOR, "mean over busy time", share, "<", "active")] if low else [],
            case="" if low else "param",
            samples=sum(context.series[name].count_values(_TENSOR) for name in low),
            share=phrases.percent(share),
            param=param,
        )
    if is_full and (tensor or not param or not context.active):
        reason = "neither the precision nor enough tensor activity at work was recorded"
        for device in uncounted if tensor else [None] if uncounted or not context.active else []:
            yield doubts.denied("full_precision", "precision_not_recorded", reason, _PRECISION, device)
