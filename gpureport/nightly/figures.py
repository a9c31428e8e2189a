"""Defines and measures nightly figures, and writes the figures of runs as OpenMetrics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import TYPE_CHECKING

from gpureport.checks.figures import explain_class_doubt
from gpureport.comparison import figures
from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, WORK_RATE
from gpureport.comparison.gains import NOTABLE_RATIO, list_possible_waits, measure_lost_ratio
from gpureport.findings import Check, CheckOutcome, Severity
from gpureport.report.runs import gpu_time
from gpureport.report.wording import display
from gpureport.report.wording.terms import name_figure

if TYPE_CHECKING:
    from gpureport.analysis.results import Analysis
    from gpureport.comparison.run import SampledRun

WORK_FIGURES = (PER_WORK, WORK_RATE, COST_PER_WORK, ENERGY_PER_WORK)
COUNT = "count"  # the unit of counts


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A figure tracked from night to night. Its unit is a base unit or `count`.

    `better` is `higher`, `lower`, or empty if neither is better. A change matters if it is at least `smallest` and, as
    a share of the earlier value, at least `relative`.
    """

    name: str
    unit: str
    better: str
    title: str
    smallest: float = 0.0
    relative: float = 0.01
    currency: str = ""

    @property
    def grain(self) -> float:
        """The minimum deviation to assume between nights; 0.5 for counts."""
        return 0.5 if self.unit == COUNT else self.smallest / 3

    @property
    def is_of_work(self) -> bool:
        return self.name in WORK_FIGURES


def _kind(name: str, unit: str, better: str, title: str = "") -> FigureKind:
    smallest = {"1": 0.005, COUNT: 0.5, "Cel": 1.0}.get(unit, 0.0)
    return FigureKind(name, unit, better, title or name_figure(name), smallest, 0.0 if smallest else 0.01)


FIGURES = (
    _kind("lost_ratio", "1", "lower", "GPU time lost"),
    _kind(PER_WORK, "s", "lower"),
    _kind(WORK_RATE, "1/s", "higher"),
    _kind("gpu_utilization_ratio", "1", "higher"),
    _kind("idle_ratio", "1", "lower"),
    _kind("waiting_ratio", "1", "lower", "Waiting for data"),
    _kind("throttled_ratio", "1", "lower", "Slowed by heat or hardware"),
    _kind("startup_ratio", "1", "lower", "Start-up"),
    _kind("gpu_seconds", "s", ""),
    _kind("energy_joules", "J", ""),
    _kind(ENERGY_PER_WORK, "J", "lower"),
    _kind(COST_PER_WORK, "currency", "lower"),
    _kind("gpu_power_watts", "W", ""),
    _kind("gpu_sm_clock_hertz", "Hz", "higher"),
    _kind("gpu_memory_used_bytes", "By", ""),
    _kind("gpu_temperature_celsius", "Cel", "lower", "Highest temperature"),
    _kind("coverage_ratio", "1", "higher", "Time with samples"),
    _kind("findings_problem", COUNT, "lower", "Problems found"),
    _kind("findings_warning", COUNT, "lower", "Warnings found"),
    _kind("findings_info", COUNT, "lower", "Facts found"),
)
SAMPLING = "sampling_interval_ratio"
"""Name of a stored figure: the sampling interval as a share of the recording."""
BY_NAME = {kind.name: kind for kind in FIGURES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    value: float | None


def measure_figures(run: "SampledRun") -> tuple[Figure, ...]:
    known = (
        figures.read_run(run)
        | dict(_measure_times(run.analysis))
        | {SAMPLING: figures.find_sampling_step([run]) or None}
    )
    hottest = [each.metric("gpu_temperature_celsius") for each in run.analysis.statistics]
    known["gpu_temperature_celsius"] = max((each.max for each in hottest if each is not None), default=None)
    # count findings of one kind and cause once, at the highest severity
    ranked = sorted(run.analysis.findings, key=lambda each: [*Severity].index(each.severity))
    gravest = [*{(each.kind, each.cause): each.severity for each in ranked}.values()]
    known |= {f"findings_{severity.value}": float(gravest.count(severity)) for severity in Severity}
    finite = {name: float(value) for name, value in known.items() if value is not None and isfinite(value)}
    return tuple(Figure(name=name, value=finite.get(name)) for name in (*BY_NAME, SAMPLING))


def _measure_times(analysis: "Analysis") -> Iterator[tuple[str, float | None]]:
    """Yield shares of the GPU time held by jobs, or None if unknown."""
    held = gpu_time.job_gpu_seconds([analysis])
    taken = gpu_time.seconds_by_class(analysis.gpu_time)
    names = ("waiting_for_input", "throttled", "startup")
    known = {name: taken.get(name, 0.0) / held for name in names if held and not explain_class_doubt(name, analysis)}
    # more time may have been spent waiting
    is_open = fsum(list_possible_waits(analysis).values()) > max(known.get(names[0], 0.0), NOTABLE_RATIO) * held
    # without a recorded clock, throttled time is not known
    has_clock = any(each.metric("gpu_sm_clock_hertz") is not None for each in analysis.statistics)
    yield "lost_ratio", measure_lost_ratio(analysis)
    yield "waiting_ratio", None if is_open else known.get("waiting_for_input")
    yield "throttled_ratio", known.get("throttled") if has_clock else None
    yield "startup_ratio", known.get("startup")
    yield "coverage_ratio", analysis.coverage_ratio


_SHORTEST_STEADY_SECONDS = 60.0
"""Minimum steady time, in seconds, for a run's means to cover only steady time."""


def render_openmetrics(runs: Sequence["SampledRun"], checks: Sequence[Check]) -> str:
    names = [display.clean(run.analysis.run.name) for run in runs]
    measured = [_measure_run(run) for run in runs]
    lines = []
    for figure in figures.FIGURES:
        held = [
            (f"{name} ({run.analysis.run.id})" if names.count(name) > 1 else name, values[figure])
            for name, run, values in zip(names, runs, measured, strict=True)
            if figure in values
        ]
        family = f"gpureport_check_{figure.metric}"
        lines += [f"# TYPE {family} gauge"] if held else []
        # cleaned names have no line breaks
        safe = [(name.replace("\\", "\\\\").replace('"', '\\"'), value) for name, value in held]
        lines += [f'{family}{{run="{name}"}} {value!r}' for name, value in safe]
    family = "gpureport_check_limits"
    lines += [f"# TYPE {family} gauge", f"# HELP {family} Limits by outcome."]
    lines += [f'{family}{{outcome="{each}"}} {sum(check.outcome is each for check in checks)}' for each in CheckOutcome]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _measure_run(run: "SampledRun") -> dict[figures.Figure, float]:
    plain = figures.read_run(run)
    interval = run.series.interval if run.series else 0.0
    values = {}
    for figure in figures.FIGURES:
        if (
            figure.role is figures.FigureRole.MEAN
            and run.steady_seconds(figure.metric, interval) >= _SHORTEST_STEADY_SECONDS
        ):
            values[figure] = run.estimate(figure.metric, interval, figure.finest).mean
        elif (value := plain.get(figure.metric)) is not None:
            values[figure] = value
    return values
