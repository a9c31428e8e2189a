"""GPU time and money as the page prints them: one unit and one currency throughout."""

from dataclasses import dataclass

from gpureport.comparison.gains import NOTABLE_RATIO
from gpureport.fleet.fleet_report import FleetReport, TimeUse
from gpureport.report.wording import display

PRICE_OPTION = "--gpu-hour-price '2.49 EUR'"
UNKNOWN = "not known"

_HOURS_FROM, _MINUTES_FROM = 10 * 3600.0, 600.0
"""GPU time of all runs from which hours and minutes are its unit, in GPU-seconds."""

_WHOLE_FROM = 100
"""Amount from which money is printed without decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """The unit of GPU time and the currency of a page.

    Attributes:
        unit: of GPU time: `GPU-h`.
        long_unit: the same at length: `GPU-hours`.
        size: one of it, in GPU-seconds.
        currency: of money; empty where none is stated.
        is_priced: whether any cost is known, so that money is shown at all.
    """

    unit: str
    long_unit: str
    size: float
    currency: str
    is_priced: bool

    def scale(self, gpu_seconds: float) -> float:
        """Return GPU time in the unit of the page."""
        return gpu_seconds / self.size

    def format_time(self, gpu_seconds: float) -> str:
        """Return GPU time without its unit, for columns."""
        return display.number(self.scale(gpu_seconds))

    def format_time_and_unit(self, gpu_seconds: float) -> str:
        """Return GPU time with its unit."""
        return f"{self.format_time(gpu_seconds)}{display.GAP}{self.unit}"

    def format_money(self, cost: float | None) -> str:
        """Return a cost, in whole units from 100 on; `not known` for None."""
        if cost is None:
            return UNKNOWN
        if 0 < abs(cost) < _WHOLE_FROM:
            return display.money(cost, self.currency)
        return display.money(round(cost), self.currency).replace(".00", "")

    def format_lost_cost(self, use: TimeUse) -> str:
        """Return what the time lost by some runs cost; nothing lost has no cost, whatever the price."""
        return self.format_money(use.lost_cost if use.lost_gpu_seconds else 0.0)

    def format_both(self, gpu_seconds: float, cost: float | None) -> str:
        """Return GPU time, and its cost where that is known: `2,310 GPU-h, $5,775`."""
        money = [self.format_money(cost)] if cost is not None else []
        return ", ".join([self.format_time_and_unit(gpu_seconds), *money])


def choose_amounts(report: FleetReport) -> Amounts:
    """Return the unit in which the GPU time of all runs reads well, and the currency."""
    seconds = report.use.gpu_seconds
    units = (
        ("GPU-h", "GPU-hours", 3600.0, _HOURS_FROM),
        ("GPU-min", "GPU-minutes", 60.0, _MINUTES_FROM),
        ("GPU-s", "GPU-seconds", 1.0, 0.0),
    )
    unit, long_unit, size, _ = next(each for each in units if seconds >= each[-1])
    costs = (report.use.cost, *(group.use.cost for by in report.groupings for group in by.groups))
    return Amounts(
        unit=unit,
        long_unit=long_unit,
        size=size,
        currency=report.prices.currency,
        is_priced=any(cost is not None for cost in costs),
    )


def explain_prices(report: FleetReport, amounts: Amounts) -> str:
    """Return what a reader must know of money, in one sentence; empty where it is all there."""
    if report.prices.unpriced_models:
        models = display.join_words([display.clean(model) for model in report.prices.unpriced_models[:3]])
        more = len(report.prices.unpriced_models) - 3
        others = f" and {display.plural(more, 'other model')}" if more > 0 else ""
        return f"No price given for {models}{others}, so the cost of all runs is not known."
    if not amounts.is_priced:
        return f"No price given, so no cost ({PRICE_OPTION})."
    return "" if amounts.currency else f"Cost: no currency given ({PRICE_OPTION})."


def format_lost_share(use: TimeUse, *, is_lower_bound: bool = False) -> str:
    """Return the share of GPU time that was lost; `not recorded` where nothing is known of it.

    Args:
        use: of one run or more.
        is_lower_bound: whether more may be lost; a tiny bound is `not known`.
    """
    known = use.gpu_seconds - use.unknown_gpu_seconds
    if is_lower_bound and known > 0 and use.lost_ratio is not None:
        return f"at least {display.percent(use.lost_ratio)}" if use.lost_ratio >= NOTABLE_RATIO else UNKNOWN
    return display.or_not_recorded(use.lost_ratio if known > 0 else None, display.percent)
