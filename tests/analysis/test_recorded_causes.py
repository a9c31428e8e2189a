"""Jobs with one known trouble at most, as `gpureport record` saw them on an H100, and what they measured themselves."""

import json
from pathlib import Path

import pytest

import gpureport
from gpureport.testing import Analysis, findings_of

CAUSES = Path("sample_logs/recorded/causes").resolve()

FOUND = {
    "healthy": set(),
    "tiny_kernels": {("cpu_bound_single", "one thread")},
    "one_core": {("cpu_bound_single", "one thread")},
    "unpinned_copies": {("cpu_bound_single", "copying")},
    "slow_input": {("underutilised", None)},
    "checkpoints": {("idle_gap", "checkpoint")},
    "memory_leak": {("mem_leak", None)},
    "full_precision": {("full_precision", None)},
    "more_workers": set(),
    "pinned_copies": {("hollow_util", "copying")},
    "cuda_graph": {("hollow_util", None)},
}
"""The kinds and causes that tell what was wrong."""
BESIDE = {"startup_idle", "power_cap", "mem_headroom"}
"""Kinds that are true of these short jobs as well: framework start-up, the power limit of the board, unused memory."""


def analysed(name: str) -> Analysis:
    (recording,) = gpureport.read(CAUSES / name)
    return gpureport.analyze(recording)


@pytest.mark.parametrize(("name", "wait"), [("one_core", "data"), ("unpinned_copies", "copy")])
def test_the_loss_is_what_the_loop_waited(name: str, wait: str) -> None:
    truth = json.loads((CAUSES / name / "truth.json").read_text())
    (finding,) = findings_of(analysed(name), "cpu_bound_single")
    trained = truth["training_ended"] - truth["training_began"]
    assert finding.lost_gpu_seconds is not None
    assert finding.lost_gpu_seconds == pytest.approx(truth["seconds"][wait], abs=0.15 * trained)


def test_troubles_and_gaps_are_those_of_the_job() -> None:
    told = {
        name: {(one.kind, one.cause) for one in analysed(name).findings if one.kind not in BESIDE or one.cause}
        for name in FOUND
    }
    assert told == FOUND
    saves = json.loads((CAUSES / "checkpoints/truth.json").read_text())["saves"]
    gaps = [gap for finding in findings_of(analysed("checkpoints"), "idle_gap") for gap in finding.intervals]
    for (start, end), gap in zip(saves, sorted(gaps, key=lambda one: one.start), strict=True):
        assert gap.start / 1e6 == pytest.approx(start, abs=1.5)
        assert gap.end / 1e6 == pytest.approx(end, abs=1.5)
