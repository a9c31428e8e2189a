"""Stretches in which a GPU did nothing while the job was running, and those among them that recur."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.detectors.idle import rest
from gpureport.analysis.detectors.idle.rest import Gap, Period
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job import job_events, jobs, training_signs
from gpureport.analysis.job.phases import SHORTEST_GAP, UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals import load
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Confidence, Evidence, Finding, NotJudged, Severity, Threshold

_OUT_OF_STEP = (*rest.NON_PERIODIC_CAUSES, training_signs.REQUESTS)
_UNEXPLAINED = ("unknown", "periodic", training_signs.REQUESTS)
"""Causes that leave open whether the job had anything to do."""
_MANY_BURSTS = 8  # gaps; fewer do not show how work comes
_NEARLY_ALL = 0.9  # share of the bursts of a service that are short: one in ten may be a busy spell
_MOSTLY = 0.5  # share of the job; checkpoints and ends of epochs take less time than the work between them
_SAME = 0.04  # how far the periods of two GPUs may differ and still be one
_STALLED = {
    "checkpoint": "at checkpoints",
    "epoch": "at the end of an epoch or in an evaluation",
    "io": "waiting for storage",
}
"""What a GPU that stalls waits for, by cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleGap(ClassRule):
    """At least 5 s within the job in which a GPU's utilisation reaches 5% or less and never exceeds 12%.

    Before the first work of a GPU, in a job that works already, it need not reach 5%. A moment of little work, such as
    a stray kernel, or a few lost samples do not end a gap; a log gap does. A run of low samples that draws the power
    of work is no gap. Where a reading covers part of the time between samples, a run counts only if it is too long to
    be chance, given the samples around it, or if the GPU drew the power of rest at each of them.

    Causes:

    - unused: this GPU never worked while another did.
    - data: half of it or more lies in a wait for input.
    - hang: at least a minute in which the other GPUs are at 99% and draw less than 90% of what they do at work, or
      draw an unknown power.
    - peers busy: a minute in which the other GPUs work otherwise.
    - checkpoint, epoch: most moments of a stage or training metric of that name, or of an evaluation, lie in gaps; a
      checkpoint also where the disks write far more than elsewhere.
    - no process: memory is empty for half of the gap or more.
    - io: the CPU waits for storage, or the disks read far more than elsewhere.
    - periodic: no other cause fits, but the gap recurs.
    - requests or input: at least eight gaps, all of unknown cause, without a sign of training. Nine of ten have a
      minute of work or less between them, or the GPU works less than half of the time between them. Gaps that recur
      have this cause only where they take half of the job.
    - unknown: none of these.

    Gaps of a fifth of the job are a problem. They are not if the GPU never worked, or waited for requests or input,
    or if the cause is unknown and it works less than half of the time between them. Signs of training are
    checkpoints, epochs, and params, metrics and stages that only training has.

    periodic_stall: at least four gaps of a GPU, those with the causes data, hang, peers busy and unused left out,
    whose starts lie one period or a multiple apart in three of four cases, in nine of ten with fewer than ten gaps.
    Its gaps are its consequences.
    """

    name = "idle_gap"
    requires = ((UTILISATION,),)
    after = load.WAIT_KINDS
    wants = (rest.POWER, rest.IOWAIT, rest.READS, rest.WRITES)

    idle: Threshold = pragmatic(0.05, "1", "background kernels of a monitor or a display stay below it")
    still: Threshold = pragmatic(0.12, "1", "one stray kernel of 0.1 s in a 1-s window stays below it")
    shortest: Threshold = SHORTEST_GAP
    warning: Threshold = pragmatic(0.02, "1", "share of the job above which gaps are worth a change")
    problem: Threshold = pragmatic(0.20, "1", "share of the job above which gaps decide its cost")
    burst: ClassVar[Threshold] = pragmatic(
        60.0, "s", "training works for minutes between two pauses, a service for its requests"
    )
    sparse: ClassVar[Threshold] = pragmatic(
        0.50, "1", "a GPU that has less to do waits for work, as a service does in quiet hours"
    )

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield one finding a GPU and cause, one a period, and the GPUs without utilisation."""
        if context.whole.seconds < self.shortest.value:
            for kind in self.kinds:
                yield missing_metrics.too_short(kind, context.whole.seconds, self.shortest.value)
            return
        if context.window is None:
            return
        found: dict[str, list[Gap]] = {}
        for name, series in context.gpus().items():
            if series.is_recorded(UTILISATION):
                found[name] = rest.find_gaps(
                    series,
                    context.jobs,
                    context.whole,
                    low=self.idle.value,
                    still=self.still.value,
                    shortest=max(self.shortest.value, series.refresh_period(UTILISATION) or 0.0),
                )
            else:
                yield from (missing_metrics.not_recorded(kind, name, UTILISATION) for kind in self.kinds)
        events = job_events.find_job_events(context.recording)
        trains = training_signs.is_training(context.recording, events)
        stalls: list[tuple[list[str], list[Gap], Period]] = []
        for name, gaps in rest.name_causes(context, found, events).items():
            own = _mark_periodic(gaps)
            between = _average_between(context, context.series[name], own)
            if not trains:
                own = self._mark_requests(own, _measure_share(context, own), between)
            yield from self._build_findings(context, name, own, between)
            _add_stall(stalls, name, [gap for gap in own if gap.cause not in _OUT_OF_STEP])
        for names, gaps, period in stalls:
            yield self._build_stall_finding(context, names, gaps, period)

    def _mark_requests(self, gaps: list[Gap], lost: float, between: float) -> list[Gap]:
        """Return the gaps, all with the cause `requests` if none is known and there is little work between them.

        Gaps of one period count as requests only if they take most of the job, since requests have no period.
        """
        open_causes = {"unknown", "periodic"} if lost >= _MOSTLY else {"unknown"}
        if len(gaps) < _MANY_BURSTS or any(gap.cause not in open_causes for gap in gaps):
            return gaps
        work = [(after.interval.start - before.interval.end) / 1e6 for before, after in pairwise(gaps)]
        long_work = float(np.quantile(work, _NEARLY_ALL))
        if long_work <= self.burst.value:
            measured = compare_with_limit("work between two gaps", "90% quantile", long_work, "<=", self.burst)
            return [replace(gap, cause=training_signs.REQUESTS, evidence=(measured,)) for gap in gaps]
        if between < self.sparse.value:
            return [replace(gap, cause=training_signs.REQUESTS) for gap in gaps]
        return gaps

    def _rate_severity(self, share: float) -> Severity:
        if share >= self.problem.value:
            return Severity.PROBLEM
        return Severity.WARNING if share >= self.warning.value else Severity.INFO

    def _build_findings(self, context: Context, name: str, gaps: list[Gap], between: float) -> Iterator[Finding]:
        """Yield a finding for each cause of the gaps of one GPU, as grave as all its gaps together."""
        share, series = _measure_share(context, gaps), context.series[name]
        for cause in dict.fromkeys(gap.cause for gap in gaps):
            own = [gap for gap in gaps if gap.cause == cause]
            # a job with little work to do is no problem, and a GPU that never worked has a finding of its own
            is_little = between < self.sparse.value and cause in _UNEXPLAINED
            severity = self._rate_severity(share)
            if severity is Severity.PROBLEM and (is_little or cause in {"unused", training_signs.REQUESTS}):
                severity = Severity.WARNING
            shortest = min(gap.interval.seconds for gap in own)
            confidence = certainty.confidence_by_readings(min(gap.samples for gap in own), series.interval)
            if shortest < self.shortest.value + 1.5 * series.resolution(UTILISATION):
                confidence = certainty.lowest_confidence(confidence, Confidence.MEDIUM)
            used = float(np.average([gap.used for gap in own], weights=[gap.samples for gap in own]))
            level = compare_with_limit(UTILISATION, "mean", used, "<=", self.still)
            if not level.meets_limit:
                level = replace(level.as_context(), statistic="mean, short kernels included")
            sparse = compare_with_limit(UTILISATION, "mean between the gaps of this GPU", between, "<", self.sparse)
            yield Finding(
                kind="idle_gap",
                severity=severity,
                confidence=confidence,
                devices=(name,),
                intervals=tuple(gap.interval for gap in own),
                evidence=(
                    level,
                    compare_with_limit(
                        "duration", "length" if len(own) == 1 else "shortest", shortest, ">=", self.shortest
                    ),
                    Evidence(
                        metric="idle time of this GPU in gaps", statistic="share of the job", observed=share, unit="1"
                    ),
                    *([sparse] if is_little else []),
                    *own[0].evidence,
                ),
                lost_gpu_seconds=sum(gap.seconds for gap in own),
                cause=cause,
                samples=sum(gap.samples for gap in own),
                ruled_out=tuple(_list_ruled_out(own, several=len(context.gpus()) > 1)),
                summary=_describe(series, own, cause),
                recommendation=KINDS["idle_gap"].advice[cause],
            )

    def _build_stall_finding(self, context: Context, names: list[str], gaps: list[Gap], period: Period) -> Finding:
        lost, share = sum(gap.seconds for gap in gaps), _measure_share(context, gaps) / len(names)
        mean = lost / len(gaps)
        causes = Counter("periodic" if gap.cause == "unknown" else gap.cause for gap in gaps)
        cause = causes.most_common(1)[0][0]
        why = _STALLED.get(cause)
        agree = rest.AGREE_FEW if len(gaps) < rest.FEW * len(names) else rest.AGREE
        confidence = certainty.confidence_by_readings(
            len(gaps) // len(names) - 1, max(context.series[name].interval for name in names)
        )
        return Finding(
            kind="periodic_stall",
            severity=self._rate_severity(share),
            confidence=confidence if why else certainty.lowest_confidence(confidence, Confidence.MEDIUM),
            devices=tuple(names),
            intervals=intervals.to_intervals(intervals.to_spans(gap.interval for gap in gaps)),
            evidence=(
                Evidence(metric="period", statistic="mean distance of starts", observed=period.seconds, unit="s"),
                compare_with_limit(
                    "distances of starts", "share that are multiples of the period", period.agreeing, ">=", agree
                ),
                Evidence(metric="idle time", statistic="mean of one period", observed=mean, unit="s"),
                Evidence(metric="idle time", statistic="share of the job", observed=share, unit="1"),
            ),
            lost_gpu_seconds=lost,
            cause=cause if why else None,
            samples=sum(gap.samples for gap in gaps),
            ruled_out=("chance: the distances between starts are multiples of one period",),
            period_seconds=period.seconds,
            summary=(
                f"{phrases.capitalize(phrases.gpu_names(names, tuple(context.gpus())))} stalled every "
                f"{phrases.duration(period.seconds)} for about {phrases.duration(mean)}, {phrases.percent(share)} of "
                + (f"the job, {why}." if why else "the job; the log doesn't show why.")
            ),
            recommendation=KINDS["periodic_stall"].advice[cause if why else "periodic"],
        )


def _measure_share(context: Context, gaps: Sequence[Gap]) -> float:
    """Return the share of the jobs that the gaps of one GPU take, as far as samples show them."""
    return sum(gap.seconds for gap in gaps) / intervals.total_seconds(context.work)


def _find_period(gaps: Sequence[Gap]) -> Period | None:
    return rest.find_period(np.array([gap.interval.start for gap in gaps], dtype=np.int64))


def _mark_periodic(gaps: Sequence[Gap]) -> list[Gap]:
    """Return the gaps, with `periodic` for unknown causes of those that recur."""
    period = _find_period([gap for gap in gaps if gap.cause not in _OUT_OF_STEP])
    members = iter(period.members.tolist() if period else ())
    return [
        replace(gap, cause="periodic")
        if gap.cause not in _OUT_OF_STEP and next(members, False) and gap.cause == "unknown"
        else gap
        for gap in gaps
    ]


def _add_stall(stalls: list[tuple[list[str], list[Gap], Period]], name: str, gaps: Sequence[Gap]) -> None:
    """Add the period of the gaps of a GPU, if they have one; GPUs with the same period share one."""
    if (period := _find_period(gaps)) is None:
        return
    members = [gap for gap, is_member in zip(gaps, period.members, strict=True) if is_member]
    for place, (names, known, own) in enumerate(stalls):
        if abs(own.seconds - period.seconds) <= _SAME * own.seconds:
            mean = float(np.average([own.seconds, period.seconds], weights=[len(names), 1]))
            least = min(own, period, key=lambda each: each.agreeing)
            stalls[place] = ([*names, name], [*known, *members], replace(least, seconds=mean))
            return
    stalls.append(([name], members, period))


def _average_between(context: Context, series: DeviceSeries, gaps: Sequence[Gap]) -> float:
    """Return the mean utilisation of a GPU in its jobs outside its gaps, 1 if no time is left."""
    start, end = series.averaging_windows(context.whole)
    held = intervals.difference(context.work, intervals.to_spans(gap.interval for gap in gaps))
    used, seconds = series.values(UTILISATION), intervals.overlap_seconds(start, end, held)
    seconds = np.where(np.isnan(used), 0.0, seconds)
    return float(np.nansum(used * seconds) / seconds.sum()) if seconds.sum() > 0 else 1.0


def _list_ruled_out(gaps: Sequence[Gap], *, several: bool) -> Iterator[str]:
    """Yield which other explanations were excluded; `several` if there are other GPUs."""
    yield "missing samples: a stretch without samples is a log gap"
    least = min(gaps, key=lambda gap: gap.samples - gap.needed)
    if least.needed > 1:
        yield f"chance: {least.samples} low samples in a row; {least.needed} would already be unlikely by chance"
    if several:
        yield "start-up and tail of the job, which are counted over all GPUs"


def _describe(series: DeviceSeries, gaps: Sequence[Gap], cause: str) -> str:
    """Return gaps of one cause as a sentence; it calls the job running only if the log shows that one held the GPU."""
    first, last, seconds = gaps[0].interval, gaps[-1].interval, sum(gap.interval.seconds for gap in gaps)
    idle = f"{phrases.gpu_name(series.device.id)} sat idle for {phrases.duration(seconds)}"
    if cause == rest.NO_PROCESS:
        return f"{idle}; its memory was empty for most of that, as between two processes."
    longest = max(gap.interval.seconds for gap in gaps)
    is_open = longest >= jobs.FREE_BETWEEN_JOBS and not jobs.records_occupancy(series)
    if len(gaps) > 1:
        return f"{idle} in {len(gaps)} gaps{'; whether a job used it then is not known' if is_open else ''}."
    # of several GPUs one may begin to work later than others, or never work again
    if first.start <= series.times[0]:
        return f"{idle} from the first sample on, while other GPUs worked."
    if last.end + series.shift >= series.times[-1]:
        return f"{idle} to the last sample, while other GPUs worked."
    if is_open:
        return f"{idle} between two stretches of work; whether a job used it is not known."
    return f"{idle} mid-job."
