"""What readers of trackers share: rows of a device, their timing, training metrics, and runs in order of their start.

A tracker `acme` is a class `Acme` in a folder `acme/` beside this module that fulfils the protocol `Tracker`: `claims`
recognises a store, `listed` and `runs` select runs, and each run's `read` returns a `Tracked`. `"acme:Acme"` in
`TRACKERS` in `protocol/registry.py` makes `acme:STORE#RUN` a locator; the kind also stands in `TRACKER_KINDS` in
`recording.py`. `read_only_sqlite` opens databases. `trackio.py` is the shortest reader.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers.clock import Clock, coverage_ratio
from gpureport.importers.note_text import list_first
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED
from gpureport.importers.protocol.tracker import Tracked
from gpureport.name_order import split_numbers
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
        codes = np.full(len(times), -1, dtype=np.int64)
        for code, (_, belongs) in enumerate(stages):
            codes[belongs] = code
        taken = codes[rows]
        arrays["stage"] = columns.categories(np.maximum(taken, 0), [name for name, _ in stages], taken >= 0)
    arrays |= {name: _metric_column(name, one[rows]) for name, one in values.items() if not np.isnan(one[rows]).all()}
    order = [name for name in SCHEMA.names if name in arrays]
    return pa.table(arrays).select([*order, *sorted(set(arrays) - set(order))])


def _metric_column(name: str, values: FloatArray) -> "pa.Array[Any]":
    if name not in METRIC_TYPES:
        texts, codes = np.unique(values, return_inverse=True)
        return columns.categories(codes, [f"{text:g}" for text in texts], ~np.isnan(values))
    kind = METRIC_TYPES[name]
    return columns.nan_to_null(np.rint(values) if pa.types.is_integer(kind) else values, kind)


def read_clocks(tables: Iterable["pa.Table"]) -> list[Clock]:
    """Return the clock of each device, read over all its rows."""
    found = []
    for each in tables:
        clock = Clock(each.column("device")[0].as_py())
        clock.accept(columns.integers(each.column("timestamp")))
        found.append(clock)
    return found


def usual_interval(clocks: Iterable[Clock]) -> float | None:
    """Return the median seconds between samples of one GPU, of a host where there is no GPU."""
    known = [(clock.device, clock.interval) for clock in clocks]
    gpus = [interval for device, interval in known if not device.endswith(HOST)]
    rates = sorted(rate for rate in gpus or [interval for _, interval in known] if rate is not None)
    return rates[len(rates) // 2] if rates else None


def add_timing(quality: Quality, seen: Sequence[Clock]) -> Quality:
    """Return an account with the gaps, duplicate timestamps and coverage that the clocks show."""
    gaps = tuple(gap for clock in seen for gap in clock.gaps())
    return replace(
        quality,
        gaps=gaps,
        duplicates=sum(clock.duplicates for clock in seen),
        coverage_ratio=coverage_ratio(list(seen), gaps),
    )


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
    stepped = np.concatenate(
        [columns.repeat_value(np.True_, len(each.times)) if each.stepped is None else each.stepped for each in logged]
    )
    names = list(dict.fromkeys(metric.name for metric in logged))
    codes = np.repeat([names.index(metric.name) for metric in logged], [len(metric.times) for metric in logged])
    order = np.lexsort((steps, times))
    if span is not None:
        order = order[(times[order] >= span[0]) & (times[order] <= span[1])]
    arrays = [
        columns.to_arrow(times[order], pa.timestamp("us")),
        columns.to_arrow(steps[order], pa.int64(), stepped[order]),
        columns.categories(codes[order], names),
        columns.nan_to_null(values[order], pa.float64()),
    ]
    return pa.Table.from_arrays(arrays, schema=TRAINING_SCHEMA)


def measure_work(
    metrics: Sequence[TrainingMetric], wanted: str | None, span: tuple[int, int]
) -> tuple[Work, str] | None:
    """Return the work that a run did while it was recorded, and the metric that counts it, perhaps named by a person.

    None if no metric does.
    """
    named = choose_throughput([metric.name for metric in metrics], wanted)
    found = next((metric for metric in metrics if named and metric.name == named.name), None)
    if found is None or named is None:
        return None
    known = np.isfinite(found.values) & (found.values >= 0)
    steps = found.steps.astype(np.float64)
    if found.stepped is not None:
        steps[~found.stepped] = np.nan
    times, rows = np.unique(found.times[known], return_index=True)
    counted = count_by_rates(times, found.values[known][rows], steps[known][rows], span[0])
    amount = counted.within(*span) if counted else 0.0
    return (Work(amount=amount, unit=named.unit or named.name), named.name) if amount > 0 else None


def describe_training(names: Iterable[str], done: tuple[Work, str] | None, wanted: str | None) -> Iterator[str]:
    """Yield what a reader must know of training metrics: the work `measure_work` found, and what their names say."""
    known = list(dict.fromkeys(names))
    if done is not None:
        yield f"work done, by {done[1]}: {done[0].amount:.0f} {done[0].unit}"
    elif wanted is not None:
        available = list_first(known, _MOST_NAMED) or "none"
        yield f"no training metric {wanted!r} counts work in this run; it has {available}"
    roles: dict[str, list[str]] = {}
    for name in known:
        if recognition := recognise_metric(name):
            roles.setdefault(recognition.role, []).append(name)
    if roles:
        named = "; ".join(f"{role}: {list_first(found, _MOST_NAMED)}" for role, found in roles.items())
        yield f"training metrics by their names: {named}"


Run = TypeVar("Run")


def sort_by_start(runs: Iterable[Run], start: Callable[[Run], int | None], name: Callable[[Run], str]) -> list[Run]:
    """Return runs by start; those that started at once by name, numbers as numbers; last those without a start."""
    starts = [(start(run), run) for run in runs]
    dated = sorted(((begin, run) for begin, run in starts if begin is not None), key=itemgetter(0))
    keyed: list[tuple[int, Any, Run]] = []
    for begin, run in dated:
        first = keyed[-1][0] if keyed and begin - keyed[-1][0] <= _AT_ONCE else begin
        keyed.append((first, split_numbers(name(run)), run))
    keyed.sort(key=itemgetter(0, 1))
    return [*(run for *_, run in keyed), *(run for begin, run in starts if begin is None)]


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
    """Return a run of these devices and training metrics.

    Args:
        locator: what a person can call it.
        devices: its devices.
        series: rows of each device.
        metrics: its training metrics.
        quality: what became of its points, without gaps and without notes on the training.
        throughput: name of the metric that counts work, if a person names one.
        about: the other fields of `Tracked`.

    Raises:
        SourceError: when none of them has a sample.
    """
    clocks = read_clocks(series[device.id] for device in devices)
    times = [(clock.first or 0, clock.last or 0) for clock in clocks]
    times = times or [(int(each.times.min()), int(each.times.max())) for each in metrics if len(each.times)]
    if not times and any(entry.reason == NOT_SELECTED for entry in quality.rejected):
        raise SourceError(locator, "it holds none of the GPUs asked for", "leave out --gpus", code="gpus_not_held")
    if not times:
        raise SourceError(
            locator, "the run has no metrics", "name another one; --list shows the runs", code="no_metrics"
        )
    span = min(first for first, _ in times), max(last for _, last in times)
    work = measure_work(metrics, throughput, span)
    trained = describe_training([each.name for each in metrics], work, throughput)
    notes = (*quality.notes, *(f"{note[0].upper()}{note[1:]}." for note in trained))
    return Tracked(
        span=span,
        devices=tuple(devices),
        series=dict(series),
        training=build_training_table(metrics),
        work=None if work is None else work[0],
        quality=add_timing(replace(quality, notes=notes), clocks),
        interval=usual_interval(clocks),
        **about,
    )
