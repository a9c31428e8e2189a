"""Jobs in 32-bit arithmetic on GPUs whose tensor cores would do it in 16 bits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpureport import gpus
from gpureport.analysis import phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job import params
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.clock_signals import BUSY
from gpureport.analysis.thresholds import pragmatic, vendor
from gpureport.findings import Confidence, Finding, NotJudged, Severity, Threshold

_KIND = "full_precision"
_TENSOR = "gpu_tensor_active_ratio"
_SM = "gpu_sm_active_ratio"
_RECORD = "the params of the run (precision, amp, fp16, bf16, dtype) with its tracker or --param precision=VALUE, or "
_RECORD += "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"


@dataclass(frozen=True, slots=True, kw_only=True)
class FullPrecision(ClassRule):
    """Mixed precision is supported (compute capability 7.0 or higher) and not in use, for the whole run.

    Tensor cores are active in less than 1% of at least half a minute of busy time (DCGM, or dmon on Hopper and
    newer); time in which the multiprocessors work for less than 10% is left out. Where they were not
    counted, a param of the run (precision, amp, fp16, bf16, dtype) says 32 bits and none says less.
    """

    name = _KIND
    wants = (_TENSOR, UTILISATION, _SM)

    capability: Threshold = vendor(7.0, "1", "NVIDIA: tensor cores since compute capability 7.0")
    active: Threshold = pragmatic(0.01, "1", "matrix work in 16 bits or TF32 shows far more, even in short kernels")
    worked: Threshold = pragmatic(0.1, "1", "multiprocessors that work less show no precision: a loop of tiny kernels")
    busy: Threshold = pragmatic(30.0, "s", "averages over many training steps; less busy time is one phase of a job")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding, for the GPUs that could do better, and those of which nothing tells."""
        precision = params.find_precision_param(context.recording.run.params_and_tags)
        is_reduced = precision is not None and not precision[1]
        if not context.active and not is_reduced:
            yield _report_unjudged(None, "no GPU worked, so nothing shows how it computes", "no_gpu_worked")
        able = [name for name in context.active if self._has_tensor_cores(context, name)]
        for name in context.active:
            model = context.series[name].device.model
            if _find_capability(model) is None:
                reason = f"the compute capability of {model or 'the GPU'} is not known"
                yield _report_unjudged(name, reason, "unknown_compute_capability")
        tensor = {
            name: activity
            for name in able
            if (activity := self._average_tensor_activity(context.series[name])) is not None
        }
        if inactive := tuple(name for name, activity in tensor.items() if activity < self.active.value):
            yield self._build_finding(context, inactive, max(tensor[name] for name in inactive), precision)
        uncounted = [] if is_reduced else [name for name in able if name not in tensor]
        if tensor:
            for name in uncounted:
                yield _report_unjudged(
                    name, "tensor activity was recorded of other GPUs only", "recorded_of_other_gpus"
                )
        elif uncounted and precision is None:
            is_counted = any(context.series[name].is_recorded(_TENSOR) for name in uncounted)
            brief = f"tensor activity was counted over less than {self.busy.value:.0f} s of work"
            absent = "neither tensor activity nor the precision was recorded"
            yield (
                _report_unjudged(None, brief, "too_little_work")
                if is_counted
                else _report_unjudged(None, absent, "precision_not_recorded")
            )
        elif uncounted:
            yield self._build_finding(context, uncounted, None, precision)

    def _has_tensor_cores(self, context: Context, name: str) -> bool:
        capability = _find_capability(context.series[name].device.model)
        return capability is not None and capability >= (self.capability.value, 0)

    def _average_tensor_activity(self, series: DeviceSeries) -> float | None:
        """Return the mean activity of the tensor cores over busy time, None if it was recorded for too short a time."""
        if not series.is_recorded(_TENSOR):
            return None
        values = series.values(_TENSOR)
        used = series.values(UTILISATION)
        rows = ~np.isnan(values) & ((used > BUSY) | np.isnan(used)) & ~(series.values(_SM) < self.worked.value)
        seconds = series.seconds[rows]
        if seconds.sum() < self.busy.value:
            return None
        return float((values[rows] * seconds).sum() / seconds.sum())

    def _build_finding(
        self, context: Context, devices: Sequence[str], tensor: float | None, precision: tuple[str, bool] | None
    ) -> Finding:
        evidence = []
        if tensor is not None:
            evidence.append(compare_with_limit(_TENSOR, "mean over busy time", tensor, "<", self.active))
            whose = phrases.gpu_names(tuple(devices), tuple(context.gpus()))
            why = f"The tensor cores of {whose} worked for {phrases.percent(tensor)} of the busy time"
        else:
            why = f"The run says {precision[0]}" if precision else "The run uses full precision"
        return Finding(
            kind=_KIND,
            severity=Severity.INFO,
            confidence=Confidence.MEDIUM if tensor is None else Confidence.HIGH,
            devices=tuple(devices),
            intervals=(),
            evidence=tuple(evidence),
            lost_gpu_seconds=None,
            samples=sum(context.series[name].count_readings(_TENSOR, slice(None)) for name in devices)
            if evidence
            else 0,
            summary=f"{why}; 16-bit precision may be faster.",
            recommendation=KINDS[_KIND].advice[""],
        )


def _find_capability(model: str | None) -> tuple[int, int] | None:
    known = gpus.find_gpu(model)
    return None if known is None else known.compute_capability


def _report_unjudged(device: str | None, reason: str, code: str) -> NotJudged:
    return NotJudged(kind=_KIND, device=device, reason=reason, recording=_RECORD, code=code)
