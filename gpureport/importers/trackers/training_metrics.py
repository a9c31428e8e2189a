"""Training metrics of a tracker: the long table of a recording, the work they count, and what to say of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.importers.note_text import list_first
from gpureport.recording import Work
from gpureport.series_table import TRAINING_SCHEMA, empty_training
from gpureport.training_names import choose_throughput, recognise_metric
from gpureport.work_counting import count_by_rates

_MOST_NAMED = 4
"""Names that are listed, the others are counted."""


@dataclass(frozen=True, slots=True)
class TrainingMetric:
    """Points of one training metric: times in microseconds, steps (null where `stepped` is false), values."""

    name: str
    times: IntArray
    steps: IntArray
    values: FloatArray
    stepped: BoolArray | None = None


def build_training_table(metrics: Sequence[TrainingMetric], span: tuple[int, int] | None = None) -> "pa.Table":
    """Return the points of all metrics in the order of time, then step; a value that is not a number is null.

    Args:
        metrics: training metrics; several of one name are one.
        span: first and last microsecond to keep; all when None.
    """
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
    """Return the work that a run did while it was recorded, and the name of the metric that counts it.

    None if no metric does.

    Args:
        metrics: training metrics.
        wanted: name of the metric to use, if a person names one.
        span: first and last microsecond of the recording.
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
    """Yield what a reader must know of training metrics: the work they count, and what their names say.

    Args:
        names: names of the metrics.
        done: what `measure_work` returned.
        wanted: name of the metric a person gives as the one that counts work.
    """
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
