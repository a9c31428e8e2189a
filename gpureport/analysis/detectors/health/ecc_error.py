"""Memory errors that were counted while the job ran."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Confidence, Finding, Interval, NotJudged, Severity, Threshold

_KIND = "ecc_error"
_UNCORRECTED = ("gpu_ecc_uncorrected_total", "gpu_ecc_double_bit_total", "gpu_remapped_rows_uncorrectable_total")
_CORRECTED = ("gpu_ecc_corrected_total", "gpu_ecc_single_bit_total", "gpu_remapped_rows_correctable_total")
_PENDING = ("gpu_remapped_rows_pending", "gpu_retired_pages_pending")
_FAILURE = "gpu_remapped_rows_failure"
_RETIRED = ("gpu_retired_pages_single_bit_total", "gpu_retired_pages_double_bit_total")
_COUNTED = {
    "gpu_ecc_uncorrected_total": "uncorrectable memory error",
    "gpu_ecc_double_bit_total": "uncorrectable memory error",
    "gpu_remapped_rows_uncorrectable_total": "bad memory row",
    "gpu_retired_pages_double_bit_total": "bad memory page",
    "gpu_ecc_corrected_total": "corrected memory error",
    "gpu_ecc_single_bit_total": "corrected memory error",
    "gpu_remapped_rows_correctable_total": "memory row replaced after corrected error",
    "gpu_retired_pages_single_bit_total": "memory page retired after corrected error",
}
"""What each counter counts; a plural ends with s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CounterRise:
    """How far a counter rose, and between which samples it did so."""

    metric: str
    increase: int
    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EccError(ClassRule):
    """A counter of memory errors, remapped rows or retired pages that rises between two samples of the run.

    Uncorrectable errors and failed remappings are a problem, corrected errors information. A counter that begins
    above zero counted before the run, and one that falls was reset: neither is a finding. The finding also names
    remappings and pages that wait for a reset.
    """

    name = _KIND
    requires = ((*_UNCORRECTED, *_CORRECTED, *_RETIRED),)
    wants = (*_PENDING, _FAILURE)

    rise: Threshold = pragmatic(1.0, "", "one error is one too many")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding a GPU for each of the two classes of errors."""
        for device, series in context.gpus().items():
            counters = [name for name in (*_UNCORRECTED, *_CORRECTED, *_RETIRED) if series.is_recorded(name)]
            if not counters:
                yield missing_metrics.not_recorded(_KIND, device, _UNCORRECTED[0], _CORRECTED[0])
                continue
            if all(_count_readings(series, name) < certainty.FEW_READINGS for name in counters):
                yield _report_single_reading(device)
                continue
            rises = [rise for name in counters if (rise := _measure_rise(series, name)).increase >= self.rise.value]
            uncorrected = [rise for rise in rises if rise.metric in _UNCORRECTED or rise.metric == _RETIRED[1]]
            corrected = [rise for rise in rises if rise not in uncorrected]
            if uncorrected or _was_set_during_run(series, _FAILURE):
                yield self._build_finding(series, uncorrected, Severity.PROBLEM, "uncorrected")
            if corrected:
                yield self._build_finding(series, corrected, Severity.INFO, "corrected")

    def _build_finding(
        self, series: DeviceSeries, rises: Sequence[_CounterRise], severity: Severity, cause: str
    ) -> Finding:
        device = series.device.id
        is_uncorrected = severity is Severity.PROBLEM
        counted = phrases.join_words([phrases.count_of(rise.increase, _COUNTED[rise.metric]) for rise in rises])
        sentence = f"{phrases.gpu_name(device)} had {counted}"
        if not rises:
            sentence = f"{phrases.gpu_name(device)} failed to remap a row of its memory"
        is_pending = any(series.values(name)[-1:].sum() > 0 for name in _PENDING)
        return Finding(
            kind=_KIND,
            severity=severity,
            confidence=Confidence.HIGH,
            devices=(device,),
            intervals=tuple(sorted({span for rise in rises for span in rise.intervals})),
            evidence=tuple(
                compare_with_limit(rise.metric, "rise in the run", float(rise.increase), ">=", self.rise)
                for rise in rises
            ),
            lost_gpu_seconds=None,
            cause=cause,
            samples=max((_count_readings(series, rise.metric) for rise in rises), default=len(series)),
            ruled_out=("errors of earlier jobs: only what a counter rose by in the run is counted",),
            summary=sentence + ("; it needs a reset to take that memory out of use." if is_pending else "."),
            recommendation=KINDS["ecc_error"].advice["" if is_uncorrected else "corrected"],
        )


def _measure_rise(series: DeviceSeries, metric: str) -> _CounterRise:
    """Return by how much a counter rose from sample to sample; where it falls, it was reset."""
    rows = np.flatnonzero(~np.isnan(series.values(metric)))
    steps = np.diff(series.values(metric)[rows])
    up = np.flatnonzero(steps > 0)
    spans = tuple(Interval(int(series.times[rows[row]]), int(series.times[rows[row + 1]])) for row in up.tolist())
    return _CounterRise(metric=metric, increase=int(steps[up].sum()), intervals=spans)


def _count_readings(series: DeviceSeries, metric: str) -> int:
    return int((~np.isnan(series.values(metric))).sum())


def _was_set_during_run(series: DeviceSeries, metric: str) -> bool:
    values = series.values(metric)[~np.isnan(series.values(metric))]
    return bool(len(values)) and values[0] == 0 and bool((values > 0).any())


def _report_single_reading(device: str) -> NotJudged:
    reason = "the error counters were read only once: whether they rose is not known"
    return missing_metrics.unjudged(_KIND, device, reason, [_UNCORRECTED[0], _CORRECTED[0]], code="read_only_once")
