"""GPUs that never worked while others of the job did."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job import jobs
from gpureport.analysis.job.phases import ACTIVE, UTILISATION, find_work_window
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.power_of_limit import AT_WORK, POWER, draws_working_power
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Amount, Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_KIND = "unused_gpu"
_MEMORY = "gpu_memory_used_bytes"
_SEEN = 0.95
"""Share of the job that samples speak of, below which it is said how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedGpu(ClassRule):
    """No sustained utilisation above 12% in the whole recording, while another GPU of it worked for a minute.

    A GPU on which no process held memory is found after half a minute, also where its utilisation was not recorded or
    stray readings look like work. A GPU that drew power or was used at times is not assessed, nor is one with only a
    few samples. Time in log gaps is not counted as lost, and confidence is low with samples a minute or more apart.
    """

    name = _KIND
    requires = ((UTILISATION, _MEMORY),)
    wants = (POWER,)

    shortest: Threshold = pragmatic(60.0, "s", "ranks start and stop seconds apart")
    shortest_empty: Threshold = pragmatic(30.0, "s", "a rank holds memory seconds after it was started")
    context: Threshold = jobs.PROCESS_MEMORY
    empty: Threshold = pragmatic(2.0**25, "By", "an idle driver holds some MiB, the smallest context a hundred")
    power_at_work: Threshold = AT_WORK

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield a finding each for GPUs without memory in use, for the others, and for those judged by memory alone."""
        working = self._find_working_gpus(context)
        job = find_work_window(context.whole, working.values())
        others = [series for device, series in context.gpus().items() if device not in working]
        unknown = [device for device, series in context.gpus().items() if not series.is_recorded(UTILISATION)]
        if job is None:
            yield from (missing_metrics.not_recorded(_KIND, device, UTILISATION) for device in unknown)
            return
        yield from (missing_metrics.not_recorded(_KIND, device, UTILISATION) for device in unknown if device in working)
        doubts = [(series, self._explain_doubt(series, job)) for series in others]
        yield from (doubt for _, doubt in doubts if doubt is not None)
        unused = [series for series, doubt in doubts if doubt is None]
        groups: dict[tuple[bool, bool], list[DeviceSeries]] = {}
        for series in unused:
            is_taken = (_find_most_memory(series, job) or 0) >= self.context.value
            groups.setdefault((is_taken, not series.is_recorded(UTILISATION)), []).append(series)
        for _, group in sorted(groups.items(), key=lambda entry: entry[0]):
            yield self._build_finding(context, group, job, tuple(working))

    def _find_working_gpus(self, context: Context) -> dict[str, Interval]:
        """Return when each GPU worked, or held the memory of a process where its utilisation was not recorded."""
        working = {}
        for device, series in context.gpus().items():
            if device in context.active and not (
                self._is_empty(series) and _average_utilisation(series) <= ACTIVE.value
            ):
                working[device] = context.active[device]
            elif not series.is_recorded(UTILISATION):
                rows = np.flatnonzero(series.values(_MEMORY) >= self.context.value)
                if len(rows):
                    working[device] = Interval(int(series.start[rows[0]]), int(series.end[rows[-1]]))
        return working

    def _is_empty(self, series: DeviceSeries) -> bool:
        """Return whether enough readings show that no process ever held memory of a GPU."""
        used = series.values(_MEMORY)
        known = used[~np.isnan(used)]
        return len(known) >= certainty.SURE_READINGS and float(known.max()) <= self.empty.value

    def _explain_doubt(self, series: DeviceSeries, job: Interval) -> NotJudged | None:
        """Return why a GPU cannot be called unused, None if it can."""
        device, empty, recorded = series.device.id, self._is_empty(series), series.is_recorded(UTILISATION)
        if not recorded and not empty:
            return missing_metrics.not_recorded(_KIND, device, UTILISATION)
        shortest = self.shortest_empty if empty else self.shortest
        if job.seconds < shortest.value:
            return missing_metrics.too_short(_KIND, job.seconds, shortest.value, "other GPUs worked for")
        if recorded and _average_utilisation(series) > ACTIVE.value:
            reason = f"it was used at times, {phrases.percent(_average_utilisation(series))} on average"
            return _report_unjudged(device, reason, code="used_at_times")
        if draws_working_power(series, self.power_at_work):
            reason = f"it drew {np.nanmean(series.values(POWER)):.0f} W on average, as a GPU at work does"
            return _report_unjudged(device, reason, code="drew_power_of_work")
        metric = UTILISATION if recorded else _MEMORY
        rows = np.arange(len(series))[series.rows_between(job.start, job.end + 1)]
        rows = rows[series.known_rows(metric)[rows]]
        readings = series.count_readings(metric, rows)
        seconds = float(series.seconds[rows].sum())
        if readings < certainty.SURE_READINGS or seconds < shortest.value / 2:
            amounts = missing_metrics.count_of(readings, "sample"), missing_metrics.length_of(seconds)
            reason = "only {} over {} show what it did while other GPUs worked"
            return _report_unjudged(device, reason, *amounts, code=missing_metrics.TOO_FEW_SAMPLES)
        return None

    def _build_finding(
        self, context: Context, group: Sequence[DeviceSeries], window: Interval, working: Sequence[str]
    ) -> Finding:
        names = tuple(series.device.id for series in group)
        everybody = tuple(context.gpus())
        peaks = [peak for series in group if (peak := _find_most_memory(series, window)) is not None]
        most_memory = max(peaks, default=None)
        is_taken = most_memory is not None and most_memory >= self.context.value
        parts = _find_sampled_parts(group, window)
        work = intervals.intersection(context.work, intervals.to_spans([window]))
        worked = intervals.total_seconds(work) or window.seconds
        sampled_seconds = sum(part.seconds for part in parts)
        metric = UTILISATION if group[0].is_recorded(UTILISATION) else _MEMORY
        is_unsure = is_taken or len(peaks) < len(group) or metric == _MEMORY
        readings = min(
            series.count_readings(metric, series.rows_between(window.start, window.end + 1)) for series in group
        )
        confidence = certainty.confidence_by_readings(readings, max(series.interval for series in group))
        activity = "worked" if set(working) & context.active.keys() else "had memory in use"
        idle = (
            "never worked"
            if metric == UTILISATION
            else f"never used more than {phrases.size(most_memory or 0)} of memory"
        )
        return Finding(
            kind=_KIND,
            severity=Severity.WARNING,
            confidence=certainty.lowest_confidence(confidence, Confidence.MEDIUM if is_unsure else Confidence.HIGH),
            devices=names,
            intervals=parts,
            evidence=tuple(self._build_evidence(group, most_memory, worked)),
            lost_gpu_seconds=sampled_seconds * len(group),
            samples=sum(series.count_readings(metric, slice(None)) for series in group),
            ruled_out=("a pause: no work at any time of the recording",),
            summary=(
                f"{phrases.capitalize(phrases.gpu_names(names, everybody))} {idle} "
                f"while {phrases.gpu_names(tuple(working), everybody)} {activity} for "
                f"{phrases.duration(worked)}{_describe_sampled_time(sampled_seconds, worked)}"
                f"{_describe_memory(most_memory, is_taken=is_taken) if metric == UTILISATION else ''}."
            ),
            recommendation=KINDS[_KIND].advice[""],
        )

    def _build_evidence(
        self, group: Sequence[DeviceSeries], most_memory: int | None, seconds: float
    ) -> Iterator[Evidence]:
        if group[0].is_recorded(UTILISATION):
            mean = max(_average_utilisation(series) for series in group)
            yield compare_with_limit(UTILISATION, "mean", mean, "<=", ACTIVE)
        yield compare_with_limit(
            "work of other GPUs",
            "from the first to the last",
            seconds,
            ">=",
            self.shortest if seconds >= self.shortest.value else self.shortest_empty,
        )
        if most_memory is not None:
            memory = compare_with_limit(_MEMORY, "max", most_memory, "<=", self.empty)
            yield memory if memory.meets_limit else memory.as_context()


def _average_utilisation(series: DeviceSeries) -> float:
    return float(np.nanmean(series.values(UTILISATION)))


def _report_unjudged(device: str, reason: str, *amounts: Amount, code: str) -> NotJudged:
    template, recording = reason if amounts else "", "a log of the whole job with all GPUs in it"
    return NotJudged(
        kind=_KIND, device=device, reason=reason, recording=recording, template=template, amounts=amounts, code=code
    )


def _find_most_memory(series: DeviceSeries, job: Interval) -> int | None:
    """Return the most memory in use while others worked, in bytes; None where none was recorded then."""
    used = series.values(_MEMORY)[series.rows_between(job.start, job.end + 1)]
    known = used[~np.isnan(used)]
    return int(known.max()) if len(known) else None


def _find_sampled_parts(group: Sequence[DeviceSeries], window: Interval) -> tuple[Interval, ...]:
    """Return the job without the time in log gaps of these GPUs, in which their work is unknown."""
    unseen = intervals.to_spans(
        Interval(int(series.end[row - 1]), int(series.start[row])) for series in group for row in series.gap_rows
    )
    return intervals.to_intervals(intervals.difference(intervals.to_spans([window]), unseen)) or (window,)


def _describe_sampled_time(sampled_seconds: float, worked_seconds: float) -> str:
    """Return which part of the job samples cover, if much of it lies in log gaps; else nothing."""
    if sampled_seconds >= _SEEN * worked_seconds:
        return ""
    return f"; samples cover {phrases.duration(sampled_seconds)} of it"


def _describe_memory(most_memory: int | None, *, is_taken: bool) -> str:
    if most_memory is None:
        return "; whether another job uses it is not known"
    if is_taken:
        return f"; {phrases.size(most_memory)} of its memory was in use, so another process may use it"
    return ""
