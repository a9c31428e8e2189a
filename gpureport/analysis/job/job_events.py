"""When a run saved a checkpoint or ended an epoch, by the names of its stages and training metrics."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpureport import columns
from gpureport.analysis.job.evaluations import find_evaluations
from gpureport.columns import IntArray
from gpureport.recording import Recording
from gpureport.training_names import Role, recognise_metric

_SAVING = {"checkpoint", "checkpoints", "checkpointing", "ckpt", "save", "saving", "saved", "snapshot"}
_ROUND = {"epoch", "epochs", "eval", "evaluation", "val", "validation", "valid", "validate"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvents:
    """Times of one cause, `checkpoint` or `epoch`, in microseconds, rising, and the stage or metric that shows them."""

    cause: str
    source: str
    times: IntArray


def split_words(name: str) -> set[str]:
    """Return the words of a name in lower case; digits and camel case part them."""
    return set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def find_job_events(recording: Recording) -> tuple[JobEvents, ...]:
    """Return the checkpoints and epochs that a run recorded, checkpoints first."""
    events = [*_find_stage_events(recording), *_find_metric_events(recording), *_find_evaluation_events(recording)]
    return tuple(sorted(events, key=lambda each: each.cause != "checkpoint"))


def _classify_name(name: str) -> str | None:
    words = split_words(name)
    return "checkpoint" if words & _SAVING else "epoch" if words & _ROUND else None


def _find_stage_events(recording: Recording) -> Iterator[JobEvents]:
    for name in dict.fromkeys(stage.name for stage in recording.run.stages):
        cause = _classify_name(name)
        if cause is not None:
            begun = sorted(stage.start for stage in recording.run.stages if stage.name == name)
            yield JobEvents(cause=cause, source=f"the stage {name}", times=np.array(begun, dtype=np.int64))


def _find_metric_events(recording: Recording) -> Iterator[JobEvents]:
    """Yield metrics on saving, and those that count epochs or say how long one took."""
    column: Any = recording.training.column("name").unify_dictionaries()
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    names = chunks[0].dictionary.to_pylist() if chunks else []
    codes = np.concatenate([columns.integers(chunk.indices, null=-1) for chunk in chunks]) if chunks else np.zeros(0)
    timed = columns.valid(recording.training.column("timestamp"))
    times = columns.integers(recording.training.column("timestamp"))
    values = columns.floats(recording.training.column("value"))
    for code, name in enumerate(names):
        is_epoch_count = split_words(name) <= {
            "epoch",
            "current",
            "train",
            "trainer",
            "training",
        } and "epoch" in split_words(name)
        is_saving = bool(split_words(name) & _SAVING)
        training_name = recognise_metric(name)
        if not (is_epoch_count or is_saving or (training_name and training_name.role is Role.EPOCH_TIME)):
            continue
        rows = np.flatnonzero((codes == code) & timed)
        rows = rows[np.argsort(times[rows], kind="stable")]
        if is_epoch_count:
            # a metric written at every step: only the steps that complete an epoch count
            rows = rows[1:][np.floor(values[rows][1:]) > np.floor(values[rows][:-1])]
        if len(rows):
            yield JobEvents(cause="checkpoint" if is_saving else "epoch", source=name, times=times[rows])


def _find_evaluation_events(recording: Recording) -> Iterator[JobEvents]:
    for each in find_evaluations(recording):
        yield JobEvents(cause="epoch", source=each.metric.name, times=np.unique(each.times))
