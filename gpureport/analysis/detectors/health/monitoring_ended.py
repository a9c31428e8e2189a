"""Samples of a GPU that end while something else was still recorded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from gpureport import columns
from gpureport.analysis import certainty, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.missing_metrics import NO_TIMES
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.signals import gpu_loss_times
from gpureport.analysis.signals.load import CPU
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import IntArray
from gpureport.findings import Finding, Interval, NotJudged, Severity, Threshold
from gpureport.recording_advice import RECORD

_KIND = "monitoring_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OtherSeries:
    """Something that was recorded beside the samples of a GPU: its name for a sentence, and when, in microseconds."""

    name: str
    times: IntArray
    is_gpu: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringEnded(ClassRule):
    """The samples of a GPU end a minute or more, and ten intervals, before another GPU, the host or training metrics.

    At least two values must lie after that minute. A series that also begins later by as much has another clock and
    does not count. Nor does a GPU that was lost.
    """

    name = _KIND
    requires = (gpu_loss_times.LIVENESS_METRICS,)
    after = ("gpu_lost",)
    wants = (CPU,)
    whole_log = True

    early: Threshold = pragmatic(60.0, "s", "recorders of one job are not stopped in the same second")
    steps: Threshold = pragmatic(10.0, "rows", "intervals; a late row is no end")
    shifted: Threshold = pragmatic(0.2, "1", "of the difference; clocks that differ shift beginning and end alike")
    warning: Threshold = pragmatic(0.05, "1", "share of the run that was not recorded")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield one finding for all GPUs that end together before the rest, else one a GPU."""
        if context.recording.run.quality.synthetic_time:
            yield NotJudged(
                kind=_KIND,
                device=None,
                reason="the log has no time stamps to compare with those of other logs",
                recording=RECORD,
                code=NO_TIMES,
            )
            return
        lost_devices = {device for finding in context.findings("gpu_lost") for device in finding.devices}
        ends = {
            name: one for name, series in context.gpus().items() if len(one := gpu_loss_times.find_answer_times(series))
        }
        other_series = [*_find_host_series(context), *_find_training_series(context)]
        if len(ends) + len(other_series) <= 1:
            yield NotJudged(
                kind=_KIND,
                device=None,
                reason="nothing else was recorded to compare the end of the log with",
                recording=RECORD,
                code="nothing_to_compare",
            )
            return
        gpu_series = [_OtherSeries(name=phrases.gpu_name(name), times=one, is_gpu=True) for name, one in ends.items()]
        # a GPU does not end later than itself
        by_end = sorted([*other_series, *gpu_series], key=lambda one: -int(one.times[-1]))
        later_series = {}
        for device, answer_times in ends.items():
            later = self._find_longest_later(answer_times, by_end, context.series[device].interval)
            if later is not None and device not in lost_devices:
                later_series[device] = later
        yield from self._build_findings(context, ends, later_series)

    def _find_longest_later(self, own: IntArray, by_end: list[_OtherSeries], interval: float) -> _OtherSeries | None:
        """Return the series that goes on longest after the samples of a GPU, None where none does.

        The series come in the order of their ends, the last first.
        """
        limit = int(own[-1]) + round(max(self.early.value, self.steps.value * interval) * 1e6)
        late = takewhile(lambda one: one.times[-1] > limit, by_end)
        return next((one for one in late if self._is_later(own, one.times, limit)), None)

    def _is_later(self, own: IntArray, other: IntArray, limit: int) -> bool:
        after = int(other[-1] - own[-1])
        readings_after = len(other) - int(np.searchsorted(other, limit, side="right"))
        if readings_after < certainty.FEW_READINGS or other[0] > own[-1]:
            return False
        return abs(int(other[0] - own[0]) - after) > self.shifted.value * after

    def _build_findings(
        self, context: Context, ends: dict[str, IntArray], later_series: dict[str, _OtherSeries]
    ) -> Iterator[Finding]:
        if not later_series:
            return
        last = {device: int(ends[device][-1]) for device in later_series}
        end_together = (
            len(later_series) == len(ends) and max(last.values()) - min(last.values()) <= self.early.value * 1e6
        )
        groups = [tuple(later_series)] if end_together else [(device,) for device in later_series]
        for devices in groups:
            begin = min(last[device] for device in devices)
            yield self._build_finding(context, devices, begin, later_series[devices[0]])

    def _build_finding(self, context: Context, devices: tuple[str, ...], begin: int, later: _OtherSeries) -> Finding:
        missing = Interval(begin, int(later.times[-1]))
        everything = (max(context.whole.end, missing.end) - context.whole.start) / 1e6
        share = missing.seconds / max(everything, 1e-9)
        return Finding(
            kind=_KIND,
            severity=Severity.WARNING if share >= self.warning.value else Severity.INFO,
            confidence=certainty.confidence_by_readings(int((later.times > begin).sum())),
            devices=devices,
            intervals=(missing,),
            evidence=(
                compare_with_limit("time without samples at the end", "length", missing.seconds, ">=", self.early),
                compare_with_limit(
                    "time without samples at the end",
                    "share of the run",
                    share,
                    ">=" if share >= self.warning.value else "<",
                    self.warning,
                ),
            ),
            lost_gpu_seconds=None,
            samples=int((later.times > begin).sum()),
            ruled_out=("clocks that differ: the other series does not begin later by as much",),
            summary=(
                f"{_name_log(devices, tuple(context.gpus()))} stopped {phrases.duration(missing.seconds)} before "
                f"{'that of ' if later.is_gpu else ''}{later.name}, {phrases.percent(share)} of the run."
            ),
            recommendation=KINDS["monitoring_ended"].advice["gone" if later.is_gpu else ""],
        )


def _name_log(devices: Sequence[str], everybody: Sequence[str]) -> str:
    is_whole = set(devices) >= set(everybody)
    return "The GPU log" if is_whole else f"The log of {phrases.gpu_names(devices, everybody)}"


def _find_host_series(context: Context) -> Iterator[_OtherSeries]:
    for series in context.hosts().values():
        if len(series):
            name = "the host log" + (f" of {series.device.node}" if series.device.node else "")
            yield _OtherSeries(name=name, times=series.times)


def _find_training_series(context: Context) -> Iterator[_OtherSeries]:
    column = context.recording.training.column("timestamp")
    times = np.sort(columns.integers(column)[columns.valid(column)])
    if len(times):
        yield _OtherSeries(name="the training metrics", times=times)
