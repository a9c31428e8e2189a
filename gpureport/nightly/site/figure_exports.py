"""Figures and checks as OpenMetrics text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpureport.comparison.steps.compared_figures import FIGURES, Figure, FigureRole
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import measures
from gpureport.findings import Check, CheckOutcome
from gpureport.report.wording import display

_SHORTEST_STEADY_SECONDS = 60.0
"""Steady time, in seconds, from which a run tells a mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFigure:
    """One figure of one run."""

    run: str
    figure: Figure
    value: float


def export_figures(runs: Sequence[SampledRun]) -> tuple[ExportedFigure, ...]:
    """Return the figures of runs: means of enough steady time, else those of the whole run."""
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
            yield ExportedFigure(run=name, figure=figure, value=estimate.mean)
        elif (value := plain.get(figure.metric)) is not None:
            yield ExportedFigure(run=name, figure=figure, value=value)


def render_openmetrics(figures: Sequence[ExportedFigure], checks: Sequence[Check]) -> str:
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
