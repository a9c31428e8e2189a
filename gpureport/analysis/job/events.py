"""Facts about the job beyond hardware: checkpoints, epochs, stages and training metrics."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.analysis.results import StageStatistics
from gpureport.analysis.series.device_series import POWER_METRICS, series_by_device
from gpureport.analysis.series.intervals import Spans, contains, union
from gpureport.analysis.series.statistics import compute_statistics
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Interval
from gpureport.names import Role, TrainingName, recognise_evaluation, recognise_metric
from gpureport.rates import select_step_points
from gpureport.recording import Recording

REQUESTS = "requests or input"
"""The cause of gaps between bursts of work in a job that does not seem to train."""
WAITING, DATA = "data_wait_ratio", "data"
"""The share of an iteration spent on loading data, and the cause of low use that it indicates."""
LONG_WAIT = 0.2  # minimum share of waiting that explains low use (pragmatic: a loader that keeps up causes none)
_HALF = 0.5  # share of the events that must lie within the intervals

_SAVING = {"checkpoint", "checkpoints", "checkpointing", "ckpt", "save", "saving", "saved", "snapshot"}
_EPOCHS = {"epoch", "epochs"}
_ROUND = _EPOCHS | {"eval", "evaluation", "val", "validation", "valid", "validate"}
_EPOCH_COUNT = {"epoch", "current", "train", "trainer", "training"}
_TRAINING_ROLES = {Role.LOSS, Role.ERROR, Role.ACCURACY, Role.EPOCH_TIME}
_TRAINING_WORDS = _EPOCHS | {"lr", "learning", "optimizer", "optimiser", "loss", "train", "training", "workers"}


class JobEvents(NamedTuple):
    """The ordered times of `checkpoint` or `epoch` events, and the stage or metric that shows them."""

    cause: str
    source: str
    times: IntArray


class Evaluations(NamedTuple):
    metric: TrainingName
    times: IntArray
    values: FloatArray

    @property
    def number(self) -> int:
        """The number of evaluations with a value. Simultaneous values count once."""
        return len(np.unique(self.times[~np.isnan(self.values)]))

    @property
    def best_row(self) -> int:
        return int(np.nanargmin(self.values) if self.metric.falls else np.nanargmax(self.values))


def _find_text(column: "pa.ChunkedArray[Any]", text: str) -> BoolArray:
    """Return which rows equal a string. Pyarrow's own functions would load pandas."""
    found = [np.zeros(0, dtype=np.bool_)]
    for chunk in list[Any](column.chunks):
        texts = chunk.dictionary.to_pylist()
        found.append(columns.integers(chunk.indices, null=-1) == (texts.index(text) if text in texts else -2))
    return np.concatenate(found)


def list_names(recording: Recording) -> list[str]:
    return [str(name) for name in recording.training.column("name").unique().to_pylist()]


def read_points(recording: Recording, name: str | None, column: str = "value") -> tuple[IntArray, FloatArray]:
    """Return the sorted times of a training metric (of all if None), and a column's values at those times."""
    training = recording.training
    named = columns.valid(training.column("timestamp"))
    if name is not None:
        named &= _find_text(training.column("name"), name)
    times = columns.integers(training.column("timestamp"))[named]
    order = np.argsort(times, kind="stable")
    return times[order], columns.floats(training.column(column))[named][order]


def find_evaluations(recording: Recording) -> Iterator[Evaluations]:
    for name in list_names(recording):
        times, values = read_points(recording, name)
        if (metric := recognise_evaluation(name)) and len(times):
            yield Evaluations(metric, times, np.where(np.isfinite(values), values, np.nan))


def split_words(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def find_job_events(recording: Recording) -> tuple[JobEvents, ...]:
    found, evaluated = list[JobEvents](), list[JobEvents]()
    for name in dict.fromkeys(stage.name for stage in recording.run.stages):
        if (words := split_words(name)) & (_SAVING | _ROUND):
            begun = sorted(stage.start for stage in recording.run.stages if stage.name == name)
            cause = "checkpoint" if words & _SAVING else "epoch"
            found.append(JobEvents(cause, f"the stage {name}", np.array(begun, dtype=np.int64)))
    for name in list_names(recording):
        times, values = read_points(recording, name)
        words, metric = split_words(name), recognise_metric(name)
        if "epoch" in words and words <= _EPOCH_COUNT:
            # the metric is logged at every step, but only a step that completes an epoch counts
            found.append(JobEvents("epoch", name, times[1:][np.floor(values[1:]) > np.floor(values[:-1])]))
        elif words & _SAVING or (metric and metric.role is Role.EPOCH_TIME):
            found.append(JobEvents("checkpoint" if words & _SAVING else "epoch", name, times))
        if recognise_evaluation(name):
            evaluated.append(JobEvents("epoch", name, np.unique(times)))
    return tuple(each for each in sorted([*found, *evaluated], key=lambda each: each.cause) if len(each.times))


def place_events(known: Iterable[JobEvents], spans: Spans, near: float) -> Iterator[tuple[JobEvents, BoolArray]]:
    """Yield the events mostly within `near` seconds of spans, and a mask of the spans with an event."""
    wide = spans + (np.array([-1e6, 1e6]) * near).astype(np.int64)
    for event in known:
        if contains(union(wide), event.times).mean() >= _HALF:
            first, stop = np.searchsorted(event.times, wide.T)
            yield event, stop > first


def is_training(recording: Recording, events: Sequence[JobEvents]) -> bool:
    metrics = map(recognise_metric, list_names(recording))
    named = (*(name for name, _ in recording.run.params_and_tags), *(stage.name for stage in recording.run.stages))
    is_measured = any(metric is not None and metric.role in _TRAINING_ROLES for metric in metrics)
    return bool(events) or is_measured or any(map(is_training_name, named))


def is_training_name(name: str) -> bool:
    return bool(split_words(name) & _TRAINING_WORDS)


def data_wait_share(recording: Recording) -> float | None:
    named = _find_text(recording.training.column("name"), WAITING)
    values = columns.floats(recording.training.column("value"))[named]
    share = float(np.median(values[np.isfinite(values)])) if np.isfinite(values).any() else 0.0
    return share if share >= LONG_WAIT else None


def find_steps(recording: Recording, within: Interval | None = None) -> tuple[IntArray, FloatArray] | None:
    times, steps = read_points(recording, None, "step")
    known = ~np.isnan(steps)
    if within is not None:
        known &= (times >= within.start) & (times <= within.end)
    return select_step_points(times[known], steps[known])


def count_steps(recording: Recording, within: Interval) -> int:
    """Return how many steps were logged in an interval, or 0 if they cover less than half of it."""
    moments, steps = find_steps(recording, within) or (np.zeros(2), np.zeros(2))
    return int(steps[-1] - steps[0]) if 2 * (moments[-1] - moments[0]) >= within.end - within.start else 0


def summarise_stages(recording: Recording) -> Iterator[StageStatistics]:
    """Yield each stage's statistics, without metrics that are implausible over the whole run."""
    if "stage" not in recording.rows.schema.names:
        return
    whole = series_by_device(recording)
    for name in dict.fromkeys(stage.name for stage in recording.run.stages):
        rows = np.flatnonzero(_find_text(recording.series.column("stage"), name))
        own = series_by_device(recording.with_series(recording.series.take(columns.to_arrow(rows, pa.int64()))))
        for device, one in own.items():
            for metric in POWER_METRICS:
                doubt = whole[device].explain_implausibility(metric)
                one.memoize(("implausible", metric), lambda doubt=doubt: doubt)  # type: ignore[misc]  # bound early
        yield StageStatistics(stage=name, statistics=tuple(compute_statistics(one) for one in own.values() if len(one)))
