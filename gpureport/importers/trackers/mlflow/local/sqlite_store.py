"""Reads MLflow's SQLite store without MLflow: its client would migrate the database to its own version."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.local import local_artifacts, mlflow_database
from gpureport.importers.trackers.mlflow.run_selection import select_experiment
from gpureport.importers.trackers.mlflow.run_store import (
    MetricSeries,
    RunInfo,
    RunLabels,
    keep_readable_time,
    order_points,
)
from gpureport.limits import MOST_LABELS

_POINT = np.dtype([("key", "i4"), ("time", "i8"), ("value", "f8"), ("nan", "i1"), ("step", "i8")])
_RUNS = """
    select r.run_uuid, coalesce(nullif(r.name, ''), n.value, ''), r.status, r.start_time, r.end_time,
           r.experiment_id, e.name, r.artifact_uri, r.lifecycle_stage = 'deleted' or e.lifecycle_stage = 'deleted',
           t.value
    from runs r join experiments e using (experiment_id)
    left join tags t on t.run_uuid = r.run_uuid and t.key = 'mlflow.parentRunId'
    left join tags n on n.run_uuid = r.run_uuid and n.key = 'mlflow.runName'
    where :run is null or r.run_uuid = :run
    order by r.start_time desc, r.run_uuid
"""
# as ranges, for which there is an index
_HARDWARE = """
    select run_uuid, key from latest_metrics
    where (key >= 'system/' and key < 'system0' or key >= 'monitoring/' and key < 'monitoring0'
           or key >= 'runtime/' and key < 'runtime0')
      and (:run is null or run_uuid = :run)
"""
# a column of SQLite holds values of any type, whatever its own
_SOUND = """
    typeof(key) = 'text' and typeof(timestamp) = 'integer' and typeof(step) = 'integer'
    and typeof(value) in ('real', 'integer') and typeof(is_nan) = 'integer'
"""
_POINTS = f"select key, timestamp, value, is_nan, step from metrics where run_uuid = ? and {_SOUND}"  # noqa: S608 - made of constants
_TORN = f"select key, count(*) from metrics where run_uuid = ? and not ({_SOUND}) group by key"  # noqa: S608 - as above
_PARAMS = "select key, value from params where run_uuid = ? order by key limit ?"
_TAGS = "select key, coalesce(value, '') from tags where run_uuid = ? order by key limit ?"


class SqliteStore:
    """A database file of MLflow."""

    kind: ClassVar[str] = "sqlite database"

    def __init__(self, path: Path, where: str) -> None:
        """Take a database.

        Args:
            path: the file.
            where: what a person called it.
        """
        self.path = path
        self.where = where

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with mlflow_database.open_database(self.path) as connection:
            if lacking := mlflow_database.missing_tables(connection):
                what = f"not an MLflow database (no table {min(lacking)})"
                raise SourceError(str(self.path), what, "give the mlflow.db of a tracking server", code="other_schema")
            yield connection

    @property
    def version(self) -> str:
        """The revision of its schema."""
        with self._opened() as connection:
            try:
                rows = connection.execute("select version_num from alembic_version").fetchall()
            except sqlite3.OperationalError:
                rows = []
        return f"schema {rows[0][0]}" if rows else ""

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return runs, the newest first; deleted ones too, unless a filter is given."""
        with self._opened() as connection:
            found = self._query_runs(connection)
            known = {
                _text(key): _text(name)
                for key, name in connection.execute("select experiment_id, name from experiments")
            }
        return select_experiment(self.where, found, known, experiment, wanted)

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id."""
        with self._opened() as connection:
            found = self._query_runs(connection, run_id)
        return found[0] if found else None

    @staticmethod
    def _query_runs(connection: sqlite3.Connection, run_id: str | None = None) -> list[RunInfo]:
        hardware: dict[str, list[str]] = {}
        for holder, key in connection.execute(_HARDWARE, {"run": run_id}):
            hardware.setdefault(_text(holder), []).append(_text(key))
        return [_run_info(row, hardware) for row in connection.execute(_RUNS, {"run": run_id})]

    def labels(self, run: RunInfo) -> RunLabels:
        """Return params, tags and last values of a run."""
        with self._opened() as connection:
            params, tags = (
                tuple((_text(key), _text(value)) for key, value in connection.execute(query, (run.id, MOST_LABELS + 1)))
                for query in (_PARAMS, _TAGS)
            )
            latest = connection.execute("select key, value, is_nan from latest_metrics where run_uuid = ?", (run.id,))
            values = tuple(
                (_text(key), float("nan") if nan or not isinstance(value, int | float) else float(value))
                for key, value, nan in latest
            )
        for name, labels in (("params", params), ("tags", tags)):
            if len(labels) > MOST_LABELS:
                what = f"run {run.id} has more than {MOST_LABELS:,} {name}"
                raise SourceError(str(self.path), what, "leave the run out", code="too_many_labels")
        return RunLabels(params=params, tags=tags, latest=values)

    def series(self, run: RunInfo) -> list[MetricSeries]:
        """Return all metrics of a run, by name; one pass, since older schemas have no index on both run and key."""
        keys: dict[str, int] = {}
        with self._opened() as connection:
            points = np.fromiter(
                (
                    (keys.setdefault(key, len(keys)), time, value, nan, step)
                    for key, time, value, nan, step in connection.execute(_POINTS, (run.id,))
                ),
                dtype=_POINT,
            )
            torn = {str(key): count for key, count in connection.execute(_TORN, (run.id,))}
        for key in torn:
            keys.setdefault(key, len(keys))
        return [_metric_series(key, points, torn.get(key, 0)) for key, points in _split_by_key(points, keys)]

    def artifact_folder(self, run: RunInfo) -> Path | None:
        """Return the folder in which the artifacts of a run lie; None where they are not on this machine."""
        beside = local_artifacts.resolve_relative_uri(run.artifact_uri, self.path)
        return local_artifacts.find_artifact_folder(run.artifact_uri, [*beside, self.home(run) / "artifacts"])

    def home(self, run: RunInfo) -> Path:
        """Return the folder of a run where the database lies in the folder it was made in."""
        return self.path.resolve().parent / "mlruns" / run.experiment_id / run.id

    def artifacts(self, run: RunInfo, folder: str) -> list[str]:
        """Return the names of the files in a folder of a run's artifacts."""
        return local_artifacts.list_artifacts(self.artifact_folder(run), folder)

    def fetch_artifact(self, run: RunInfo, name: str) -> Path:
        """Return the file of an artifact."""
        return (self.artifact_folder(run) or self.path.parent) / name


def _run_info(row: Sequence[Any], hardware: dict[str, list[str]]) -> RunInfo:
    run_id, name, status, started, ended, experiment_id, experiment, artifacts, deleted, parent = row
    return RunInfo(
        id=_text(run_id),
        name=_text(name),
        status=_text(status),
        started=_time(started),
        ended=_time(ended),
        experiment_id=_text(experiment_id),
        experiment=_text(experiment),
        artifact_uri=_text(artifacts),
        deleted=bool(deleted),
        parent=None if parent is None else _text(parent),
        hardware=tuple(hardware.get(_text(run_id), ())),
    )


def _text(value: object) -> str:
    """Return a value of any type as text; nothing for null."""
    if value is None:
        return ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _time(value: object) -> int | None:
    return keep_readable_time(value) if isinstance(value, int) else None


def _split_by_key(points: npt.NDArray[Any], keys: dict[str, int]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    codes = points["key"]
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(keys) + 1))
    for key, code in sorted(keys.items()):
        yield key, points[order[bounds[code] : bounds[code + 1]]]


def _metric_series(key: str, points: npt.NDArray[Any], torn: int) -> MetricSeries:
    values = np.where(points["nan"] != 0, np.nan, points["value"])
    return order_points(key, points["time"].copy(), values, points["step"].copy(), torn)
