"""Time at the power limit, the clock there, and the limit a board ships with."""

from dataclasses import dataclass

import numpy as np

from gpureport import gpus
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.clock_event_time import CountedTime, counter_name, measure_counted_time
from gpureport.analysis.signals.clock_signals import ClockSignals
from gpureport.columns import BoolArray
from gpureport.findings import Evidence, Threshold

PAUSES = 0.05
"""Share of pauses in what is counted from which on a reader must know of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultLimit:
    """The power limit a board ships with, and where it is known from."""

    watts: float
    source: str
    is_logged: bool


@dataclass(frozen=True, slots=True)
class CappedTime:
    """When a GPU was at its limit.

    Attributes:
        episodes: stretches of the finding.
        rows: rows that show the clock at the limit.
        share: share of the busy time.
        at_limit: stretches at the limit, pauses left out.
        counted: what the driver counted, None where it did not.
    """

    episodes: Spans
    rows: BoolArray
    share: float
    at_limit: Spans
    counted: CountedTime | None


def read_counted_time(series: DeviceSeries) -> CountedTime | None:
    """Return the counted time at the limit; None without a counter, or if it stands still while the bit is set."""
    counted = measure_counted_time(series, "sw_power_cap")
    if counted is None or (counted.total_seconds <= 0 and (series.values("clock_event_sw_power_cap") > 0).any()):
        return None
    return counted


def build_counter_evidence(counted: CountedTime) -> Evidence:
    """Return by how much the driver's counter of the power cap rose."""
    return Evidence(
        metric=counter_name("sw_power_cap"),
        statistic="rise over the recording",
        observed=counted.total_seconds,
        unit="s",
    )


def compute_clock_ratio(signals: ClockSignals, rows: BoolArray) -> float:
    """Return the median clock over rows, of the highest; NaN when either is not known."""
    clock = signals.clock[rows & ~np.isnan(signals.clock)]
    return float(np.median(clock)) / signals.clock_max if len(clock) else float("nan")


def build_clock_evidence(ratio: float, limit: Threshold | None) -> Evidence:
    """Return the median clock at the limit, against the lowest that is normal."""
    return Evidence(
        metric="gpu_sm_clock_hertz",
        statistic="median at the limit, of the highest",
        observed=ratio,
        unit="1",
        threshold=limit,
        relation="<" if limit else "",
    )


def is_masked_by_diagnostics(series: DeviceSeries) -> bool:
    """Return whether NVIDIA's diagnostics ignore clock events of this model."""
    known = gpus.find_gpu(series.device.model)
    return known is not None and known.clock_events_masked is not None


def find_default_limit(series: DeviceSeries) -> DefaultLimit | None:
    """Return the limit a board ships with, by the log or else by the GPU table; None where neither tells."""
    logged = series.device.power_limit_default_watts
    if series.is_recorded("gpu_power_limit_default_watts"):
        logged = float(np.nanmax(series.values("gpu_power_limit_default_watts")))
    if logged is not None:
        return DefaultLimit(watts=logged, source="as logged", is_logged=True)
    known = gpus.find_gpu(series.device.model)
    cell = known.power_limit_default_watts if known else None
    return DefaultLimit(watts=cell.value, source=cell.source, is_logged=False) if cell else None
