"""What a run shows of one thing that is limited, as far as it is known."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.checks.limit import Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedValue:
    """What was observed of what a limit is on.

    Attributes:
        value: in the unit of the limit; None where nothing is known.
        unit: that unit.
        text: the value in words, with the device it is of.
        low: the lowest it can be, where part of it is not known; the value else.
        high: the highest it can be.
        missing: why nothing is known; empty where something is.
        doubt: why nothing may pass for it, though what is known may break a limit; empty where nothing stands against.
        note: what a reader must know beside it.
    """

    value: float | None = None
    unit: str = ""
    text: str = ""
    low: float | None = None
    high: float | None = None
    missing: str = ""
    doubt: str = ""
    note: str = ""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and highest it can be; None where the value is exact or not known."""
        if self.value is None or (self.low is None and self.high is None):
            return None
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        return None if low == high else (low, high)

    def broken(self, limit: Limit) -> bool:
        """Whether the limit is broken whatever is not known."""
        return self.value is not None and not any(map(limit.holds, self._ends(self.value)))

    def kept(self, limit: Limit) -> bool:
        """Whether the limit is kept whatever is not known."""
        return self.value is not None and not self.doubt and all(map(limit.holds, self._ends(self.value)))

    def _ends(self, value: float) -> tuple[float, float]:
        return self.bounds or (value, value)


def not_observed(why: str) -> ObservedValue:
    """Return that nothing is known."""
    return ObservedValue(missing=why)


def select_worst_device(limit: Limit, found: Sequence[ObservedValue]) -> ObservedValue:
    """Return of several devices the one that is furthest on the wrong side of a limit; what one lacks, all lack."""
    known = [each for each in found if each.value is not None]
    if not known:
        return found[0]
    sign = 1 if limit.most else -1
    chosen = max(known, key=lambda each: sign * (each.value or 0.0))
    lacking = next((each.missing or each.doubt for each in found if each.missing or each.doubt), "")
    return ObservedValue(
        value=chosen.value,
        unit=chosen.unit,
        text=chosen.text,
        low=chosen.low,
        high=chosen.high,
        doubt=lacking,
        note=chosen.note,
    )
