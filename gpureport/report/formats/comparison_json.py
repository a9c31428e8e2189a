"""The JSON of `gpureport compare` (schema `gpureport.comparison/1`): it grows, it never renames.

Numbers are in base units; null is what was not recorded, or cannot be told.
"""

from collections.abc import Sequence
from dataclasses import asdict
from math import fsum, isfinite
from typing import Any

from gpureport.analysis.advice.choose import STEPS
from gpureport.analysis.results import Analysis
from gpureport.comparison.across import MemoryFit, memory_fits
from gpureport.comparison.chain import Comparison, StepSummary, pair_steps, summarize_steps
from gpureport.comparison.changes import ChangeKind, FindingChange, measure_remaining_loss, summarize_by_kind
from gpureport.comparison.comparable import Comparability
from gpureport.comparison.effects import SettingEffect
from gpureport.comparison.evidence import Reason
from gpureport.comparison.factors import Factor
from gpureport.comparison.figures import TRAINING_RATE, read_run
from gpureport.comparison.gains import (
    AdvisedChange,
    GainSince,
    RelativeChange,
    StepGain,
    build_gains,
    estimate_potential,
    measure_lost_ratio,
)
from gpureport.comparison.quality import QualityChange
from gpureport.comparison.run import SampledRun
from gpureport.comparison.setup import SetupChange
from gpureport.comparison.steps import Step, TrainingSource, mean_training_rate
from gpureport.comparison.study import BestGroup, Study, build_study, select_focus
from gpureport.comparison.time_to_target import RunTimeToTarget, measure_time_to_target
from gpureport.comparison.verdict import Delta
from gpureport.report.formats import analysis_json
from gpureport.report.formats.analysis_json import Content, list_fields, take
from gpureport.report.sections.head.recording_doubts import describe_doubts
from gpureport.report.wording.reasons import (
    describe_check,
    describe_no_work,
    describe_reason,
    describe_unknown_change,
)

SCHEMA = "gpureport.comparison/1"
_RUN = (
    "id name sources params tags gpu_hour_price currency price_date preallocated measures lost_ratio sample_means "
    "steady"
)
_GAIN = (
    "step since_before since_first params_recorded changes advised possibly_advised quality quality_since_first "
    "findings"
)
_SINCE = ("whole_job", "training", "gpu_time", "cost", "energy")


def render(comparison: Comparison, by: Sequence[Factor] = ()) -> str:
    """Return a comparison as JSON text; settings in `by` make the groups of a study, none are for a chain of steps."""
    found = pair_steps(comparison)
    study = build_study(comparison, by) if by else None
    focus = select_focus(comparison, study)
    remaining = measure_remaining_loss(focus.label, focus.analyses)
    quality = [change for link in found for change in (*link.quality, *link.quality_since_first)]
    changes = [change for link in found for change in link.finding_changes]
    return analysis_json.dump(
        {
            "schema": SCHEMA,
            "primary": comparison.primary,
            "comparisons_tested": comparison.tested,
            "training_comparisons_tested": comparison.training_tested,
            "steps": [_step(step) for step in comparison.steps],
            "changes": [change for link in found for change in link.changes],
            "comparability": [_check(check) for link in found for check in link.comparability],
            "deltas": [_delta(delta) for delta in comparison.deltas],
            "training": [_final_values(change) for link in found for change in link.quality],
            "quality": [_quality(change) for change in quality],
            "time_to_target": _time_to_target(comparison),
            "findings": {
                kind.value: [_finding(each) for each in changes if each.change is kind] for kind in ChangeKind
            },
            "groups": [_group(group) for group in summarize_steps(comparison.steps)],
            "study": study and _study(study),
            "memory_fits": [_memory_fit(fit) for fit in memory_fits(comparison.steps)],
            "remaining": list_fields(remaining) | {"lost_gpu_seconds": dict(remaining.lost_gpu_seconds)},
            "gains": [_gain(gain) for gain in build_gains(comparison, found)],
            "potential": estimate_potential(remaining, focus.analyses),
            "across_runs": analysis_json.across_runs(comparison.steps),
            "warnings": [*describe_doubts(comparison)],
            "advice": analysis_json.advice([analysis for step in comparison.steps for analysis in step.analyses]),
        }
    )


def _step(step: Step) -> Content:
    runs = [_run(run, step.training_source) for run in step.runs]
    return take(step, "label work_unit training_source measures runs", measures=step.values, runs=runs)


def _run(run: SampledRun, source: TrainingSource | None) -> Content:
    """Return a run with its plain figures, the means of its rows as other tools have them, and where it settled."""
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
    """Return the plain mean of the rows of each metric, a mean over GPUs."""
    gpus = {gpu.id for gpu in analysis.run.gpus}
    found: dict[str, list[float]] = {}
    for device in analysis.statistics:
        for summary in device.metrics if device.device in gpus else ():
            found.setdefault(summary.metric, []).append(summary.sample_mean)
    return {metric: fsum(values) / len(values) for metric, values in found.items()}


def _bounded(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return an interval; None where nothing bounds an end of it."""
    return interval if interval is not None and all(map(isfinite, interval)) else None


def _reason(reason: Reason | None) -> Content:
    return {"reason": describe_reason(reason), "reason_code": reason.kind if reason else ""}


def _delta(delta: Delta) -> Content:
    detectable, reason = delta.detectable_difference, delta.reason
    return list_fields(delta) | {
        "interval": _bounded(delta.interval),
        "detectable_difference": detectable if detectable is not None and isfinite(detectable) else None,
        "whole": list_fields(delta.whole) | {"difference": delta.whole.difference},
        "verdict_code": delta.verdict.code,
        **_reason(reason),
        "reason_check": reason.check if reason else "",
        "general_reason": describe_reason(reason.of_any_run) if reason and reason.run else "",
    }


def _check(check: Comparability) -> Content:
    said = list_fields(check)
    del said["agree"]
    touches = said.pop("touches")
    code = {True: "", False: check.check, None: "not_known"}[check.comparable]
    return said | {"note": describe_check(check), "reason_code": code, "touches": touches}


def _final_values(change: QualityChange) -> Content:
    return take(change, "base step name before after", before=change.before.final, after=change.after.final)


def _quality(change: QualityChange) -> Content:
    return list_fields(change) | {
        "interval": _bounded(change.interval),
        "verdict_code": change.verdict.code,
        "reason": describe_no_work(change.reason),
        "reason_code": change.reason or "",
        "fell": change.fell,
    }


def _time_to_target(comparison: Comparison) -> Content | None:
    """Return when each step and each of its runs first reached the target; None where none was given."""
    target = comparison.goals.target
    if target is None:
        return None
    found = (measure_time_to_target(step, comparison.goals) for step in comparison.steps)
    keys = "step seconds gpu_seconds cost reached runs"
    return list_fields(target) | {
        "steps": [take(each, keys, runs=[_run_to_target(run) for run in each.runs]) for each in found if each]
    }


def _run_to_target(run: RunTimeToTarget) -> Content:
    missing = run.missing
    return _rename(run, missing="reason") | {"reason_code": missing.name.lower() if missing else ""}


def _rename(value: object, **names: str) -> Content:
    """Return the fields of a result, some under another key."""
    return {names.get(name, name): each for name, each in list_fields(value).items()}


def _group(summary: StepSummary) -> Content:
    return _rename(summary, too_short_run="brief")


def _finding(entry: FindingChange) -> Content:
    said = _rename(entry, unknown="reason")
    del said["change"]
    return said | {
        "reason": describe_unknown_change(entry),
        "reason_code": entry.unknown or "",
        "steps": analysis_json.advised_steps(entry.steps),
    }


def _memory_fit(fit: MemoryFit) -> Content:
    """Return the kinds of GPU that would hold the peak of a step, with the smallest of them by name."""
    return analysis_json.with_memory_reason(fit) | {"smallest": fit.smallest and fit.smallest.model}


def _gain(gain: StepGain) -> Content:
    findings = summarize_by_kind(gain.findings)
    return take(
        gain,
        _GAIN,
        step=gain.step.label,
        since_before=gain.since_before and _since(gain.since_before),
        since_first=gain.since_first and _since(gain.since_first),
        changes=[_setup_change(change) for change in gain.changes],
        advised=[_advised(change) for change in gain.advised],
        possibly_advised=[_advised(change) for change in gain.possibly_advised],
        quality=[_quality_of_gain(change) for change in gain.quality],
        quality_since_first=[_quality_of_gain(change) for change in gain.quality_since_first],
        findings={
            kind: [{"kind": name, "cause": cause} for (name, cause), change in findings.items() if change is kind]
            for kind in ChangeKind
        },
    )


def _since(since: GainSince) -> Content:
    return {"base": since.base} | {name: _ratio(getattr(since, name)) for name in _SINCE}


def _ratio(change: RelativeChange | None) -> Content | None:
    if change is None:
        return None
    return list_fields(change) | {"verdict_code": change.verdict.code} | _reason(change.reason)


def _setup_change(change: SetupChange) -> Content:
    return {name: value for name, value in asdict(change).items() if name not in {"base", "step", "of_one_run"}}


def _advised(change: AdvisedChange) -> Content:
    return list_fields(change) | {"title": STEPS[change.name].title}


def _values(change: QualityChange, **keys: Any) -> Content:
    return keys | {"verdict": change.verdict, "verdict_code": change.verdict.code}


def _quality_of_gain(change: QualityChange) -> Content:
    before, after = change.values
    return _values(change, name=change.name, before=before, after=after) | {"fell": change.fell}


def _study(study: Study) -> Content:
    return {
        "by": [list_fields(factor) | {"values": values} for factor, values in zip(study.by, study.values, strict=True)],
        "groups": study.groups,
        "best": {
            "cost": study.best_by_cost and _best(study.best_by_cost),
            "speed": study.best_by_speed and _best(study.best_by_speed),
        },
        "also_varied": study.mixed_in,
        "repetitions": study.varied.repetitions,
        "names": study.varied.names,
        "effects": [
            list_fields(each) | {"settings": [_setting(setting) for setting in each.settings]} for each in study.effects
        ],
    }


def _best(best: BestGroup) -> Content:
    lower = [
        _values(change, name=change.name, group=change.base, value=change.values[0], own=change.values[1])
        for change in best.lower_quality
    ]
    return list_fields(best) | {"lower_quality": lower, "verdict_code": best.verdict.code}


def _setting(setting: SettingEffect) -> Content:
    levels = [
        list_fields(level) | {"verdict_code": level.verdict.code if level.verdict else ""} for level in setting.levels
    ]
    return list_fields(setting.factor) | {"confounded_with": setting.confounded_with, "levels": levels}
