"""What readers of trackers share: rows of a device, their timing, training metrics, and runs in order of their start.

A tracker `acme` is a class `Acme` in a folder `acme/` beside this module that fulfils the protocol `Tracker`: `claims`
recognises a store, `listed` and `runs` select runs, and each run's `read` returns a `Tracked`. `"acme:Acme"` in
`TRACKERS` in `importers/__init__.py` makes `acme:STORE#RUN` a locator; the kind also stands in `TRACKER_KINDS` in
`recording.py`. `read_only_sqlite` opens databases. `trackio.py` is the shortest reader.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers.account import list_first
from gpureport.importers.clock import Clock, coverage_ratio
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED
from gpureport.importers.protocol.tracker import Tracked
from gpureport.parsing import split_numbers
from gpureport.recording import HOST, Device, Work
from gpureport.series_table import METRIC_TYPES, SCHEMA, TRAINING_SCHEMA, empty_training
from gpureport.training_names import choose_throughput, recognise_metric
from gpureport.work_counting import count_by_rates

_AT_ONCE = 5_000_000
"""Microseconds within which starts are one: no run ends that soon, so their order says nothing (pragmatic)."""
_MOST_NAMED = 4
"""Names that are listed, the others are counted."""


def build_device_table(
    device: str,
    times: IntArray,
    values: Mapping[str, FloatArray],
    imputed: BoolArray | None = None,
    stages: Sequence[tuple[str, BoolArray]] = (),
) -> "pa.Table":
    """Return the rows of a device in the order of time, without rows that have no value.

    Values are in base units, NaN for null; a column that is not a metric is kept as text. `imputed` marks rows with a
    restored value, `stages` names stages with the rows that belong to each.
    """
    rows = np.flatnonzero(~np.all([np.isnan(one) for one in values.values()], axis=0))
    rows = rows[np.argsort(times[rows], kind="stable")]
    arrays: dict[str, pa.Array[Any]] = {
        "device": columns.category(device, len(rows)),
        "timestamp": columns.to_arrow(times[rows], pa.timestamp("us")),
        "imputed": columns.to_arrow(np.zeros(len(rows)) if imputed is None else imputed[rows], pa.bool_()),
    }
    if stages:
        codes = np.full(len(times), -1)
        for code, (_, belongs) in enumerate(stages):
            codes[belongs] = code
        codes = codes[rows]
        arrays["stage"] = columns.categories(np.maximum(codes, 0), [name for name, _ in stages], codes >= 0)
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
    """Return an account with the gaps of each device, the usual interval and the span of rows; None where none are.

    The interval is the median over the GPUs, over the hosts where there is no GPU.
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


@dataclass(frozen=True, slots=True)
class TrainingMetric:
    """Points of one training metric: times in microseconds, steps (null where `stepped` is false), values."""

    name: str
    times: IntArray
    steps: IntArray
    values: FloatArray
    stepped: BoolArray | None = None


def build_training_table(metrics: Sequence[TrainingMetric], span: tuple[int, int] | None = None) -> "pa.Table":
    """Return the points of all metrics within a span by time, then step; a value that is not a number is null."""
    logged = [metric for metric in metrics if len(metric.times)]
    if not logged:
        return empty_training()
    times, steps, values = (
        np.concatenate([getattr(metric, part) for metric in logged]) for part in ("times", "steps", "values")
    )
    stepped = [np.full(len(each.times), True) if each.stepped is None else each.stepped for each in logged]
    names = list(dict.fromkeys(metric.name for metric in logged))
    codes = np.repeat([names.index(metric.name) for metric in logged], [len(metric.times) for metric in logged])
    order = np.lexsort((steps, times))
    if span is not None:
        order = order[(times[order] >= span[0]) & (times[order] <= span[1])]
    arrays = [
        columns.to_arrow(times[order], pa.timestamp("us")),
        columns.to_arrow(steps[order], pa.int64(), np.concatenate(stepped)[order]),
        columns.categories(codes[order], names),
        columns.nan_to_null(values[order], pa.float64()),
    ]
    return pa.Table.from_arrays(arrays, schema=TRAINING_SCHEMA)


def build_tracked(  # noqa: PLR0913 - what a run consists of
    locator: str,
    devices: Sequence[Device],
    series: Mapping[str, "pa.Table"],
    metrics: Sequence[TrainingMetric],
    *,
    quality: Quality,
    throughput: str | None,
    **about: Any,
) -> Tracked:
    """Return a run of these devices and training metrics, or refuse one without a sample.

    The account has no gaps and no notes on the training yet. `throughput` names the metric that counts work; `about`
    are the other fields of `Tracked`.
    """
    quality, interval, span = measure_times((series[device.id] for device in devices), quality)
    if span is None:
        times = [each.times for each in metrics if len(each.times)]
        if not times and any(entry.reason == NOT_SELECTED for entry in quality.rejected):
            raise SourceError(locator, "it holds none of the GPUs asked for", "leave out --gpus", code="gpus_not_held")
        if not times:
            hint = "name another one; --list shows the runs"
            raise SourceError(locator, "the run has no metrics", hint, code="no_metrics")
        span = min(int(each.min()) for each in times), max(int(each.max()) for each in times)
    names, roles = list(dict.fromkeys(metric.name for metric in metrics)), dict[str, list[str]]()
    work, notes = _count_work(metrics, choose_throughput(names, throughput), span), []
    if work is not None:
        notes.append(f"Work done, by {work[0]}: {work[1].amount:.0f} {work[1].unit}.")
    elif throughput is not None:
        available = list_first(names, _MOST_NAMED) or "none"
        notes.append(f"No training metric {throughput!r} counts work in this run; it has {available}.")
    for name in names:
        if recognition := recognise_metric(name):
            roles.setdefault(recognition.role, []).append(name)
    if roles:
        told = "; ".join(f"{role}: {list_first(found, _MOST_NAMED)}" for role, found in roles.items())
        notes.append(f"Training metrics by their names: {told}.")
    return Tracked(
        span=span,
        devices=tuple(devices),
        series=dict(series),
        training=build_training_table(metrics),
        work=work[1] if work else None,
        quality=replace(quality, notes=(*quality.notes, *notes)),
        interval=interval,
        **about,
    )


def _count_work(metrics: Sequence[TrainingMetric], named: Any, span: tuple[int, int]) -> tuple[str, Work] | None:
    """Return the work done within a span and the metric that counts it; None where no metric does."""
    if named is None:
        return None
    found = next(metric for metric in metrics if metric.name == named.name)
    steps = found.steps.astype(np.float64)
    if found.stepped is not None:
        steps[~found.stepped] = np.nan
    known = np.isfinite(found.values) & (found.values >= 0)
    times, rows = np.unique(found.times[known], return_index=True)
    counted = count_by_rates(times, found.values[known][rows], steps[known][rows], span[0])
    amount = counted.within(*span) if counted else 0.0
    return (named.name, Work(amount=amount, unit=named.unit or named.name)) if amount > 0 else None


Run = TypeVar("Run")


def sort_by_start(runs: Iterable[Run], start: Callable[[Run], int | None], name: Callable[[Run], str]) -> list[Run]:
    """Return runs by start; those that started at once by name, numbers as numbers; last those without a start."""
    starts = [(start(run), run) for run in runs]
    keyed: list[tuple[int, Any, Run]] = []
    for begin, run in sorted(((begin, run) for begin, run in starts if begin is not None), key=itemgetter(0)):
        first = keyed[-1][0] if keyed and begin - keyed[-1][0] <= _AT_ONCE else begin
        keyed.append((first, split_numbers(name(run)), run))
    return [*(run for *_, run in sorted(keyed, key=itemgetter(0, 1))), *(run for begin, run in starts if begin is None)]
