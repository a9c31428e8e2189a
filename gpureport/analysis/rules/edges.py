"""Time before the first sustained work of each job and after its last, restarts, and logs without any such work."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.job import jobs
from gpureport.analysis.job.phases import ACTIVE, LITTLE_WORK, NO_JOB, NO_WORK, UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import Context, Limits, rule
from gpureport.analysis.series import intervals
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity

_START, _TAIL, _MEMORY = "startup_idle", "tail_idle", "gpu_memory_used_bytes"
_BURSTS = 0.05  # share of the stretch above 12%: more work than a few autotuning kernels
_LONE_SECONDS = 2.0  # a utilisation value covers at most 1 s (NVML); one alone proves no longer rest
_ALONG = 0.25  # share of time at 5% and less: start-up and pauses of a job that works a little all along


@rule(_START)
def find_edges(context: Context, limits: Limits) -> Iterator[Finding | NotJudged]:
    """Yield start-up and tail of each job, as warnings where those of all jobs together lost enough for that."""
    if context.whole.seconds < limits.shortest:
        yield from (missing_metrics.too_short(kind, context.whole.seconds, limits.shortest) for kind in (_START, _TAIL))
        return
    if context.window is None:
        yield from _judge_log_without_work(context, limits)
        return
    restarts = jobs.find_restarts(context.jobs, context.series)
    judged: list[Finding | NotJudged] = []
    for job in context.jobs:
        held = Interval(job.interval.start, job.window.start)
        judged += _judge_stretch(context, limits, _START, held, held.end, restarts.get(job.number))
        held = Interval(job.window.end, job.interval.end)
        # what a display does with a GPU afterwards is no concern of the log
        is_noted = job is context.jobs[-1] and not _is_taken(context, held.end)
        judged += _judge_stretch(context, limits, _TAIL, held, context.whole.end if is_noted else held.end)
    lost = defaultdict[str, float](float)
    for each in judged:
        lost[each.kind] += (each.lost_gpu_seconds or 0.0) if isinstance(each, Finding) else 0.0
    least = limits.share * _measure_jobs(context) * len(context.gpus())
    for each in judged:
        if isinstance(each, Finding) and lost[each.kind] > least:
            yield replace(each, severity=Severity.WARNING)
        else:
            yield each


def _is_taken(context: Context, since: int) -> bool:
    """Return whether memory of a GPU is in use to the end of the log, without a job."""
    rest = intervals.to_spans([Interval(since, context.whole.end)])
    after = (context.full_series(name).find_values(_MEMORY, rest) for name in context.time_without_job)
    return any((values > jobs.EMPTY_MEMORY).all() for values in after if len(values))


def _measure_jobs(context: Context) -> float:
    """Return the length of all jobs together."""
    return sum(job.interval.seconds for job in context.jobs)


def _measure(
    context: Context, stretch: Interval, weigh: Callable[[FloatArray], FloatArray | BoolArray], *names: str
) -> float:
    """Return the GPU time of a stretch, each reading of utilisation with its weight; of some GPUs where named."""
    seconds, span = 0.0, intervals.to_spans([stretch])
    for name, series in context.gpus().items():
        if not names or name in names:
            inside = intervals.overlap_seconds(*series.averaging_windows(context.whole), span)
            seconds += float(np.nansum(inside * weigh(series.values(UTILISATION))))
    return seconds


def _measure_resting(context: Context, stretch: Interval, limit: float, *names: str) -> float:
    return _measure(context, stretch, lambda used: used <= limit + 1e-6, *names)


def _count_readings(context: Context, stretch: Interval) -> list[int]:
    """Return how many readings of utilisation each GPU has in a stretch; the last of a log lies at its end."""
    rows = ((one, one.rows_between(stretch.start, stretch.end + 1)) for one in context.gpus().values())
    return [one.count_readings(UTILISATION, part) for one, part in rows]


def _judge_stretch(  # noqa: PLR0913, PLR0917 - a stretch, and what is beside it
    context: Context, limits: Limits, kind: str, held: Interval, end: int, pause: Interval | None = None
) -> Iterator[Finding | NotJudged]:
    """Yield a finding on the time before or after the work of a job.

    Args:
        context: the log.
        limits: what counts.
        kind: the kind.
        held: the time in which the job held GPUs.
        end: when the time without a job ends that follows it.
        pause: the time before the job in which it stopped and began again.
    """
    stretch, free = Interval(held.start, end), (end - held.end) / 1e6 * len(context.gpus())
    step, log, resting = (
        context.recording.run.interval or 0.0,
        context.whole_log,
        _measure_resting(context, held, ACTIVE.value),
    )
    # the log may have ended an interval after its last sample
    late = min(step, stretch.seconds, limits.shortest) if kind == _TAIL and stretch.seconds < limits.shortest else 0.0
    if pause is None and (stretch.seconds + late < limits.shortest or resting + free < limits.shortest / 2):
        # too short, or nearly all of it lies in a gap of the log, about which nothing is known
        return
    counts = _count_readings(log, stretch)
    if pause is None and max(counts) < certainty.FEW_READINGS and step > _LONE_SECONDS:
        edge = "before the first work" if kind == _START else "after the last work"
        yield NotJudged(
            kind=kind,
            device=None,
            template=f"there is only one reading {edge}, and samples are {{}} apart",
            amounts=(missing_metrics.length_of(step),),
            recording="a log with samples 5 s apart or less",
            code="single_reading",
        )
        return
    sampled = _measure_resting(context, held, inf)
    if not _measure_resting(log, stretch, inf):
        # memory shows that no job held a GPU, and nothing what the GPU did
        return
    worked, share = sampled - _measure_resting(context, held, IDLE_RATIO), held.seconds / _measure_jobs(context)
    is_rest = sampled - resting <= _BURSTS * sampled and worked <= limits.light * sampled
    case = "restart" if pause else NO_JOB if free and held.seconds < limits.shortest else None
    length = stretch.seconds if case == NO_JOB else held.seconds
    whole = "the jobs' time" if context.time_without_job else "the run"
    what = "length, at most (the log may end an interval late)" if late else "length"
    evidence = [
        limits.compare("duration", what, length + late, ">=", "shortest"),
        limits.compare("duration", f"share of {whole}", share, ">" if share > limits.share else "<=", "share"),
    ]
    words = {"length": phrases.duration(length), "share": f"{phrases.percent(share)} of {whole}"}
    words["which"] = "first work" if held.start <= context.whole.start else "first work of a later job"
    words |= {"whose": _name_gpus(context), "free": phrases.duration(free) if free else "", "pause": "", "lost": ""}
    if case == NO_JOB:
        words["share"] = f"{phrases.percent(length / context.whole.seconds)} of the run"
    if pause:
        lost = pause.seconds * len(context.gpus())
        words |= {"pause": phrases.duration(pause.seconds), "lost": phrases.gpu_time(lost)}
        evidence.append(Evidence(metric="time between the jobs", statistic="GPU time", observed=lost, unit="s"))
    yield Finding(
        kind=kind,
        severity=Severity.WARNING if held.seconds > limits.long or share > limits.share else Severity.INFO,
        confidence=certainty.confidence_by_readings(max(counts), step) if is_rest else Confidence.LOW,
        devices=(),
        intervals=(stretch,),
        evidence=tuple(evidence),
        lost_gpu_seconds=resting,
        cause=case,
        samples=sum(counts),
        summary=KINDS[kind].say(case, **words),
        recommendation=KINDS[kind].advise(case),
    )


def _name_gpus(context: Context) -> str:
    gpus = tuple(context.gpus())
    return phrases.gpu_names(gpus, gpus) if len(gpus) > 1 else "the GPU"


def _judge_log_without_work(context: Context, limits: Limits) -> Iterator[Finding | NotJudged]:
    """Yield that no GPU did lasting work, or why that cannot be said."""
    whole, gpus = context.whole, context.gpus()
    counts = _count_readings(context, whole)
    sampled = max(_measure_resting(context, whole, inf), 1e-9)
    if max(counts, default=0) < certainty.SURE_READINGS:
        yield from (missing_metrics.too_few(kind, max(counts, default=0)) for kind in (_START, _TAIL))
        return
    if sampled / len(gpus) < limits.shortest:
        short = (sampled / len(gpus), limits.shortest, "samples cover")
        yield from (missing_metrics.too_short(kind, *short) for kind in (_START, _TAIL))
        return
    if all(jobs.draws_only_display(one) for one in gpus.values()):
        reason, recording = "only a display used the GPU", "a log of the job, from its first moment on"
        for kind in (_START, _TAIL):
            yield NotJudged(kind=kind, device=None, reason=reason, recording=recording, code="only_a_display")
        return
    is_used = all(
        _measure_resting(context, whole, IDLE_RATIO, name) <= _ALONG * _measure_resting(context, whole, inf, name)
        for name in gpus
    )
    share = _measure_resting(context, whole, IDLE_RATIO) / sampled
    mean = _measure(context, whole, lambda used: used.clip(0, 1)) / sampled
    rest = IDLE_RATIO + 1e-6
    cause = LITTLE_WORK if is_used else NO_WORK
    words = {"length": phrases.duration(whole.seconds), "mean": phrases.percent(mean), "whose": _name_gpus(context)}
    yield Finding(
        kind=_START,
        severity=Severity.WARNING,
        confidence=certainty.confidence_by_readings(max(counts), context.recording.run.interval or 0.0),
        devices=(),
        intervals=(whole,),
        evidence=(
            limits.compare("duration", "length", whole.seconds, ">=", "shortest"),
            Evidence(metric=UTILISATION, statistic="share of time at 5% and less", observed=share, unit="1"),
            Evidence(metric=UTILISATION, statistic="mean", observed=mean, unit="1"),
        ),
        lost_gpu_seconds=_measure(context, whole, lambda used: np.where(used <= rest, 1.0, 1 - used.clip(0, 1))),
        cause=cause,
        samples=sum(counts),
        summary=KINDS[_START].say(cause, share=phrases.percent(share), **words),
        recommendation=KINDS[_START].advise(NO_WORK if share >= limits.unused else LITTLE_WORK),
    )
