"""Links below what card and slot allow."""

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import Confidence, Recording, Severity, analyze, found, recording, steps, unjudged

_UTIL = steps((0, 20), (97, 100))


def _run(
    generation: FloatArray | float, width: FloatArray | float = 16, util: FloatArray | list[FloatArray] = _UTIL
) -> Recording:
    return recording(util=util, link_generation=generation, link_generation_max=4, link_width=width, link_width_max=16)


def test_a_link_of_half_the_lanes_is_information() -> None:
    """Many a cloud instance is built so; the link and what it could be are named."""
    (finding,) = found(analyze(_run(4, 8)), "pcie_degraded")
    assert (finding.severity, finding.confidence, finding.devices) == (Severity.INFO, Confidence.HIGH, ("gpu:0",))
    assert "GPU 0 ran at half of its PCIe speed: gen 4 x8 instead of gen 4 x16." in finding.summary


@pytest.mark.parametrize(
    ("generation", "width", "severity"),
    [(2, 16, Severity.WARNING), (3, 8, Severity.WARNING), (4, 4, Severity.WARNING), (1, 16, Severity.PROBLEM)],
)
def test_less_weighs_more(generation: float, width: float, severity: Severity) -> None:
    """A quarter is a warning, an eighth a problem."""
    (finding,) = found(analyze(_run(generation, width)), "pcie_degraded")
    assert finding.severity is severity


@pytest.mark.parametrize(
    ("generation", "width"),
    [(4, 16), (steps((1, 20), (4, 100)), 16), (steps((1, 60), (4, 60)), 16)],
    ids=["full", "slower at rest", "best of the busy samples"],
)
def test_what_is_no_degraded_link(generation: FloatArray | float, width: float) -> None:
    """A link slows down when the GPU rests."""
    assert found(analyze(_run(generation, width)), "pcie_degraded") == []


def test_only_the_gpu_concerned_is_named() -> None:
    """Each GPU has its own link."""
    run = recording(util=[_UTIL, _UTIL], link_width=[steps((16, 120)), steps((4, 120))], link_width_max=16)
    (finding,) = found(analyze(run), "pcie_degraded")
    assert finding.devices == ("gpu:1",)
    assert finding.severity is Severity.WARNING


def test_a_gpu_that_rests_is_not_judged() -> None:
    """Four busy samples are too few."""
    (entry,) = unjudged(analyze(_run(1, util=steps((0, 116), (97, 4)))), "pcie_degraded")
    assert "4 samples" in entry.reason


def test_without_columns_it_is_not_judged() -> None:
    """The fields of nvidia-smi that tell are named."""
    (entry,) = unjudged(analyze(recording(util=_UTIL)), "pcie_degraded")
    assert "pcie_link_generation" in entry.metrics
    assert "pcie_link_generation_max" in entry.metrics
    (idle,) = unjudged(analyze(recording(power=np.full(60, 80.0), link_width=8, link_width_max=16)), "pcie_degraded")
    assert "gpu_utilization_ratio" in idle.metrics


def test_a_width_without_its_maximum_is_not_judged() -> None:
    """There is nothing to set it against."""
    run = recording(util=_UTIL, link_width=8, link_generation_max=4)
    assert unjudged(analyze(run), "pcie_degraded") != []
    assert found(analyze(run), "pcie_degraded") == []
