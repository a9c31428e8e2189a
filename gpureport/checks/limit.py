"""A limit on one figure, what a run shows of that figure, and whether the limit is kept."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from gpureport.analysis.results import Analysis
from gpureport.checks.quantities import MONEY, NUMBER, Quantity, format_against_limit
from gpureport.comparison.run import SampledRun
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.findings import Confidence, Finding

FINAL, BEST = "final", "best"
"""Statistics of a training metric; the final value if none is named."""


class Subject(StrEnum):
    """What kind of thing is limited."""

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
        """What kind of thing it is on."""
        return self.figure.subject

    @property
    def is_upper(self) -> bool:
        """Whether it is an upper limit."""
        return self.relation.startswith("<")

    @property
    def needs_baseline(self) -> bool:
        """Whether it is on what differs from a baseline."""
        return self.subject in {Subject.CHANGE, Subject.NEW}

    @property
    def demands_change(self) -> bool:
        """Whether a limit on a change is broken where nothing changed."""
        return not self.holds(0.0)

    @property
    def size(self) -> str:
        """The size of the change that it allows or demands, as written."""
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
    """Return a value that is not known, with the reason."""
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
