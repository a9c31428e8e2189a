"""From a recording to findings: every rule once, in order, then where each GPU-second went."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from gpureport.analysis import thresholds
from gpureport.analysis.advice import checklist, step_choice
from gpureport.analysis.advice.run_facts import RunFacts, gather_facts
from gpureport.analysis.detectors.low_use.low_util_cause_unknown import LowUtilCauseUnknown
from gpureport.analysis.detectors.memory import leaks_void_headroom
from gpureport.analysis.detectors.throttling import clock_event_totals
from gpureport.analysis.detectors.throttling.throttling import Throttling
from gpureport.analysis.engine import answerability, attribution, caveats, root_causes, unevaluated_rules
from gpureport.analysis.engine.ordering import merge_not_judged, order_rules, report_unmet_requirements
from gpureport.analysis.job import jobs, phases
from gpureport.analysis.job.events import summarise_stages
from gpureport.analysis.job.phases import find_observed_job, find_work_window, split_phases
from gpureport.analysis.results import Analysis, GpuTime
from gpureport.analysis.rulebook import Context, Rule
from gpureport.analysis.rules import RULES
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import series_by_device
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.series.latest_rows import LATEST
from gpureport.analysis.series.statistics import compute_statistics
from gpureport.analysis.signals import low_use
from gpureport.analysis.signals.clock_signals import ThrottledTime
from gpureport.columns import FloatArray
from gpureport.findings import Finding, Interval, NotJudged, Severity
from gpureport.recording import Recording
from gpureport.recording_advice import RECORD

_MIXED = "its rows may be of several GPUs, and no column tells them apart"
_RANK = {severity: rank for rank, severity in enumerate(reversed(Severity))}


def analyze(recording: Recording, rules: Sequence[Rule] = RULES) -> Analysis:
    """Return all that can be said about one run.

    Args:
        recording: the run and its series.
        rules: which rules to run; a rule that needs findings of one left out does without them.
    """
    context = build_context(recording)
    mixed = [one.id for one in recording.run.gpus if one.mixed]
    if mixed:
        context = replace(context.whole_log, jobs=(), time_without_job={})
    findings, not_judged = ([], list(_reject_mixed_gpus(mixed, rules))) if mixed else _run_rules(context, rules)
    gpus = {} if mixed else context.gpus()
    statistics = tuple(
        compute_statistics(one, context.full_series(name)) for name, one in context.series.items() if len(one)
    )
    missing = merge_not_judged(tuple(unevaluated_rules.drop_useless_recordings(not_judged, context)), context.gpus())
    kinds = {kind for rule in rules for kind in rule.kinds}
    known = gather_facts(recording.run, statistics, findings, {entry.kind for entry in missing})
    ordered, ids = sorted(findings, key=_sort_key), [gpu.id for gpu in recording.run.gpus]
    linked = sorted(root_causes.link_findings(ordered, rules, context.whole, ids), key=_sort_key)
    gpu_time = tuple(_attribute_gpu_times(context, findings, rules)) if gpus else ()
    known_caveats = caveats.list_caveats(context, findings)
    return Analysis(
        run=recording.run,
        coverage_ratio=phases.measure_coverage(context),
        jobs=context.jobs,
        no_job={name: intervals.to_intervals(spans) for name, spans in context.time_without_job.items()},
        observed_job=context.observed_job,
        phases=split_phases(recording.run, context.window) if context.recorded("gpu_utilization_ratio") else (),
        statistics=statistics,
        whole_statistics=tuple(
            compute_statistics(context.full_series(name)) for name in context.time_without_job if name in gpus
        ),
        gpu_time=gpu_time,
        findings=tuple(_with_advice(finding, known) for finding in linked),
        not_judged=missing,
        limits=tuple(text for _, text in known_caveats),
        limit_codes=tuple(code for code, _ in known_caveats),
        stages=tuple(summarise_stages(recording)),
        throttle_ledger=tuple(clock_event_totals.list_clock_event_totals(gpus.values())),
        answers=answerability.answer_kinds(recording.run, rules, findings, missing),
        checklist=checklist.answer_checklist(recording, statistics, known, findings, missing, kinds, gpu_time),
        pauses=None if recording.run.quality.synthetic_time else phases.summarise_pauses(context.gpus().values()),
    )


def _with_advice(finding: Finding, known: RunFacts) -> Finding:
    """Return a finding with its advice; a value on the wrong side of its limit is context, no evidence."""
    return replace(
        finding,
        evidence=tuple(one if one.meets_limit else one.as_context() for one in finding.evidence),
        steps=step_choice.choose_steps(finding, known),
        recommendation=step_choice.write_recommendation(finding, known),
    )


def build_context(recording: Recording) -> Context:
    """Return what rules look at: the time of jobs, and beside it all samples."""
    all_cells = series_by_device(recording)
    whole = Interval(recording.run.started, recording.run.ended)
    found = LATEST.memoize(
        recording.rows,
        ("jobs", recording.run.devices, whole),
        lambda: jobs.find_occupancy(all_cells, whole, is_tracked=recording.run.tracked),
    )
    context = Context(
        recording=recording,
        series=found.series,
        active=found.active,
        window=find_work_window(whole, found.active.values()),
        all_series=all_cells,
        jobs=found.jobs,
        time_without_job=found.no_job,
    )
    return replace(context, observed_job=find_observed_job(context.whole_log.hosts().values()))


def _reject_mixed_gpus(mixed: Sequence[str], rules: Sequence[Rule]) -> Iterator[NotJudged]:
    """Yield every kind for the devices whose rows several GPUs share: what looks like change may be another GPU."""
    for device in mixed:
        for rule in rules:
            for kind in rule.kinds:
                yield NotJudged(kind=kind, device=device, reason=_MIXED, recording=RECORD, code="rows_of_several_gpus")


def _attribute_gpu_times(context: Context, findings: Sequence[Finding], rules: Sequence[Rule]) -> Iterator[GpuTime]:
    """Yield where the time of each GPU went."""
    judged = replace(context, earlier_findings=tuple(findings))
    for device, (low, throttled) in _measure_slow_time(judged, rules).items():
        yield attribution.attribute_gpu_time(judged, rules, device, low=low, throttled=throttled)


def trace_gpu_time(
    recording: Recording,
    analysis: Analysis,
    buckets: int,
    rules: Sequence[Rule] = RULES,
    devices: Collection[str] | None = None,
) -> dict[str, dict[str, FloatArray]]:
    """Return the seconds of each class of GPU time over the run, by the same accounting as its sums.

    Args:
        recording: the run and its series.
        analysis: what was found in it, by these rules.
        buckets: into how many equal parts the time from the first to the last sample is divided.
        rules: those of the analysis.
        devices: ids of the GPUs that are asked for; all when None.

    Returns:
        Of each GPU whose time was divided, seconds by bucket of each class.
    """
    if not analysis.gpu_time:
        return {}
    context = replace(build_context(recording), earlier_findings=analysis.findings)
    edges = np.linspace(context.whole.start, context.whole.end, buckets + 1).round().astype(np.int64)
    return {
        device: attribution.fill_ledger(context, rules, device, low=low, throttled=throttled).divide(edges)
        for device, (low, throttled) in _measure_slow_time(context, rules, devices).items()
    }


def _measure_slow_time(
    context: Context, rules: Sequence[Rule], devices: Collection[str] | None = None
) -> dict[str, tuple[Spans, ThrottledTime | None]]:
    """Return episodes of low use of each GPU as their rule sees them, findings or not, and its throttled time."""
    by_name = {rule.name: rule for rule in rules}
    low_rule, throttling = by_name.get("low_util_cause_unknown"), by_name.get("throttling")
    low = (
        low_use.find_low_use(
            context, thresholds.read_limits(LowUtilCauseUnknown().with_limits(low_rule.limits), low_use.Limits)
        ).spans
        if low_rule
        else {}
    )
    slowed = Throttling().with_limits(throttling.limits).measure_throttled_time if throttling else None
    return {
        device: (
            low.get(device, intervals.NO_SPANS),
            slowed(context.full_series(device), context.whole) if slowed else None,
        )
        for device in context.gpus()
        if devices is None or device in devices
    }


def _run_rules(context: Context, rules: Sequence[Rule]) -> tuple[list[Finding], list[NotJudged]]:
    findings: list[Finding] = []
    not_judged: list[NotJudged] = []
    for rule in order_rules(rules):
        absent = tuple(report_unmet_requirements(rule, context))
        not_judged.extend(absent)
        if absent:
            continue
        found = tuple(finding for finding in findings if finding.kind in rule.after)
        seen = context.whole_log if rule.whole_log else context
        for result in rule.find(replace(seen, earlier_findings=found)):
            if isinstance(result, Finding):
                findings.append(result)
            else:
                not_judged.append(result)
    findings, growing = leaks_void_headroom.withdraw_headroom(findings)
    not_judged.extend(growing)
    answered = {found.kind for found in findings} | {entry.kind for entry in not_judged}
    not_judged.extend(unevaluated_rules.list_unevaluated_kinds(context, rules, answered))
    return findings, not_judged


def _sort_key(finding: Finding) -> tuple[int, float, int, str, tuple[str, ...]]:
    start = finding.intervals[0].start if finding.intervals else 0
    return _RANK[finding.severity], -(finding.lost_gpu_seconds or 0.0), start, finding.kind, finding.devices


__all__ = ["RULES", "analyze", "build_context", "trace_gpu_time"]
