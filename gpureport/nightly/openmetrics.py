"""Figures and checks as OpenMetrics text, for servers that draw and alert."""

from collections.abc import Sequence

from gpureport.comparison.figures import FIGURES, Figure, FigureRole, read_run
from gpureport.comparison.run import SampledRun
from gpureport.findings import Check, CheckOutcome
from gpureport.report.wording import display

_SHORTEST_STEADY_SECONDS = 60.0
"""Steady time, in seconds, from which the mean of a run is that of what had settled."""


def render_openmetrics(runs: Sequence[SampledRun], checks: Sequence[Check]) -> str:
    """Return the figures of runs and how each limit ended."""
    names = [display.clean(run.analysis.run.name) for run in runs]
    figures = [_measure_run(run) for run in runs]
    lines = []
    for figure in FIGURES:
        held = [
            (f"{name} ({run.analysis.run.id})" if names.count(name) > 1 else name, values[figure])
            for name, run, values in zip(names, runs, figures, strict=True)
            if figure in values
        ]
        if held:
            family = f"gpureport_check_{figure.metric}"
            lines += [f"# TYPE {family} gauge"]
            # cleaned names hold no line breaks
            safe = [(name.replace("\\", "\\\\").replace('"', '\\"'), value) for name, value in held]
            lines += [f'{family}{{run="{name}"}} {value!r}' for name, value in safe]
    family = "gpureport_check_limits"
    lines += [f"# TYPE {family} gauge", f"# HELP {family} Limits by how they ended."]
    for outcome in CheckOutcome:
        ended = sum(check.outcome is outcome for check in checks)
        lines.append(f'{family}{{outcome="{outcome.value}"}} {ended}')
    return "\n".join([*lines, "# EOF"]) + "\n"


def _measure_run(run: SampledRun) -> dict[Figure, float]:
    """Return the figures of a run: means of the steady time if long enough, else of the whole run."""
    plain = read_run(run)
    interval = run.series.interval if run.series else 0.0
    values = {}
    for figure in FIGURES:
        if figure.role is FigureRole.MEAN and run.steady_seconds(figure.metric, interval) >= _SHORTEST_STEADY_SECONDS:
            values[figure] = run.estimate(figure.metric, interval, figure.finest).mean
        elif (value := plain.get(figure.metric)) is not None:
            values[figure] = value
    return values
