"""Whether a recording shows that its job trains; without a sign of training, bursts of load may be requests."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpureport import columns
from gpureport.analysis.job.job_events import JobEvents, split_words
from gpureport.recording import Recording
from gpureport.training_names import Role, recognise_metric
from gpureport.work_counting import select_step_points

REQUESTS = "requests or input"
"""Cause of gaps between bursts of work in a job without signs of training."""

WAITING = "data_wait_ratio"
"""Training metric with the share of an iteration that loading data took, as its log says."""
DATA = "data"
"""Cause of low use where a training loop says that it waited for data."""
MUCH = 0.2
"""Share from which waiting for data explains low use (pragmatic: what a loader hides behind the GPU is none)."""
_ROLES = {Role.LOSS, Role.ERROR, Role.ACCURACY, Role.EPOCH_TIME}
"""Roles of metrics that only training or its evaluation has."""
_WORDS = {"epoch", "epochs", "lr", "learning", "optimizer", "optimiser", "loss", "train", "training", "workers"}
"""Words in the names of what a training run is configured with."""


def is_training(recording: Recording, events: Sequence[JobEvents]) -> bool:
    """Return whether params, tags, metrics, stages, checkpoints or epochs say that a job trains."""
    metrics = (recognise_metric(str(name)) for name in recording.training.column("name").unique().to_pylist())
    named = (*(name for name, _ in recording.run.params_and_tags), *(stage.name for stage in recording.run.stages))
    return (
        bool(events)
        or any(metric is not None and metric.role in _ROLES for metric in metrics)
        or any(map(is_training_name, named))
    )


def is_training_name(name: str) -> bool:
    """Return whether only a job that trains has a param, tag or stage of this name."""
    return bool(split_words(name) & _WORDS)


def data_wait_share(recording: Recording) -> float | None:
    """Return the share of an iteration in which a training loop says it waited for data; None where that is little."""
    names: Any = recording.training.column("name")
    values = columns.floats(recording.training.column("value"))
    shares = values[np.array([name == WAITING for name in names.to_pylist()], dtype=np.bool_) & np.isfinite(values)]
    share = float(np.median(shares)) if len(shares) else 0.0
    return share if share >= MUCH else None


def counts_steps(recording: Recording) -> bool:
    """Return whether the steps of the training metrics count the work, as comparisons take it."""
    training = recording.training
    known = columns.valid(training.column("timestamp")) & columns.valid(training.column("step"))
    times, steps = columns.integers(training.column("timestamp")), columns.floats(training.column("step"))
    return select_step_points(times[known], steps[known]) is not None
