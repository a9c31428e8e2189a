"""What a change saves in money, or why a stated price gives no cost per unit of work."""

from math import isfinite

from gpureport.comparison.steps.step_figures import COST_PER_WORK
from gpureport.comparison.steps.steps import Comparison, Delta, Step, Verdict
from gpureport.report.sections.gpus import spending
from gpureport.report.wording import display, work_scale

_NO_CURRENCY = ", no currency given"


def describe_saving(comparison: Comparison) -> str:
    """Return how much money the last step saves against the first: `Saves $3.28 ($3.24 to $3.31) per million images.`

    Empty without a cost per unit of work, and where the difference may be none.
    """
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = next((each for each in comparison.between(first.label, last.label) if each.metric == COST_PER_WORK), None)
    if delta is None or not delta.difference or not (delta.verdict.is_established or _is_unconfirmed(delta)):
        return ""
    currency = spending.currency([*first.analyses, *last.analyses])
    scale = work_scale.choose_work_scale((delta.before, delta.after), last.work_unit)
    size = display.money(abs(delta.difference) * scale.factor, currency)
    amount = f"{size}{_format_range(delta, scale.factor, currency)}"
    falls, named = delta.difference < 0, "" if currency else _NO_CURRENCY
    if _is_unconfirmed(delta):
        return f"Costs {amount} {'less' if falls else 'more'} {scale.per}{named}, unconfirmed."
    return f"Saves {amount} {scale.per}{named}." if falls else f"Costs {amount} more {scale.per}{named}."


def _is_unconfirmed(delta: Delta) -> bool:
    return delta.verdict is Verdict.UNCONFIRMED


def _format_range(delta: Delta, factor: float, currency: str) -> str:
    """Return the interval of a difference as amounts from small to large; empty where it is not bounded or crosses 0."""
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
    if any(step.work_unit is None for step in comparison.steps):
        known = f"A run cost {costs[0]}, then {costs[1]}; no" if all(costs) else "No"
        return f"{known} cost per unit without the work done (--work 9600:images)."
    return ""


def _mean_cost(step: Step) -> str:
    """Return what a run of a step cost in all, a mean over them; empty where not known."""
    totals = [each.cost.total for each in step.analyses if each.cost is not None and each.cost.total is not None]
    if len(totals) < len(step.analyses):
        return ""
    return display.money(sum(totals) / len(totals), spending.currency(step.analyses))
