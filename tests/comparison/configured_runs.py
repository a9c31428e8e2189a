"""Analyses of runs whose params, tags and findings a test states."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpureport.comparison.chain.step_comparison import compare
from gpureport.findings import AdvisedStep
from gpureport.testing import Analysis, Comparison, Device, Finding, Work
from tests.report import examples


def configured(  # noqa: PLR0913 - each argument is something a test varies
    step: str,
    params: Mapping[str, str] | None = None,
    *,
    tags: Mapping[str, str] | None = None,
    findings: Sequence[Finding] = (),
    name: str = "1",
    device: Device | None = None,
    work: float | None = None,
) -> Analysis:
    """Return the analysis of one run of a step."""
    made = examples.run(
        f"{step} {name}", step=step, gpus=1, work=None if work is None else Work(amount=work, unit="images")
    )
    run = replace(made, params=tuple((params or {}).items()), tags=tuple((tags or {}).items()))
    run = run if device is None else replace(run, devices=(device,))
    return examples.analysis(run, findings=tuple(findings))


def advising(*names: str, kind: str = "low_util_cause_unknown", lost: float | None = 10.0) -> Finding:
    """Return a finding that advises some steps of the catalogue."""
    steps = tuple(AdvisedStep(name=name) for name in names)
    gap = examples.idle_gap("gpu:0", 100, 120)
    return replace(gap, kind=kind, cause=None, lost_gpu_seconds=lost, steps=steps)


def compare_configured(*analyses: Analysis) -> Comparison:
    """Return the comparison of such runs in the order given."""
    return compare(examples.sampled(*analyses))
