"""Stretches without samples."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpureport.analysis import certainty, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job import phases
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.missing_metrics import NO_TIMES
from gpureport.analysis.results import Pauses
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.thresholds import pragmatic
from gpureport.data_quality import GAP_INTERVALS, gap_seconds
from gpureport.findings import Evidence, Finding, NotJudged, Severity
from gpureport.recording_advice import RECORD

_UNTIMED = NotJudged(
    kind="log_gap",
    device=None,
    reason="the log has no time stamps, so a gap cannot be seen",
    recording=RECORD,
    code=NO_TIMES,
)

_SHORTEST_SECONDS = 1.0
"""A gap of one GPU that exceeds the shared gap by less than this is jitter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGap(ClassRule):
    """Two samples of a GPU more than 3.5 intervals apart, and more than 5 s where the interval is below 2 s.

    Not assessed where the log has no time stamps.
    """

    name = "log_gap"
    whole_log = True

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield one finding for the gaps all GPUs share, and one for each GPU that has others."""
        if context.recording.run.quality.synthetic_time:
            yield _UNTIMED
            return
        gaps = {device: intervals.to_spans(series.gaps) for device, series in context.gpus().items()}
        if not gaps:
            return
        shared, *rest = gaps.values()
        for other in rest:
            shared = intervals.intersection(shared, other)
        if len(shared):
            yield self._build_finding(context, (), shared)
        for device, own in gaps.items():
            own_gaps = intervals.drop_shorter(intervals.difference(own, shared), _SHORTEST_SECONDS)
            if len(own_gaps):
                yield self._build_finding(context, (device,), own_gaps)

    def _build_finding(self, context: Context, devices: tuple[str, ...], gaps: Spans) -> Finding:
        run = context.recording.run
        seconds = intervals.total_seconds(gaps)
        step = max(series.interval for series in context.gpus().values())
        limit = pragmatic(gap_seconds(step), "s", _explain_limit(step))
        pauses = phases.summarise_pauses([context.gpus()[device] for device in devices] or context.gpus().values())
        share = seconds * 1e6 / max(run.ended - run.started, 1)
        whose = f" of {phrases.gpu_name(devices[0])}" if devices else ""
        where = "" if len(gaps) == 1 else f" in {len(gaps)} gaps"
        return Finding(
            kind="log_gap",
            severity=Severity.INFO,
            # the other distances show what is far for two samples
            confidence=certainty.confidence_by_readings(min(len(series) for series in context.gpus().values())),
            devices=devices,
            intervals=intervals.to_intervals(gaps),
            evidence=(
                compare_with_limit(
                    "distance between samples", "max", float((gaps[:, 1] - gaps[:, 0]).max()) / 1e6, ">", limit
                ),
                Evidence(metric="time without samples", statistic="sum", observed=seconds, unit="s"),
                *_build_pause_evidence(pauses),
            ),
            lost_gpu_seconds=None,
            samples=len(gaps) + 1,
            summary=(
                f"{phrases.duration(seconds)} of the log{whose} is missing{where}, {phrases.percent(share)} of the run."
                f"{_describe_pauses(pauses)}"
            ),
            recommendation=KINDS["log_gap"].advice[""],
        )


def _explain_limit(step: float) -> str:
    """Say which of the two limits held: 3.5 intervals, or the seconds a collector may be late."""
    intervals_long = GAP_INTERVALS * step
    if gap_seconds(step) > intervals_long:
        return (
            f"5 s, more than {GAP_INTERVALS:g} intervals of {phrases.duration(step)}; below 2 s of interval a "
            "collector's hiccup of some seconds is normal"
        )
    return (
        f"{GAP_INTERVALS:g} intervals of {phrases.duration(step)}; collectors are late by up to 2.6 without losing "
        "samples"
    )


def _build_pause_evidence(pauses: Pauses | None) -> Iterator[Evidence]:
    if pauses is not None:
        yield Evidence(
            metric="time in shorter pauses that no sample owns", statistic="sum", observed=pauses.seconds, unit="s"
        )


def _describe_pauses(pauses: Pauses | None) -> str:
    """Return the pauses that no sample owns, in a sentence; empty without any."""
    if pauses is None:
        return ""
    return (
        f" {phrases.capitalize(phrases.count_of(pauses.count, 'shorter pause'))} between samples left "
        f"another {phrases.duration(pauses.seconds)} uncovered."
    )
