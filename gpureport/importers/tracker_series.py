"""What tracker runs are made of: points of series, device rows, training metrics, work, and the account."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import AbsentCells, Quality, Rejected
from gpureport.errors import SourceError
from gpureport.importers.account import list_first
from gpureport.importers.clock import Clock, coverage_ratio
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED
from gpureport.importers.protocol.tracker import Tracked
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND
from gpureport.recording import HOST, Device, Run, Work
from gpureport.series_table import METRIC_TYPES, SCHEMA, TRAINING_SCHEMA, empty_training
from gpureport.training_names import choose_throughput, recognise_metric
from gpureport.work_counting import count_by_rates

_MOST_NAMED = 4
"""Names that are listed, the others are counted."""
_MOST_STEP = 2**62


class Series(NamedTuple):
    """Points of one series in logging order: microseconds, values, and steps, NaN where not recorded."""

    times: IntArray
    values: FloatArray
    steps: "FloatArray | IntArray"

    def taken(self, rows: "IntArray | BoolArray") -> "Series":
        """Return some of the points."""
        return Series(self.times[rows], self.values[rows], self.steps[rows])


def make_series(points: Iterable[tuple[int, float, float]]) -> Series:
    """Return points of time, value and step as a series."""
    times, values, steps = zip(*points, strict=True)
    return Series(np.array(times, np.int64), np.array(values, np.float64), np.array(steps))


def is_dated(time: float) -> bool:
    """Return whether a number of microseconds is a date."""
    return FIRST_MICROSECOND <= time < LAST_MICROSECOND


def list_rejected(counts: Mapping[str, int]) -> tuple[Rejected, ...]:
    """Return the rejected points, from their number by reason."""
    return tuple(Rejected(reason=why, rows=rows, first_line=None) for why, rows in counts.items() if rows)


def list_absent(counts: Mapping[tuple[str, str], int]) -> tuple[AbsentCells, ...]:
    """Return the unknown values, from their number by column and reason."""
    return tuple(AbsentCells(column=name, reason=why, cells=n) for (name, why), n in counts.items() if n)


def build_device_table(
    device: str,
    times: IntArray,
    values: Mapping[str, FloatArray],
    imputed: BoolArray | None = None,
    stages: Sequence[str] = (),
) -> "pa.Table":
    """Return a device's rows in order of time, without rows that have no value.

    Values are in base units, NaN for null; columns without a metric are text. `imputed` marks rows with a
    restored value; `stages` has each row's stage, empty for none.
    """
    rows = np.flatnonzero(~np.all([np.isnan(one) for one in values.values()], axis=0))
    rows = rows[np.argsort(times[rows], kind="stable")]
    arrays: dict[str, pa.Array[Any]] = {
        "device": columns.category(device, len(rows)),
        "timestamp": columns.to_arrow(times[rows], pa.timestamp("us")),
        "imputed": columns.to_arrow(np.zeros(len(rows)) if imputed is None else imputed[rows], pa.bool_()),
    }
    if any(stages):
        names, codes = np.unique(np.array(stages)[rows], return_inverse=True)
        arrays["stage"] = columns.categories(codes, names.tolist(), names[codes] != "")
    for name, every in values.items():
        own = every[rows]
        if not (missing := np.isnan(own)).all() and name in METRIC_TYPES:
            kind = METRIC_TYPES[name]
            arrays[name] = columns.nan_to_null(np.rint(own) if pa.types.is_integer(kind) else own, kind)
        elif not missing.all():
            texts, codes = np.unique(own, return_inverse=True)
            arrays[name] = columns.categories(codes, [f"{text:g}" for text in texts], ~missing)
    order = [name for name in SCHEMA.names if name in arrays]
    return pa.table(arrays).select([*order, *sorted(set(arrays) - set(order))])


def measure_times(
    tables: Iterable["pa.Table"], quality: Quality
) -> tuple[Quality, float | None, tuple[int, int] | None]:
    """Return an account with each device's gaps, the usual interval and the rows' span; None for none.

    The interval is the median over GPUs, or over hosts without GPUs.
    """
    clocks = []
    for table in tables:
        clocks.append(clock := Clock(table.column("device")[0].as_py()))
        clock.accept(columns.integers(table.column("timestamp")))
    gaps = tuple(gap for clock in clocks for gap in clock.gaps())
    gpus = [clock for clock in clocks if not clock.device.endswith(HOST)]
    rates = sorted(rate for clock in gpus or clocks if (rate := clock.interval) is not None)
    copies = sum(clock.duplicates for clock in clocks)
    quality = replace(quality, gaps=gaps, duplicates=copies, coverage_ratio=coverage_ratio(clocks, gaps))
    span = (min(clock.first or 0 for clock in clocks), max(clock.last or 0 for clock in clocks)) if clocks else None
    return quality, rates[len(rates) // 2] if rates else None, span


def build_training_table(metrics: Mapping[str, Series], span: tuple[int, int] | None = None) -> "pa.Table":
    """Return the points of all metrics within a span by time, then step; non-numbers are null.

    A fractional step counts as not recorded.
    """
    if not metrics:
        return empty_training()
    times, values, steps = (np.concatenate(parts) for parts in zip(*metrics.values(), strict=True))
    codes = np.repeat(np.arange(len(metrics)), [len(each.times) for each in metrics.values()])
    stepped = (np.abs(steps) < _MOST_STEP) & (steps == np.floor(steps))
    steps = np.where(stepped, steps, 0).astype(np.int64)
    order = np.lexsort((steps, times))
    if span is not None:
        order = order[(times[order] >= span[0]) & (times[order] <= span[1])]
    arrays = [
        columns.to_arrow(times[order], pa.timestamp("us")),
        columns.to_arrow(steps[order], pa.int64(), stepped[order]),
        columns.categories(codes[order], [*metrics]),
        columns.nan_to_null(values[order], pa.float64()),
    ]
    return pa.Table.from_arrays(arrays, schema=TRAINING_SCHEMA)


def build_tracked(  # noqa: PLR0913 - what a run consists of
    locator: str,
    devices: Sequence[Device],
    series: Mapping[str, "pa.Table"],
    metrics: Mapping[str, Series],
    *,
    name: str,
    quality: Quality,
    throughput: str | None,
    state: object,
    stage: str | None = None,
    more: Mapping[str, Any] | None = None,
    **about: Any,
) -> Tracked:
    """Return a run of these devices and training metrics; refuse one without samples.

    The account lacks gaps and training notes so far. `throughput` names the metric that counts work; for a
    `stage`, only training in its time is kept. `about` are other fields of `Run`, `more` those of `Tracked`.
    """
    metrics = {each: points for each, points in metrics.items() if len(points.times)}
    quality, interval, span = measure_times((series[device.id] for device in devices), quality)
    if span is None:
        if not metrics and any(entry.reason == NOT_SELECTED for entry in quality.rejected):
            raise SourceError(locator, "it holds none of the GPUs asked for", "leave out --gpus", code="gpus_not_held")
        if not metrics:
            hint = "name another one; --list shows the runs"
            raise SourceError(locator, "the run has no metrics", hint, code="no_metrics")
        times = np.concatenate([points.times for points in metrics.values()])
        span = int(times.min()), int(times.max())
    work, notes = _count_work(metrics, throughput, span), [*quality.notes]
    if work is not None:
        notes.append(f"Work done, by {work[0]}: {work[1].amount:.0f} {work[1].unit}.")
    elif throughput is not None:
        available = list_first([*metrics], _MOST_NAMED) or "none"
        notes.append(f"No training metric {throughput!r} counts work in this run; it has {available}.")
    roles: dict[str, list[str]] = {}
    for each in metrics:
        if recognition := recognise_metric(each):
            roles.setdefault(recognition.role, []).append(each)
    if roles:
        told = "; ".join(f"{role}: {list_first(found, _MOST_NAMED)}" for role, found in roles.items())
        notes.append(f"Training metrics by their names: {told}.")
    run = Run(
        id="",
        name=name,
        started=span[0],
        ended=span[1],
        sources=(),
        devices=tuple(devices),
        quality=replace(quality, notes=tuple(notes)),
        interval=interval,
        work=work[1] if work else None,
        **{"timezone": "UTC", **about},
    )
    training = build_training_table(metrics, span if stage else None)
    return Tracked(run=run, series=dict(series), training=training, state=repr(state), **(more or {}))


def _count_work(
    metrics: Mapping[str, Series], throughput: str | None, span: tuple[int, int]
) -> tuple[str, Work] | None:
    """Return the work done in a span and the metric that counts it; None without one."""
    named = choose_throughput([*metrics], throughput)
    if named is None:
        return None
    found = metrics[named.name]
    known = np.isfinite(found.values) & (found.values >= 0)
    times, rows = np.unique(found.times[known], return_index=True)
    counted = count_by_rates(times, found.values[known][rows], found.steps[known][rows].astype(np.float64), span[0])
    amount = counted.within(*span) if counted else 0.0
    return (named.name, Work(amount=amount, unit=named.unit or named.name)) if amount > 0 else None
