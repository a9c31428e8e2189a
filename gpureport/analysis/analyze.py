"""Turns a recording into an analysis: runs each rule once, then classifies the GPU time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gpureport.analysis import doubts
from gpureport.analysis.account import answers, gpu_time
from gpureport.analysis.advice import checklist, choose
from gpureport.analysis.job import jobs
from gpureport.analysis.job.events import summarise_stages
from gpureport.analysis.results import GPU_TIME_CLASSES, Analysis
from gpureport.analysis.rulebook import Context, Rule
from gpureport.analysis.rules import RULES
from gpureport.analysis.series.clock_and_power import list_clock_events
from gpureport.analysis.series.device_series import DeviceSeries, memoize_latest, pick, series_by_device
from gpureport.analysis.series.intervals import NO_SPANS, Spans, to_intervals, union
from gpureport.analysis.series.statistics import compute_statistics
from gpureport.columns import FloatArray
from gpureport.findings import Finding, Interval, NotJudged, Severity
from gpureport.metrics import Scope
from gpureport.recording import Recording

_RANK = {severity: rank for rank, severity in enumerate(reversed(Severity))}


def analyze(recording: Recording, rules: Sequence[Rule] = RULES) -> Analysis:
    run, context = recording.run, build_context(recording)
    mixed = [(kind, gpu.id) for gpu in run.gpus if gpu.mixed for rule in rules for kind in rule.kinds]
    unclear = [doubts.unjudged(kind, "rows_of_several_gpus", gpu) for kind, gpu in mixed]
    if unclear:
        context = replace(context.whole_log, jobs=(), time_without_job={})
    findings, not_judged = ([], unclear) if unclear else _run_rules(context, rules)
    gpus = {} if unclear else context.gpus()
    statistics = tuple(
        compute_statistics(one, context.all_series[name]) for name, one in context.series.items() if len(one)
    )
    missing = answers.merge_not_judged(not_judged, context)
    known = choose.gather_facts(run, statistics, findings, {entry.kind for entry in missing})
    linked = answers.link_findings(
        sorted(findings, key=_sort_key),
        context.whole,
        [gpu.id for gpu in run.gpus],
    )
    judged = replace(context, earlier_findings=tuple(findings))
    known_caveats = list(answers.list_caveats(context))
    kinds = {kind for rule in rules for kind in rule.kinds}
    analysis = Analysis(
        run=run,
        coverage_ratio=jobs.measure_coverage(context),
        jobs=context.jobs,
        no_job={name: to_intervals(spans) for name, spans in context.time_without_job.items()},
        observed_job=context.observed_job,
        in_turn=bool(_find_turns(context.all_series, context.whole, {})),
        phases=jobs.split_phases(run, context.window) if context.recorded("gpu_utilization_ratio") else (),
        statistics=statistics,
        whole_statistics=tuple(
            compute_statistics(context.all_series[name]) for name in context.time_without_job if name in gpus
        ),
        gpu_time=tuple(gpu_time.attribute_gpu_times(judged, rules)) if gpus else (),
        findings=tuple(_add_advice(finding, known) for finding in sorted(linked, key=_sort_key)),
        not_judged=missing,
        limits=tuple(text for _, text in known_caveats),
        limit_codes=tuple(code for code, _ in known_caveats),
        stages=tuple(summarise_stages(recording)),
        throttle_ledger=tuple(total for series in gpus.values() for total in list_clock_events(series)),
        answers=tuple(answers.answer_kinds(run, rules, findings, missing)),
        pauses=None if run.quality.synthetic_time else jobs.summarise_pauses(context.whole_log.gpus().values()),
    )
    return replace(analysis, checklist=tuple(checklist.answer_checklist(recording, analysis, known, kinds)))


def build_context(recording: Recording) -> Context:
    all_cells = series_by_device(recording)
    whole = Interval(recording.run.started, recording.run.ended)
    own_jobs, no_job, series, active = memoize_latest(
        recording.rows,
        ("jobs", recording.run.devices, whole, recording.run.tracked),
        lambda: jobs.find_occupancy(all_cells, whole, is_tracked=recording.run.tracked),
    )
    return Context(
        recording=recording,
        series=series,
        active=active,
        window=jobs.find_work_window(whole, active.values()),
        all_series=all_cells,
        jobs=own_jobs,
        observed_job=jobs.find_observed_job(pick(all_cells, Scope.HOST).values()),
        time_without_job={**no_job, **_find_turns(all_cells, whole, no_job)},
    )


def _find_turns(series: Mapping[str, DeviceSeries], whole: Interval, no_job: Mapping[str, Spans]) -> dict[str, Spans]:
    gpus = [one for one in pick(series, Scope.GPU).values() if len(one) >= doubts.SURE_READINGS]
    gpus.sort(key=lambda one: (one.start[0], one.end[-1]))
    if len(gpus) < 2 or any(one.end[-1] > after.start[0] for one, after in pairwise(gpus)):  # noqa: PLR2004 - two take turns
        return {}
    own = {one.device.id: np.array([[whole.start, one.start[0]], [one.end[-1], whole.end]]) for one in gpus}
    return {device: union(np.concatenate([away, no_job.get(device, NO_SPANS)])) for device, away in own.items()}


def trace_gpu_time(
    recording: Recording,
    analysis: Analysis,
    buckets: int,
    rules: Sequence[Rule] = RULES,
    devices: Collection[str] | None = None,
) -> dict[str, dict[str, FloatArray]]:
    if not analysis.gpu_time:
        return {}
    context = replace(build_context(recording), earlier_findings=analysis.findings)
    edges = np.linspace(context.whole.start, context.whole.end, buckets + 1).round().astype(np.int64)
    traced = {}
    for device, divided in gpu_time.divide_gpu_times(context, rules, edges, devices):
        classes = {name: np.zeros(buckets) for name in GPU_TIME_CLASSES}
        for (name, _), seconds in divided.items():
            classes[name] += seconds
        taken = np.sum(list(classes.values()), axis=0)
        traced[device] = classes | {"computing": np.maximum(np.diff(edges) / 1e6 - taken, 0.0)}
    return traced


def _run_rules(context: Context, rules: Sequence[Rule]) -> tuple[list[Finding], list[NotJudged]]:
    findings, not_judged, left = list[Finding](), list[NotJudged](), list(rules)
    while left:
        made_later = {kind for rule in left for kind in rule.kinds}
        rule = next(rule for rule in left if made_later.isdisjoint(set(rule.after) - set(rule.kinds)))
        left.remove(rule)
        absent = [group[0] for group in rule.requires if not any(map(context.recorded, group))]
        if absent:
            not_judged += (doubts.not_recorded(name, None, *absent) for name in rule.kinds)
            continue
        found = tuple(finding for finding in findings if finding.kind in rule.after)
        for result in rule.find(replace(context.whole_log if rule.whole_log else context, earlier_findings=found)):
            if isinstance(result, Finding):
                findings.append(result)
            else:
                not_judged.append(result)
    findings, withdrawn = answers.withdraw_headroom(findings, context.recording.run)
    not_judged += withdrawn
    answered = {found.kind for found in findings} | {entry.kind for entry in not_judged}
    readings = max(map(len, context.gpus().values()), default=0)
    for kind in (kind for rule in rules for kind in rule.descriptions if kind.name not in answered):
        if 0 < readings < doubts.SURE_READINGS and not kind.judges_few_samples:
            not_judged.append(doubts.unjudged(kind.name, doubts.TOO_FEW, None, doubts.count_of(readings, "sample")))
        elif not readings and kind.needs_gpus:
            not_judged.append(doubts.unjudged(kind.name, "no_gpu_recorded"))
    return findings, not_judged


def _add_advice(finding: Finding, known: choose.RunFacts) -> Finding:
    """Return a finding with advice. Evidence that does not meet its limit becomes context."""
    evidence = tuple(one if one.meets_limit else one.as_context() for one in finding.evidence)
    advised = replace(finding, evidence=evidence, steps=choose.choose_steps(finding, known))
    return replace(advised, recommendation=choose.write_recommendation(advised, known))


def _sort_key(finding: Finding) -> tuple[int, float, int, str, tuple[str, ...]]:
    start = finding.intervals[0].start if finding.intervals else 0
    return _RANK[finding.severity], -(finding.lost_gpu_seconds or 0.0), start, finding.kind, finding.devices
