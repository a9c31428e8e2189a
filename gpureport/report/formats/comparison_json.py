"""JSON output of `gpureport compare` (schema `gpureport.comparison/1`). Keys may be added, but not renamed."""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

from gpureport.analysis.advice.choose import STEPS
from gpureport.analysis.results import Analysis
from gpureport.comparison.across import fit_memory
from gpureport.comparison.chain import Comparison, pair_steps, summarize_step
from gpureport.comparison.changes import ChangeKind, RemainingLoss, measure_remaining_loss, summarize_by_kind
from gpureport.comparison.evidence import WholeRecordingFigure
from gpureport.comparison.factors import Factor
from gpureport.comparison.figures import TRAINING_RATE, read_run
from gpureport.comparison.gains import AdvisedChange, StepGain, build_gains, estimate_potential, measure_lost_ratio
from gpureport.comparison.quality import QualityChange, measure_time_to_target
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import TrainingSource, mean_training_rate
from gpureport.comparison.study import BestGroup, Study, build_study, select_focus
from gpureport.comparison.verdict import Delta
from gpureport.names import group_pairs
from gpureport.report.formats.analysis_json import Content, Made, across_runs, advice, dump, list_fields, take
from gpureport.report.sections.head.recording_doubts import describe_doubts
from gpureport.report.wording.reasons import describe_check, describe_reason, describe_unknown_change

SCHEMA = "gpureport.comparison/1"
_RUN = (
    "id name sources params tags gpu_hour_price currency price_date preallocated measures lost_ratio sample_means "
    "steady"
)
_QUALITY = "name before after verdict verdict_code fell"
_LOWER = "name group value own verdict verdict_code"
_CODES = {True: "", None: "not_known"}


def render(comparison: Comparison, by: Sequence[Factor] = ()) -> str:
    found = pair_steps(comparison)
    study = build_study(comparison, by) if by else None
    focus = select_focus(comparison, study)
    remaining = measure_remaining_loss(focus.label, focus.analyses)
    return dump(
        {
            "schema": SCHEMA,
            "primary": comparison.primary,
            "comparisons_tested": comparison.tested,
            "training_comparisons_tested": comparison.training_tested,
            "steps": [
                take(
                    step,
                    "label work_unit training_source measures runs",
                    measures=step.values,
                    runs=[_run(run, step.training_source) for run in step.runs],
                )
                for step in comparison.steps
            ],
            "changes": [change for link in found for change in link.changes],
            "comparability": [
                list_fields(check, "agree")
                | {"note": describe_check(check), "reason_code": _CODES.get(check.comparable, check.check)}
                for link in found
                for check in link.comparability
            ],
            "deltas": comparison.deltas,
            "training": [
                take(each, "base step name before after", before=each.before.final, after=each.after.final)
                for link in found
                for each in link.quality
            ],
            "quality": [change for link in found for change in (*link.quality, *link.quality_since_first)],
            "time_to_target": _time_to_target(comparison),
            "findings": {
                kind: [
                    list_fields(each, "change unknown")
                    | {"reason": describe_unknown_change(each), "reason_code": each.unknown or ""}
                    for link in found
                    for each in link.finding_changes
                    if each.change is kind
                ]
                for kind in ChangeKind
            },
            "groups": [
                list_fields(group, "too_short_run") | {"brief": group.too_short_run}
                for group in map(summarize_step, comparison.steps)
            ],
            "study": study and _study(study),
            "memory_fits": [
                list_fields(fit) | {"smallest": fit.smallest and fit.smallest.model}
                for fit in map(fit_memory, comparison.steps)
            ],
            "remaining": remaining,
            "gains": build_gains(comparison, found),
            "potential": estimate_potential(remaining, focus.analyses),
            "across_runs": across_runs(comparison.steps),
            "warnings": [*describe_doubts(comparison)],
            "advice": advice([analysis for step in comparison.steps for analysis in step.analyses]),
        },
        _MADE,
    )


def _run(run: SampledRun, source: TrainingSource | None) -> Content:
    info, cost = run.analysis.run, run.analysis.cost
    settled = run.series.settled if run.series else None
    return take(
        info,
        _RUN,
        sources=[{"kind": source.kind, "locator": source.locator} for source in info.sources],
        params=dict(info.params),
        tags=dict(info.tags),
        gpu_hour_price=run.gpu_hour_price,
        currency=(cost.currency or None) if cost else None,
        price_date=(cost.date or None) if cost else None,
        preallocated=run.preallocated,
        measures=read_run(run) | {TRAINING_RATE: mean_training_rate([run], source)},
        lost_ratio=measure_lost_ratio(run.analysis),
        sample_means=_sample_means(run.analysis),
        steady=settled and {"start_seconds": (settled.start - info.started) / 1e6, "seconds": settled.seconds},
    )


def _sample_means(analysis: Analysis) -> dict[str, float]:
    gpus = {gpu.id for gpu in analysis.run.gpus}
    held = (each.metrics for each in analysis.statistics if each.device in gpus)
    found = group_pairs((one.metric, one.sample_mean) for metrics in held for one in metrics)
    return {metric: fsum(values) / len(values) for metric, values in found.items()}


def _time_to_target(comparison: Comparison) -> Content | None:
    target = comparison.goals.target
    if target is None:
        return None
    steps = []
    for each in filter(None, (measure_time_to_target(step, comparison.goals) for step in comparison.steps)):
        runs = [
            list_fields(run, "missing")
            | {"reason": run.missing, "reason_code": run.missing.name.lower() if run.missing else ""}
            for run in each.runs
        ]
        steps.append(take(each, "step seconds gpu_seconds cost reached runs", runs=runs))
    return list_fields(target) | {"steps": steps}


def _gain(gain: StepGain) -> Content:
    findings = summarize_by_kind(gain.findings)
    return {
        "step": gain.step.label,
        "changes": [list_fields(change, "base step of_one_run") for change in gain.changes],
        "quality": [_describe_quality(change, _QUALITY) for change in gain.quality],
        "quality_since_first": [_describe_quality(change, _QUALITY) for change in gain.quality_since_first],
        "findings": {
            kind: [{"kind": name, "cause": cause} for (name, cause), change in findings.items() if change is kind]
            for kind in ChangeKind
        },
    }


def _describe_quality(change: QualityChange, keys: str) -> Content:
    first, last = change.values
    made = {"before": first, "after": last, "group": change.base, "value": first, "own": last}
    return take(change, keys, **made, verdict_code=change.verdict.code)


def _study(study: Study) -> Content:
    return {
        "by": [list_fields(factor) | {"values": values} for factor, values in zip(study.by, study.values, strict=True)],
        "groups": study.groups,
        "best": study.best,
        "also_varied": study.mixed_in,
        "repetitions": study.varied.repetitions,
        "names": study.varied.names,
        "effects": [
            list_fields(each)
            | {"settings": [list_fields(one.factor) | list_fields(one, "factor") for one in each.settings]}
            for each in study.effects
        ],
    }


def _delta(delta: Delta) -> Content:
    reason = delta.reason
    general = describe_reason(replace(reason, run="", amount=0.0)) if reason and reason.run else ""
    return {"reason_check": reason.check if reason else "", "general_reason": general}


_MADE: Made = {
    AdvisedChange: lambda change: {"title": STEPS[change.name].title},
    BestGroup: lambda best: {"lower_quality": [_describe_quality(change, _LOWER) for change in best.lower_quality]},
    Delta: _delta,
    QualityChange: lambda change: {"fell": change.fell},
    RemainingLoss: lambda remaining: {"lost_gpu_seconds": dict(remaining.lost_gpu_seconds)},
    StepGain: _gain,
    WholeRecordingFigure: lambda whole: {"difference": whole.difference},
}
