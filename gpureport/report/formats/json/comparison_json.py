"""The JSON of `gpureport compare` (schema `gpureport.comparison/1`): it grows, it never renames.

Numbers are in base units; null is what was not recorded, or cannot be told.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from math import fsum, isfinite
from typing import Any

from gpureport.analysis.results import Analysis
from gpureport.comparison.across import MemoryFit, memory_fits
from gpureport.comparison.chain import Comparison, StepPair, StepSummary, pair_steps, summarize_steps
from gpureport.comparison.changes import ChangeKind, FindingChange, measure_remaining_loss
from gpureport.comparison.comparable import Comparability
from gpureport.comparison.factors import Factor
from gpureport.comparison.figures import TRAINING_RATE, read_run
from gpureport.comparison.gains import measure_lost_ratio
from gpureport.comparison.quality import QualityChange
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step, TrainingSource, mean_training_rate
from gpureport.comparison.study import build_study, select_focus
from gpureport.comparison.time_to_target import TimeToTarget, measure_time_to_target
from gpureport.comparison.verdict import Delta
from gpureport.report.formats.json.across_json import across_runs_json
from gpureport.report.formats.json.advice_json import advice_json, steps_json
from gpureport.report.formats.json.gains_json import gains_json, potential_json
from gpureport.report.formats.json.study_json import study_json
from gpureport.report.sections.head.recording_doubts import describe_doubts
from gpureport.report.wording.reasons import (
    describe_check,
    describe_memory_reason,
    describe_no_work,
    describe_reason,
    describe_unknown_change,
)

SCHEMA = "gpureport.comparison/1"


def render(comparison: Comparison, by: Sequence[Factor] = ()) -> str:
    """Return a comparison as JSON text.

    Args:
        comparison: steps and their differences.
        by: settings whose values make the groups; none where the steps are a chain.
    """
    found = pair_steps(comparison)
    study = build_study(comparison, by) if by else None
    focus = select_focus(comparison, study)
    remaining = measure_remaining_loss(focus.label, focus.analyses)
    document = {
        "schema": SCHEMA,
        "primary": comparison.primary,
        "comparisons_tested": comparison.tested,
        "training_comparisons_tested": comparison.training_tested,
        "steps": [_step(step) for step in comparison.steps],
        "changes": [asdict(change) for link in found for change in link.changes],
        "comparability": [_check(check) for link in found for check in link.comparability],
        "deltas": [_delta(delta) for delta in comparison.deltas],
        "training": [_training(entry) for link in found for entry in link.quality],
        "quality": [_quality(entry) for link in found for entry in (*link.quality, *link.quality_since_first)],
        "time_to_target": _time_to_target(comparison),
        "findings": {change.value: _finding_changes(found, change) for change in ChangeKind},
        "groups": [_group(group) for group in summarize_steps(comparison.steps)],
        "study": study_json(study),
        "memory_fits": [_fit(fit) for fit in memory_fits(comparison.steps)],
        "remaining": asdict(remaining) | {"lost_gpu_seconds": dict(remaining.lost_gpu_seconds)},
        "gains": gains_json(comparison, found),
        "potential": potential_json(remaining, focus),
        "across_runs": across_runs_json(comparison.steps),
        "warnings": [*describe_doubts(comparison)],
        "advice": advice_json([analysis for step in comparison.steps for analysis in step.analyses]),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _fit(fit: MemoryFit) -> dict[str, Any]:
    """Return the kinds of GPU that would hold the peak of a step, with the smallest of them by name."""
    return asdict(fit) | {
        "reason": describe_memory_reason(fit.reason),
        "reason_code": fit.reason or "",
        "smallest": fit.smallest.model if fit.smallest else None,
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "label": step.label,
        "work_unit": step.work_unit,
        "training_source": None if step.training_source is None else asdict(step.training_source),
        "measures": step.values,
        "runs": [_run(run, step.training_source) for run in step.runs],
    }


def _run(run: SampledRun, source: TrainingSource | None) -> dict[str, Any]:
    """Return a run with its plain figures, the means of its rows as other tools have them, and where it settled."""
    info, cost = run.analysis.run, run.analysis.cost
    settled = run.series.settled if run.series else None
    return {
        "id": info.id,
        "name": info.name,
        "sources": [{"kind": source.kind, "locator": source.locator} for source in info.sources],
        "params": dict(info.params),
        "tags": dict(info.tags),
        "gpu_hour_price": run.gpu_hour_price,
        "currency": (cost.currency or None) if cost else None,
        "price_date": (cost.date or None) if cost else None,
        "preallocated": run.preallocated,
        "measures": read_run(run) | {TRAINING_RATE: mean_training_rate([run], source)},
        "lost_ratio": measure_lost_ratio(run.analysis),
        "sample_means": _sample_means(run.analysis),
        "steady": None
        if settled is None
        else {"start_seconds": (settled.start - info.started) / 1e6, "seconds": settled.seconds},
    }


def _sample_means(analysis: Analysis) -> dict[str, float]:
    """Return the plain mean of the rows of each metric, a mean over GPUs."""
    gpus = {gpu.id for gpu in analysis.run.gpus}
    found: dict[str, list[float]] = {}
    for device in analysis.statistics:
        for summary in device.metrics if device.device in gpus else ():
            found.setdefault(summary.metric, []).append(summary.sample_mean)
    return {metric: fsum(values) / len(values) for metric, values in found.items()}


def _delta(delta: Delta) -> dict[str, Any]:
    bounded = delta.interval is not None and all(map(isfinite, delta.interval))
    detectable = delta.detectable_difference
    return asdict(delta) | {
        "interval": delta.interval if bounded else None,
        "detectable_difference": detectable if detectable is not None and isfinite(detectable) else None,
        "whole": asdict(delta.whole) | {"difference": delta.whole.difference},
        "verdict_code": delta.verdict.code,
        "reason": describe_reason(delta.reason),
        "reason_code": delta.reason.kind if delta.reason else "",
        "reason_check": delta.reason.check if delta.reason else "",
        "general_reason": describe_reason(delta.reason.of_any_run) if delta.reason and delta.reason.run else "",
    }


def _time_to_target(comparison: Comparison) -> dict[str, Any] | None:
    """Return when each step and each of its runs first reached the target; None where none was given."""
    target = comparison.goals.target
    if target is None:
        return None
    found = (measure_time_to_target(step, comparison.goals) for step in comparison.steps)
    return asdict(target) | {"steps": [_step_to_target(each) for each in found if each is not None]}


def _step_to_target(found: TimeToTarget) -> dict[str, Any]:
    return {
        "step": found.step,
        "seconds": found.seconds,
        "gpu_seconds": found.gpu_seconds,
        "cost": found.cost,
        "reached": found.reached,
        "runs": [
            {"reason" if name == "missing" else name: value for name, value in asdict(run).items()}
            | {"reason_code": run.missing.name.lower() if run.missing else ""}
            for run in found.runs
        ],
    }


def _training(change: QualityChange) -> dict[str, Any]:
    """Return final values alone."""
    values = {"before": change.before.final, "after": change.after.final}
    return {"base": change.base, "step": change.step, "name": change.name} | values


def _quality(change: QualityChange) -> dict[str, Any]:
    """Return a change of quality; an end that nothing bounds is null."""
    bounded = change.interval is not None and all(map(isfinite, change.interval))
    return asdict(change) | {
        "interval": change.interval if bounded else None,
        "verdict_code": change.verdict.code,
        "reason": describe_no_work(change.reason),
        "reason_code": change.reason or "",
        "fell": change.fell,
    }


def _check(check: Comparability) -> dict[str, Any]:
    fields = asdict(check)
    del fields["agree"]
    touches = fields.pop("touches")
    code = {True: "", False: check.check, None: "not_known"}[check.comparable]
    return fields | {"note": describe_check(check), "reason_code": code, "touches": touches}


def _group(summary: StepSummary) -> dict[str, Any]:
    return {{"too_short_run": "brief"}.get(name, name): value for name, value in asdict(summary).items()}


def _finding_changes(found: Sequence[StepPair], change: ChangeKind) -> list[dict[str, Any]]:
    return [_finding_change(entry) for link in found for entry in link.finding_changes if entry.change is change]


def _finding_change(entry: FindingChange) -> dict[str, Any]:
    fields = {{"unknown": "reason"}.get(name, name): value for name, value in asdict(entry).items() if name != "change"}
    return fields | {
        "reason": describe_unknown_change(entry),
        "reason_code": entry.unknown or "",
        "steps": steps_json(entry.steps),
    }
