"""The course of each figure over the nights, and what changed beside it where it changed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpureport.nightly.changes.change_detection import FEWEST, LevelShift, detect_changes, select_new_shifts
from gpureport.nightly.history.night_figures import FIGURES, FigureKind
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamChange:
    """What a run was configured with that is not what it was: values are None where there was none."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureChange:
    """A figure that changed.

    Attributes:
        date: first night that shows it.
        label: what else that night is known by.
        step: its size, with the interval.
        verdict: `worse`, `better`, or `changed` where neither is.
        altered: params, driver and version that changed from the night before it to that night.
        new: whether the newest night was needed to see it.
    """

    date: str
    label: str
    step: LevelShift
    verdict: str
    altered: tuple[ParamChange, ...]
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A night of a figure: a mean over its runs; the value is None where it was not recorded or there are no data."""

    date: str
    label: str
    value: float | None
    parts: tuple[NightlyRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The course of one figure of the runs of one step on one model of GPU.

    Attributes:
        step: label of the step; empty without one.
        model: the GPUs.
        kind: the figure.
        points: one a night of the history, in order.
        changes: the earliest first.
    """

    step: str
    model: str
    kind: FigureKind
    points: tuple[Point, ...]
    changes: tuple[FigureChange, ...]

    @property
    def known(self) -> tuple[Point, ...]:
        """Nights with a value."""
        return tuple(point for point in self.points if point.value is not None)

    @property
    def group(self) -> tuple[str, str]:
        """Step and GPUs, by which runs are followed."""
        return self.step, self.model

    @property
    def silent(self) -> bool:
        """Whether the newest night has a run that does not tell it, though one of the last ten nights with runs did."""
        if not self.points[-1].parts or self.points[-1].value is not None:
            return False
        before = [point for point in self.points[:-1] if point.parts]
        return any(point.value is not None for point in before[-FEWEST:])

    @property
    def missing(self) -> int:
        """Nights with a value that are still needed before a change can be told."""
        return max(FEWEST - len(self.known), 0)


def build_trends(nights: Sequence[NightlyRecord]) -> tuple[Trend, ...]:
    """Return the course of every figure that was ever recorded, by step and model, in the order figures are shown."""
    dates = {night.date: night.label for night in nights}
    grouped: defaultdict[tuple[str, str], defaultdict[str, list[tuple[NightlyRecord, NightlyRun]]]]
    grouped = defaultdict(lambda: defaultdict(list))
    for night in nights:
        for part in night.measured:
            grouped[part.step, part.model][night.date].append((night, part))
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
    values = [value for _, part in held if (value := part.value(name)) is not None]
    own = next((night.label for night, _ in reversed(held)), label)
    parts = tuple(_add_version_params(night, part) for night, part in held)
    return Point(date=date, label=own, value=sum(values) / len(values) if values else None, parts=parts)


def _add_version_params(night: NightlyRecord, part: NightlyRun) -> NightlyRun:
    """Return a run with the version that read it among its params: figures of another version may differ by it."""
    beside = (("driver", part.driver), ("GPUs", str(part.gpus)), ("gpureport", night.version))
    return replace(part, params=(*part.params, *((key, value) for key, value in beside if value)))


def _build_trend(step: str, model: str, kind: FigureKind, points: tuple[Point, ...]) -> Trend:
    known = [point for point in points if point.value is not None]
    values = np.array([point.value for point in known], dtype=np.float64)
    found, before = _detect_shifts(values, kind), _detect_shifts(values[:-1], kind)
    # what was known the night before is no news, and neither is anything on a night without a value
    newest = {each.place for each in select_new_shifts(found, before)} if points[-1].value is not None else set()
    return Trend(
        step=step,
        model=model,
        kind=kind,
        points=points,
        changes=tuple(_build_change(known, each, kind, new=each.place in newest) for each in found),
    )


def _detect_shifts(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", kind: FigureKind) -> tuple[LevelShift, ...]:
    return detect_changes(values, smallest=kind.smallest, relative=kind.relative, grain=kind.grain)


def _build_change(known: Sequence[Point], step: LevelShift, kind: FigureKind, *, new: bool) -> FigureChange:
    after, before = known[step.place], known[step.place - 1]
    rises = step.difference > 0
    verdict = "better" if rises == (kind.better == "higher") else "worse"
    return FigureChange(
        date=after.date,
        label=after.label,
        step=step,
        verdict=verdict if kind.better else "changed",
        altered=tuple(_compare_params(before.parts, after.parts)),
        new=new,
    )


def _compare_params(before: Iterable[NightlyRun], after: Iterable[NightlyRun]) -> Iterator[ParamChange]:
    """Yield every param that has another value, values of several runs joined."""
    old, new = _collect_params(before), _collect_params(after)
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield ParamChange(key=key, before=old.get(key), after=new.get(key))


def _collect_params(parts: Iterable[NightlyRun]) -> dict[str, str]:
    held: defaultdict[str, set[str]] = defaultdict(set)
    for part in parts:
        for key, value in part.params:
            held[key].add(value)
    return {key: ", ".join(sorted(values)) for key, values in held.items()}
