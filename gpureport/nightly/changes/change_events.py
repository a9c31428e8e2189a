"""Changes that begin together, as one event: what the job gained or lost, and what changed with it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, WORK_RATE
from gpureport.nightly.changes.change_detection import LevelShift
from gpureport.nightly.changes.level_fit import SHORTEST
from gpureport.nightly.changes.trend import FigureChange, ParamChange, Point, Trend

_WORK_FIGURES = (PER_WORK, WORK_RATE, COST_PER_WORK, ENERGY_PER_WORK)
"""What a job gets for its GPU time, the first that changed before the others."""

_TIME_FIGURES = ("lost_ratio", "gpu_utilization_ratio", "idle_ratio")
"""The figures of a job whose work is not known."""

_LEFT = 0.1
"""Part of a change that may be left once a later one has undone it (pragmatic)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvent:
    """Changes of the runs of one step on one model of GPU that begin within a few nights of each other.

    Attributes:
        date: the first night of them.
        label: another name of that night.
        changes: the figures that changed; the job's own first, then in the order of figures.
        verdict: `worse` or `better` by the job's own figure; `changed` where that stayed the same.
        is_new: whether the latest night is the first to show it: what decides the verdict, not a figure that joins it.
        is_undone: whether a later change took the job's own figure back to where it was before.
    """

    date: str
    label: str
    changes: tuple[tuple[Trend, FigureChange], ...]
    verdict: str
    is_new: bool
    is_undone: bool = False

    @property
    def group(self) -> tuple[str, str]:
        """Step and GPUs of its runs."""
        return self.changes[0][0].group

    @property
    def present_shift(self) -> LevelShift:
        """From the level before it to the level of today, which later changes may have moved."""
        trend, change = self.changes[0]
        return (
            change.shift if change is trend.changes[-1] else replace(change.shift, after=trend.changes[-1].shift.after)
        )

    @property
    def last_night_before(self) -> Point:
        """The last night with a value before it."""
        trend, change = self.changes[0]
        return trend.recorded_points[change.shift.place - 1]

    @property
    def changed_params(self) -> tuple[ParamChange, ...]:
        """Params that changed with it, each once."""
        return tuple(dict.fromkeys(param for _, change in self.changes for param in change.changed_params))


def group_changes(trends: Sequence[Trend]) -> tuple[ChangeEvent, ...]:
    """Return the changes of all figures as events, the earliest first.

    A group whose work is known is judged by what the work took: a job that got faster can show a larger idle share.
    A group without it is judged by the share of GPU time that it lost, then by its utilisation.
    """
    events = [
        event for _, group in groupby(trends, key=lambda trend: trend.group) for event in _events_of_group(list(group))
    ]
    return tuple(sorted(events, key=lambda event: (event.date, event.group)))


def _events_of_group(trends: Sequence[Trend]) -> Iterator[ChangeEvent]:
    """Yield the events of one group; more than two nights after its first change the next begins."""
    own = _own_figures(trends)
    nights = {point.date: place for place, point in enumerate(trends[0].points)}
    held: list[tuple[Trend, FigureChange]] = []
    found = [(trend, change) for trend in trends for change in trend.changes]
    for trend, change in sorted(found, key=lambda entry: entry[1].date):
        if held and nights[change.date] - nights[held[0][1].date] >= SHORTEST:
            yield _build_event(held, own)
            held = []
        held.append((trend, change))
    if held:
        yield _build_event(held, own)


def _own_figures(trends: Iterable[Trend]) -> tuple[str, ...]:
    recorded = {trend.kind.name for trend in trends}
    return _WORK_FIGURES if recorded & {*_WORK_FIGURES} else _TIME_FIGURES


def _build_event(held: Sequence[tuple[Trend, FigureChange]], own: Sequence[str]) -> ChangeEvent:
    ranks = {name: place for place, name in enumerate(own)}
    ordered = sorted(held, key=lambda entry: ranks.get(entry[0].kind.name, len(own)))
    trend, change = ordered[0]
    first = held[0][1]
    is_own = trend.kind.name in ranks
    verdict = change.verdict if is_own else "changed"
    deciding = [each for other, each in ordered if (other.kind.name in ranks) == is_own]
    known = [each for each in deciding if not each.is_new and (not is_own or each.verdict == verdict)]
    return ChangeEvent(
        date=first.date,
        label=first.label,
        changes=tuple(ordered),
        verdict=verdict,
        is_new=change.is_new and not known,
        is_undone=is_own and _is_undone(trend, change),
    )


def _is_undone(trend: Trend, change: FigureChange) -> bool:
    """Return whether a figure is back where it was before a change, but for a small part of it."""
    if change is trend.changes[-1]:
        return False
    left = (trend.changes[-1].shift.after - change.shift.before) / change.shift.difference
    return left <= _LEFT


@dataclass(frozen=True, slots=True, kw_only=True)
class EventVerdicts:
    """The verdict of the event that each change belongs to."""

    by_change: Mapping[tuple[tuple[str, str], str, str], str]

    def of(self, trend: Trend, change: FigureChange) -> str:
        """Return `worse`, `better` or `changed`."""
        return self.by_change[trend.group, trend.kind.name, change.date]


def judge_events(events: Iterable[ChangeEvent]) -> EventVerdicts:
    """Return the verdicts of events, to be looked up by change."""
    return EventVerdicts(
        by_change={
            (trend.group, trend.kind.name, change.date): event.verdict
            for event in events
            for trend, change in event.changes
        }
    )


def own_trend(trends: Sequence[Trend]) -> Trend | None:
    """Return the course of the own figure of one group, if any was recorded."""
    recorded = {trend.kind.name: trend for trend in trends}
    return next((recorded[name] for name in _own_figures(trends) if name in recorded), None)
