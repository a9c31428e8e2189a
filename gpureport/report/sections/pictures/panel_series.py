"""One quantity of a GPU over time as a panel: its line, those of the other GPUs, its limit, and what to see."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.columns import BoolArray, FloatArray
from gpureport.report.model.pictures import SignalLine, SignalPanel
from gpureport.report.runs.bucket_means import accumulate
from gpureport.report.sections.pictures.signals import (
    CLOCK,
    MEMORY,
    TEMPERATURE,
    Signal,
    find_limit,
    format_number,
    format_value,
)

_NEAR = 0.95
"""Share of a limit from which it counts as reached."""

_COLDEST = 20.0
"""Lower end of the axis of temperatures above it, in degrees Celsius."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSeries:
    """The series that panels of one picture show.

    Attributes:
        started: first sample of the run, in microseconds.
        main: the GPU that the picture is about.
        others: the GPUs drawn in grey, by name.
        hosts: the machine of the GPU, by name; empty where none was recorded.
        edges: edges of the buckets in seconds since the first sample.
        spans: the stretches that a finding speaks of, in seconds.
        when: what stands behind a figure of these stretches: `while hot`.
    """

    started: int
    label: str
    main: DeviceSeries
    others: Mapping[str, DeviceSeries]
    hosts: Mapping[str, DeviceSeries]
    edges: FloatArray
    spans: tuple[tuple[float, float], ...]
    when: str = "meanwhile"


def build_panel(shown: PanelSeries, signal: Signal, *, is_alert: bool) -> SignalPanel | None:
    """Return the panel of a quantity; None where it was not recorded within the axis.

    Args:
        shown: the series.
        signal: the quantity.
        is_alert: whether it shows what went wrong.
    """
    lines = tuple(_list_lines(shown, signal))
    if not any(line.is_main for line in lines):
        return None
    known = np.concatenate([line.mean[~np.isnan(line.mean)] for line in lines])
    if not len(known):
        return None
    limit = None if signal.is_of_host else find_limit(signal, shown.main)
    low, high = _choose_ends(signal, known, limit[0] if limit else None)
    main = next(line.mean for line in lines if line.is_main)
    usual, meanwhile = _measure_usual(shown, main), _measure_meanwhile(shown, signal)
    label = (
        f"All {count} CPU cores" if signal.label == "All CPU cores" and (count := _count_cores(shown)) else signal.label
    )
    ends = f"{format_number(signal, low)} to {format_value(signal, high)}"
    return SignalPanel(
        quantity=signal.label,
        label=f"{label}, {ends}",
        lines=lines,
        low=low,
        high=high,
        usual=usual,
        meanwhile=meanwhile,
        limit=limit[0] if limit else None,
        limit_text=limit[1] if limit else "",
        is_limit_reached=limit is not None and _peak(shown, signal) >= _NEAR * limit[0],
        is_filled=signal.is_filled,
        is_alert=is_alert,
        is_of_host=signal.is_of_host,
        note=", ".join(filter(None, (_describe(shown, signal, main, usual, meanwhile), limit[1] if limit else ""))),
    )


def _list_lines(shown: PanelSeries, signal: Signal) -> Iterator[SignalLine]:
    if signal.is_of_host:
        for name, host in shown.hosts.items():
            if (mean := _mean(shown, signal, host)) is not None:
                yield SignalLine(label=name, mean=mean)
        return
    mean = _mean(shown, signal, shown.main)
    if mean is None:
        return
    yield SignalLine(label=shown.label, mean=mean)
    for name, other in shown.others.items():
        if not signal.is_filled and (beside := _mean(shown, signal, other)) is not None:
            yield SignalLine(label=name, mean=beside, is_main=False)


def _mean(shown: PanelSeries, signal: Signal, series: DeviceSeries) -> FloatArray | None:
    """Return the mean of each bucket in the unit of the quantity; None where it was not recorded."""
    metric = _find_metric(signal, series)
    if metric is None:
        return None
    sums = accumulate(*_place_samples(shown, signal, series), series.values(metric))
    means: FloatArray = sums.means(shown.edges) * signal.factor
    return means


def _find_metric(signal: Signal, series: DeviceSeries) -> str | None:
    return next((name for name in signal.metrics if series.is_recorded(name)), None)


def _place_samples(shown: PanelSeries, signal: Signal, series: DeviceSeries) -> tuple[FloatArray, FloatArray]:
    """Return where the time of each sample begins and ends, in seconds since the first sample."""
    # a share speaks of the window before its stamp, so its value lies that much earlier
    zero = shown.started + (series.shift if signal.unit == "%" else 0)
    return (series.start - zero) / 1e6, (series.end - zero) / 1e6


def _choose_ends(signal: Signal, known: FloatArray, limit: float | None) -> tuple[float, float]:
    """Return round ends of the axis: from zero, but for temperatures."""
    most = max(float(known.max()), limit or 0.0)
    if signal.full is not None:
        return 0.0, max(signal.full, most)
    if signal is TEMPERATURE:
        return (_COLDEST if known.min() >= _COLDEST else floor(known.min() / 10) * 10.0), ceil((most + 1) / 10) * 10.0
    if format_value(signal, most) == format_value(signal, 0.0):
        return 0.0, 1.0
    step = 10 ** floor(np.log10(most)) / 10
    return 0.0, ceil(most / step * (1 - 1e-9)) * step


def _count_cores(shown: PanelSeries) -> int:
    """Return how many logical cores the machine has; 0 where that was not recorded."""
    for host in shown.hosts.values():
        if host.is_recorded("cpu_logical_cores"):
            return int(np.nanmax(host.values("cpu_logical_cores")))
    return 0


def _measure_usual(shown: PanelSeries, mean: FloatArray) -> float | None:
    """Return the median of a line outside the shaded stretches; None where not recorded."""
    outer = mean[~_find_inside(shown, (shown.edges[1:] + shown.edges[:-1]) / 2) & ~np.isnan(mean)]
    return float(np.median(outer)) if len(outer) else None


def _measure_meanwhile(shown: PanelSeries, signal: Signal) -> float | None:
    """Return the mean of the samples within the shaded stretches, each with its time; None where not recorded.

    Buckets of the line would not do: those at both ends mix in what came before and after.
    """
    for series in shown.hosts.values() if signal.is_of_host else (shown.main,):
        metric = _find_metric(signal, series)
        if metric is None:
            continue
        start, end = _place_samples(shown, signal, series)
        values = series.values(metric)
        inside = _find_inside(shown, (start + end) / 2) & ~np.isnan(values) & (end > start)
        if not inside.any():
            return None
        return float(np.average(values[inside], weights=(end - start)[inside])) * signal.factor
    return None


def _find_inside(shown: PanelSeries, moments: FloatArray) -> BoolArray:
    """Return which of some moments, in seconds, lie in a shaded stretch."""
    inside = np.zeros(len(moments), dtype=np.bool_)
    for start, end in shown.spans:
        inside |= (moments >= start) & (moments < end)
    return inside


def _describe(
    shown: PanelSeries, signal: Signal, mean: FloatArray, usual: float | None, meanwhile: float | None
) -> str:
    """Return what to see: the highest, the fall of a clock, or the mean, of shaded stretches where it differs.

    Empty where nothing was recorded within the axis.
    """
    known = ~np.isnan(mean)
    if not known.any():
        return ""
    if signal in {TEMPERATURE, MEMORY}:
        peak = format_value(signal, _peak(shown, signal))
        return f"{peak} throughout" if peak == format_value(signal, 0.0) else f"up to {peak}"
    if signal is CLOCK and usual is not None and meanwhile is not None and meanwhile < usual:
        return f"{format_number(signal, usual)} → {format_value(signal, meanwhile)} {shown.when}"
    average = format_value(signal, float(mean[known].mean()))
    if meanwhile is None or (then := format_value(signal, meanwhile)) == average:
        return f"{average} on average"
    return f"{then} {shown.when}"


def _peak(shown: PanelSeries, signal: Signal) -> float:
    series = shown.main
    first, last = (shown.started + round(edge * 1e6) for edge in shown.edges[[0, -1]])
    rows = (series.times >= first) & (series.times <= last)
    metric = next(name for name in signal.metrics if series.is_recorded(name))
    return float(np.nanmax(series.values(metric)[rows], initial=-np.inf)) * signal.factor
