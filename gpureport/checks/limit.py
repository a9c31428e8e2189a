"""A limit on one figure, its amount, what a run shows of that figure, and whether the limit is kept.

Amounts are written as people do (`5%`, `10 min`, `80 GiB`, `3 EUR`), and held in base units.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from math import isclose, isfinite

from gpureport.analysis.results import Analysis
from gpureport.comparison.run import SampledRun
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.findings import Confidence, Finding
from gpureport.parsing import UNITS, Unit
from gpureport.report.wording import display

SHARE, POINTS, TIME, MONEY, FINDINGS, COUNT, NUMBER = "1", "points", "s", "currency", "findings", "", "number"
"""Units of quantities besides the base units of metrics."""

_DECIMALS = 13
"""Enough decimals to show any difference that is not a rounding error."""

_LONGEST = 100
"""Characters of a quantity at most; the pattern takes as long as their square."""
_QUANTITY = re.compile(r"([+-]?(?:\d+(?:[.,]\d+)?|[.,]\d+))\s*(\S+)?")
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
"""A number whose comma may stand for thousands or for decimals."""
_CURRENCY = re.compile(r"[A-Z]{3}|[€$£¥]")
_SECONDS = {"min": 60, "h": 3600, "d": 86_400, "GPU-s": 1, "GPU-min": 60, "GPU-h": 3600}
# nvidia-smi says MB where it means MiB, a person does not
_UNITS = {name: unit for name, unit in UNITS.items() if name != "MB"} | {
    "points": Unit(POINTS, 1, 100),
    "point": Unit(POINTS, 1, 100),
    "findings": Unit(FINDINGS, 1),
    "finding": Unit(FINDINGS, 1),
    "GB": Unit("By", 10**9),
    "GB/s": Unit("By/s", 10**9),
    "Wh": Unit("J", 3600),
    "kWh": Unit("J", 3_600_000),
    "kJ": Unit("J", 1000),
    "MJ": Unit("J", 10**6),
    "g": Unit("g", 1),
    "kg": Unit("g", 1000),
    "/s": Unit("1/s", 1),
    **{name: Unit(TIME, seconds) for name, seconds in _SECONDS.items()},
}
_EXAMPLES = {
    SHARE: "a share such as 5%",
    POINTS: "points such as 2 points",
    TIME: "a time such as 10 min",
    MONEY: "money such as 3 EUR",
    FINDINGS: "a number of findings such as 3",
    COUNT: "a number such as 3",
    "By": "a size such as 80 GiB",
    "By/s": "a rate such as 12 GB/s",
    "W": "a power such as 300 W",
    "J": "an energy such as 2 kWh",
    "Cel": "a temperature such as 85 °C",
    "Hz": "a clock such as 1,500 MHz",
    NUMBER: "a number such as 0.78",
    "g": "a mass such as 2 kg",
    "1/s": "a rate such as 40 /s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number in its base unit (or a unit above, money with its currency), and the text that stated it."""

    value: float
    unit: str
    currency: str = ""
    text: str = ""


def parse_quantity(text: str) -> Quantity | None:
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None or _AMBIGUOUS.fullmatch(match[1]):
        return None
    number, word = float(match[1].replace(",", ".")), match[2] or ""
    is_money = _CURRENCY.fullmatch(word)
    unit = Unit(MONEY, 1) if is_money else _UNITS.get(word)
    if unit is None or not isfinite(unit.to_base(number)):
        return None
    currency = word if is_money else ""
    return Quantity(value=unit.to_base(number), unit=unit.base, currency=currency, text=_join(match[1], word))


def describe_unit(unit: str) -> str:
    return _EXAMPLES.get(unit, f"a number of {unit}")


def format_quantity(value: float, unit: str, currency: str = "") -> str:
    if unit == POINTS:
        return display.percentage_points(value)
    if unit == MONEY:
        return display.money(value, currency)
    if unit == NUMBER:
        return display.number(value)
    if unit == FINDINGS:
        return display.plural(round(value), "finding")
    return display.integer(value) if unit == COUNT else display.quantity(value, unit)


def format_against_limit(value: float, limit: Quantity, words: Callable[[float], str] | None = None) -> str:
    """Return a quantity, in the unit of a limit, in words that read as the limit only where it equals it.

    If both would read the same, the unit of the limit is used, with enough decimals to differ.
    """
    read = words or (lambda each: format_quantity(each, limit.unit, limit.currency))
    parts = _QUANTITY.fullmatch(limit.text)
    word = parts[2] or "" if parts else ""
    text, at_limit = read(value), read(limit.value)
    if isclose(value, limit.value):
        # a hair below 10 000 would print as 10000.00
        rounded = (shown := parse_quantity(at_limit)) and not isclose(shown.value, limit.value)
        return _join(parts[1], word, gap=display.GAP) if parts and rounded else at_limit
    if text != at_limit:
        return text
    scale = _UNITS.get(word, Unit(limit.unit, 1)).to_base(1)
    own, other = value / scale, limit.value / scale
    # with the fewest decimals that show on which side it is
    texts = (f"{own:.{decimals}f}" for decimals in range(_DECIMALS))
    differing = (text for text in texts if (float(text) > other) == (own > other) and not isclose(float(text), other))
    return _join(next(differing, str(own)), word, gap=display.GAP)


def _join(number: str, unit: str, gap: str = " ") -> str:
    """Return a number with its unit, a per cent sign without a space."""
    return f"{number}{'' if unit == '%' else gap}{unit}".rstrip()


FINAL, BEST = "final", "best"
"""Statistics of a training metric; the final value if none is named."""


class Subject(StrEnum):
    STATISTIC = "statistic of a device"
    FIGURE = "figure of the GPUs"
    RUN = "figure of the run"
    TRAINING = "figure of the training"
    FINDING = "findings"
    CHANGE = "change"
    NEW = "new findings"


@dataclass(frozen=True, slots=True)
class Figure:
    """What a name in a limit stands for: the units of its threshold, the usual one first, and how a run shows it."""

    subject: Subject
    units: tuple[str, ...]
    observe: "Callable[[Limit, CheckedRun], Observed]" = lambda *_: Observed()


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on one figure, or on findings; `words` are the limit as it can be written again."""

    figure: Figure
    name: str
    statistic: str
    relation: str
    threshold: Quantity
    words: str

    @property
    def subject(self) -> Subject:
        return self.figure.subject

    @property
    def is_upper(self) -> bool:
        return self.relation.startswith("<")

    @property
    def needs_baseline(self) -> bool:
        return self.subject in {Subject.CHANGE, Subject.NEW}

    @property
    def demands_change(self) -> bool:
        return not self.holds(0.0)

    @property
    def size(self) -> str:
        return self.threshold.text.lstrip("+-")

    @property
    def unit(self) -> str:
        """The unit of a value as checks show it: a plain number has none."""
        return "" if self.threshold.unit == NUMBER else self.threshold.unit

    def holds(self, value: float) -> bool:
        """Return whether a value is within it, up to rounding errors."""
        limit = self.threshold.value
        if isfinite(value) and abs(value - limit) <= 1e-9 * max(abs(value), abs(limit)):
            return self.relation.endswith("=")
        return value < limit if self.is_upper else value > limit


@dataclass(frozen=True, slots=True)
class Why:
    """A reason: its code, for programs, and a sentence for people. False without any."""

    code: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.text)


NO_REASON = Why()


def join_reasons(*reasons: Why) -> Why:
    """Return several reasons as one: all sentences, and the code of the first."""
    known = [reason for reason in reasons if reason]
    return Why(known[0].code, "; ".join(reason.text for reason in known)) if known else NO_REASON


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a run shows of what is limited.

    The value is in the unit of the limit. It lies between the ends where part of it, which `open_part` names, is not
    known. `doubt` is why there is no value, or why the limit cannot pass, although it can be broken.
    """

    value: float | None = None
    text: str = ""
    ends: tuple[float, float] | None = None
    doubt: Why = NO_REASON
    note: Why = NO_REASON
    open_part: str = "time without samples"

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and highest possible value; None if it is exact or not known."""
        return self.ends if self.ends and self.ends[0] < self.ends[1] else None

    def breaks(self, limit: Limit) -> bool:
        """Return whether the limit is broken, whatever is still unknown."""
        return self.value is not None and not any(map(limit.holds, self.bounds or (self.value,)))

    def keeps(self, limit: Limit) -> bool:
        """Return whether the limit is kept, whatever is still unknown; of a change the doubt says all."""
        if self.value is None or self.doubt:
            return False
        return limit.subject is Subject.CHANGE or all(map(limit.holds, self.bounds or (self.value,)))


NO_VALUE = Observed()


def not_observed(code: str, text: str) -> Observed:
    return Observed(doubt=Why(code, text))


def measured(limit: Limit, value: float, where: str = "", doubt: Why = NO_REASON) -> Observed:
    """Return a value that is known, in words that read as the limit only where it equals it."""
    return Observed(value=value, text=f"{format_against_limit(value, limit.threshold)}{where}", doubt=doubt)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRun:
    """A run that limits are held against, and what counts of it.

    Findings count from a confidence on. Acknowledged ones do not, nor do others than `only` some fingerprints; kinds
    that were not looked for cannot be judged.
    """

    sampled: SampledRun
    analysis: Analysis
    selected_kinds: Collection[str]
    goals: TrainingGoals = NO_GOALS
    confidence: Confidence = Confidence.MEDIUM
    acknowledged: Collection[Finding] = ()
    only: Collection[str] | None = None


def explain_currency(currency: str, limit: Limit) -> Why:
    """Return why a cost does not compare with a limit in another currency, and what to do; false where it does."""
    asked = limit.threshold.currency
    if limit.threshold.unit != MONEY or currency == asked:
        return NO_REASON
    if currency:
        return Why("other_currency", f"prices are stated in {currency}, not in {asked}")
    words = f'the price names no currency, and the limit is in {asked}: write currency = "{asked}" under [prices]'
    return Why("no_currency", words)
