"""What the newest night says: what is new, what is missing, and of what nothing can be said yet."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.nightly.changes.change_detection import FEWEST
from gpureport.nightly.changes.trend import FigureChange, Trend
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun

_VERDICTS = ("worse", "changed", "better")


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestNight:
    """The newest night of a history.

    Attributes:
        date: the night; empty where none is recorded.
        nights: what was recorded in it: jobs side by side record one each.
        groups: step and GPUs of its runs, each once.
        new: changes that it was needed to see, those for the worse first.
        silent: figures that its runs do not tell, though runs of the nights before did.
        short: groups of which no change can be told yet, with the nights that are still needed.
    """

    date: str
    nights: tuple[NightlyRecord, ...]
    groups: tuple[tuple[str, str], ...]
    new: tuple[tuple[Trend, FigureChange], ...]
    silent: tuple[Trend, ...]
    short: tuple[tuple[tuple[str, str], int], ...]

    @property
    def missing(self) -> tuple[NightlyRun, ...]:
        """Its sources without data."""
        return tuple(part for night in self.nights for part in night.missing)

    @property
    def worse(self) -> bool:
        """Whether any change that it was needed to see is one for the worse."""
        return any(change.verdict == "worse" for _, change in self.new)

    @property
    def judged(self) -> bool:
        """Whether every run of it, and it has one, was held against the nights before in every figure it had."""
        return bool(self.groups) and not self.silent and not self.short


def summarize_latest_night(nights: Sequence[NightlyRecord], trends: Sequence[Trend]) -> LatestNight:
    """Return what the newest night says.

    Args:
        nights: all nights, the oldest first.
        trends: the course of every figure.
    """
    date = nights[-1].date if nights else ""
    own = tuple(night for night in nights if night.date == date)
    groups = sorted({(part.step, part.model) for night in own for part in night.measured})
    needed = {
        group: min((trend.missing for trend in trends if trend.group == group), default=FEWEST) for group in groups
    }
    new = [(trend, change) for trend in trends for change in trend.changes if change.new]
    return LatestNight(
        date=date,
        nights=own,
        groups=tuple(groups),
        new=tuple(sorted(new, key=lambda entry: _VERDICTS.index(entry[1].verdict))),
        silent=tuple(trend for trend in trends if trend.silent),
        short=tuple((group, count) for group, count in needed.items() if count),
    )
