"""What every MLflow store holds, however it is read. Times are milliseconds of UTC, as in MLflow."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

from gpureport.columns import FloatArray, IntArray
from gpureport.errors import SourceError
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND
from gpureport.units import MOST

HARDWARE_PREFIXES = ("system/", "monitoring/", "runtime/")
"""Prefixes of hardware series: MLflow's own, and those of runs that came from Neptune."""
UNFINISHED_STATES = ("RUNNING", "SCHEDULED")
"""States of a run that has not ended, or whose process was killed."""
_STORED_INFINITY = 1.7976931348623157e308
_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run without its metrics.

    Attributes:
        id: its id.
        name: its name; others may have the same.
        status: `RUNNING`, `SCHEDULED`, `FINISHED`, `FAILED` or `KILLED`.
        started: when it started, in milliseconds; None where not recorded.
        ended: when it ended; None while it runs, and if its process was killed.
        experiment_id: id of its experiment.
        experiment: name of its experiment.
        artifact_uri: where its artifacts lie.
        deleted: whether it was deleted, or its experiment was.
        parent: id of the run it is nested in.
        hardware: names of its hardware series.
        fault: why it cannot be read; None if it can.
    """

    id: str
    name: str
    status: str
    started: int | None
    ended: int | None
    experiment_id: str
    experiment: str
    artifact_uri: str
    deleted: bool = False
    parent: str | None = None
    hardware: tuple[str, ...] = ()
    fault: SourceError | None = None

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self.status not in UNFINISHED_STATES

    @property
    def summary(self) -> str:
        """Its id, name and status, for a message."""
        return f"{self.id} ({self.name}, {self.status})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLabels:
    """Params and tags of a run, and the last value of each metric."""

    params: tuple[tuple[str, str], ...]
    tags: tuple[tuple[str, str], ...]
    latest: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """All points of one metric, ordered by time, then step, then value.

    Attributes:
        key: its name.
        times: milliseconds.
        values: values; NaN and infinities as they were logged.
        steps: steps.
        torn: number of lines that could not be read.
    """

    key: str
    times: IntArray
    values: FloatArray
    steps: IntArray
    torn: int = 0

    def __len__(self) -> int:
        return len(self.times)


def order_points(key: str, times: IntArray, values: FloatArray, steps: IntArray, torn: int = 0) -> MetricSeries:
    """Return points in order, without those whose time is no date, which are counted as torn.

    Databases store infinity as the largest number; it becomes infinity again.
    """
    dated = (times >= FIRST_MICROSECOND // _MS) & (times < LAST_MICROSECOND // _MS)
    if not dated.all():
        torn += int((~dated).sum())
        times, values, steps = times[dated], values[dated], steps[dated]
    forward, same = times[1:] > times[:-1], times[1:] == times[:-1]
    if not (forward | (same & (steps[1:] > steps[:-1]))).all():
        order = np.lexsort((values, steps, times))
        times, values, steps = times[order], values[order], steps[order]
    huge = np.abs(values) >= _STORED_INFINITY
    if huge.any():
        values = np.where(huge, np.copysign(np.inf, values), values)
    return MetricSeries(key, times, values, steps, torn)


def drop_impossible_values(series: MetricSeries) -> MetricSeries:
    """Return hardware series with NaN for infinities and for values that no measurement reaches."""
    possible = np.abs(series.values) < MOST
    return series if possible.all() else replace(series, values=np.where(possible, series.values, np.nan))


def keep_readable_time(milliseconds: int | None) -> int | None:
    """Return a time that has a date, None for any other."""
    if milliseconds is None or not FIRST_MICROSECOND <= milliseconds * _MS < LAST_MICROSECOND:
        return None
    return milliseconds


class RunStore(Protocol):
    """A place that holds runs.

    Attributes:
        kind: what it is, in words.
        where: what a person calls it, without passwords.
    """

    kind: ClassVar[str]
    where: str

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return runs, the newest first, then those with a fault; deleted runs too, unless a filter is given.

        Args:
            experiment: name or id of an experiment, all when None.
            wanted: a filter in MLflow's syntax.

        Raises:
            SourceError: when the store cannot be read, has no such experiment, or the filter is not understood.
        """
        ...

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None if there is none.

        Raises:
            SourceError: when it cannot be read.
        """
        ...

    def labels(self, run: RunInfo) -> RunLabels:
        """Return params, tags and last values of a run."""
        ...

    def series(self, run: RunInfo) -> list[MetricSeries]:
        """Return all metrics of a run, by name."""
        ...

    def artifacts(self, run: RunInfo, folder: str) -> list[str]:
        """Return the names of the files in a folder of a run's artifacts; none if there is no such folder."""
        ...

    def fetch_artifact(self, run: RunInfo, name: str) -> Path:
        """Return a local file with the content of an artifact, given its path among the artifacts."""
        ...

    @property
    def version(self) -> str:
        """What wrote the store, in words; empty if it is not known."""
        ...
