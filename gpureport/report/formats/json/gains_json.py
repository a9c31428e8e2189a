"""The table of gains and the potential of the last step, as values."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gpureport.analysis.advice.choose import STEPS
from gpureport.comparison.chain import Comparison, StepPair
from gpureport.comparison.changes import ChangeKind, FindingChange, RemainingLoss, summarize_by_kind
from gpureport.comparison.gains import (
    AdvisedChange,
    GainSince,
    RelativeChange,
    StepGain,
    build_gains,
    estimate_potential,
)
from gpureport.comparison.quality import QualityChange
from gpureport.comparison.steps import Step
from gpureport.report.wording.reasons import describe_reason


def gains_json(comparison: Comparison, pairs: Sequence[StepPair]) -> list[dict[str, Any]]:
    """Return one entry a step."""
    return [_gain(gain) for gain in build_gains(comparison, pairs)]


def potential_json(remaining: RemainingLoss, step: Step) -> dict[str, Any]:
    """Return what a step could gain at most."""
    return asdict(estimate_potential(remaining, step.analyses))


def _gain(gain: StepGain) -> dict[str, Any]:
    return {
        "step": gain.step.label,
        "since_before": gain.since_before and _since(gain.since_before),
        "since_first": gain.since_first and _since(gain.since_first),
        "params_recorded": gain.params_recorded,
        "changes": [_without_steps(asdict(change)) for change in gain.changes],
        "advised": [_advised(change) for change in gain.advised],
        "possibly_advised": [_advised(change) for change in gain.possibly_advised],
        "quality": [_quality(change) for change in gain.quality],
        "quality_since_first": [_quality(change) for change in gain.quality_since_first],
        "findings": {change.value: _findings(gain.findings, change) for change in ChangeKind},
    }


def _advised(change: AdvisedChange) -> dict[str, Any]:
    return asdict(change) | {"title": STEPS[change.name].title}


def _quality(change: QualityChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "before": change.values[0],
        "after": change.values[1],
        "verdict": change.verdict,
        "verdict_code": change.verdict.code,
        "fell": change.fell,
    }


def _without_steps(change: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in change.items() if name not in {"base", "step", "of_one_run"}}


def _since(since: GainSince) -> dict[str, Any]:
    figures = ("whole_job", "training", "gpu_time", "cost", "energy")
    return {"base": since.base} | {name: _ratio(getattr(since, name)) for name in figures}


def _ratio(change: RelativeChange | None) -> dict[str, Any] | None:
    if change is None:
        return None
    codes = {"verdict_code": change.verdict.code, "reason_code": change.reason.kind if change.reason else ""}
    return asdict(change) | {"reason": describe_reason(change.reason)} | codes


def _findings(changes: Sequence[FindingChange], wanted: ChangeKind) -> list[dict[str, Any]]:
    found = summarize_by_kind(changes)
    return [{"kind": kind, "cause": cause} for (kind, cause), change in found.items() if change is wanted]
