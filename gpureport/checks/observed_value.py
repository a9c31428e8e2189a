"""The value that a limit is checked against, as far as it is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from gpureport.checks.limit import Limit


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
class ObservedValue:
    """The value that a run shows of what is limited.

    Attributes:
        value: in the unit of the limit; None if it is not known.
        unit: unit of the value.
        text: the value in words, with its device.
        low: the lowest possible value, if part of it is not known; else None.
        high: the highest possible value, if part of it is not known; else None.
        missing: why the value is not known; false if it is.
        doubt: why the limit cannot pass, although it can be broken; false without doubt.
        note: what else a reader must know.
        unknown_part: what separates the lowest from the highest possible value.
        is_lower_bound: whether it is only known that the value is larger.
    """

    value: float | None = None
    unit: str = ""
    text: str = ""
    low: float | None = None
    high: float | None = None
    missing: Why = NO_REASON
    doubt: Why = NO_REASON
    note: Why = NO_REASON
    unknown_part: str = "time without samples"
    is_lower_bound: bool = False

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and highest possible value; None if it is exact or not known."""
        if self.value is not None and self.is_lower_bound:
            return self.value, inf
        if self.value is None or (self.low is None and self.high is None):
            return None
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        return None if low == high else (low, high)

    def breaks(self, limit: Limit) -> bool:
        """Return whether the limit is broken, whatever is still unknown."""
        return self.value is not None and not any(map(limit.holds, self._ends(self.value)))

    def keeps(self, limit: Limit) -> bool:
        """Return whether the limit is kept, whatever is still unknown."""
        return self.value is not None and not self.doubt and all(map(limit.holds, self._ends(self.value)))

    def _ends(self, value: float) -> tuple[float, float]:
        return self.bounds or (value, value)


def not_observed(code: str, text: str) -> ObservedValue:
    """Return a value that is not known, with the reason."""
    return ObservedValue(missing=Why(code, text))


def select_worst_device(limit: Limit, found: Sequence[ObservedValue]) -> ObservedValue:
    """Return the value of the device worst by a limit; doubt about one is doubt about the result."""
    known = [each for each in found if each.value is not None]
    if not known:
        return found[0]
    sign = 1 if limit.is_upper else -1
    chosen = max(known, key=lambda each: sign * (each.value or 0.0))
    lacking = next((each.missing or each.doubt for each in found if each.missing or each.doubt), NO_REASON)
    return ObservedValue(
        value=chosen.value,
        unit=chosen.unit,
        text=chosen.text,
        low=chosen.low,
        high=chosen.high,
        doubt=lacking,
        note=chosen.note,
    )
