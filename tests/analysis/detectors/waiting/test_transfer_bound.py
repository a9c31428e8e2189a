"""GPUs that wait for copies over PCIe."""

import numpy as np
import numpy.typing as npt
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import Confidence, Recording, Severity, analyze, found, recording, spans, steps, unjudged

_PHASES = steps((97, 300), (40, 300), (97, 300))
_COPIES = steps((1, 300), (22, 300), (1, 300))


def _run(  # noqa: PLR0913 - each argument is something a test varies
    util: FloatArray = _PHASES,
    received: FloatArray = _COPIES,
    *,
    sent: npt.ArrayLike = 0.5,
    link_generation: npt.ArrayLike = 4,
    link_width: int = 16,
    cpu: FloatArray | None = None,
) -> Recording:
    return recording(
        util=util, received=received, sent=sent, link_generation=link_generation, link_width=link_width, cpu=cpu
    )


def test_low_gpu_beside_a_full_link_is_transfer_bound() -> None:
    """22 GB/s are 70% of a fourth generation x16 link; phase, cost and class of the time follow."""
    analysis = analyze(_run())
    (finding,) = found(analysis, "transfer_bound")
    ((start, end),) = spans(finding)
    assert start == pytest.approx(299.5, abs=6)
    assert end == pytest.approx(599.5, abs=6)
    assert finding.lost_gpu_seconds == pytest.approx(180, abs=6)
    assert (finding.severity, finding.confidence) == (Severity.PROBLEM, Confidence.HIGH)
    assert "Copies used 69% of the gen 4 x16 PCIe link while GPU 0 averaged 41% utilisation over 5" in finding.summary
    assert finding.evidence[1].observed == pytest.approx(22e9 / (16e9 * 128 / 130 / 8 * 16), rel=0.05)
    assert dict(analysis.gpu_time[0].seconds)["waiting_for_input"] == pytest.approx(180, abs=6)
    assert found(analysis, "low_util_cause_unknown") == []


@pytest.mark.parametrize(
    ("generation", "width", "rate", "count"),
    [(3, 16, 11, 1), (3, 16, 8, 0), (4, 8, 11, 1), (5, 16, 22, 0), (1, 4, 0.7, 1), (2, 4, 0.7, 0)],
)
def test_the_rate_follows_from_generation_and_width(generation: int, width: int, rate: float, count: int) -> None:
    """60% of 15.8 GB/s at 3.0 x16 and at 4.0 x8, of 63 GB/s at 5.0 x16, of 1 GB/s at 1.0 x4."""
    copies = steps((0.1, 300), (rate, 300), (0.1, 300))
    run = recording(util=_PHASES, received=copies, sent=0.01, link_generation=generation, link_width=width)
    assert len(found(analyze(run), "transfer_bound")) == count


def test_the_link_is_what_it_is_under_load() -> None:
    """It trains down while a GPU is idle; that does not make it slow."""
    run = _run(received=_COPIES / 2, link_generation=np.where(_PHASES > 90, 4, 1))
    assert found(analyze(run), "transfer_bound") == []


def test_either_direction_counts_but_not_their_sum() -> None:
    """A link carries its rate each way."""
    assert len(found(analyze(_run(received=_COPIES * 0, sent=_COPIES)), "transfer_bound")) == 1
    assert found(analyze(_run(received=_COPIES / 1.5, sent=_COPIES / 1.5)), "transfer_bound") == []


@pytest.mark.parametrize(
    ("util", "received"),
    [
        (steps((97, 900)), steps((22, 900))),
        (_PHASES, steps((22, 900))),
        (steps((97, 300), (40, 20), (97, 580)), steps((1, 300), (22, 20), (1, 580))),
        (steps((0, 300), (97, 600)), steps((22, 300), (1, 600))),
    ],
    ids=["busy GPU", "as dense beside a busy GPU", "short", "start-up"],
)
def test_what_is_not_transfer_bound(util: FloatArray, received: FloatArray) -> None:
    """Gradients between GPUs fill the link of a busy GPU as well."""
    assert found(analyze(_run(util, received)), "transfer_bound") == []


def test_each_gpu_has_its_own_link() -> None:
    """Only the GPU that waits is named."""
    run = recording(
        util=[_PHASES, steps((97, 900))], received=[_COPIES, _COPIES], sent=0.5, link_generation=4, link_width=16
    )
    (finding,) = found(analyze(run), "transfer_bound")
    assert finding.devices == ("gpu:0",)


def test_a_full_cpu_comes_first() -> None:
    """Where loaders are the reason, copies wait for them too."""
    analysis = analyze(_run(cpu=steps((20, 300), (95, 300), (20, 300))))
    assert len(found(analysis, "cpu_bound")) == 1
    assert found(analysis, "transfer_bound") == []


def test_another_order_in_time_explains_nothing() -> None:
    """The same traffic, permuted in time, is no finding."""
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(900)
        assert found(analyze(_run(received=(_COPIES + 8)[order])), "transfer_bound") == []


def test_what_is_missing_is_not_judged() -> None:
    """Traffic takes dmon or DCGM; without the width no rate is known; the table may give the generation."""
    (entry,) = unjudged(analyze(recording(util=_PHASES)), "transfer_bound")
    assert "pcie_receive_bytes_per_second" in entry.metrics
    (entry,) = unjudged(analyze(recording(util=_PHASES, received=_COPIES, sent=0.5)), "transfer_bound")
    assert "pcie_link_width" in entry.metrics
    run = recording(util=_PHASES, received=_COPIES, sent=0.5, link_width=16, model="NVIDIA A100-SXM4-80GB")
    (finding,) = found(analyze(run), "transfer_bound")
    assert finding.confidence == Confidence.LOW
    (entry,) = unjudged(analyze(_run(_PHASES[:20], _COPIES[:20])), "transfer_bound")
    assert entry.recording == "a log of at least 30 s"


def test_a_link_of_no_lanes_is_no_rate() -> None:
    """A driver that gives a width of zero says nothing of what the link carries, so the kind is not judged."""
    analysis = analyze(_run(link_width=0))
    assert found(analysis, "transfer_bound") == []
    (open_,) = unjudged(analysis, "transfer_bound")
    assert "not what the link can carry" in open_.reason
