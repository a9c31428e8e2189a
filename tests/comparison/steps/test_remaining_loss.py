"""What is still lost in the last step, and the largest finding left."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpureport.analysis.results import LOST_CLASSES
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.gains.known_loss import measure_lost_ratio
from gpureport.comparison.steps.remaining_loss import measure_remaining_loss
from gpureport.report.wording import terms
from gpureport.testing import GPU_TIME_CLASSES, Analysis, Confidence, Finding, Severity
from tests.report import examples


def finding(kind: str, lost: float | None, cause: str | None = None, device: str = "gpu:0") -> Finding:
    """Return a finding."""
    return Finding(
        kind=kind,
        severity=Severity.WARNING,
        confidence=Confidence.HIGH,
        devices=(device,),
        intervals=(),
        evidence=(),
        lost_gpu_seconds=lost,
        summary=f"{kind} lost {lost}",
        recommendation="do less of it",
        cause=cause,
    )


def run(name: str, findings: Sequence[Finding], idle: float = 60.0) -> Analysis:
    """Return two GPUs over 600 s with these findings."""
    return replace(examples.analysis(examples.run(name, step="last"), idle=idle), findings=tuple(findings))


def test_findings_of_one_kind_and_cause_count_together() -> None:
    """Two gaps of 30 s for data come before one of 50 s for a checkpoint; a mean over the runs of the step."""
    gaps = [finding("idle_gap", 30.0, "data"), finding("idle_gap", 30.0, "data", "gpu:1")]
    found = measure_remaining_loss(
        "last", [run("a", [*gaps, finding("idle_gap", 50.0, "checkpoint")]), run("b", gaps[:1])]
    )
    assert found.largest is not None
    assert (found.largest.kind, found.largest.cause, found.largest.findings, found.largest.runs) == (
        "idle_gap",
        "data",
        3,
        2,
    )
    assert found.largest.lost_gpu_seconds == pytest.approx(45.0)
    assert found.largest.devices == ("gpu:0", "gpu:1")
    assert found.largest.recommendation == "do less of it"


def test_what_follows_from_another_finding_is_counted_there() -> None:
    """Gaps inside a CPU-bound episode are its consequences."""
    gap = finding("idle_gap", 100.0, "data")
    root = replace(finding("cpu_bound", 80.0), consequences=(gap.fingerprint,))
    found = measure_remaining_loss("last", [run("a", [gap, root])])
    assert found.largest is not None
    assert found.largest.kind == "cpu_bound"


def test_findings_that_do_not_say_what_they_cost_are_none() -> None:
    """Unknown is not zero, and no largest is made up."""
    assert measure_remaining_loss("last", [run("a", [finding("hw_throttle", None)])]).largest is None


def test_the_order_of_runs_changes_nothing() -> None:
    """Of two kinds that lost as much the name decides."""
    runs = [run("a", [finding("tail_idle", 0.1), finding("idle_gap", 0.3)]), run("b", [finding("tail_idle", 0.2)])]
    assert measure_remaining_loss("last", runs) == measure_remaining_loss("last", runs[::-1])


def test_classes_are_those_that_reports_call_lost() -> None:
    """The last step of a chain, largest class first; what holds no utilisation is apart."""
    comparison = compare(examples.sampled(examples.analysis(examples.run("a"), idle=10), run("b", [], idle=60)))
    left = comparison.remaining
    assert left.step == "last"
    amounts = [amount for _, amount in left.lost_gpu_seconds]
    assert left.lost == pytest.approx(sum(amounts))
    assert amounts == sorted(amounts, reverse=True)
    assert left.runs == 1
    assert left.held_gpu_seconds == pytest.approx(1200)
    assert {name for name, _ in left.lost_gpu_seconds} <= set(LOST_CLASSES)
    assert measure_lost_ratio(comparison.steps[-1].analyses[0]) == pytest.approx(left.lost / left.held_gpu_seconds)


def test_every_class_is_lost_used_unknown_or_outside_any_job() -> None:
    """The classes that count as lost, and those that reports have a name for."""
    others = {"computing", "short_pauses", "no_samples", "no_job"}
    lost = {"hollow", "low_use", "throttled", "waiting_for_input", "idle", "unused", "startup", "tail", "gpu_lost"}
    assert set(LOST_CLASSES) == lost
    assert set(GPU_TIME_CLASSES) == set(terms.CLASSES) == lost | others
