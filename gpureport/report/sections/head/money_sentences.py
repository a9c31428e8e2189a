"""What a change saves in money, or why a stated price gives no cost per unit of work."""

from math import isfinite

from gpureport.comparison.chain import Comparison, find_work_contradiction
from gpureport.comparison.figures import COST_PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Verdict
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.steps.figures import Figures
from gpureport.report.wording import display

_NOTABLE = 0.05
"""Share of a run outside training from which its cost is told without it too (pragmatic)."""


def describe_saving(comparison: Comparison) -> str:
    """Return how much money the last step saves against the first, such as `Saves $3.28 per million images`.

    Empty without a cost per unit of work, where the difference may be none, and where the work is in doubt.
    """
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = next((each for each in comparison.between(first.label, last.label) if each.metric == COST_PER_WORK), None)
    is_unconfirmed = delta is not None and delta.verdict is Verdict.UNCONFIRMED
    if delta is None or not delta.difference or not (delta.verdict.is_established or is_unconfirmed):
        return ""
    if any(find_work_contradiction(run) for step in comparison.steps for run in step.runs):
        return ""
    currency, scale = (
        spending.currency([*first.analyses, *last.analyses]),
        Figures(comparison).cost,
    )

    def show(size: float) -> str:
        return display.money(abs(size) * scale.factor, currency)

    amount, ends = show(delta.difference), delta.interval
    # an interval has both ends on one side of 0, or says nothing of the size
    if ends is not None and all(map(isfinite, ends)) and ends[0] * ends[1] > 0:
        low, high = map(show, sorted(ends, key=abs))
        amount += "" if low == high else f" ({low} to {high})"
    falls, per = delta.difference < 0, f"{scale.per}{'' if currency else ', no currency given'}"
    if is_unconfirmed:
        return f"Costs {amount} {'less' if falls else 'more'} {per}, unconfirmed."
    return f"Saves {amount} {per}." if falls else f"Costs {amount} more {per}."


def explain_missing_cost(comparison: Comparison) -> str:
    """Return why a price that was stated gives no cost per unit of work; empty where it does, and without a price."""
    priced = [run.gpu_hour_price is not None for step in comparison.steps for run in step.runs]
    ends = (comparison.steps[0], comparison.steps[-1])
    if len(comparison.steps) == 1 or not any(priced) or None not in {end.value(COST_PER_WORK) for end in ends}:
        return ""
    if not all(priced):
        return "No cost per unit of work: not every GPU has a price."
    if all(step.work_unit is not None for step in comparison.steps):
        return ""
    said = []
    for end in ends:
        totals = [each.cost.total for each in end.analyses if each.cost and each.cost.total is not None]
        said += [display.money(sum(totals) / len(totals), spending.currency(end.analyses))] if totals else []
    known = f"A run cost {said[0]}, then {said[1]}; no" if len(said) > 1 else "No"
    return f"{known} cost per unit without the work done (--work 9600:images, for each source where they differ)."


def format_training_cost(comparison: Comparison) -> str:
    """Return what work of the last step would cost at its training rate alone; empty where the cost is hardly more."""
    last = comparison.steps[-1]
    cost, share = last.value(COST_PER_WORK), _measure_outside_training(last)
    if not cost or share is None or share < _NOTABLE:
        return ""
    factor = Figures(comparison).cost.factor
    return display.money(cost * (1 - share) * factor, spending.currency(last.analyses))


def _measure_outside_training(step: Step) -> float | None:
    """Return the part of its runs by which the whole job was slower than training alone; None where not known."""
    whole, training = step.value(WORK_RATE), step.value(TRAINING_RATE)
    return 1 - whole / training if whole and training else None
