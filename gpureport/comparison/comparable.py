"""Checks whether the recordings of two steps are comparable, figure by figure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from gpureport.comparison import figures
from gpureport.comparison.run import AT_REST, AT_WORK, GRAPHICS_CLOCK, IDLE, POWER, SM_CLOCK, UTILISATION, SampledRun
from gpureport.comparison.steps import Step
from gpureport.metrics import BY_NAME
from gpureport.recording import HOST, Device, Run

Value = str | float | None  # Text, a number in a base unit, or None if not recorded.
COVERAGE = 0.9  # Share of the time that must be sampled for a meaningful total.
SAME_MEMORY = 1.05  # Maximum ratio of equal memory sizes; totals derived from shares are inexact.
_SAMPLING = 1.25  # Ratio of intervals above which one log shows gaps that the other lacks.
_LENGTH = 2.0  # Ratio of durations above which start-up and shutdown distort the shorter run.
_WARMER, _WARM_SECONDS = 15.0, 600.0  # Maximum difference in start temperature, ignored in runs this long.
_POWER_FIELDS = (POWER, "gpu_power_instant_watts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparability:
    base: str
    step: str
    check: str
    unit: str
    before: Value
    after: Value
    agree: bool | None
    comparable: bool | None  # Also true if a difference is excused; None if unknown.
    touches: tuple[str, ...]  # Figures that must not be compared if the check fails.
    bars_itself: bool = False  # Whether a failure rules out comparing a step even with itself.


def _join(values: Iterable[str | None]) -> str | None:
    different = set(values)
    return ", ".join(sorted(map(str, different))) if different and None not in different else None


def _of_gpus(read: Callable[[Device], str | None]) -> Callable[[Step], Value]:
    return lambda step: _join(read(gpu) for run in step.runs for gpu in run.info.gpus)


def _of_runs(read: Callable[[Run], str | None]) -> Callable[[Step], Value]:
    return lambda step: _join(read(run.info) for run in step.runs)


def _of_numbers(
    read: Callable[[SampledRun], float | None], join: Callable[[list[float]], float]
) -> Callable[[Step], Value]:
    def read_all(step: Step) -> Value:
        known = [value for run in step.runs if (value := read(run)) is not None]
        return join(known) if len(known) == len(step.runs) else None

    return read_all


def _format_limit(gpu: Device) -> str | None:
    watts = gpu.power_limit_watts
    return None if watts is None else f"{watts:.3g} W" if watts < 100 else f"{watts:.0f} W"  # noqa: PLR2004 - three digits


def _name_recorders(run: Run) -> str | None:
    kinds = {source.kind for source in run.sources}
    return ", ".join(sorted(kinds - {HOST} or kinds)) or None


def _find_interval(step: Step) -> Value:
    known = [run.info.interval for run in step.runs if run.info.interval]
    return median(known) if known else None


def _read_edges(step: Step) -> list[str | None]:
    sides = [{run.edges[place] for run in step.runs} for place in (0, 1)]
    return [AT_WORK if AT_WORK in found else AT_REST if found == {AT_REST} else None for found in sides]


def _list_powers(step: Step) -> list[list[tuple[str, tuple[str, ...]]]]:
    found = []
    for analysis in step.analyses:
        recorded = {each.metric for device in analysis.statistics for each in device.metrics}
        windows = tuple(sorted({gpu.power_window for gpu in analysis.run.gpus}))
        names = [name for name in _POWER_FIELDS if name in recorded]
        found.append([(BY_NAME[name].recorded_by, windows if name == POWER else ()) for name in names])
    return found


def _name_powers(step: Step) -> Value:
    named = (
        " and ".join(f"{one} ({', '.join(windows)})" if windows else one for one, windows in powers)
        for powers in _list_powers(step)
    )
    return _join(fields or None for fields in named)


def _same_power(base: Step, step: Step) -> bool | None:
    """Return whether both steps measured power the same way, or None if unknown."""
    sides = [_list_powers(side) for side in (base, step)]
    if not all(map(all, sides)):
        return None
    before, after = ({powers[0] for powers in side} for side in sides)
    is_open = any("unknown" in windows for _, windows in before | after)
    return None if is_open and len({name for name, _ in before | after}) == 1 else before == after


def has_same_memory(base: Step, step: Step) -> bool | None:
    sides = [{gpu.memory_total_bytes for run in side.runs for gpu in run.info.gpus} for side in (base, step)]
    if not all(sides) or any(None in side for side in sides):
        return None
    ends = [sorted(pick(total or 0 for total in side) for side in sides) for pick in (min, max)]
    return all(most <= SAME_MEMORY * least for least, most in ends)


def _are_within(ratio: float) -> Callable[[Any, Any], bool | None]:
    return lambda *values: None if None in values else max(values) <= ratio * min(values)


def _are_covered(*ratios: float | None) -> bool | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return False if min(known, default=1.0) < COVERAGE else True if len(known) == len(ratios) else None


def is_same_recording(base: Step, step: Step) -> bool:
    return sorted(run.info.id for run in base.runs) == sorted(run.info.id for run in step.runs)


@dataclass(frozen=True, slots=True)
class _Check:
    name: str
    read: Callable[[Step], Value]
    unit: str = ""
    agree: Callable[[Any, Any], bool | None] = lambda *values: None if None in values else values[0] == values[1]
    touches: tuple[str, ...] = ()
    agree_by_steps: Callable[[Step, Step], bool | None] | None = None
    excuses: Callable[[Step, Step], bool] = lambda *_: False


_ALL = tuple(figure.metric for figure in figures.FIGURES)
_WORKS = tuple(figure.metric for figure in figures.FIGURES if figure.role is figures.FigureRole.WORK)
_NOT_PER_WORK = tuple(metric for metric in _ALL if metric not in _WORKS)
_TOTALS = (figures.GPU_SECONDS, figures.ENERGY)
_EDGES = "log_edges"  # Listed only if steps differ.
_CLOCKS, _POWERS = (SM_CLOCK, GRAPHICS_CLOCK), (POWER, figures.ENERGY, figures.ENERGY_PER_WORK)
_OBSERVED = _Check(
    "observed_time",
    lambda step: figures.recorded_seconds(step.analyses),
    "s",
    lambda *seconds: min(seconds) >= figures.SHORTEST_REPETITION_SECONDS,
    _ALL,
)
_CHECKS = (
    _OBSERVED,
    _Check("gpu_models", _of_gpus(lambda gpu: gpu.model), touches=_NOT_PER_WORK),
    _Check("gpu_count", _of_runs(lambda run: str(len(run.gpus))), touches=_TOTALS),
    _Check(
        "gpu_memory",
        _of_gpus(lambda gpu: f"{gpu.memory_total_bytes / 2**30:.0f} GiB" if gpu.memory_total_bytes else None),
        touches=(figures.MEMORY,),
        agree_by_steps=has_same_memory,
    ),
    _Check("source_kind", _of_runs(_name_recorders), touches=(figures.MEMORY, IDLE)),
    _Check("sampling_interval", _find_interval, "s", _are_within(_SAMPLING)),
    _Check("power_reading", _name_powers, touches=_POWERS, agree_by_steps=_same_power),
    _Check("power_limit", _of_gpus(_format_limit), touches=(*_POWERS, *_CLOCKS)),
    _Check("driver", _of_gpus(lambda gpu: gpu.driver), touches=(*_CLOCKS, figures.MEMORY)),
    _Check(
        "duration",
        _of_numbers(lambda run: run.lasted, mean),
        "s",
        _are_within(_LENGTH),
        _TOTALS,
        # if work is counted, durations may differ: a faster run does the same work in less time
        excuses=lambda base, step: base.work_unit is not None and base.work_unit == step.work_unit,
    ),
    _Check(
        _EDGES,
        lambda step: ", then ".join(edge or "not known" for edge in _read_edges(step)),
        touches=(*_WORKS, *_TOTALS, IDLE, POWER, UTILISATION),
        agree_by_steps=lambda *sides: {AT_WORK, AT_REST} not in map(set, zip(*map(_read_edges, sides), strict=True)),
        # logged work covers the recording, even one that began with the training
        excuses=lambda *sides: all(run.logged_work for side in sides for run in side.runs),
    ),
    _Check("coverage", _of_numbers(lambda run: run.analysis.coverage_ratio, min), "1", _are_covered, (figures.ENERGY,)),
    _Check(
        "start_temperature",
        _of_numbers(lambda run: run.start_celsius, mean),
        "Cel",
        lambda *celsius: None if None in celsius else max(celsius) - min(celsius) <= _WARMER,
        (POWER, *_CLOCKS),
        # the start temperature affects only a small part of long recordings
        excuses=lambda *sides: min(run.lasted for side in sides for run in side.runs) >= _WARM_SECONDS,
    ),
    _Check(
        "work_unit",
        lambda step: step.work_unit,
        agree=lambda *units: None if units == (None, None) else units[0] == units[1],
        touches=_WORKS,
    ),
    _Check(
        "different_runs",
        _of_runs(lambda run: run.id),
        agree_by_steps=lambda *sides: set.isdisjoint(*({run.info.id for run in side.runs} for side in sides)),
    ),
    # any known zone is enough, since times are then in UTC
    _Check("timezone", _of_runs(lambda run: run.timezone), agree=lambda *zones: None if None in zones else True),
)
_BY_NAME = {check.name: check for check in _CHECKS}
HARDWARE = ("gpu_models", "gpu_count", "gpu_memory", "driver", "power_limit")
"""Checks of hardware. A difference counts as a change to the set-up."""


def read_property(step: Step, check: str) -> Value:
    return _BY_NAME[check].read(step)


def check_comparability(base: Step, step: Step) -> tuple[Comparability, ...]:
    found = []
    for check in _CHECKS:
        before, after = check.read(base), check.read(step)
        agree = check.agree_by_steps(base, step) if check.agree_by_steps else check.agree(before, after)
        if agree and check.name == _EDGES:
            continue
        found.append(
            Comparability(
                base=base.label,
                step=step.label,
                check=check.name,
                unit=check.unit,
                before=before,
                after=after,
                agree=agree,
                comparable=True if agree is False and check.excuses(base, step) else agree,
                touches=check.touches,
                bars_itself=check is _OBSERVED,
            )
        )
    return tuple(found)
