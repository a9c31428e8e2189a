"""How much the GPUs worked, in words."""

import numpy as np
import numpy.typing as npt
import pytest

from gpureport.report.sections.head.low_use_sentences import (
    describe_computing_mid_job,
    levels_sentence,
    often_low_sentence,
)
from gpureport.report.wording.display import GAP
from gpureport.testing import analyze, recording, steps


def _util(*low_seconds: int) -> list[npt.NDArray[np.float64]]:
    """Return the utilisation of GPUs that are at 10% for some of 100 seconds each."""
    return [steps((10, low), (95, 100 - low)) for low in low_seconds]


@pytest.mark.parametrize(
    ("low_seconds", "said"),
    [
        ((19,), ""),
        ((30,), "The GPU was below 25% utilisation for 30% of the time."),
        ((30, 32), "The GPUs were below 25% utilisation for 31% of the time."),
        ((5, 71), "GPU 1 was below 25% utilisation for 71% of the time, the other GPU for 5.0%."),
        ((8, 60, 30), "GPU 1 was below 25% utilisation for 60% of the time, the others for 8.0% to 30%."),
        ((5, 10), ""),
    ],
)
def test_often_below_a_quarter(low_seconds: tuple[int, ...], said: str) -> None:
    """The worst GPU is named where the others differ, also at a high mean; sound jobs need no sentence."""
    analysis = analyze(recording(util=_util(*low_seconds)))
    assert often_low_sentence([analysis]).replace(GAP, " ") == said


def test_a_level_is_told_once() -> None:
    """The sentence on the levels leaves out the one that has a sentence of its own."""
    often, seldom = analyze(recording(util=_util(40))), analyze(recording(util=[40.0, 60.0] * 50))
    assert "below 25" not in levels_sentence([often]).replace(GAP, " ")
    assert "below 25" in levels_sentence([seldom]).replace(GAP, " ")


def test_the_last_of_several_steps_is_named() -> None:
    """Who reads the head alone must know which step is meant."""
    analysis = analyze(recording(util=_util(30)))
    assert often_low_sentence([analysis], where="in the last step").startswith("In the last step the GPU was below ")


def test_nothing_recorded_is_nothing_said() -> None:
    """Neither zero nor often."""
    assert often_low_sentence([analyze(recording(temperature=steps((60, 60))))]) == ""


def test_what_gpus_computed_is_a_share_of_the_time_that_was_seen() -> None:
    """In a gap of the log they may have computed, too."""
    times = np.concatenate([np.arange(200.0), np.arange(400.0, 600.0)])
    analysis = analyze(recording(util=np.tile([50.0], 400), times=times))
    assert describe_computing_mid_job([analysis]).replace(GAP, " ") == "The GPU computed 50% of 6 min 39 s"
