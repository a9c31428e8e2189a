"""The steps of an optimization, each row against the row above."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from gpureport.comparison.measures import ENERGY_PER_WORK, PER_WORK, WORK_BATCH, measures
from gpureport.comparison.steps import Comparison, Delta, Step
from gpureport.report import display
from gpureport.report.parts import Cell, Row, Table

_HOUR = 3600.0
_LABEL = 24
"""Most characters of a name in a table for a terminal."""


def _hours(seconds: float) -> str:
    return display.number(seconds / _HOUR)


def _hours_change(seconds: float) -> str:
    return display.signed(seconds / _HOUR)


def _power_change(watts: float) -> str:
    return f"{display.signed(watts)}{display.GAP}W"


def _energy_change(joules: float) -> str:
    return f"{'-' if joules < 0 else '+'}{display.energy(abs(joules))}"


_COLUMNS: dict[str, tuple[str, Callable[[float], str], Callable[[float], str]]] = {
    PER_WORK: ("GPU-hours per {batch}", _hours, _hours_change),
    "gpu_seconds": ("GPU-hours", _hours, _hours_change),
    ENERGY_PER_WORK: ("Energy per {batch}", display.energy, _energy_change),
    "energy_joules": ("Energy", display.energy, _energy_change),
    "idle_ratio": ("Idle share", display.percent, display.points),
    "gpu_utilization_ratio": ("GPU utilisation", display.percent, display.points),
    "gpu_power_watts": ("Power of a GPU", display.power, _power_change),
    "gpu_memory_used_bytes": ("Peak memory", display.memory, display.memory_change),
}


def table(comparison: Comparison) -> Table:
    """Return one row a step; the small line is the difference from the row above."""
    steps = comparison.steps
    shown, titles = _figures(steps)
    rows = [_row(steps[0], shown, ())]
    rows += [_row(step, shown, comparison.between(base.label, step.label)) for base, step in pairwise(steps)]
    note = next((delta.reason for delta in comparison.deltas if delta.difference is not None), "")
    return Table(
        columns=("Step", *titles, "Difference"),
        numeric=(*(True for _ in shown), False),
        rows=tuple(rows),
        note=f"Small figures are the difference from the row above. {note}".rstrip(),
    )


def _figures(steps: Sequence[Step]) -> tuple[list[str], list[str]]:
    """Return the figures to show of some steps, by name and by title."""
    units = {step.work_unit for step in steps if step.work_unit}
    left_out = {"energy_joules"} if units else {PER_WORK, ENERGY_PER_WORK}
    shown = [metric for metric in _COLUMNS if metric not in left_out]
    return shown, [_COLUMNS[metric][0].format(batch=batch(units)) for metric in shown]


def overview(comparison: Comparison) -> Table:
    """Return one row a step with its figures, and under a step of several runs one row a run."""
    shown, titles = _figures(comparison.steps)
    rows: list[Row] = []
    for step in comparison.steps:
        runs = len(step.analyses)
        label = display.squeeze(display.clean(step.label), _LABEL)
        rows.append(_plain_row(f"{label} ({runs} runs)" if runs > 1 else label, step.value, shown))
        for analysis in step.analyses if runs > 1 else ():
            figures = {measure.metric: measure.value for measure in measures([analysis])}
            rows.append(
                _plain_row(f"- {display.squeeze(display.clean(analysis.run.name), _LABEL)}", figures.get, shown)
            )
    repeated = len(rows) > len(comparison.steps)
    note = "Of several runs, GPU-hours and energy are a mean, peak memory is the highest, the rest is over all of them."
    return Table(
        columns=("Step", *titles), numeric=(True,) * len(shown), rows=tuple(rows), note=note if repeated else ""
    )


def _plain_row(head: str, value: Callable[[str], float | None], shown: Sequence[str]) -> Row:
    texts = (display.optional(value(metric), _COLUMNS[metric][1]) for metric in shown)
    return Row(head=Cell(text=head), cells=tuple(Cell(text=text) for text in texts))


def differences(base: Step, step: Step, deltas: Sequence[Delta]) -> Table:
    """Return one row a figure: before, after, and how far apart, in units and relative to before."""
    shown, titles = _figures((base, step))
    found = {delta.metric: delta for delta in deltas}
    return Table(
        columns=("", "Before", "After", "Difference", "Relative"),
        numeric=(True,) * 4,
        rows=tuple(_difference(title, found[metric]) for metric, title in zip(shown, titles, strict=True)),
    )


def _difference(title: str, delta: Delta) -> Row:
    _, shown, changed = _COLUMNS[delta.metric]
    values = [display.optional(value, shown) for value in (delta.before, delta.after)]
    difference, relative = "", ""
    if delta.difference is not None:
        difference = changed(delta.difference) if delta.difference else "none"
        relative = display.relative(delta.difference, delta.before)
    return Row(head=Cell(text=title), cells=tuple(Cell(text=text) for text in (*values, difference, relative)))


def batch(units: set[str]) -> str:
    """Return the batch of work that GPU-hours are set in relation to: `1000 steps`, or units in general."""
    return f"{WORK_BATCH} {display.clean(units.copy().pop())}" if len(units) == 1 else f"{WORK_BATCH} units of work"


def _row(step: Step, shown: Sequence[str], deltas: Sequence[Delta]) -> Row:
    runs = len(step.analyses)
    changes = {delta.metric: delta for delta in deltas}
    cells = [_cell(step, metric, changes.get(metric)) for metric in shown]
    verdicts = {delta.verdict for delta in deltas if delta.difference is not None} or {d.verdict for d in deltas}
    verdict = Cell(text=display.listing(sorted(verdicts)) if deltas else "first step")
    return Row(
        head=Cell(text=display.clean(step.label), small=f"{runs} runs" if runs > 1 else ""), cells=(*cells, verdict)
    )


def _cell(step: Step, metric: str, delta: Delta | None) -> Cell:
    _, shown, changed = _COLUMNS[metric]
    value = step.value(metric)
    difference = None if delta is None else delta.difference
    small = "" if difference is None else changed(difference) if difference else "no change"
    return Cell(text=display.optional(value, shown), small=small, value=value)
