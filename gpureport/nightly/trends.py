"""The trend of each figure over the nights, its changes, and events that combine them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from gpureport.comparison.figures import FINEST_RATIO, TIMED_FIGURES
from gpureport.names import group_pairs
from gpureport.nightly.figures import FIGURES, SAMPLING, WORK_FIGURES, FigureKind
from gpureport.nightly.records import CURRENCY, NightlyRecord, NightlyRun
from gpureport.nightly.shifts import FEWEST, SHORTEST, LevelShift, detect_changes, keep_shifts, select_new_shifts
from gpureport.report.wording.terms import name_figure, per_batch

_TIME_FIGURES = ("lost_ratio", "gpu_utilization_ratio", "idle_ratio")
"""Figures by which a job with unknown work is judged, in order of precedence."""


class ParamChange(NamedTuple):
    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureChange:
    """A change in a figure, the first night that shows it, and the params that changed that night."""

    date: str
    label: str
    shift: LevelShift
    verdict: str
    changed_params: tuple[ParamChange, ...]
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The mean of a figure over one night's runs, or None if it was not recorded."""

    date: str
    label: str
    value: float | None
    runs: tuple[NightlyRun, ...]
    is_on_other_gpus: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One figure for one step on one GPU model, with a point per night."""

    group: tuple[str, str]
    kind: FigureKind
    points: tuple[Point, ...]
    changes: tuple[FigureChange, ...]
    emerging: LevelShift | None  # the new change that shows if the latest value lasts

    @property
    def recorded_points(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.value is not None)

    @property
    def is_no_longer_recorded(self) -> bool:
        lacks_value = bool(self.points[-1].runs) and self.points[-1].value is None
        before = [point for point in self.points[:-1] if point.runs]
        return lacks_value and any(point.value is not None for point in before[-FEWEST:])

    @property
    def nights_needed(self) -> int:
        return max(FEWEST - len(self.recorded_points), 0)


def build_trends(nights: Sequence[NightlyRecord]) -> tuple[Trend, ...]:
    dates = {night.date: night.label for night in nights}
    measured_runs = ((night, run) for night in nights for run in night.measured_runs)
    held = group_pairs(((run.group, night.date), (night, run)) for night, run in measured_runs)
    found, measured = [], {(step, date) for (step, _), date in held}
    for group in sorted({group for group, _ in held}):
        own = [(*day, held.get((group, day[0]), ()), (group[0], day[0]) in measured) for day in sorted(dates.items())]
        found += [_build_trend(group, kind, tuple(_build_point(*each, kind.name) for each in own)) for kind in FIGURES]
    return tuple(trend for trend in found if trend.recorded_points)


def _build_point(
    date: str, label: str, held: Sequence[tuple[NightlyRecord, NightlyRun]], is_measured: bool, name: str
) -> Point:
    values = [value for _, run in held if not run.failure and (value := run.value(name)) is not None]
    runs = []
    for night, run in held:
        # the driver, GPUs and version may affect figures as params do
        beside = {"driver": run.driver, "GPUs": str(run.gpus), "gpureport": night.version}
        runs.append(replace(run, params=(*run.params, *((key, value) for key, value in beside.items() if value))))
    value, own = sum(values) / len(values) if values else None, held[-1][0].label if held else label
    return Point(date=date, label=own, value=value, runs=tuple(runs), is_on_other_gpus=is_measured and not held)


def _build_trend(group: tuple[str, str], kind: FigureKind, points: tuple[Point, ...]) -> Trend:
    units = [{run.work_unit for run in each.runs if run.value(kind.name) is not None} for each in points]
    unit = next((min(each) for each in reversed(units) if len(each) == 1), "")
    if kind.is_of_work:
        # work in a different unit from the newest cannot be compared
        points = tuple(replace(at, value=None) if held - {unit} else at for at, held in zip(points, units, strict=True))
    known = [point for point in points if point.value is not None]
    values = np.array([point.value for point in known], dtype=np.float64)
    has_value = points[-1].value is not None
    lasting = np.pad(values, (0, SHORTEST - 1), "edge") if has_value and len(values) >= FEWEST else values
    last, *fits = (
        detect_changes(each, smallest=kind.smallest, relative=kind.relative, grain=kind.grain)
        for each in (lasting, *(values[: len(values) - lacking] for lacking in range(SHORTEST + 1)))
    )
    found, before = keep_shifts(fits[:-1]), keep_shifts(fits[1:])
    # a change visible the night before is not new, nor is anything in a night without a value
    newest = {each.place for each in select_new_shifts(found, before)} if has_value else set()
    shifts = _widen_intervals(found, known) if kind.name in TIMED_FIGURES else found
    stated = {dict(run.params).get(CURRENCY, "") for point in known for run in point.runs}
    title = name_figure(kind.name, per_batch(unit)) if unit and kind.is_of_work else kind.title
    return Trend(
        group=group,
        kind=replace(kind, title=title, currency=stated.pop() if len(stated) == 1 else ""),
        points=points,
        changes=tuple(_build_change(known, each, kind, is_new=each.place in newest) for each in shifts),
        emerging=next(iter(select_new_shifts(last[-1:], found)), None),
    )


def _widen_intervals(shifts: Sequence[LevelShift], known: Sequence[Point]) -> Iterator[LevelShift]:
    """Widen the intervals of changes to at least the sampling error of job lengths.

    Every job has the same error, because recordings start with the job, so more nights do not average it out.
    """
    places = [0, *(shift.place for shift in shifts), len(known)]
    for at, shift in enumerate(shifts, 1):
        runs = [run for point in known[places[at - 1] : places[at + 1]] for run in point.runs]
        sampled = [step for run in runs if (step := run.value(SAMPLING)) is not None]
        least = max([FINEST_RATIO, *sampled]) * abs(shift.after)
        low, high = min(shift.low, shift.difference - least), max(shift.high, shift.difference + least)
        yield replace(shift, low=low, high=high)


def _build_change(known: Sequence[Point], step: LevelShift, kind: FigureKind, *, is_new: bool) -> FigureChange:
    after, before = known[step.place], known[step.place - 1]
    verdict = "better" if (step.difference > 0) == (kind.better == "higher") else "worse"
    # join the different values of several runs
    old, new = _collect_params(before.runs), _collect_params(after.runs)
    params = [ParamChange(key, old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys())]
    return FigureChange(
        date=after.date,
        label=after.label,
        shift=step,
        verdict=verdict if kind.better else "changed",
        changed_params=tuple(each for each in params if each.before != each.after),
        is_new=is_new,
    )


def _collect_params(runs: Iterable[NightlyRun]) -> dict[str, str]:
    held = group_pairs(pair for run in runs for pair in run.params)
    # a currency does not slow a job, and records from earlier versions lack it
    return {key: ", ".join(sorted({*values})) for key, values in held.items() if key != CURRENCY}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvent:
    """Changes in one step on one GPU model that start within a few nights of each other.

    The job's own figure comes first and decides the verdict, which is `changed` if it stayed the same. An event is new
    if the latest night is the first to show its deciding change, and undone if a later change reversed it.
    """

    date: str
    label: str
    changes: tuple[tuple[Trend, FigureChange], ...]
    verdict: str
    is_new: bool
    is_undone: bool = False

    @property
    def group(self) -> tuple[str, str]:
        return self.changes[0][0].group

    @property
    def changed_params(self) -> tuple[ParamChange, ...]:
        return tuple(dict.fromkeys(param for _, change in self.changes for param in change.changed_params))


def group_changes(trends: Sequence[Trend]) -> tuple[ChangeEvent, ...]:
    """Return the changes in all figures as events, earliest first.

    A group with known work is judged by figures per unit of work, since a faster job can have a larger idle share. A
    change more than two nights after the first change in an event starts a new event.
    """
    events = []
    for _, group in groupby(trends, key=lambda trend: trend.group):
        own = list(group)
        nights = {point.date: place for place, point in enumerate(own[0].points)}
        clusters: list[list[tuple[Trend, FigureChange]]] = []
        for entry in sorted(
            ((trend, each) for trend in own for each in trend.changes), key=lambda entry: entry[1].date
        ):
            if not clusters or nights[entry[1].date] - nights[clusters[-1][0][1].date] >= SHORTEST:
                clusters.append([])
            clusters[-1].append(entry)
        events += [_build_event(held, _list_own_figures(own)) for held in clusters]
    return tuple(sorted(events, key=lambda event: (event.date, event.group)))


def _list_own_figures(trends: Iterable[Trend]) -> tuple[str, ...]:
    return WORK_FIGURES if any(trend.kind.is_of_work for trend in trends) else _TIME_FIGURES


def list_own_trends(trends: Iterable[Trend], group: tuple[str, str]) -> list[Trend]:
    held = [trend for trend in trends if trend.group == group]
    return [trend for name in _list_own_figures(held) for trend in held if trend.kind.name == name] or held


def _build_event(held: Sequence[tuple[Trend, FigureChange]], own: Sequence[str]) -> ChangeEvent:
    ranks = {name: place for place, name in enumerate(own)}
    ordered = sorted(held, key=lambda entry: ranks.get(entry[0].kind.name, len(own)))
    trend, change = ordered[0]
    is_own = trend.kind.name in ranks
    verdict = change.verdict if is_own else "changed"
    deciding = [each for other, each in ordered if (other.kind.name in ranks) == is_own]
    is_known = any(not each.is_new and (not is_own or each.verdict == verdict) for each in deciding)
    # once a later change has restored the level, the event is over, whatever follows
    later = [each.shift.after for each in trend.changes if each.date >= change.date]
    return ChangeEvent(
        date=held[0][1].date,
        label=held[0][1].label,
        changes=tuple(ordered),
        verdict=verdict,
        is_new=change.is_new and not is_known,
        is_undone=is_own and any(change.shift.is_undone_at(level) for level in later),
    )


Verdicts = dict[tuple[tuple[str, str], str, str], str]
"""The verdict on each change's event, by group, figure and night."""


def map_verdicts(events: Iterable[ChangeEvent]) -> Verdicts:
    return {
        (trend.group, trend.kind.name, change.date): event.verdict
        for event in events
        for trend, change in event.changes
    }
