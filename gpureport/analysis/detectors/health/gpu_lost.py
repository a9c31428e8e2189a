"""A GPU that stopped answering, and Xid errors of the driver."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.signals import gpu_loss_times
from gpureport.analysis.signals.gpu_loss_times import LossEvent
from gpureport.analysis.thresholds import pragmatic, vendor
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_KIND = "gpu_lost"
_GONE = 79
_MILD = frozenset({45, 63})
"""Xids that only report: channels cleaned up after an application ended, and a row that was remapped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Silence:
    """How long a GPU did not answer, and whether it did again."""

    interval: Interval
    is_back: bool
    empty_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLost(ClassRule):
    """The log reports a lost GPU or an Xid error, or a GPU has no values from some time on until the log ends.

    The report may be a message of the driver, a cell that reads "GPU is lost", a line of the kernel log between the
    rows, or a new number of the last Xid. Without any of these, the rows of a GPU must go on for half a minute, and
    at least three rows, without any value. The time lost runs until the GPU answers again or the recording ends.
    """

    name = _KIND
    requires = (gpu_loss_times.LIVENESS_METRICS,)
    wants = (gpu_loss_times.XID,)
    whole_log = True

    silent: Threshold = pragmatic(30.0, "s", "a driver that answers N/A for a moment is not gone")
    rows: Threshold = pragmatic(3.0, "rows", "one torn row is not a lost GPU")
    said: Threshold = vendor(1.0, "", "the driver says so once a GPU has fallen off the bus")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield one finding for each GPU that was lost, and one for each that had Xid errors else."""
        events = list(gpu_loss_times.find_loss_events(context))
        lost_devices = {loss.device for loss in events if loss.code in {None, _GONE}}
        for device in [*context.gpus(), None]:
            own = [loss for loss in events if loss.device == device]
            lost = [loss for loss in own if loss.code in {None, _GONE}]
            codes = [loss for loss in own if loss.code not in {None, _GONE}]
            if lost:
                yield self._build_loss_finding(context, device, lost)
            if codes:
                yield self._build_xid_finding(context, device, codes)
        if None not in lost_devices:
            for device in context.gpus():
                if device not in lost_devices:
                    yield from self._judge_silence(context, device)

    def _build_loss_finding(self, context: Context, device: str | None, events: Sequence[LossEvent]) -> Finding:
        silence = _measure_silence(context, device, events[0].at)
        name = "A GPU" if device is None else phrases.gpu_name(device)
        afterwards = "" if silence is None else f" {_describe_silence(silence)}"
        reason = "; the driver reported Xid 79" if events[0].code else ""
        return Finding(
            kind=_KIND,
            severity=Severity.PROBLEM,
            confidence=Confidence.HIGH,
            devices=() if device is None else (device,),
            intervals=(silence.interval,) if silence and silence.interval.seconds else (),
            evidence=(self._build_message_evidence(events), *self._build_empty_row_evidence(silence)),
            lost_gpu_seconds=silence.interval.seconds if silence else None,
            cause="lost",
            samples=len(events),
            summary=f"{name} stopped responding{afterwards}{reason}.",
            recommendation=KINDS["gpu_lost"].advice[""],
        )

    def _build_xid_finding(self, context: Context, device: str | None, events: Sequence[LossEvent]) -> Finding:
        codes = sorted({loss.code for loss in events if loss.code is not None})
        is_mild = set(codes) <= _MILD
        name = "a GPU" if device is None else phrases.gpu_name(device)
        listed = phrases.join_words([f"{code}" for code in codes])
        end = context.recording.run.ended
        return Finding(
            kind=_KIND,
            severity=Severity.WARNING if is_mild else Severity.PROBLEM,
            confidence=Confidence.HIGH,
            devices=() if device is None else (device,),
            intervals=(Interval(min(events[0].at, end), end),) if events[0].at < end else (),
            evidence=(self._build_message_evidence(events),),
            lost_gpu_seconds=None,
            cause="xid",
            samples=len(events),
            summary=f"The driver reported Xid {listed} on {name}.",
            recommendation=KINDS["gpu_lost"].advice["xid"],
        )

    def _judge_silence(self, context: Context, device: str) -> Iterator[Finding]:
        """Yield a finding where the rows of a GPU go on without any value until the log ends."""
        series = context.series[device]
        answered = gpu_loss_times.find_answer_times(series)
        if not len(answered) or answered[-1] == series.times[-1]:
            return
        silence = _measure_silence(context, device, int(answered[-1]))
        if silence is None or silence.empty_rows < self.rows.value or silence.interval.seconds < self.silent.value:
            return
        yield Finding(
            kind=_KIND,
            severity=Severity.PROBLEM,
            confidence=Confidence.MEDIUM,
            devices=(device,),
            intervals=(silence.interval,),
            evidence=tuple(self._build_empty_row_evidence(silence)),
            lost_gpu_seconds=silence.interval.seconds,
            cause="no answer",
            samples=silence.empty_rows,
            ruled_out=("a log that ended: its rows go on",),
            summary=f"{phrases.gpu_name(device)} stopped responding {_describe_silence(silence)}.",
            recommendation=KINDS["gpu_lost"].advice[""],
        )

    def _build_message_evidence(self, events: Sequence[LossEvent]) -> Evidence:
        return compare_with_limit("messages of the driver", "count", float(len(events)), ">=", self.said)

    def _build_empty_row_evidence(self, silence: _Silence | None) -> Iterator[Evidence]:
        if silence is not None and silence.empty_rows:
            empty = compare_with_limit("rows without any value", "count", float(silence.empty_rows), ">=", self.rows)
            yield empty if empty.meets_limit else empty.as_context()


def _measure_silence(context: Context, device: str | None, at: int) -> _Silence | None:
    """Return how long a GPU did not answer from a moment on; None if no message names the GPU."""
    if device is None:
        return None
    series = context.series[device]
    later = gpu_loss_times.find_answer_times(series)
    later = later[later > at]
    until = int(later[0]) if len(later) else max(context.whole.end, at)
    first, stop = np.searchsorted(series.times, [at, until + (not len(later))])
    answered = gpu_loss_times.find_answer_times(series)
    empty = int(stop - first) - int(np.isin(answered, series.times[first:stop]).sum())
    return _Silence(interval=Interval(at, until), is_back=bool(len(later)), empty_rows=empty)


def _describe_silence(silence: _Silence) -> str:
    length = phrases.duration(silence.interval.seconds)
    if silence.is_back:
        return f"for {length}"
    return f"{length} before the end" if silence.interval.seconds else "as the log ended"
