"""What a recorder missed: gaps in the log, and samples that end before something else does."""

from collections.abc import Iterator
from functools import reduce

import numpy as np

from gpureport import columns
from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.job import phases
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import Context, Limits, rule
from gpureport.analysis.rules.health import find_answers
from gpureport.analysis.series import intervals
from gpureport.columns import IntArray
from gpureport.data_quality import gap_seconds
from gpureport.findings import Evidence, Finding, Interval, NotJudged, Provenance, Severity, Threshold
from gpureport.recording_advice import RECORD

_JITTER = 1.0
"""Seconds that one GPU lacks more than the others, below which it is only late."""
_WHY = (
    "3.5 intervals, 5 s at least below 2 s: collectors are late by 2.6 intervals or some seconds without losing samples"
)


def _unjudged(kind: str, reason: str, code: str = missing_metrics.NO_TIMES) -> NotJudged:
    return NotJudged(kind=kind, device=None, reason=reason, recording=RECORD, code=code)


@rule("log_gap")
def find_log_gaps(context: Context, limits: Limits) -> Iterator[Finding | NotJudged]:
    """Yield one finding for the gaps all GPUs share, and one for each GPU that has others."""
    if context.recording.run.quality.synthetic_time:
        yield _unjudged("log_gap", "the log has no time stamps, so a gap cannot be seen")
        return
    gpus = context.gpus()
    free = context.time_without_job
    gaps = {
        name: intervals.difference(intervals.to_spans(one.gaps), free.get(name, intervals.NO_SPANS))
        for name, one in gpus.items()
    }
    shared = reduce(intervals.intersection, gaps.values()) if gaps else intervals.NO_SPANS
    # less is jitter
    own = {name: intervals.drop_shorter(intervals.difference(one, shared), _JITTER) for name, one in gaps.items()}
    for name, spans in {"": shared, **own}.items():
        if not len(spans):
            continue
        seconds, longest = intervals.total_seconds(spans), float((spans[:, 1] - spans[:, 0]).max()) / 1e6
        far = gap_seconds(max(series.interval for series in gpus.values()))
        pauses = phases.summarise_pauses([gpus[name]] if name else gpus.values())
        short = "time in shorter pauses that no sample owns"
        yield KINDS["log_gap"].finding(
            Severity.INFO,
            # the other distances show what is far for two samples
            certainty.confidence_by_readings(min(map(len, gpus.values()))),
            (name,) if name else (),
            [
                Evidence(
                    metric="distance between samples",
                    statistic="max",
                    observed=longest,
                    unit="s",
                    threshold=Threshold(value=far, unit="s", provenance=Provenance.PRAGMATIC, source=_WHY),
                    relation=">",
                ),
                Evidence(metric="time without samples", statistic="sum", observed=seconds, unit="s"),
                *([Evidence(metric=short, statistic="sum", observed=pauses.seconds, unit="s")] if pauses else []),
            ],
            spans=intervals.to_intervals(spans),
            samples=len(spans) + 1,
            length=phrases.duration(seconds),
            gpu=phrases.gpu_name(name) if name else "",
            gaps=f"{len(spans)} gaps" if len(spans) > 1 else "",
            share=phrases.percent(seconds / max(context.whole.seconds, 1e-6)),
            pauses=phrases.capitalize(phrases.count_of(pauses.count, "shorter pause")) if pauses else "",
            rest=phrases.duration(pauses.seconds) if pauses else "",
        )


@rule("monitoring_ended")
def find_early_ends(context: Context, limits: Limits) -> Iterator[Finding | NotJudged]:
    """Yield one finding for all GPUs whose samples end together before the rest, else one a GPU."""
    own = {name: series.times[find_answers(series)] for name, series in context.gpus().items()}
    own = {name: times for name, times in own.items() if len(times)}
    others = [*_list_others(context), *((phrases.gpu_name(name), times) for name, times in own.items())]
    if context.recording.run.quality.synthetic_time:
        yield _unjudged("monitoring_ended", "the log has no time stamps to compare with those of other logs")
        return
    if len(others) <= 1:
        reason = "nothing else was recorded to compare the end of the log with"
        yield _unjudged("monitoring_ended", reason, "nothing_to_compare")
        return
    others.sort(key=lambda other: -int(other[1][-1]))
    later = {}
    for name, times in own.items():
        limit = int(times[-1]) + round(max(limits.early, limits.steps * context.series[name].interval) * 1e6)
        longer = (other for other in others if _goes_on(times, other[1], limit, limits))
        if not context.findings("gpu_lost", name) and (longest := next(longer, None)):
            later[name] = longest
    ends, everybody = {name: int(own[name][-1]) for name in later}, tuple(context.gpus())
    together = (
        len(later) == len(own) and max(ends.values(), default=0) - min(ends.values(), default=0) <= limits.early * 1e6
    )
    for devices in [tuple(later)] if together and later else [(name,) for name in later]:
        other, times = later[devices[0]]
        missing = Interval(min(ends[name] for name in devices), int(times[-1]))
        share = missing.seconds / max((max(context.whole.end, missing.end) - context.whole.start) / 1e6, 1e-9)
        much, readings, what = (
            share >= limits.warning,
            int((times > missing.start).sum()),
            "time without samples at the end",
        )
        yield KINDS["monitoring_ended"].finding(
            Severity.WARNING if much else Severity.INFO,
            certainty.confidence_by_readings(readings),
            devices,
            [
                limits.compare(what, "length", missing.seconds, ">=", "early"),
                limits.compare(what, "share of the run", share, ">=" if much else "<", "warning"),
                Evidence(metric=other, statistic="goes on for", observed=missing.seconds, unit="s"),
            ],
            spans=[missing],
            case="gone" if other.startswith("GPU ") else "",
            samples=readings,
            ruled_out=["clocks that differ: the other series does not begin later by as much"],
            log="the GPU log"
            if len(devices) == len(everybody)
            else f"the log of {phrases.gpu_names(devices, everybody)}",
            length=phrases.duration(missing.seconds),
            other=other,
            share=phrases.percent(share),
        )


def _list_others(context: Context) -> Iterator[tuple[str, IntArray]]:
    """Yield what was recorded beside GPUs: its name for a sentence, and when."""
    for series in context.hosts().values():
        yield "the host log" + (f" of {series.device.node}" if series.device.node else ""), series.times
    column = context.recording.training.column("timestamp")
    times = np.sort(columns.integers(column)[columns.valid(column)])
    if len(times):
        yield "the training metrics", times


def _goes_on(own: IntArray, other: IntArray, limit: int, limits: Limits) -> bool:
    """Return whether another series goes on beyond a limit, and has no other clock: that would begin later, too."""
    after = int(other[-1] - own[-1])
    readings = len(other) - int(np.searchsorted(other, limit, side="right"))
    shifted = abs(int(other[0] - own[0]) - after) <= limits.shifted * after
    return readings >= certainty.FEW_READINGS and other[0] <= own[-1] and not shifted
