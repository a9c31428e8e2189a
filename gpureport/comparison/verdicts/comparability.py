"""Whether two steps were recorded so that their figures can be set against each other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpureport.comparison.steps import recorded_setup
from gpureport.comparison.steps.compared_figures import ENERGY, FIGURES, GRAPHICS_CLOCK, IDLE, MEMORY, POWER, SM_CLOCK
from gpureport.comparison.steps.recorded_setup import Value
from gpureport.comparison.steps.step_figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SHORTEST_REPETITION_SECONDS,
    TRAINING_RATE,
    WORK_RATE,
)
from gpureport.comparison.steps.steps import Step

SAMPLING = 1.25
"""Ratio of two sampling intervals from which one log sees gaps that the other misses."""

LENGTH = 2.0
"""Ratio of two durations from which start-up and end weigh noticeably more in the shorter run."""

COVERAGE = 0.9
"""Share of the time that must have been sampled for a total to mean anything."""

WARMER = 15.0
"""Degrees Celsius between the first readings from which one run starts warmer than the other."""

WARM_SECONDS = 600.0
"""Length from which a recording is mostly of a GPU that has warmed up."""

_NO_WINDOW = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparability:
    """One property of the recordings that must agree for their figures to be set against each other.

    Attributes:
        base: label of the earlier step.
        step: label of the later step.
        check: name of the property.
        unit: base unit of a number, empty for text.
        before: its value in the earlier step; None when not recorded.
        after: its value in the later step; None when not recorded.
        agree: whether the values are alike; None when that cannot be told.
        comparable: whether they let the steps be compared, as unlike ones may; None when that cannot be told.
        touches: figures that must not be compared where it is false.
        bars_itself: whether it bars a recording beside itself too, of which too little is known for any figure.
    """

    base: str
    step: str
    check: str
    unit: str
    before: Value
    after: Value
    agree: bool | None
    comparable: bool | None
    touches: tuple[str, ...]
    bars_itself: bool = False


def _same(before: Value, after: Value) -> bool | None:
    return None if before is None or after is None else before == after


@dataclass(frozen=True, slots=True, kw_only=True)
class _Property:
    """How one check reads a step, when two values or steps agree, and which figures it bars when they do not."""

    check: str
    read: Callable[[Step], Value]
    agree: Callable[[Value, Value], bool | None] = _same
    agree_in_steps: Callable[[Step, Step], bool | None] | None = None
    unit: str = ""
    touches: tuple[str, ...] = ()
    bars_itself: bool = False


def check_comparability(base: Step, step: Step) -> tuple[Comparability, ...]:
    """Return every check of two steps, those that agree included."""
    return tuple(_checked(base, step, each) for each in _PROPERTIES)


def _checked(base: Step, step: Step, each: _Property) -> Comparability:
    before, after = each.read(base), each.read(step)
    agree = each.agree_in_steps(base, step) if each.agree_in_steps else each.agree(before, after)
    comparable = agree
    if each.check == "start_temperature" and comparable is False:
        # both have been at their working temperature for most of a longer recording
        comparable = min(recorded_setup.shortest(base), recorded_setup.shortest(step)) >= WARM_SECONDS
    if each.check == "duration" and base.work_unit is not None and base.work_unit == step.work_unit:
        # the same work in less time is what a change is for, and figures per unit of work allow for it
        comparable = True
    return Comparability(
        base=base.label,
        step=step.label,
        check=each.check,
        unit=each.unit,
        before=before,
        after=after,
        agree=agree,
        comparable=comparable,
        touches=each.touches,
        bars_itself=each.bars_itself,
    )


def find_barrier(checks: Sequence[Comparability], metric: str) -> Comparability | None:
    """Return the first check that fails and forbids comparing a figure; None where none does."""
    return next((check for check in checks if check.comparable is False and metric in check.touches), None)


def is_same_recording(base: Step, step: Step) -> bool:
    """Return whether the very same recordings stand on both sides."""
    sides = [sorted(analysis.run.id for analysis in side.analyses) for side in (base, step)]
    return sides[0] == sides[1]


def _no_run_in_both(base: Step, step: Step) -> bool:
    before, after = ({analysis.run.id for analysis in side.analyses} for side in (base, step))
    return before.isdisjoint(after)


def _same_power(base: Step, step: Step) -> bool | None:
    """Return whether figures of power rest on the same reading; an unknown averaging window leaves that open."""
    before, after = recorded_setup.power_readings(base), recorded_setup.power_readings(step)
    if before is None or after is None:
        return None
    both = before | after
    unknown = any(_NO_WINDOW in windows for _, windows in both)
    return None if unknown and len({field for field, _ in both}) == 1 else before == after


def _work_given(before: Value, after: Value) -> bool | None:
    return None if before is None and after is None else before == after


def _within(ratio: float) -> Callable[[Value, Value], bool | None]:
    def agree(before: Value, after: Value) -> bool | None:
        if not isinstance(before, float) or not isinstance(after, float):
            return None
        return max(before, after) <= ratio * min(before, after)

    return agree


def _long_enough(before: Value, after: Value) -> bool | None:
    return all(isinstance(value, float) and value >= SHORTEST_REPETITION_SECONDS for value in (before, after))


def _covered(before: Value, after: Value) -> bool | None:
    known = [value for value in (before, after) if isinstance(value, float)]
    return False if any(value < COVERAGE for value in known) else True if len(known) == 2 else None  # noqa: PLR2004 - both


def _known(before: Value, after: Value) -> bool | None:
    """Tell whether both are known; where they are, times are UTC, so that other zones do not matter."""
    return None if before is None or after is None else True


def _started_alike(before: Value, after: Value) -> bool | None:
    if not isinstance(before, float) or not isinstance(after, float):
        return None
    return abs(before - after) <= WARMER


_ALL = tuple(figure.metric for figure in FIGURES)
_CLOCKS = (SM_CLOCK, GRAPHICS_CLOCK)
_POWERS = (POWER, ENERGY, ENERGY_PER_WORK)
_WORKS = (WORK_RATE, TRAINING_RATE, PER_WORK, COST_PER_WORK, ENERGY_PER_WORK)
_NOT_PER_WORK = tuple(metric for metric in _ALL if metric not in _WORKS)

_PROPERTIES = (
    _Property(
        check="observed_time",
        read=recorded_setup.observed,
        agree=_long_enough,
        unit="s",
        touches=_ALL,
        bars_itself=True,
    ),
    _Property(check="gpu_models", read=recorded_setup.models, touches=_NOT_PER_WORK),
    _Property(check="gpu_count", read=recorded_setup.gpu_count, touches=("gpu_seconds", ENERGY)),
    _Property(
        check="gpu_memory",
        read=recorded_setup.memory_totals,
        agree_in_steps=recorded_setup.has_same_memory,
        touches=(MEMORY,),
    ),
    _Property(check="source_kind", read=recorded_setup.source_kinds, touches=(MEMORY, IDLE)),
    _Property(check="sampling_interval", read=recorded_setup.interval, agree=_within(SAMPLING), unit="s"),
    _Property(check="power_reading", read=recorded_setup.power_fields, agree_in_steps=_same_power, touches=_POWERS),
    _Property(check="power_limit", read=recorded_setup.power_limits, touches=(*_POWERS, *_CLOCKS)),
    _Property(check="driver", read=recorded_setup.drivers, touches=(*_CLOCKS, MEMORY)),
    _Property(
        check="duration", read=recorded_setup.duration, agree=_within(LENGTH), unit="s", touches=("gpu_seconds", ENERGY)
    ),
    _Property(check="coverage", read=recorded_setup.coverage, agree=_covered, unit="1", touches=(ENERGY,)),
    _Property(
        check="start_temperature",
        read=recorded_setup.start_temperature,
        agree=_started_alike,
        unit="Cel",
        touches=(POWER, *_CLOCKS),
    ),
    _Property(check="work_unit", read=recorded_setup.work_unit, agree=_work_given, touches=_WORKS),
    _Property(check="different_runs", read=recorded_setup.run_ids, agree_in_steps=_no_run_in_both),
    _Property(check="timezone", read=recorded_setup.timezone, agree=_known),
)
