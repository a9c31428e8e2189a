"""Whether the recordings of two steps let their figures be compared: one table of checks."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from gpureport.analysis.results import Analysis
from gpureport.comparison import figures
from gpureport.comparison.run import GRAPHICS_CLOCK, IDLE, POWER, SM_CLOCK
from gpureport.comparison.steps import Step
from gpureport.metrics import BY_NAME
from gpureport.recording import HOST, Device, Run

Value = str | float | None
"""Text, a number in a base unit, or None when not recorded."""

COVERAGE = 0.9
"""Share of the time that must be sampled for a total to mean anything."""

SAME_MEMORY = 1.05
"""Ratio of two totals up to which they are of GPUs with as much memory.

Trackers log a share of the memory beside the bytes in use, so that the total of one GPU differs by some per cent.
"""

_SAMPLING, _LENGTH = 1.25, 2.0
"""Ratios from which one log sees gaps the other misses, and start-up and end weigh more in the shorter run."""

_WARMER, _WARM_SECONDS = 15.0, 600.0
"""Degrees from which one run starts warmer, and length from which a GPU has mostly warmed up."""

_POWER_FIELDS = (POWER, "gpu_power_instant_watts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparability:
    """One property of the recordings that must agree for their figures to be compared.

    Attributes:
        check: name of the property.
        before: its value in the earlier step; None when not recorded.
        after: its value in the later step.
        agree: whether the values are alike; None if unknown.
        comparable: whether they let the steps be compared, as unlike ones may; None if unknown.
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


def _join(values: Iterable[str | None]) -> str | None:
    """Return different values as one text; None if one was not recorded."""
    different = set(values)
    return ", ".join(sorted(map(str, different))) if different and None not in different else None


def _of_gpus(read: Callable[[Device], str | None]) -> Callable[[Step], Value]:
    return lambda step: _join(read(gpu) for run in step.runs for gpu in run.info.gpus)


def _of_runs(read: Callable[[Run], str | None]) -> Callable[[Step], Value]:
    return lambda step: _join(read(run.info) for run in step.runs)


def _format_limit(gpu: Device) -> str | None:
    """Return a limit in three digits or whole: one derived from power and its share is not exact."""
    watts = gpu.power_limit_watts
    return None if watts is None else f"{watts:.3g} W" if watts < 100 else f"{watts:.0f} W"  # noqa: PLR2004 - three digits


def _format_memory(gpu: Device) -> str | None:
    return None if gpu.memory_total_bytes is None else f"{gpu.memory_total_bytes / 2**30:.0f} GiB"


def _name_recorders(run: Run) -> str | None:
    kinds = {source.kind for source in run.sources}
    return ", ".join(sorted(kinds - {HOST} or kinds)) or None


def _list_powers(analysis: Analysis) -> list[tuple[str, tuple[str, ...]]]:
    """Return the fields of power of a run with their windows, the averaged one first."""
    recorded = {each.metric for device in analysis.statistics for each in device.metrics}
    windows = tuple(sorted({gpu.power_window for gpu in analysis.run.gpus}))
    return [(BY_NAME[name].recorded_by, windows if name == POWER else ()) for name in _POWER_FIELDS if name in recorded]


def _name_powers(step: Step) -> Value:
    def name(analysis: Analysis) -> str | None:
        fields = _list_powers(analysis)
        return " and ".join(f"{one} ({', '.join(windows)})" if windows else one for one, windows in fields) or None

    return _join(map(name, step.analyses))


def _duration(step: Step) -> Value:
    return mean(run.lasted for run in step.runs)


def _start_celsius(step: Step) -> Value:
    known = [run.start_celsius for run in step.runs if run.start_celsius is not None]
    return mean(sorted(known)) if len(known) == len(step.runs) else None


def _coverage(step: Step) -> Value:
    known = [one.coverage_ratio for one in step.analyses if one.coverage_ratio is not None]
    return min(known) if len(known) == len(step.runs) else None


def _interval(step: Step) -> Value:
    known = [run.info.interval for run in step.runs if run.info.interval]
    return median(known) if known else None


Agree = Callable[[Step, Step, Value, Value], bool | None]
"""Returns whether two steps and their values are alike; None if unknown."""


def _same(_base: Step, _step: Step, before: Value, after: Value) -> bool | None:
    return None if before is None or after is None else before == after


def _both_known(_base: Step, _step: Step, before: Value, after: Value) -> bool | None:
    """Return whether both zones are known: times are UTC then, whatever the zones."""
    return None if before is None or after is None else True


def _same_unit(_base: Step, _step: Step, before: Value, after: Value) -> bool | None:
    return None if before is None and after is None else before == after


def _of_numbers(holds: Callable[[float, float], bool]) -> Agree:
    def agree(_base: Step, _step: Step, before: Value, after: Value) -> bool | None:
        return holds(before, after) if isinstance(before, float) and isinstance(after, float) else None

    return agree


def _within(ratio: float) -> Agree:
    return _of_numbers(lambda before, after: max(before, after) <= ratio * min(before, after))


_starts_alike = _of_numbers(lambda before, after: abs(before - after) <= _WARMER)


def _long_enough(_base: Step, _step: Step, *values: Value) -> bool:
    return all(isinstance(value, float) and value >= figures.SHORTEST_REPETITION_SECONDS for value in values)


def _covered(_base: Step, _step: Step, *values: Value) -> bool | None:
    known = [value for value in values if isinstance(value, float)]
    return False if min(known, default=1.0) < COVERAGE else True if len(known) == len(values) else None


def has_same_memory(base: Step, step: Step, _before: Value = None, _after: Value = None) -> bool | None:
    """Return whether GPUs of as much memory ran both."""
    sides = [{gpu.memory_total_bytes for run in side.runs for gpu in run.info.gpus} for side in (base, step)]
    if not all(sides) or any(None in side for side in sides):
        return None
    ends = [sorted(pick(total or 0 for total in side) for side in sides) for pick in (min, max)]
    return all(most <= SAME_MEMORY * least for least, most in ends)


def _same_power(base: Step, step: Step, _before: Value, _after: Value) -> bool | None:
    """Return whether power is the same reading; an unknown window leaves that open."""
    sides = [[_list_powers(analysis)[:1] for analysis in side.analyses] for side in (base, step)]
    if not all(map(all, sides)):
        return None
    before, after = ({readings[0] for readings in side} for side in sides)
    is_open = any("unknown" in windows for _, windows in before | after)
    return None if is_open and len({name for name, _ in before | after}) == 1 else before == after


def _no_run_in_both(base: Step, step: Step, _before: Value, _after: Value) -> bool:
    return {run.info.id for run in base.runs}.isdisjoint(run.info.id for run in step.runs)


@dataclass(frozen=True, slots=True)
class _Check:
    name: str
    read: Callable[[Step], Value]
    unit: str = ""
    agree: Agree = _same
    touches: tuple[str, ...] = ()


_ALL = tuple(figure.metric for figure in figures.FIGURES)
_WORKS = tuple(figure.metric for figure in figures.FIGURES if figure.role is figures.FigureRole.WORK)
_NOT_PER_WORK = tuple(metric for metric in _ALL if metric not in _WORKS)
_TOTALS = (figures.GPU_SECONDS, figures.ENERGY)
_CLOCKS, _POWERS = (SM_CLOCK, GRAPHICS_CLOCK), (POWER, figures.ENERGY, figures.ENERGY_PER_WORK)
_OBSERVED, _DURATION, _START = "observed_time", "duration", "start_temperature"

_CHECKS = (
    _Check(_OBSERVED, lambda step: figures.recorded_seconds(step.analyses), "s", _long_enough, _ALL),
    _Check("gpu_models", _of_gpus(lambda gpu: gpu.model), touches=_NOT_PER_WORK),
    _Check("gpu_count", _of_runs(lambda run: str(len(run.gpus))), touches=_TOTALS),
    _Check("gpu_memory", _of_gpus(_format_memory), agree=has_same_memory, touches=(figures.MEMORY,)),
    _Check("source_kind", _of_runs(_name_recorders), touches=(figures.MEMORY, IDLE)),
    _Check("sampling_interval", _interval, "s", _within(_SAMPLING)),
    _Check("power_reading", _name_powers, agree=_same_power, touches=_POWERS),
    _Check("power_limit", _of_gpus(_format_limit), touches=(*_POWERS, *_CLOCKS)),
    _Check("driver", _of_gpus(lambda gpu: gpu.driver), touches=(*_CLOCKS, figures.MEMORY)),
    _Check(_DURATION, _duration, "s", _within(_LENGTH), _TOTALS),
    _Check("coverage", _coverage, "1", _covered, (figures.ENERGY,)),
    _Check(
        _START,
        _start_celsius,
        "Cel",
        _of_numbers(lambda before, after: abs(before - after) <= _WARMER),
        (POWER, *_CLOCKS),
    ),
    _Check("work_unit", lambda step: step.work_unit, agree=_same_unit, touches=_WORKS),
    _Check("different_runs", _of_runs(lambda run: run.id), agree=_no_run_in_both),
    _Check("timezone", _of_runs(lambda run: run.timezone), agree=_both_known),
)
_BY_NAME = {check.name: check for check in _CHECKS}

HARDWARE = ("gpu_models", "gpu_count", "gpu_memory", "driver", "power_limit")
"""Checks of what the GPUs are, which a change of the set-up may be in."""


def read_property(step: Step, check: str) -> Value:
    """Return what a check reads of a step; None when not recorded."""
    return _BY_NAME[check].read(step)


def check_comparability(base: Step, step: Step) -> tuple[Comparability, ...]:
    """Return every check of two steps, those that agree included."""
    return tuple(_check(base, step, check) for check in _CHECKS)


def _check(base: Step, step: Step, check: _Check) -> Comparability:
    before, after = check.read(base), check.read(step)
    agree = comparable = check.agree(base, step, before, after)
    if check.name == _START and agree is False:
        # both have been warm for most of a longer recording
        comparable = min(run.lasted for run in (*base.runs, *step.runs)) >= _WARM_SECONDS
    if check.name == _DURATION and base.work_unit is not None and base.work_unit == step.work_unit:
        # a change is for the same work in less time, and figures per unit of work allow for it
        comparable = True
    return Comparability(
        base=base.label,
        step=step.label,
        check=check.name,
        unit=check.unit,
        before=before,
        after=after,
        agree=agree,
        comparable=comparable,
        touches=check.touches,
        bars_itself=check.name == _OBSERVED,
    )


def find_barrier(checks: Sequence[Comparability], metric: str) -> Comparability | None:
    """Return the first check that forbids comparing a figure."""
    return next((check for check in checks if check.comparable is False and metric in check.touches), None)


def is_same_recording(base: Step, step: Step) -> bool:
    """Return whether the very same recordings stand on both sides."""
    return sorted(run.info.id for run in base.runs) == sorted(run.info.id for run in step.runs)
