"""Whether two steps were recorded so that their figures can be set against each other."""

from collections.abc import Callable
from dataclasses import dataclass

from gpureport.comparison import readings
from gpureport.comparison.measures import SHORTEST_SECONDS
from gpureport.comparison.readings import Value
from gpureport.comparison.steps import Step

SAMPLING = 1.25
"""Ratio of two sampling intervals from which one log sees gaps that the other misses."""

LENGTH = 2.0
"""Ratio of two durations from which start-up and end weigh noticeably more in the shorter run."""

_NO_WINDOW = "unknown"
_NO_ZONE = "A log without a time zone is placed by its own clock only; no figure depends on it."


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
        comparable: whether it lets the steps be compared; None when that cannot be told.
        note: what follows from it; empty when nothing does.
    """

    base: str
    step: str
    check: str
    unit: str
    before: Value
    after: Value
    comparable: bool | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Property:
    """How one check reads a step, when two values agree, and what to say when they do not."""

    check: str
    read: Callable[[Step], Value]
    agree: Callable[[Value, Value], bool | None]
    note: str
    unit: str = ""


def comparability(base: Step, step: Step) -> tuple[Comparability, ...]:
    """Return every check of two steps, those that agree included."""
    return tuple(_checked(base, step, each) for each in _PROPERTIES)


def _checked(base: Step, step: Step, each: _Property) -> Comparability:
    before, after = each.read(base), each.read(step)
    comparable = each.agree(before, after)
    note = "" if comparable else each.note
    if comparable is None:
        note = f"Whether they agree cannot be told from what was recorded. If they do not: {each.note}"
    if each.check == "timezone" and None in {before, after}:
        note = each.note
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
        comparable=comparable,
        note=note,
    )


def _same(before: Value, after: Value) -> bool | None:
    return None if before is None or after is None else before == after


def _differ(before: Value, after: Value) -> bool | None:
    return not set(str(before).split(", ")) & set(str(after).split(", "))


def _same_power(before: Value, after: Value) -> bool | None:
    """Tell whether the reading that figures rest on is the same; a window nobody knows tells nothing."""
    if before is None or after is None:
        return None
    one, other = (str(value).partition(" and ")[0] for value in (before, after))
    fields = {value.partition(" (")[0] for value in (one, other)}
    return None if len(fields) == 1 and _NO_WINDOW in one + other else one == other


def _work_given(before: Value, after: Value) -> bool | None:
    return None if before is None and after is None else before == after


def _within(ratio: float) -> Callable[[Value, Value], bool | None]:
    """Return what tells whether two numbers are less than `ratio` times apart."""

    def agree(before: Value, after: Value) -> bool | None:
        if not isinstance(before, float) or not isinstance(after, float):
            return None
        return max(before, after) <= ratio * min(before, after)

    return agree


def _long_enough(before: Value, after: Value) -> bool | None:
    return all(isinstance(value, float) and value >= SHORTEST_SECONDS for value in (before, after))


def _always(_before: Value, _after: Value) -> bool | None:
    return True


_PROPERTIES = (
    _Property(
        check="gpu_models",
        read=readings.models,
        agree=_same,
        note="GPUs of other models differ in speed, power and memory, which hides what the change did.",
    ),
    _Property(
        check="gpu_count",
        read=readings.gpu_count,
        agree=_same,
        note="GPU-hours and energy count all GPUs, so they differ by the number of GPUs alone.",
    ),
    _Property(
        check="sampling_interval",
        read=readings.interval,
        agree=_within(SAMPLING),
        note="The finer log sees pauses that the coarser one misses, so findings and idle shares differ by that alone.",
        unit="s",
    ),
    _Property(
        check="power_reading",
        read=readings.power_reading,
        agree=_same_power,
        note="Power was not measured in the same way, so neither power nor energy should be compared.",
    ),
    _Property(
        check="power_limit",
        read=readings.power_limits,
        agree=_same,
        note="Another power limit changes power, clocks and speed by itself.",
    ),
    _Property(
        check="driver",
        read=readings.drivers,
        agree=_same,
        note="Another driver can change clocks, and what a field reports.",
    ),
    _Property(
        check="duration",
        read=readings.duration,
        agree=_within(LENGTH),
        note="Start-up and end weigh more in the shorter run, so shares differ by that alone.",
        unit="s",
    ),
    _Property(
        check="observed_time",
        read=readings.observed,
        agree=_long_enough,
        note="Less than a minute was recorded, which is too short to set figures against each other.",
        unit="s",
    ),
    _Property(
        check="work_unit",
        read=readings.work_unit,
        agree=_work_given,
        note="Work is not counted in one unit on both sides, so GPU-hours and energy are not for the same work.",
    ),
    _Property(
        check="different_runs",
        read=readings.run_ids,
        agree=_differ,
        note="The same recording stands on both sides.",
    ),
    _Property(check="timezone", read=readings.timezone, agree=_always, note=_NO_ZONE),
)
