"""Results as matplotlib figures, for notebooks and papers. matplotlib is imported where a figure is drawn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpureport.columns import integers
from gpureport.metrics import BY_NAME
from gpureport.report.charts.palette import CLASSES, COLOURS, OTHER_CLASS
from gpureport.report.wording.terms import FIGURE_NAMES, class_title, name_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpureport.api.results import Analysis, Comparison

METRICS = ("gpu_utilization_ratio", "gpu_power_watts", "gpu_sm_clock_hertz", "gpu_temperature_celsius")
_UNITS = {"1": ("%", 100.0), "Hz": ("MHz", 1e-6), "By": ("GiB", 2.0**-30), "Cel": ("°C", 1.0)}
_GAP = 5.0  # intervals between samples, beyond which a line is broken
_HEIGHT, _WIDTH = 1.8, 9.0  # inches
_BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": "small"}


def make_axes(panels: int = 0) -> Any:
    import matplotlib.pyplot as plt

    size = (_WIDTH, 1 + _HEIGHT * panels if panels else 4)
    return plt.subplots(panels or 1, sharex=True, squeeze=not panels, layout="constrained", figsize=size)[1]


def draw_signals(analysis: "Analysis", metrics: Sequence[str], devices: Sequence[str]) -> "Sequence[Axes]":
    """Draw one panel for each metric with a line for each GPU, and shade the findings of these GPUs."""
    recording, run = analysis.recording, analysis.run
    shown, recorded = set(devices) or {device.id for device in run.gpus}, recording.series.column_names
    panels = list(metrics) or [name for name in METRICS if name in recorded]
    if unknown := [name for name in panels if name not in recorded] + sorted(shown - {each.id for each in run.devices}):
        msg = f"{unknown[0]!r} was not recorded; there are {', '.join([*recorded, *(each.id for each in run.devices)])}"
        raise ValueError(msg)
    axes: list[Axes] = list(make_axes(max(len(panels), 1))[:, 0])
    for panel, metric in zip(axes, panels, strict=False):
        for device in sorted(shown):
            rows = recording.rows_of(device).select(["timestamp", metric]).drop_null()
            minutes = (integers(rows["timestamp"]) - run.started) / 6e7
            values = _scale(rows[metric].to_numpy().astype(float), metric)
            # a line is broken where samples are missing
            gaps = np.flatnonzero(np.diff(minutes) > _GAP * (run.interval or np.inf) / 60) + 1
            panel.plot(np.insert(minutes, gaps, np.nan), np.insert(values, gaps, np.nan), label=device, linewidth=0.8)
        panel.set_ylabel(_label(metric))
        # once a kind in the legend
        named: set[str] = set()
        for finding in analysis.findings:
            for span in finding.intervals if shown & set(finding.devices) else ():
                start, end = ((at - run.started) / 6e7 for at in (span.start, span.end))
                label = "" if finding.kind in named else finding.kind
                panel.axvspan(start, end, color=COLOURS[finding.severity.value], alpha=0.15, label=label)
                named.add(finding.kind)
    axes[0].set_title(run.name)
    axes[-1].set_xlabel("minutes since the first sample")
    axes[0].legend(**_BESIDE)
    return axes


def _draw_gpu_time(comparison: "Comparison", _: str, axes: "Axes") -> None:
    seconds = comparison.gpu_time_frame().groupby("step", sort=False).sum()
    shares, left = 100 * seconds.div(seconds.sum(axis=1), axis=0), np.zeros(len(seconds))
    for name in shares:
        fill, part = CLASSES.get(str(name), OTHER_CLASS), shares[name].to_numpy()
        look: dict[str, Any] = {"color": fill.colour, "hatch": fill.hatch, "edgecolor": "white"}
        axes.barh(shares.index, part, left=left, label=class_title(str(name), ()), **look)
        left += part
    axes.invert_yaxis()
    axes.set_xlabel("% of the GPU time")
    axes.legend(**_BESIDE)


def _draw_changes(comparison: "Comparison", _: str, axes: "Axes") -> None:
    first, last = comparison.steps[0].label, comparison.steps[-1].label
    names: list[str] = []
    for delta in comparison.between(first, last):
        if not delta.before or delta.difference is None:
            continue
        scale, place = 100 / abs(delta.before), len(names)
        colour = COLOURS["busy" if delta.verdict.is_established else "muted"]
        if delta.interval is not None:
            axes.plot([end * scale for end in delta.interval], [place, place], color=colour)
        axes.plot(delta.difference * scale, place, "o" if delta.interval else "|", color=colour)
        names.append(f"{name_figure(delta.metric)}: {delta.verdict}")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(0, color=COLOURS["muted"], linewidth=0.8)
    axes.set_xlabel(f"% change from {first} to {last}, with its 95% interval")


def _draw_overlay(comparison: "Comparison", metric: str, axes: "Axes") -> None:
    for step in comparison.steps:
        run = next(each for each in comparison.analyses if (each.run.step or each.run.name) == step.label)
        if metric in run.recording.series.column_names:
            rows = run.recording.to_pandas().dropna(subset=metric)
            minutes = (rows["timestamp"] - rows["timestamp"].min()).dt.total_seconds() // 10 / 6
            means = rows[metric].groupby(minutes).mean()
            axes.plot(means.index, _scale(means.to_numpy(), metric), label=step.label)
    axes.set_xlabel("minutes since the start, means of ten seconds")
    axes.set_ylabel(_label(metric))
    axes.legend(fontsize="small")


FIGURES = {"changes": _draw_changes, "gpu_time": _draw_gpu_time, "overlay": _draw_overlay}
"""What `Comparison.plot` draws, by name."""


def _scale(values: Any, metric: str) -> Any:
    return values * _UNITS.get(BY_NAME[metric].unit, ("", 1.0))[1]


def _label(metric: str) -> str:
    unit = BY_NAME[metric].unit
    return f"{FIGURE_NAMES.get(metric, metric.rpartition('_')[0])}\n{_UNITS.get(unit, (unit,))[0]}"
