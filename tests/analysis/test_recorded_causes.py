"""Jobs with one known trouble, as `gpureport record` saw them on an H100, against what they measured themselves."""

import json
from pathlib import Path

import pytest

import gpureport
from gpureport.testing import Analysis, findings_of

CAUSES = Path("sample_logs/recorded/causes").resolve()


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


def test_gaps_are_those_of_the_job() -> None:
    saves = json.loads((CAUSES / "checkpoints/truth.json").read_text())["saves"]
    gaps = [gap for finding in findings_of(analysed("checkpoints"), "idle_gap") for gap in finding.intervals]
    for (start, end), gap in zip(saves, sorted(gaps, key=lambda one: one.start), strict=True):
        assert gap.start / 1e6 == pytest.approx(start, abs=1.5)
        assert gap.end / 1e6 == pytest.approx(end, abs=1.5)
