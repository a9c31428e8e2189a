"""The steps that findings name, as values."""

from collections.abc import Sequence
from typing import Any

from gpureport.analysis.advice.choose import STEPS
from gpureport.analysis.results import Analysis
from gpureport.findings import AdvisedStep


def advice_json(analyses: Sequence[Analysis]) -> dict[str, dict[str, str]]:
    """Return the steps that any finding names, once each."""
    named = {step.name for analysis in analyses for finding in analysis.findings for step in finding.steps}
    parts = ("title", "do", "when", "risk", "check", "source")
    return {name: {part: getattr(step, part) for part in parts} for name, step in STEPS.items() if name in named}


def steps_json(steps: Sequence[AdvisedStep]) -> list[dict[str, Any]]:
    """Return the steps of a finding: their names, what is not known of each, and how far to go with it."""
    return [{"name": step.name, "unknown": list(step.unknown), "suggestion": step.suggestion or None} for step in steps]
