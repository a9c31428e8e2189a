"""Findings over several runs as JSON, the same in every document."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gpureport.comparison.across import BatchSize, MemoryFit, Scaling, across_findings
from gpureport.comparison.steps import Step
from gpureport.report.formats.json.evidence_json import evidence_json
from gpureport.report.wording.reasons import describe_memory_reason


def across_runs_json(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return findings over several runs: what findings of one run say, the steps they rest on, and their figures."""
    return [
        {
            "kind": found.finding.kind,
            "severity": found.finding.severity,
            "confidence": found.finding.confidence,
            "steps": list(found.steps),
            "summary": found.finding.summary,
            "recommendation": found.finding.recommendation,
            "fingerprint": found.finding.fingerprint,
            "evidence": [evidence_json(each) for each in found.finding.evidence],
            **_content(found.content),
        }
        for found in across_findings(steps)
    ]


def _content(content: Scaling | BatchSize | MemoryFit) -> dict[str, Any]:
    """Return the figures of a finding, with the reason behind them as a sentence."""
    figures = asdict(content)
    if isinstance(content, Scaling):
        return figures
    return figures | {"reason": describe_memory_reason(content.reason), "reason_code": content.reason or ""}
