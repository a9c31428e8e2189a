"""Which kinds of GPU would hold the peak of a step."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport import gpus
from gpureport.comparison.across_runs.across_findings import GPU_KINDS, across_findings
from gpureport.comparison.across_runs.memory_fit import HEADROOM, MemoryFit, PeakDoubt, memory_fits
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.steps import build_steps
from tests.comparison.runs import level, sampled

GROWING = np.linspace(4.0, 20.0, 300)
"""GiB in use, of a framework that takes memory as it needs it."""


def fits(*runs: SampledRun) -> tuple[MemoryFit, ...]:
    """Return what would hold each step."""
    return memory_fits(list(build_steps(runs)))


def test_no_memory_in_use_fits_no_kind() -> None:
    """A peak of nothing would fit every kind, which says nothing of the job."""
    (found,) = fits(sampled("idle", util=level(0, 300), memory=GROWING * 0))
    assert (found.peak_bytes, found.kinds, found.unknown) == (0, (), ())
    assert found.reason is PeakDoubt.UNUSED


def test_the_worst_gpu_of_all_runs_decides() -> None:
    """20 GiB on one of three GPUs fit an L4 of 21.95 GiB; at 21.5 less than 5% is left, and an RTX 3090 has more."""
    low = sampled("low", step="s", util=level(90, 300), memory=GROWING / 2)
    pair = np.stack([GROWING / 3, GROWING])
    high = sampled("high", step="s", util=np.stack([level(90, 300)] * 2), memory=pair)
    (found,) = fits(low, high)
    assert (found.run, found.device, found.peak_bytes, found.reason) == ("high", "gpu:1", 20 * 2**30, None)
    assert found.smallest is not None
    assert found.smallest.model == "L4"
    assert found.smallest.free_ratio == pytest.approx(1 - 20 * 2**30 / found.smallest.memory_bytes)
    assert (found.headroom, found.headroom_source) == (HEADROOM.value, HEADROOM.source)
    assert {kind.model for kind in found.kinds} | set(found.unknown) == {gpu.model for gpu in gpus.load_gpus()}
    assert all(kind.source for kind in found.kinds)
    (fuller,) = fits(sampled("full", util=level(90, 300), memory=GROWING * 21.5 / 20))
    fitting = {kind.model: kind.fits for kind in fuller.kinds}
    assert (fitting["L4"], fitting["RTX 3090"]) == (False, True)


def test_nothing_is_said_from_a_preallocated_peak() -> None:
    """Memory taken in one step and kept is what a framework takes, not what the job needs, whatever is looked for."""
    taken = np.concatenate([np.full(10, 1.0), np.full(290, 60.0)])
    run = sampled("jax", util=level(90, 300), memory=taken)
    ignored = replace(run, analysis=replace(run.analysis, findings=()))
    for one in (run, ignored):
        (found,) = fits(one)
        assert (found.kinds, found.smallest) == ((), None)
        assert found.reason is PeakDoubt.PREALLOCATED
    assert across_findings(list(build_steps([run]))) == ()


def test_memory_that_never_moved_may_have_been_taken_in_advance() -> None:
    """What holds it would do; that what is smaller would not cannot be told, and no finding is made of it."""
    run = sampled("flat", util=level(90, 300), memory=30.0)
    (found,) = fits(run)
    assert found.reason is PeakDoubt.PERHAPS_PREALLOCATED
    assert {kind.fits for kind in found.kinds} == {True, None}
    assert across_findings(list(build_steps([run]))) == ()


def test_memory_that_was_not_recorded_is_not_zero() -> None:
    """No kind would hold what nobody knows."""
    (found,) = fits(sampled("none", util=level(90, 300)))
    assert (found.peak_bytes, found.kinds, found.reason) == (None, (), PeakDoubt.NOT_RECORDED)


def test_the_finding_over_runs_has_every_kind_as_evidence() -> None:
    """In the form findings of one run have, as information."""
    (found,) = across_findings(list(build_steps([sampled("a", util=level(90, 300), memory=GROWING)])))
    assert (found.finding.kind, found.finding.severity.value, found.steps) == (GPU_KINDS, "info", ("a",))
    assert "would fit L4" in found.finding.summary
    assert found.finding.evidence[0].observed == 20 * 2**30
    # of 5% that are to be left: enough on an L4, not on a T4, which has less than the peak
    assert {each.relation for each in found.finding.evidence[1:]} == {">=", "<"}
