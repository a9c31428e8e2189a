"""The wording of the fleet page: GPU time in one unit, money in one currency, names, and days."""

from calendar import monthrange
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from gpureport.analysis.rulebook import GROUPS
from gpureport.comparison.gains import NOTABLE_RATIO
from gpureport.fleet.cards import Facts
from gpureport.importers import LOCATORS
from gpureport.importers.runs import longer_names
from gpureport.names import BY_NAME
from gpureport.report.wording import display

PRICE_OPTION = "--gpu-hour-price '2.49 EUR'"
UNKNOWN = "not known"
_UNITS = (
    ("GPU-h", "GPU-hours", 3600.0, 36_000.0),
    ("GPU-min", "GPU-minutes", 60.0, 600.0),
    ("GPU-s", "GPU-seconds", 1.0, 0.0),
)
"""Units of GPU time, each with its size and the smallest total for which it is used, in GPU-seconds."""
_WHOLE_FROM = 100  # smallest amount of money shown without decimals
_NAME, _ID = 64, 8
"""Maximum length of a name, and length of an id's unique prefix."""
_EDGE, _DAYS_FROM = 2, 2 * 86_400
"""Days that a whole month may lack at either end, and minimum seconds for a period given in days."""
_MODELS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """A page's unit of GPU time (`size` in GPU-seconds), its currency, and whether any cost is known."""

    unit: str
    long_unit: str
    size: float
    currency: str
    is_priced: bool

    def format_time(self, gpu_seconds: float) -> str:
        return display.number(gpu_seconds / self.size)

    def format_money(self, cost: float | None) -> str:
        if cost is None:
            return UNKNOWN
        if 0 < abs(cost) < _WHOLE_FROM:
            return display.money(cost, self.currency)
        return display.money(round(cost), self.currency).replace(".00", "")

    def format_both(self, gpu_seconds: float, cost: float | None = None) -> str:
        time = f"{self.format_time(gpu_seconds)}{display.GAP}{self.unit}"
        return time if cost is None else f"{self.format_money(cost)} ({time})"


def choose_amounts(report: Facts) -> Amounts:
    unit, long_unit, size, _ = next(each for each in _UNITS if report["use"]["gpu_seconds"] >= each[-1])
    uses = (report["use"], *(group["use"] for by in report["groupings"] for group in by["groups"]))
    is_priced = any(use["cost"] is not None for use in uses)
    currency = report["prices"]["currency"]
    return Amounts(unit=unit, long_unit=long_unit, size=size, currency=currency, is_priced=is_priced)


def explain_prices(report: Facts, amounts: Amounts) -> str:
    if unpriced := report["prices"]["unpriced_models"]:
        more = len(unpriced) - _MODELS
        models = [*map(display.clean, unpriced[:_MODELS]), *[display.plural(more, "other model")] * (more > 0)]
        return f"No price is given for {display.join_words(models)}, so the total cost is not known."
    if not amounts.is_priced:
        return f"No cost is known without a price ({PRICE_OPTION})."
    return "" if amounts.currency else f"Cost: no currency given ({PRICE_OPTION})."


def format_lost_share(use: Facts, *, is_lower_bound: bool = False) -> str:
    ratio = use["lost_ratio"] if use["gpu_seconds"] > use["unknown_gpu_seconds"] else None
    if is_lower_bound and ratio is not None:
        return f"at least {display.percent(ratio)}" if ratio >= NOTABLE_RATIO else UNKNOWN
    return display.or_not_recorded(ratio, display.percent)


def saves_nothing(saving: Facts) -> bool:
    """Return whether a step only looks for the cause of a loss."""
    return saving["step"] in GROUPS["probe"]


def describe_gain(saving: Facts, amounts: Amounts) -> str:
    amount, runs = amounts.format_both(saving["gpu_seconds"], saving["cost"]), display.plural(saving["runs"], "run")
    return f"{amount} lost in {runs}, cause unknown" if saves_nothing(saving) else f"up to {amount}, in {runs}"


def count_cards(health: Facts, verdict: str) -> int:
    # without uuid and node, several runs may have used one GPU
    cards = [card for card in health["cards"] if card["verdict"] == verdict]
    return len({(card["uuid"], card["node"], card["model"], card["device"]) for card in cards})


def shorten_name(name: str) -> str:
    return display.shorten_middle(display.clean(name), _NAME)


def name_label(label: str) -> str:
    return BY_NAME[label].title if label in BY_NAME else shorten_name(label)


def name_runs(runs: Sequence[Facts]) -> list[str]:
    """Return the names. Duplicates get the part of the path that differs, or the id."""
    known = {run["id"]: run for run in runs}
    names = Counter(run["name"] for run in known.values())
    logs = [run for run in known.values() if run["source"] and not run["source"].startswith(LOCATORS)]
    logs = [run for run in logs if names[run["name"]] > 1]
    paths = longer_names([run["source"] for run in logs])
    shown = {run["id"]: path for run, path in zip(logs, paths, strict=True) if paths.count(path) == 1}
    beside = {key: f" ({shorten_name(shown.get(key, key[:_ID]))})" for key in known}
    return [f"{shorten_name(run['name'])}{beside[run['id']] if names[run['name']] > 1 else ''}" for run in runs]


def describe_period(report: Facts) -> tuple[str, str]:
    """Return the length (`in October`, `in 18 days`) and dates (`1 to 31 October 2026`) of the period, if known."""
    if report["started"] is None:
        return "", ""
    start, end = (datetime.fromtimestamp(report[name] / 1e6, UTC).date() for name in ("started", "ended"))
    seconds = (report["ended"] - report["started"]) / 1e6
    length = f"in {display.duration(seconds) if seconds < _DAYS_FROM else f'{(end - start).days + 1} days'}"
    is_month = (start.year, start.month) == (end.year, end.month)
    if is_month and start.day <= 1 + _EDGE and end.day >= monthrange(end.year, end.month)[1] - _EDGE:
        length = f"in {start:%B}"
    first = format_day(start) if start.year != end.year else f"{start.day} {start:%B}"
    if is_month:
        first = str(start.day)
    return length, format_day(end) if start == end else f"{first} to {format_day(end)}"


def format_day(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"
