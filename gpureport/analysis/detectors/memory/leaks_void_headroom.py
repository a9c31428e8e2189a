"""Findings on unused memory are withdrawn where memory leaks: it fills by itself."""

from collections.abc import Sequence

from gpureport.findings import Finding, NotJudged

RECORDING = "a run of the job once its memory no longer grows"
"""A recording that shows how much room there is."""


def withdraw_headroom(findings: Sequence[Finding]) -> tuple[list[Finding], list[NotJudged]]:
    """Return the findings without unused memory of leaking GPUs, and these as not judged."""
    leaking = {device for found in findings if found.kind == "mem_leak" for device in found.devices}
    withdrawn = [found for found in findings if found.kind == "mem_headroom" and leaking & set(found.devices)]
    unjudged = [
        NotJudged(
            kind=found.kind,
            device=None,
            reason="memory keeps growing, so its peak does not say what the job needs",
            recording=RECORDING,
            code="memory_keeps_growing",
        )
        for found in withdrawn
    ]
    return [found for found in findings if found not in withdrawn], unjudged
