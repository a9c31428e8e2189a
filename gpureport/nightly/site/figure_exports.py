"""Figures and checks for other programs: github-action-benchmark, Bencher, OpenMetrics."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from gpureport.comparison.statistics.difference_estimate import LEVEL
from gpureport.comparison.steps.compared_figures import FIGURES, Figure, FigureRole
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import measures
from gpureport.findings import Check, CheckOutcome
from gpureport.report.wording import display

_SHORTEST_STEADY_SECONDS = 60.0
"""Steady time, in seconds, from which a run tells the interval of a mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFigure:
    """One figure of one run, with its interval where one is known."""

    run: str
    figure: Figure
    value: float
    interval: tuple[float, float] | None = None


def export_figures(runs: Sequence[SampledRun]) -> tuple[ExportedFigure, ...]:
    """Return the figures of runs: means with their interval after enough steady time, else those of the whole run."""
    names = [display.clean(run.analysis.run.name) for run in runs]
    return tuple(
        each
        for name, run in zip(names, runs, strict=True)
        for each in _export_run(run, f"{name} ({run.analysis.run.id})" if names.count(name) > 1 else name)
    )


def _export_run(run: SampledRun, name: str) -> Iterator[ExportedFigure]:
    plain = {each.metric: each.value for each in measures([run.analysis], [run.gpu_hour_price])}
    interval = run.series.interval if run.series else 0.0
    for figure in FIGURES:
        if figure.kind is FigureRole.MEAN and run.steady_seconds(figure.metric, interval) >= _SHORTEST_STEADY_SECONDS:
            estimate = run.estimate(figure.metric, interval, figure.finest)
            low, high = estimate.interval(LEVEL)
            # an interval of a share is wider than what a share can be where the share is near its ends
            ends = (max(low, 0.0), min(high, 1.0)) if figure.unit == "1" else (low, high)
            yield ExportedFigure(
                run=name, figure=figure, value=estimate.mean, interval=ends if isfinite(high - low) else None
            )
        elif (value := plain.get(figure.metric)) is not None:
            yield ExportedFigure(run=name, figure=figure, value=value)


def _render_benchmark(figures: Sequence[ExportedFigure], checks: Sequence[Check], better: int) -> str:
    """Return figures of which less, or more, is better, as github-action-benchmark reads them."""
    del checks
    entries = []
    for each in figures:
        if each.figure.better != better:
            continue
        entry = {"name": f"{each.run}: {each.figure.metric}", "unit": each.figure.unit, "value": each.value}
        if each.interval:
            entry["range"] = f"± {(each.interval[1] - each.interval[0]) / 2:.4g}"
        entries.append(entry)
    return json.dumps(entries, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _render_smaller_is_better(figures: Sequence[ExportedFigure], checks: Sequence[Check]) -> str:
    return _render_benchmark(figures, checks, -1)


def _render_bigger_is_better(figures: Sequence[ExportedFigure], checks: Sequence[Check]) -> str:
    return _render_benchmark(figures, checks, 1)


def _render_bencher(figures: Sequence[ExportedFigure], checks: Sequence[Check]) -> str:
    """Return figures as Bencher's Metric Format, with the ends of their intervals."""
    del checks
    document: dict[str, dict[str, dict[str, float]]] = {}
    for each in figures:
        measure = {"value": each.value}
        if each.interval:
            measure |= {"lower_value": each.interval[0], "upper_value": each.interval[1]}
        document.setdefault(each.run, {})[each.figure.metric] = measure
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _render_openmetrics(figures: Sequence[ExportedFigure], checks: Sequence[Check]) -> str:
    """Return figures and how each limit ended as OpenMetrics text."""
    lines = []
    for figure in FIGURES:
        held = [each for each in figures if each.figure is figure]
        if held:
            name = f"gpureport_check_{figure.metric}"
            lines += [f"# TYPE {name} gauge"]
            lines += [f'{name}{{run="{_escape_label(each.run)}"}} {each.value!r}' for each in held]
    name = "gpureport_check_limits"
    lines += [f"# TYPE {name} gauge", f"# HELP {name} Limits by how they ended."]
    for outcome in CheckOutcome:
        ended = sum(check.outcome is outcome for check in checks)
        lines.append(f'{name}{{outcome="{outcome.value}"}} {ended}')
    return "\n".join([*lines, "# EOF"]) + "\n"


def _escape_label(text: str) -> str:
    return display.clean(text).replace("\\", "\\\\").replace('"', '\\"')


FORMATS: dict[str, Callable[[Sequence[ExportedFigure], Sequence[Check]], str]] = {
    "benchmark-smaller": _render_smaller_is_better,
    "benchmark-bigger": _render_bigger_is_better,
    "bencher": _render_bencher,
    "openmetrics": _render_openmetrics,
}
"""Formats by name. github-action-benchmark needs a file for each direction of better."""
