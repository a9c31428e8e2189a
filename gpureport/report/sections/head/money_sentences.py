"""What a change saves in money, or why a stated price gives no cost per unit of work."""

from math import isfinite

from gpureport.comparison.chain import Comparison, find_work_contradiction
from gpureport.comparison.figures import COST_PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.steps.figures import Figures
from gpureport.report.wording import display

_NO_CURRENCY = ", no currency given"
_STATE_WORK = "--work 9600:images, for each source where they differ"
_NOTABLE = 0.05
"""Share of a run outside training from which its cost is told without it too (pragmatic)."""


def describe_saving(comparison: Comparison) -> str:
    """Return how much money the last step saves against the first, such as `Saves $3.28 per million images`.

    Empty without a cost per unit of work, where the difference may be none, and where the work is in doubt.
    """
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = next((each for each in comparison.between(first.label, last.label) if each.metric == COST_PER_WORK), None)
    if delta is None or not delta.difference or not (delta.verdict.is_established or _is_unconfirmed(delta)):
        return ""
    if any(find_work_contradiction(run) for step in comparison.steps for run in step.runs):
        return ""
    currency = spending.currency([*first.analyses, *last.analyses])
    scale = Figures(comparison).cost
    size = display.money(abs(delta.difference) * scale.factor, currency)
    amount = f"{size}{_format_range(delta, scale.factor, currency)}"
    falls, named = delta.difference < 0, "" if currency else _NO_CURRENCY
    if _is_unconfirmed(delta):
        return f"Costs {amount} {'less' if falls else 'more'} {scale.per}{named}, unconfirmed."
    return f"Saves {amount} {scale.per}{named}." if falls else f"Costs {amount} more {scale.per}{named}."


def _is_unconfirmed(delta: Delta) -> bool:
    return delta.verdict is Verdict.UNCONFIRMED


def _format_range(delta: Delta, factor: float, currency: str) -> str:
    """Return the interval of a difference as amounts, the smaller first; empty where it has no bounds or holds 0."""
    if delta.interval is None or not all(map(isfinite, delta.interval)) or delta.interval[0] * delta.interval[1] <= 0:
        return ""
    low, high = (display.money(size * factor, currency) for size in sorted(map(abs, delta.interval)))
    return "" if low == high else f" ({low} to {high})"


def explain_missing_cost(comparison: Comparison) -> str:
    """Return why a price that was stated gives no cost per unit of work; empty where it does, and without a price.

    What a run cost is told beside, for that is known.
    """
    priced = [run.gpu_hour_price is not None for step in comparison.steps for run in step.runs]
    ends = comparison.steps[0], comparison.steps[-1]
    if len(comparison.steps) < 2 or not any(priced) or None not in {end.value(COST_PER_WORK) for end in ends}:  # noqa: PLR2004 - a comparison
        return ""
    if not all(priced):
        return "No cost per unit of work: not every GPU has a price."
    costs = [_mean_cost(step) for step in ends]
    if all(step.work_unit is not None for step in comparison.steps):
        return ""
    if all(costs) and costs[0] == costs[1]:
        which = "Both" if len(comparison.steps) == 2 else "First and last step"  # noqa: PLR2004 - a pair
        return f"{which} cost {costs[0]} a run; state the work ({_STATE_WORK}) to compare the cost per unit."
    known = f"A run cost {costs[0]}, then {costs[1]}; no" if all(costs) else "No"
    return f"{known} cost per unit without the work done ({_STATE_WORK})."


def _mean_cost(step: Step) -> str:
    """Return what a run of a step cost in all, a mean over them; empty where not known."""
    totals = [each.cost.total for each in step.analyses if each.cost is not None and each.cost.total is not None]
    if len(totals) < len(step.analyses):
        return ""
    return display.money(sum(totals) / len(totals), spending.currency(step.analyses))


def describe_start_up_cost(comparison: Comparison) -> str:
    """Return what part of the cost of the last step is start-up and end, and what it is without; empty where little."""
    last, share = comparison.steps[-1], _share_outside_training(comparison.steps[-1])
    cost = format_training_cost(comparison)
    if not share or not cost:
        return ""
    scale = Figures(comparison).cost
    return (
        f"The cost includes start-up and end, {display.percent(share)} of a run in {display.clean(last.label)}: at the "
        f"training rate alone it is {cost} {scale.per}, and longer runs come closer to that."
    )


def format_training_cost(comparison: Comparison) -> str:
    """Return what work of the last step would cost at its training rate alone; empty where the cost is hardly more."""
    last = comparison.steps[-1]
    cost, share = last.value(COST_PER_WORK), _share_outside_training(last)
    if not cost or share is None or share < _NOTABLE:
        return ""
    factor = Figures(comparison).cost.factor
    return display.money(cost * (1 - share) * factor, spending.currency(last.analyses))


def _share_outside_training(step: Step) -> float | None:
    """Return the part of its runs by which the whole job was slower than training alone; None where not known."""
    whole, training = step.value(WORK_RATE), step.value(TRAINING_RATE)
    return 1 - whole / training if whole and training else None
