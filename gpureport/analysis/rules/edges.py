"""Time before and after the sustained work of each job, restarts, and logs without such work."""

from dataclasses import replace

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.job import events, jobs
from gpureport.analysis.job.phases import ACTIVE, LITTLE_WORK, NO_JOB, NO_WORK, STEPS
from gpureport.analysis.names import CPU, MEMORY, UTILISATION
from gpureport.analysis.results import Job
from gpureport.analysis.rulebook import Context, Found, Limits, measured, rule
from gpureport.analysis.rules.low_use import find_phases
from gpureport.analysis.series import intervals
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.columns import FloatArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, Severity

_START, _TAIL = "startup_idle", "tail_idle"
_CLOSER = "a log with samples 5 s apart or less"
_BURSTS = 0.05  # share of the stretch above 12%: more work than a few autotuning kernels
_LONE_SECONDS = 2.0
"""A utilisation value covers at most 1 s (NVML); one alone proves no longer rest."""
_MANY_BURSTS = 8  # fewer do not show how work comes
_ALONG = 0.25
"""Share of time at 5% and less: start-up and pauses of a job that works a little all along."""


@rule(_START)
def find_edges(context: Context, limits: Limits) -> Found:
    """Yield start-up and tail of each job, as warnings if all jobs together lost enough."""
    kinds, whole = (_START, _TAIL), context.whole
    if whole.seconds < limits.shortest:
        yield from (missing_metrics.too_short(kind, whole.seconds, limits.shortest) for kind in kinds)
    elif context.window is None:
        yield from _judge_log_without_work(context, limits)
    else:
        for kind in kinds:
            judged = [each for job in context.jobs for each in _judge_edge(context, limits, kind, job)]
            lost = sum(each.lost_gpu_seconds or 0.0 for each in judged if isinstance(each, Finding))
            is_much = lost > limits.share * sum(job.interval.seconds for job in context.jobs) * len(context.gpus())
            for each in judged:
                yield replace(each, severity=Severity.WARNING) if isinstance(each, Finding) and is_much else each


def _read_use(context: Context, stretch: Interval) -> tuple[FloatArray, FloatArray]:
    """Return the seconds of each reading of the GPUs that lie in a stretch, and its utilisation."""
    span, gpus = intervals.to_spans([stretch]), list(context.gpus().values())
    cells = [intervals.overlap_seconds(*one.averaging_windows(context.whole), span) for one in gpus]
    seconds, used = np.concatenate(cells), np.concatenate([one.values(UTILISATION) for one in gpus])
    known = ~np.isnan(used)
    return seconds[known], used[known]


def _count_readings(context: Context, stretch: Interval) -> list[int]:
    # the last reading of a log lies at its end
    edges, gpus = (stretch.start, stretch.end + 1), context.gpus().values()
    return [one.count_readings(UTILISATION, one.rows_between(*edges)) for one in gpus]


def _judge_edge(context: Context, limits: Limits, kind: str, job: Job) -> Found:
    """Yield a finding on the time before or after a job's work; after the last it is not lost."""
    is_start, window = kind == _START, job.window
    held = Interval(job.interval.start, window.start) if is_start else Interval(window.end, job.interval.end)
    pause = jobs.find_restart(context.jobs, job, context.series) if is_start else None
    rest = intervals.to_spans([Interval(held.end, context.whole.end)])
    after = [context.full_series(name).find_values(MEMORY, rest) for name in context.time_without_job]
    is_taken = any((values > jobs.EMPTY_MEMORY).all() for values in after if len(values))
    # what a display does after the job is no concern of the log
    is_noted = not is_start and job is context.jobs[-1] and not is_taken
    stretch = Interval(pause.start if pause else held.start, context.whole.end if is_noted else held.end)
    gpus, step, spans = list(context.gpus()), context.recording.run.interval or 0.0, intervals.to_spans([stretch])
    free = sum(intervals.total_seconds(intervals.intersection(spans, one)) for one in context.time_without_job.values())
    seconds, used = _read_use(context, stretch)
    sampled, resting = float(seconds.sum()), float(seconds[used <= ACTIVE.value + 1e-6].sum())
    # the log may have ended an interval later
    late = 0.0 if is_start or stretch.seconds >= limits.shortest else min(step, stretch.seconds)
    is_short = stretch.seconds + late < limits.shortest or resting + free < limits.shortest / 2
    counts = _count_readings(context.whole_log, stretch)
    if is_short or not _read_use(context.whole_log, stretch)[0].sum():
        # too short, or nearly all in a log gap, or memory alone shows no job
        return
    if pause is None and max(counts) < certainty.FEW_READINGS and step > _LONE_SECONDS:
        reason = f"there is only one reading {'before the first' if is_start else 'after the last'} work"
        yield missing_metrics.denied(kind, "single_reading", reason, _CLOSER)
        return
    phases = [found.spans for name in context.active if (found := find_phases(context, name))]
    if phases and 2 * intervals.total_seconds(intervals.intersection(phases[0], spans)) > stretch.seconds:
        return  # an evaluation like those before
    share = held.seconds / sum(each.interval.seconds for each in context.jobs)
    worked = float(seconds[used > IDLE_RATIO + 1e-6].sum())
    is_rest = sampled - resting <= _BURSTS * sampled and worked <= limits.light * sampled
    case = "restart" if pause else NO_JOB if free and held.seconds < limits.shortest else None
    trained = 0 if case else events.count_steps(context.recording, held)
    length, part = held.seconds, share
    whole = "the jobs' time" if context.time_without_job and not case else "the run"
    if case:
        length, part = (
            stretch.seconds,
            stretch.seconds / context.whole.seconds,
        )  # time without a job is none of the jobs'
    case = STEPS if trained else case
    what = "length, at most (the log may end an interval late)" if late else "length"
    cpu = _measure_cpu(context, limits, held) if is_start and not pause else []
    yield context.finding(
        kind,
        Severity.WARNING if pause or held.seconds > limits.long or share > limits.share else Severity.INFO,
        certainty.confidence_by_readings(max(counts), step) if is_rest else Confidence.LOW,
        (),
        [
            limits.compare("duration", what, length + late, ">=", "shortest"),
            limits.compare("duration", f"share of {whole}", part, ">" if part > limits.share else "<=", "share"),
            _show_steps(trained),
            *cpu,
            measured("pause", "between the jobs", pause.seconds if pause else np.nan, "s"),
        ],
        spans=(stretch,),
        lost=resting,
        cause=case,
        samples=sum(counts),
        length=phrases.duration(length),
        late=phrases.duration(held.seconds) if held.seconds else "",
        share=f"{phrases.percent(part)} of {whole}",
        which="first work" if held.start <= context.whole.start else "first work of a later job",
        whose=phrases.gpu_names(gpus, gpus),
        free=phrases.duration(free) if free else "",
        pause=phrases.duration(pause.seconds) if pause else "",
        steps=f"{trained:,}",
        without=phrases.gpu_time(pause.seconds * len(gpus)) if pause else "",
        cpu=phrases.percent(cpu[0].observed) if cpu else "",
    )


def _measure_cpu(context: Context, limits: Limits, stretch: Interval) -> list[Evidence]:
    span = intervals.to_spans([stretch])
    values = [used for host in context.hosts().values() if len(used := host.find_values(CPU, span))]
    mean = max((float(used.mean()) for used in values), default=0.0)
    return [limits.compare(CPU, "mean", mean, ">=", "cpu")] if mean >= limits.cpu else []


def _show_steps(count: int) -> Evidence:
    return measured("steps of the training", "counted in that time", float(count) or np.nan, "")


def _judge_log_without_work(context: Context, limits: Limits) -> Found:
    whole, gpus = context.whole, context.gpus()
    counts, (seconds, used) = _count_readings(context, whole), _read_use(context, whole)
    sampled, idle = max(float(seconds.sum()), 1e-9), used <= IDLE_RATIO + 1e-6
    readings, covered = max(counts), sampled / len(gpus)
    only_display = all(map(jobs.draws_only_display, gpus.values()))
    reason, recording = "only a display used the GPU", "a log of the job, from its first moment on"
    for kind in (_START, _TAIL):
        if readings < certainty.SURE_READINGS:
            yield missing_metrics.too_few(kind, readings)
        elif covered < limits.shortest:
            yield missing_metrics.too_short(kind, covered, limits.shortest, "samples cover")
        elif only_display:
            yield missing_metrics.denied(kind, "only_a_display", reason, recording)
    if readings < certainty.SURE_READINGS or covered < limits.shortest or only_display:
        return
    owned = [(one.seconds_in_run, one.values(UTILISATION)) for one in gpus.values()]
    is_used = all(own[use <= IDLE_RATIO + 1e-6].sum() <= _ALONG * own[~np.isnan(use)].sum() for own, use in owned)
    share, mean = float(seconds[idle].sum()) / sampled, float((seconds * used.clip(0, 1)).sum()) / sampled
    trained = events.count_steps(context.recording, whole)
    bursts, cpu = [] if trained else _measure_bursts(context), _measure_cpu(context, limits, whole)
    cause = LITTLE_WORK if is_used or trained or bursts else NO_WORK
    yield context.finding(
        _START,
        Severity.WARNING,
        certainty.confidence_by_readings(readings, context.recording.run.interval or 0.0),
        (),
        [
            limits.compare("duration", "length", whole.seconds, ">=", "shortest"),
            measured(UTILISATION, "share of time at 5% and less", share),
            measured(UTILISATION, "mean", mean),
            _show_steps(trained),
            *bursts,
            *cpu,
        ],
        spans=(whole,),
        lost=float((seconds * np.where(idle, 1.0, 1 - used.clip(0, 1))).sum()),
        cause=cause,
        case=STEPS if trained else cause,
        samples=sum(counts),
        mean=phrases.percent(mean),
        share=phrases.percent(share),
        steps=f"{trained:,}",
        bursts=phrases.duration(bursts[0].observed) if bursts else "",
        cpu=phrases.percent(cpu[0].observed) if cpu else "",
        whose=phrases.gpu_names(list(gpus), list(gpus)),
        uses="does use" if share < limits.unused else "",
    )


def _measure_bursts(context: Context) -> list[Evidence]:
    for series in context.gpus().values():
        held, length = series.known_values(MEMORY), series.end[-1] - series.start[0]
        busy = intervals.rows_to_spans(series.start, series.end, series.values(UTILISATION) > ACTIVE.value)
        distances = np.diff(busy[:, 0])
        if len(held) and np.median(held) > jobs.PROCESS_MEMORY.value and len(busy) >= _MANY_BURSTS:
            usual = float(np.median(distances))
            if usual * len(distances) > length / 2:
                return [measured("bursts of work", "usual distance", usual / 1e6, "s")]
    return []
