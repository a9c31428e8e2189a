"""The course of each figure over the nights, its changes, and which params changed with them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpureport.comparison.figures import FINEST_RATIO
from gpureport.nightly.changes.change_detection import (
    FEWEST,
    LevelShift,
    detect_changes,
    select_new_shifts,
    widen_interval,
)
from gpureport.nightly.history.night_figures import FIGURES, SAMPLING, FigureKind
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamChange:
    """A param that changed; a value is None if the param was absent."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureChange:
    """A figure that changed.

    Attributes:
        date: first night that shows it.
        label: another name of that night.
        shift: its size, with the interval.
        verdict: `worse`, `better`, or `changed` if neither.
        changed_params: params, driver and version that changed in that night.
        is_new: whether the latest night is the first to show it.
    """

    date: str
    label: str
    shift: LevelShift
    verdict: str
    changed_params: tuple[ParamChange, ...]
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A figure in one night: the mean over its runs; None if not recorded."""

    date: str
    label: str
    value: float | None
    runs: tuple[NightlyRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The course of one figure of the runs of one step on one model of GPU.

    Attributes:
        step: label of the step; empty without one.
        model: the GPUs.
        kind: the figure.
        points: one for each night of the history, in order.
        changes: the earliest first.
    """

    step: str
    model: str
    kind: FigureKind
    points: tuple[Point, ...]
    changes: tuple[FigureChange, ...]

    @property
    def recorded_points(self) -> tuple[Point, ...]:
        """Nights with a value."""
        return tuple(point for point in self.points if point.value is not None)

    @property
    def group(self) -> tuple[str, str]:
        """Step and GPUs, by which runs are followed."""
        return self.step, self.model

    @property
    def is_no_longer_recorded(self) -> bool:
        """Whether the latest night has runs without this figure, unlike one of the ten before."""
        if not self.points[-1].runs or self.points[-1].value is not None:
            return False
        before = [point for point in self.points[:-1] if point.runs]
        return any(point.value is not None for point in before[-FEWEST:])

    @property
    def nights_needed(self) -> int:
        """How many more nights with a value are needed before a change can be detected."""
        return max(FEWEST - len(self.recorded_points), 0)


def build_trends(nights: Sequence[NightlyRecord]) -> tuple[Trend, ...]:
    """Return the course of every recorded figure, by step and model, in their usual order."""
    dates = {night.date: night.label for night in nights}
    grouped: defaultdict[tuple[str, str], defaultdict[str, list[tuple[NightlyRecord, NightlyRun]]]]
    grouped = defaultdict(lambda: defaultdict(list))
    for night in nights:
        for run in night.measured_runs:
            grouped[run.step, run.model][night.date].append((night, run))
    found = []
    for (step, model), held in sorted(grouped.items()):
        for kind in FIGURES:
            points = tuple(
                _build_point(date, label, held.get(date, []), kind.name) for date, label in sorted(dates.items())
            )
            if any(point.value is not None for point in points):
                found.append(_build_trend(step, model, kind, points))
    return tuple(found)


def _build_point(date: str, label: str, held: Sequence[tuple[NightlyRecord, NightlyRun]], name: str) -> Point:
    values = [value for _, run in held if (value := run.value(name)) is not None]
    own = next((night.label for night, _ in reversed(held)), label)
    runs = tuple(_add_version_params(night, run) for night, run in held)
    return Point(date=date, label=own, value=sum(values) / len(values) if values else None, runs=runs)


def _add_version_params(night: NightlyRecord, run: NightlyRun) -> NightlyRun:
    """Return a run with driver, GPUs and version as params: another version may give other figures."""
    beside = (("driver", run.driver), ("GPUs", str(run.gpus)), ("gpureport", night.version))
    return replace(run, params=(*run.params, *((key, value) for key, value in beside if value)))


def _build_trend(step: str, model: str, kind: FigureKind, points: tuple[Point, ...]) -> Trend:
    known = [point for point in points if point.value is not None]
    values = np.array([point.value for point in known], dtype=np.float64)
    found, before = (_detect_shifts(each, kind) for each in (values, values[:-1]))
    # a change seen the night before is not new, and nothing is new in a night without a value
    newest = {each.place for each in select_new_shifts(found, before)} if points[-1].value is not None else set()
    units = [run.work_unit for point in known for run in point.runs]
    return Trend(
        step=step,
        model=model,
        kind=kind.per_unit(units[-1]) if units else kind,
        points=points,
        changes=tuple(
            _build_change(known, each, kind, new=each.place in newest) for each in _widen_intervals(found, known, kind)
        ),
    )


def _widen_intervals(shifts: Sequence[LevelShift], known: Sequence[Point], kind: FigureKind) -> Iterator[LevelShift]:
    """Yield changes no finer than the nights beside each know a figure: what goes by how long a job took, as sampled.

    Jobs are off alike, since recordings begin with them, so that no number of nights averages it out. Nights whose
    sampling was not recorded count as those beside them do.
    """
    places = [0, *(shift.place for shift in shifts), len(known)]
    for at, shift in enumerate(shifts, 1):
        runs = [run for point in known[places[at - 1] : places[at + 1]] for run in point.runs]
        sampled = [step for run in runs if (step := run.value(SAMPLING)) is not None]
        yield widen_interval(shift, max([FINEST_RATIO, *sampled])) if kind.is_timed else shift


def _detect_shifts(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", kind: FigureKind) -> tuple[LevelShift, ...]:
    return detect_changes(values, smallest=kind.smallest, relative=kind.relative, grain=kind.grain)


def _build_change(known: Sequence[Point], step: LevelShift, kind: FigureKind, *, new: bool) -> FigureChange:
    after, before = known[step.place], known[step.place - 1]
    rises = step.difference > 0
    verdict = "better" if rises == (kind.better == "higher") else "worse"
    return FigureChange(
        date=after.date,
        label=after.label,
        shift=step,
        verdict=verdict if kind.better else "changed",
        changed_params=tuple(_compare_params(before.runs, after.runs)),
        is_new=new,
    )


def _compare_params(before: Iterable[NightlyRun], after: Iterable[NightlyRun]) -> Iterator[ParamChange]:
    """Yield every param whose value changed; the values of several runs are joined."""
    old, new = _collect_params(before), _collect_params(after)
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield ParamChange(key=key, before=old.get(key), after=new.get(key))


def _collect_params(runs: Iterable[NightlyRun]) -> dict[str, str]:
    held: defaultdict[str, set[str]] = defaultdict(set)
    for run in runs:
        for key, value in run.params:
            held[key].add(value)
    return {key: ", ".join(sorted(values)) for key, values in held.items()}
