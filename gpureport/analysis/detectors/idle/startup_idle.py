"""Time before the job's first sustained GPU work and after its last: the kinds startup_idle and tail_idle."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.detectors.idle.stretch_figures import (
    build_length_evidence,
    build_share_evidence,
    count_all_readings,
    count_most_readings,
    find_held_time,
    measure_idle_or_unused_seconds,
    measure_no_job_seconds,
    measure_resting_seconds,
    measure_seconds_of_jobs,
    measure_unused_seconds,
)
from gpureport.analysis.detectors.idle.stretch_wording import describe_length, describe_no_job_time
from gpureport.analysis.job.phases import ACTIVE, LITTLE_WORK, NO_JOB, NO_WORK, UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.results import Job
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series.statistics import IDLE_RATIO
from gpureport.analysis.thresholds import literature, pragmatic
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupIdle(ClassRule):
    """At least 10 s before the first sustained activity of any GPU (utilisation above 12%), or after the last.

    The log may have ended up to one interval after its last sample. Each job of a log has both. Time at the end of
    the log in which no job uses a GPU is reported, but not lost. Start-up and tail are measured for the job as a
    whole; a GPU that rests while another works has an idle gap instead. The time lost is the time at a utilisation of
    at most 12%. If no GPU ever has sustained work above 12%, the finding says so, and where each is at 5% and less
    for at most a quarter of the time, that they did a little work all along; the time lost is then the time at 5%
    and less, and the unused share of the rest. With samples a minute or more apart, confidence is low. One reading
    more than 2 s from the next makes no finding. With fewer than five readings of a GPU, or less than 10 s with
    samples, no job is said to have never worked.
    """

    name = "startup_idle"
    requires = ((UTILISATION,),)

    shortest: Threshold = pragmatic(10.0, "s", "importing a framework takes as long")
    long: Threshold = literature(1200.0, "s", "SageMaker Debugger, MaxInitializationTime: 20 min")
    share: Threshold = pragmatic(0.05, "1", "share of the run that is worth a change")
    bursts: ClassVar[float] = 0.05  # more work than a few autotuning kernels
    light: Threshold = pragmatic(0.2, "1", "share of time above 5%; a display or a monitor shows less")
    lone: ClassVar[float] = 2.0  # s; NVML: a utilisation value covers at most 1 s; one alone proves no longer rest
    unused: Threshold = pragmatic(0.9, "1", "share of time at 5% and less; with less of it the job does use the GPU")
    # share of time at 5% and less: start-up and pauses of a job that works a little all along
    along: ClassVar[float] = 0.25

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield start-up and tail, each at most once a job."""
        whole, window = context.whole, context.window
        if whole.seconds < self.shortest.value:
            yield from (missing_metrics.too_short(kind, whole.seconds, self.shortest.value) for kind in self.kinds)
            return
        if window is None:
            yield from self._judge_job_without_work(context)
            return
        yield from self._weigh_together(
            context, [each for job in context.jobs for each in self._judge_job(context, job)]
        )

    def _weigh_together(self, context: Context, judged: Sequence[Finding | NotJudged]) -> Iterator[Finding | NotJudged]:
        """Yield what was found in each job, as warnings where all jobs together lost enough for that."""
        held = measure_seconds_of_jobs(context) * len(context.gpus())
        lost: defaultdict[str, float] = defaultdict(float)
        for each in judged:
            if isinstance(each, Finding):
                lost[each.kind] += each.lost_gpu_seconds or 0.0
        for each in judged:
            if isinstance(each, Finding) and lost[each.kind] > self.share.value * held:
                yield replace(each, severity=Severity.WARNING)
            else:
                yield each

    def _judge_job(self, context: Context, job: Job) -> Iterator[Finding | NotJudged]:
        window, last = job.window, job is context.jobs[-1]
        yield from self._judge_stretch(context, "startup_idle", Interval(job.interval.start, window.start))
        # the end of the log counts whether or not a job held the GPUs
        end = context.whole.end if last else job.interval.end
        yield from self._judge_stretch(context, "tail_idle", Interval(window.end, end))

    def _judge_stretch(self, context: Context, kind: str, interval: Interval) -> Iterator[Finding | NotJudged]:
        gpus, step, shortest = context.gpus(), context.recording.run.interval or 0.0, self.shortest
        late = kind == "tail_idle" and interval.seconds < shortest.value
        beyond_log = min(step, interval.seconds, shortest.value) if late else 0.0
        if interval.seconds + beyond_log < shortest.value:
            return
        resting = measure_resting_seconds(context, interval, gpus, ACTIVE.value)
        no_job_seconds = measure_no_job_seconds(context, interval, gpus)
        if resting + no_job_seconds < shortest.value / 2:
            # nearly all of it lies in a gap of the log, about which nothing is known
            return
        log = context.whole_log
        readings = count_most_readings(log, interval)
        if readings < certainty.FEW_READINGS and step > self.lone:
            yield _report_single_reading(kind, step)
            return
        sampled = measure_resting_seconds(log, interval, gpus, 1.0)
        if not sampled:
            # memory tells that no job held a GPU, and nothing what the GPU did
            return
        held_seconds = interval.seconds * (resting / (resting + no_job_seconds))
        share, held_sampled = held_seconds / measure_seconds_of_jobs(context), max(sampled - no_job_seconds, resting)
        bursts = 1 - resting / max(held_sampled, 1e-9)
        worked = sampled - measure_resting_seconds(log, interval, gpus, IDLE_RATIO)
        light = worked / max(held_sampled, 1e-9)
        confidence = certainty.confidence_by_readings(readings, step)
        is_freed = kind == "tail_idle" and no_job_seconds > 0 and held_seconds < self.shortest.value
        is_long = held_seconds > self.long.value or share > self.share.value
        spans = (interval,) if is_freed else find_held_time(context, interval, gpus)
        seconds = sum(span.seconds for span in spans)
        free = sum(measure_no_job_seconds(context, span, gpus) for span in spans)
        yield Finding(
            kind=kind,
            severity=Severity.WARNING if is_long else Severity.INFO,
            confidence=confidence if bursts <= self.bursts and light <= self.light.value else Confidence.LOW,
            devices=(),
            intervals=(interval,),
            evidence=(
                build_length_evidence(seconds, beyond_log, shortest),
                build_share_evidence(share, self.share, context),
            ),
            lost_gpu_seconds=resting,
            cause=NO_JOB if is_freed else None,
            samples=count_all_readings(log, interval),
            summary=describe_length(context, kind, spans, is_freed=is_freed) + describe_no_job_time(context, free),
            recommendation=KINDS[kind].advice["no job" if is_freed and kind == "tail_idle" else ""],
        )

    def _works_all_along(self, context: Context, device: str) -> bool:
        sampled = measure_resting_seconds(context, context.whole, (device,), np.inf)
        return measure_resting_seconds(context, context.whole, (device,), IDLE_RATIO) <= self.along * sampled

    def _judge_job_without_work(self, context: Context) -> Iterator[Finding | NotJudged]:
        whole, gpus = context.whole, context.gpus()
        readings, sampled_seconds = (
            count_most_readings(context, whole),
            measure_resting_seconds(context, whole, gpus, np.inf),
        )
        if readings < certainty.SURE_READINGS:
            yield from (missing_metrics.too_few(kind, readings) for kind in self.kinds)
            return
        sampled_seconds_per_gpu = sampled_seconds / max(len(gpus), 1)
        if sampled_seconds_per_gpu < self.shortest.value:
            yield from (
                missing_metrics.too_short(kind, sampled_seconds_per_gpu, self.shortest.value, "samples cover")
                for kind in self.kinds
            )
            return
        idle_seconds = measure_resting_seconds(context, whole, gpus, IDLE_RATIO)
        share = idle_seconds / max(sampled_seconds, 1e-9)
        is_used = all(self._works_all_along(context, name) for name in gpus)
        whose = phrases.capitalize(phrases.gpu_names(tuple(gpus), tuple(gpus)))
        mean = 1 - measure_unused_seconds(context) / max(sampled_seconds, 1e-9)
        yield Finding(
            kind="startup_idle",
            severity=Severity.WARNING,
            confidence=certainty.confidence_by_readings(readings, context.recording.run.interval or 0.0),
            devices=(),
            intervals=(whole,),
            evidence=(
                build_length_evidence(whole.seconds, 0.0, self.shortest),
                Evidence(metric=UTILISATION, statistic="share of time at 5% and less", observed=share, unit="1"),
                Evidence(metric=UTILISATION, statistic="mean", observed=mean, unit="1"),
            ),
            lost_gpu_seconds=measure_idle_or_unused_seconds(context),
            cause=LITTLE_WORK if is_used else NO_WORK,
            samples=count_all_readings(context, whole),
            summary=(
                f"{whose} did a little work all along: utilisation averaged {phrases.percent(mean)} over "
                f"{phrases.duration(whole.seconds)}, never above {phrases.percent(ACTIVE.value)} for long."
                if is_used
                else f"No GPU did lasting work in {phrases.duration(whole.seconds)}; utilisation was "
                f"{phrases.percent(IDLE_RATIO)} or less for {phrases.percent(share)} of it."
            ),
            recommendation=KINDS["startup_idle"].advice["no work" if share >= self.unused.value else "little work"],
        )


def _report_single_reading(kind: str, step: float) -> NotJudged:
    edge = "before the first work" if kind == "startup_idle" else "after the last work"
    return NotJudged(
        kind=kind,
        device=None,
        template=f"there is only one reading {edge}, and samples are {{}} apart",
        amounts=(missing_metrics.length_of(step),),
        recording="a log with samples 5 s apart or less",
        code="single_reading",
    )
