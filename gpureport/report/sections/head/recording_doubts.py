"""What runs were recorded or stated with that leaves a comparison in doubt, each in one line."""

from collections.abc import Sequence

from gpureport.comparison.chain.recording_order import find_steps_not_in_turn
from gpureport.comparison.chain.work_contradictions import find_work_contradiction
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.steps import Step
from gpureport.report.wording import display
from gpureport.report.wording.work_scale import name_work

_NAMED = 3
"""Pairs of steps that are named; the others are counted."""


def describe_work_contradictions(runs: Sequence[SampledRun]) -> str:
    """Return that the work stated and the training log contradict each other, by the worst run; empty where not.

    Args:
        runs: of all steps.
    """
    found = [each for run in runs if (each := find_work_contradiction(run)) is not None]
    if not found:
        return ""
    worst = max(found, key=lambda each: each.ratio)
    more = len(found) - 1
    others = f" and {display.plural(more, 'more run')}" if more else ""
    whose = f" in {display.clean(worst.run)}{others}" if len(runs) > 1 else ""
    stated, logged = (display.quantity(amount, "") for amount in (worst.stated, float(f"{worst.logged:.3g}")))
    return (
        f"The work stated is {stated} {name_work(worst.unit)} a run, the training log counts about {logged}{whose}: "
        "don't rely on figures per unit of work."
    )


def describe_recording_order(steps: Sequence[Step]) -> str:
    """Return which steps were not recorded in turn; empty where all were, or nothing tells."""
    found = find_steps_not_in_turn(steps)
    pairs = [f"{display.clean(earlier.label)}, then {display.clean(later.label)}" for earlier, later in found]
    if not pairs:
        return ""
    more = len(pairs) - _NAMED
    named = [*pairs[:_NAMED], *([f"{more} more"] if more > 0 else [])]
    return f"Not recorded in turn (A B A B), so a machine that drifts can look like a change: {'; '.join(named)}."
