"""The figures of a night: what each is called, which way is better, and how large a change matters."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import fsum, isfinite
from typing import TYPE_CHECKING

from gpureport.comparison.figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    TIMED_FIGURES,
    WORK_RATE,
    find_sampling_step,
    read_run,
)
from gpureport.comparison.gains import NOTABLE_RATIO, list_possible_waits, measure_lost_ratio
from gpureport.findings import Severity
from gpureport.report.runs import gpu_time
from gpureport.report.wording.terms import name_figure, per_batch

if TYPE_CHECKING:
    from gpureport.analysis.results import Analysis
    from gpureport.comparison.run import SampledRun

_OF_WORK = {
    PER_WORK,
    WORK_RATE,
    ENERGY_PER_WORK,
    COST_PER_WORK,
}
COUNT = "count"
"""Unit of figures that count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureKind:
    """One figure of a run that is followed over the nights.

    Attributes:
        name: with the base unit as suffix.
        unit: base unit; `count` for what is counted.
        title: the figure in words.
        better: `higher`, `lower`, or empty if neither is.
        smallest: size below which a change does not matter, in the unit.
        relative: the same, as a share of the value before.
    """

    name: str
    unit: str
    title: str
    better: str
    smallest: float = 0.0
    relative: float = 0.01

    @property
    def grain(self) -> float:
        """The least deviation from night to night that is assumed; counts are whole numbers."""
        return 0.5 if self.unit == COUNT else self.smallest / 3

    def per_unit(self, unit: str) -> "FigureKind":
        """Return the figure with the unit of work in its title; as it is where none is known."""
        return replace(self, title=name_figure(self.name, per_batch(unit))) if unit and self.is_of_work else self

    @property
    def is_of_work(self) -> bool:
        """Whether it needs the work of a run."""
        return self.name in _OF_WORK

    @property
    def is_timed(self) -> bool:
        """Whether it goes by the job's time for its work, known no finer than it is sampled."""
        return self.name in TIMED_FIGURES


def _share(name: str, title: str, better: str) -> FigureKind:
    return FigureKind(name=name, unit="1", title=title, better=better, smallest=0.005, relative=0.0)


def _count(name: str, title: str) -> FigureKind:
    return FigureKind(name=name, unit=COUNT, title=title, better="lower", smallest=0.5, relative=0.0)


FIGURES = (
    _share("lost_ratio", "GPU time lost", "lower"),
    FigureKind(name=PER_WORK, unit="s", title=name_figure(PER_WORK), better="lower"),
    FigureKind(name=WORK_RATE, unit="1/s", title=name_figure(WORK_RATE), better="higher"),
    _share("gpu_utilization_ratio", name_figure("gpu_utilization_ratio"), "higher"),
    _share("idle_ratio", name_figure("idle_ratio"), "lower"),
    _share("waiting_ratio", "Waiting for data", "lower"),
    _share("throttled_ratio", "Slowed by heat or hardware", "lower"),
    _share("startup_ratio", "Start-up", "lower"),
    FigureKind(name="gpu_seconds", unit="s", title=name_figure("gpu_seconds"), better=""),
    FigureKind(name="energy_joules", unit="J", title=name_figure("energy_joules"), better=""),
    FigureKind(name=ENERGY_PER_WORK, unit="J", title=name_figure(ENERGY_PER_WORK), better="lower"),
    FigureKind(name=COST_PER_WORK, unit="currency", title=name_figure(COST_PER_WORK), better="lower"),
    FigureKind(name="gpu_power_watts", unit="W", title=name_figure("gpu_power_watts"), better=""),
    FigureKind(name="gpu_sm_clock_hertz", unit="Hz", title=name_figure("gpu_sm_clock_hertz"), better="higher"),
    FigureKind(name="gpu_memory_used_bytes", unit="By", title=name_figure("gpu_memory_used_bytes"), better=""),
    FigureKind(
        name="gpu_temperature_celsius", unit="Cel", title="Highest temperature", better="lower", smallest=1, relative=0
    ),
    _share("coverage_ratio", "Time with samples", "higher"),
    _count("findings_problem", "Problems found"),
    _count("findings_warning", "Warnings found"),
    _count("findings_info", "Facts found"),
)
"""Every figure, in the order shown."""

SAMPLING = "sampling_interval_ratio"
"""Name of what is recorded beside the figures: the sampling interval as a share of the recording."""

BY_NAME = {kind.name: kind for kind in FIGURES}
"""Every figure by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The value of a figure of one run, in its base unit; None if it was not recorded."""

    name: str
    value: float | None


def measure_figures(run: "SampledRun") -> tuple[Figure, ...]:
    """Return every figure of a run, in the order shown."""
    known = read_run(run) | dict(_time_shares(run.analysis)) | dict(_count_findings(run.analysis))
    known["gpu_temperature_celsius"] = _highest_temperature(run.analysis)
    figures = (Figure(name=kind.name, value=_finite_or_none(known.get(kind.name))) for kind in FIGURES)
    return (*figures, Figure(name=SAMPLING, value=_finite_or_none(find_sampling_step([run]) or None)))


def _finite_or_none(value: float | None) -> float | None:
    return float(value) if value is not None and isfinite(value) else None


def _time_shares(analysis: "Analysis") -> Iterator[tuple[str, float | None]]:
    """Yield shares of the GPU time held; None if the time could not be divided."""
    held = gpu_time.job_gpu_seconds([analysis])
    taken = gpu_time.seconds_by_class(analysis.gpu_time)
    # without a clock, throttled time is not known
    told = any(each.metric("gpu_sm_clock_hertz") is not None for each in analysis.statistics)
    yield "lost_ratio", measure_lost_ratio(analysis)
    # more that may be waiting than is known to be leaves the share open
    waiting, possible = taken.get("waiting_for_input", 0.0), fsum(list_possible_waits(analysis).values())
    is_open = possible > max(waiting, NOTABLE_RATIO * held)
    yield "waiting_ratio", waiting / held if held and not is_open else None
    yield "throttled_ratio", taken.get("throttled", 0.0) / held if held and told else None
    yield "startup_ratio", taken.get("startup", 0.0) / held if held else None
    yield "coverage_ratio", analysis.coverage_ratio


def _highest_temperature(analysis: "Analysis") -> float | None:
    found = [each.metric("gpu_temperature_celsius") for each in analysis.statistics]
    return max((summary.max for summary in found if summary is not None), default=None)


def _count_findings(analysis: "Analysis") -> Iterator[tuple[str, float]]:
    """Yield how many findings there are of each severity; a recurring finding counts once."""
    for severity in Severity:
        found = {each.fingerprint for each in analysis.findings if each.severity is severity}
        yield f"findings_{severity.value}", float(len(found))
