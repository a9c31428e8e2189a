"""What the last step could gain at most."""

from dataclasses import replace

import pytest

from gpureport.comparison.gains.potential import estimate_potential
from gpureport.comparison.steps.remaining_loss import RemainingLoss
from tests.comparison.configured_runs import configured
from tests.report import examples


def left(held: float, unseen: float, pauses: float = 0, **lost: float) -> RemainingLoss:
    """Return what a step loses."""
    return RemainingLoss(
        step="last",
        runs=1,
        held_gpu_seconds=held,
        unseen_gpu_seconds=unseen,
        pause_gpu_seconds=pauses,
        lost_gpu_seconds=tuple(lost.items()),
        largest=None,
    )


def test_the_bound() -> None:
    """A job that loses 30 and 20% is at most twice as fast without; each class has its own bound."""
    found = estimate_potential(left(100, 0, startup=30, idle=20))
    assert [found.lost_ratio, found.at_most] == pytest.approx([0.5, 2.0])
    assert [loss.name for loss in found.losses] == ["startup", "idle"]
    assert [loss.lost_ratio for loss in found.losses] == [0.3, 0.2]
    assert [loss.at_most for loss in found.losses] == pytest.approx([1 / 0.7, 1.25])


def test_what_was_not_observed_widens_the_bound() -> None:
    """Unseen time may be lost as well; where it is most of the time nothing is said."""
    assert estimate_potential(left(100, 25, idle=25)).at_most == pytest.approx(2.0)
    blind = estimate_potential(left(100, 60, idle=10))
    assert (blind.lost_ratio, blind.at_most, blind.losses, blind.unseen_ratio) == (None, None, (), 0.6)


def test_short_pauses_widen_the_bound() -> None:
    """They count as work, and may all be waits."""
    found = estimate_potential(left(100, 0, pauses=20, idle=30))
    assert [found.lost_ratio, found.pauses_ratio, found.at_most] == pytest.approx([0.3, 0.2, 2.0])


def test_a_job_that_never_worked_has_no_bound() -> None:
    """All of it lost leaves nothing to divide by; without GPU time nothing is known."""
    assert estimate_potential(left(100, 0, idle=100)).at_most is None
    assert estimate_potential(left(0, 0)).lost_ratio is None


def test_nothing_lost_leaves_nothing_to_gain() -> None:
    """One, and not null."""
    assert estimate_potential(left(100, 0)).at_most == 1.0


def test_a_loss_that_is_not_known_leaves_no_bound() -> None:
    """A GPU slowed by heat lost time; where nothing says how much, more than what is known may be gained."""
    slowed = replace(examples.throttling("gpu:0", 0, 10), lost_gpu_seconds=None)
    found = estimate_potential(left(100, 0, idle=50), [configured("last", findings=[slowed])])
    assert (found.at_most, found.lost_ratio, found.unmeasured) == (None, 0.5, ("thermal_throttle",))
    known = replace(slowed, lost_gpu_seconds=5.0)
    assert estimate_potential(left(100, 0, idle=50), [configured("last", findings=[known])]).unmeasured == ()
