"""How well GPU and job fit: GPUs larger than needed, full precision, and time after the last improvement."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from gpureport import columns, gpus
from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.job import params
from gpureport.analysis.job.events import Evaluations, find_evaluations
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import Context, Limits, rule
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.statistics import memory_peak, memory_total
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity
from gpureport.gpus import Gpu
from gpureport.recording_advice import RECORD

_USED, _TENSOR = "gpu_memory_used_bytes", "gpu_tensor_active_ratio"
_ON_DEMAND = "a run without preallocation (XLA_PYTHON_CLIENT_PREALLOCATE=false, TF_FORCE_GPU_ALLOW_GROWTH=true)"
_AMPERE = (8, 0)
_PRECISION = """\
the params of the run (precision, amp, fp16, bf16, dtype) with its tracker or --param precision=VALUE, or \
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"""
_METRIC = "a validation metric such as val_loss, by a tracker or with --training FILE"


def _unjudged(kind: str, code: str, reason: str, recording: str, device: str | None = None) -> NotJudged:
    return NotJudged(kind=kind, device=device, reason=reason, recording=recording, code=code)


@rule("oversized_gpu")
def find_oversized_gpus(context: Context, limits: Limits) -> Iterator[Finding | NotJudged]:
    """Yield at most one finding for each model of GPU, or why there is none."""
    models = defaultdict[str | None, list[DeviceSeries]](list)
    for name in context.active:
        models[context.series[name].device.model].append(context.series[name])
    seconds = context.window.seconds if context.window else 0.0
    for model, peers in models.items():
        own = gpus.find_gpu(model)
        peaks, totals = [memory_peak(one) for one in peers], [memory_total(one) for one in peers]
        if seconds < limits.shortest:
            yield missing_metrics.too_short("oversized_gpu", seconds, limits.shortest, "the job worked for")
        elif any(context.findings("mem_prealloc", one.device.id) for one in peers):
            reason = "memory was reserved at once, so the real need is not known"
            yield _unjudged("oversized_gpu", missing_metrics.MEMORY_RESERVED, reason, _ON_DEMAND)
        elif own is None or not _size(own):
            # a model that the table lacks stays unknown, whatever is recorded
            reason = f"the GPU table does not say how fast {model or 'this GPU'} is"
            yield _unjudged("oversized_gpu", "gpu_not_in_table", reason, "" if model else RECORD)
        elif None in peaks or not all(totals):
            yield missing_metrics.not_recorded("oversized_gpu", None, _USED, "gpu_memory_total_bytes")
        else:
            peak, total = max(one or 0 for one in peaks), min(one or 0 for one in totals)
            window = context.window or context.whole
            loads = [one.values(UTILISATION)[one.rows_between(window.start, window.end)] for one in peers]
            used = max(1.0 if np.isnan(load).all() else float(np.nanmean(load)) for load in loads)
            yield from _compare_sizes(context, limits, own, [one.device.id for one in peers], (peak, total, used))


def _size(gpu: Gpu) -> tuple[float, float, float, float] | None:
    """Return what a job can get of a model: bytes, bytes a second, operations a second, watts."""
    memory, reserved = gpu.memory_total_bytes, gpu.memory_reserved_bytes
    speed, arithmetic = gpu.memory_bandwidth_bytes_per_second, gpu.tensor_operations_per_second
    power = gpu.power_limit_default_watts
    if not (memory and speed and arithmetic and power):
        return None
    return memory.value - (reserved.value if reserved else 0), speed.value, arithmetic.value, power.value


def _compare_sizes(
    context: Context, limits: Limits, own: Gpu, names: Sequence[str], need: tuple[int, int, float]
) -> Iterator[Finding]:
    peak, total, used = need
    _, speed, arithmetic, power = _size(own) or (0.0,) * 4
    fitting = []
    for gpu in gpus.load_gpus() if peak < limits.roomy * total else ():
        size = _size(gpu)
        if (
            size
            and size[0] < total
            and size[3] < power
            and not own.compute_capability >= _AMPERE > gpu.compute_capability
        ):
            busy, memory = used * max(speed / size[1], arithmetic / size[2], 1.0), peak / size[0]
            if busy <= limits.busy and memory <= limits.fits:
                fitting.append((size[3], gpu.model, busy, memory))
    if fitting:
        _, smaller, busy, memory = min(fitting, key=lambda each: each[0])
        at_its_speed = f"the same at the speed of {smaller}, at most"
        yield KINDS["oversized_gpu"].finding(
            Severity.INFO,
            Confidence.LOW,
            names,
            [
                Evidence(metric=UTILISATION, statistic="mean within the job, highest GPU", observed=used, unit="1"),
                limits.compare(UTILISATION, at_its_speed, busy, "<=", "busy"),
                limits.compare(_USED, f"max, of the memory of {smaller}", memory, "<=", "fits"),
            ],
            samples=sum(context.series[name].count_readings(UTILISATION, slice(None)) for name in names),
            ruled_out=[phrases.NOT_PREALLOCATED],
            smaller=phrases.add_article(smaller),
            gpus=phrases.gpu_names(names, tuple(context.gpus())),
            peak=phrases.size(peak),
            used=phrases.percent(used),
        )


@rule("full_precision")
def find_full_precision(context: Context, limits: Limits) -> Iterator[Finding | NotJudged]:
    """Yield at most one finding, for the GPUs that could do better, and those of which nothing tells."""
    param, is_full = params.find_precision_param(context.recording.run.params_and_tags) or ("", True)
    if not context.active and is_full:
        reason = "no GPU worked, so nothing shows how it computes"
        yield _unjudged("full_precision", "no_gpu_worked", reason, _PRECISION)
    tensor, uncounted = dict[str, float](), list[str]()
    for name in context.active:
        series = context.series[name]
        known = gpus.find_gpu(series.device.model)
        if known is None:
            reason = f"the compute capability of {series.device.model or 'the GPU'} is not known"
            yield _unjudged("full_precision", "unknown_compute_capability", reason, _PRECISION, name)
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
        yield KINDS["full_precision"].finding(
            Severity.INFO,
            Confidence.HIGH if low else Confidence.MEDIUM,
            devices,
            [limits.compare(_TENSOR, "mean over busy time", share, "<", "active")] if low else [],
            case="" if low else "param",
            samples=sum(context.series[name].count_values(_TENSOR) for name in low),
            gpus=phrases.gpu_names(devices, tuple(context.gpus())),
            share=phrases.percent(share),
            param=param,
        )
    if tensor and is_full:
        for name in uncounted:
            reason = "tensor activity was recorded of other GPUs only"
            yield _unjudged("full_precision", "recorded_of_other_gpus", reason, _PRECISION, name)
    elif uncounted and told and not param:
        brief = f"tensor activity was counted over less than {limits.busy:.0f} s of work"
        absent = "neither tensor activity nor the precision was recorded"
        counted = any(context.series[name].is_recorded(_TENSOR) for name in uncounted)
        code, reason = ("too_little_work", brief) if counted else ("precision_not_recorded", absent)
        yield _unjudged("full_precision", code, reason, _PRECISION)


@rule("no_progress")
def find_no_progress(context: Context, limits: Limits) -> Iterator[Finding | NotJudged]:
    """Yield at most one finding, for the whole job."""
    if not context.gpus():
        yield missing_metrics.not_recorded("no_progress", None, UTILISATION)
        return
    known = list(find_evaluations(context.recording))
    training, most = context.recording.training, max(known, key=lambda each: each.count, default=None)
    if most is not None and most.count >= limits.fewest:
        judged = (each for each in known if each.count >= limits.fewest)
        yield from _judge_progress(context, limits, max(judged, key=lambda each: int(each.times[each.best_row])))
        return
    if most is not None:
        count = phrases.count_of(most.count, "evaluation")
        code, reason = "too_few_evaluations", f"{most.metric.name} has {count}, fewer than {limits.fewest:g}"
    elif not len(training):
        code, reason = "no_training_metrics", "no training metrics were recorded"
    elif not columns.valid(training.column("timestamp")).any():
        code, reason = missing_metrics.NO_TIMES, "the training metrics were recorded without times"
    else:
        code, reason = "no_validation_metric", "none of the training metrics is a validation metric"
    yield _unjudged("no_progress", code, reason, _METRIC)


def _judge_progress(context: Context, limits: Limits, metric: Evaluations) -> Iterator[Finding]:
    job, last = context.window or context.whole, int(metric.times[-1])
    best = min(max(int(metric.times[metric.best_row]), job.start), job.end)
    # until the last evaluation it is known that none was better, and until the next one nothing could be
    stood = Interval(best, max(min(last, job.end), best))
    after = Interval(best, max(min(last + metric.longest_distance, job.end), best))
    share = stood.seconds / job.seconds if job.seconds else 0.0
    lost, value = after.seconds * len(context.gpus()), float(metric.values[metric.best_row])
    if stood.seconds and share >= limits.stands:
        yield KINDS["no_progress"].finding(
            Severity.INFO,
            Confidence.MEDIUM,
            (),
            [
                limits.compare("time after the best value", "share of the job", share, ">=", "stands"),
                limits.compare("evaluations", "count", metric.count, ">=", "fewest"),
                Evidence(metric=metric.metric.name, statistic="best", observed=value, unit=""),
            ],
            spans=[after],
            lost=lost,
            samples=metric.count,
            metric=metric.metric.name,
            value=f"{value:.4g}",
            time=phrases.duration((best - context.whole.start) / 1e6),
            lost_time=phrases.gpu_time(lost),
        )
