"""What every store of MLflow holds of a run, and its database, which MLflow's own client would migrate."""

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt

from gpureport.errors import SourceError
from gpureport.importers.protocol.tracker import RunInfo, refuse_filter
from gpureport.importers.read_only_sqlite import is_database, open_read_only
from gpureport.importers.tracker_series import Series, is_dated
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND
from gpureport.regular_files import UnsafeFileError, lies_within

HARDWARE_PREFIXES = ("system/", "monitoring/", "runtime/")
"""What hardware series begin with: MLflow's own, and those of runs that came from Neptune."""
POINT = np.dtype([("time", "i8"), ("value", "f8"), ("step", "i8")])
Points: TypeAlias = npt.NDArray[Any]
"""Points of a metric as MLflow stores them, of the type `POINT` at least, with times in milliseconds."""
_STATUSES = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_STORED_INFINITY = 1.7976931348623157e308


class Contents(NamedTuple):
    """A store's content of a run, by name, and how many points could not be read."""

    points: dict[str, Series]
    params: dict[str, str]
    tags: dict[str, str]
    torn: int = 0


def order_points(series: Mapping[str, Points], params: dict[str, str], tags: dict[str, str], torn: int = 0) -> Contents:
    """Return series by name, ordered by time, step and value; points with an impossible time are torn.

    The largest number stands for infinity.
    """
    ordered = {}
    for name, points in sorted(series.items()):
        dated = (points["time"] >= FIRST_MICROSECOND // 1000) & (points["time"] < LAST_MICROSECOND // 1000)
        torn += len(points) - int(dated.sum())
        own = points[dated]
        if (np.diff(own["time"]) <= 0).any():
            own = own[np.lexsort((own["value"], own["step"], own["time"]))]
        huge = np.abs(own["value"]) >= _STORED_INFINITY
        ordered[name] = Series(
            own["time"] * 1000, np.where(huge, np.copysign(np.inf, own["value"]), own["value"]), own["step"]
        )
    return Contents(ordered, params, tags, torn)


def read_info(said: Mapping[str, Any], metrics: Iterable[str]) -> RunInfo:
    """Return a run by its store's data under the names of MLflow's files and answers.

    Beside these, it takes its `parent`, whether its experiment was `deleted`, and the names of its `metrics`.
    """
    status, times = str(said.get("status") or ""), []
    for name in ("start_time", "end_time"):
        # one that has no date is none; MLflow's server writes 0
        text = str(said.get(name))
        time = 1000 * int(text) if re.fullmatch(r"[0-9]{1,15}", text) else 0
        times.append(time if time > 0 and is_dated(time) else None)
    return RunInfo(
        id=str(said["run_id"]),
        name=str(said.get("run_name") or ""),
        status=_STATUSES.get(status, status),
        started=times[0],
        ended=times[1],
        experiment_id=str(said["experiment_id"]),
        artifact_uri=str(said.get("artifact_uri") or ""),
        deleted=bool(said.get("deleted")) or said.get("lifecycle_stage") == "deleted",
        parent=said.get("parent"),
        hardware=sorted(key for key in metrics if key.startswith(HARDWARE_PREFIXES)),
    )


def find_experiments(where: str, known: Mapping[str, str], experiment: str | None) -> list[str]:
    """Return the ids of experiments of a name or id, given names by id; all for None."""
    found = [key for key, name in known.items() if experiment in {None, key, name}]
    if experiment is not None and not found:
        hint = f"it has {', '.join(sorted(set(known.values()))[:5]) or 'none'}"
        raise SourceError(where, f"no experiment {experiment!r}", hint, code="no_such_experiment")
    return found


def unreadable(error: OSError, path: Path) -> SourceError:
    """Return an error that names the system's path, else this one."""
    hint = error.hint if isinstance(error, UnsafeFileError) else "check its permissions, or copy it"
    return SourceError(str(error.filename or path), error.strerror or "cannot be read", hint, code="cannot_read")


def folder_of_uri(uri: str, beside: Path | None = None) -> Path | None:
    """Return the folder of an artifact URI, there or not; None where it is not of this machine.

    A relative one counts from `beside`: MLflow counts from where it was started, usually the folder of its database.
    """
    with suppress(ValueError):
        parts = urlsplit(uri)
        said = {"file": unquote(parts.path), "": uri}.get(parts.scheme)
        if said and (Path(said).is_absolute() or (beside is not None and not parts.scheme)):
            return (beside or Path()) / said
    return None


class LocalStore:
    """What stores on this machine share: they know no filter, and artifacts lie there too."""

    kind = version = ""
    grouped: tuple[str, ...] = ()

    def __init__(self, path: Path, where: str) -> None:
        self.path = path
        self.where = where

    @property
    def root(self) -> Path:
        """Its folder, links followed."""
        return self.path.resolve() if self.path.is_dir() else self.path.resolve().parent

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return an experiment's runs, or all for None, newest first; deleted ones too."""
        start = f"mlflow server --backend-store-uri {self.where}"
        refuse_filter(wanted, f"name runs with --run or --experiment, or start one: {start}")
        return self.list_runs(experiment)

    def list_runs(self, experiment: str | None) -> list[RunInfo]:
        """Return what `runs` returns."""
        raise NotImplementedError

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None without one. Its fault is raised."""
        return next((run for run in self.list_runs(None) if run.id == run_id), None)

    def home(self, run: RunInfo) -> Path:
        """Return a run's folder, if the store lies where it was made."""
        return self.root / "mlruns" / run.experiment_id / run.id

    def artifact_folder(self, run: RunInfo) -> Path | None:
        """Return the folder of a run's artifacts; None where they are not on this machine."""
        for place in (self.home(run) / "artifacts", folder_of_uri(run.artifact_uri, self.path.parent)):
            # a name that is too long, or holds NUL
            with suppress(OSError, ValueError):
                if place is not None and place.is_dir():
                    return place
        return None

    def artifacts(self, run: RunInfo, folder: str, endings: tuple[str, ...]) -> dict[str, Path]:
        """Return the files in a folder of a run's artifacts whose names end so, by path among the artifacts."""
        root = self.artifact_folder(run)
        files = sorted((root / folder).iterdir()) if root and (root / folder).is_dir() else []
        files = [each for each in files if each.is_file() and root and lies_within(each, root)]
        return {f"{folder}/{each.name}": each for each in files if each.name.lower().endswith(endings)}


_TABLES = {"experiments", "runs", "metrics", "latest_metrics", "params", "tags"}
_RUNS = """
    select r.run_uuid run_id, coalesce(nullif(r.name, ''), n.value) run_name, r.status, r.start_time, r.end_time, names,
           r.experiment_id, r.artifact_uri, r.lifecycle_stage, e.lifecycle_stage = 'deleted' deleted, t.value parent
    from runs r join experiments e using (experiment_id)
    left join tags t on t.run_uuid = r.run_uuid and t.key = 'mlflow.parentRunId'
    left join tags n on n.run_uuid = r.run_uuid and n.key = 'mlflow.runName'
    left join (
        select run_uuid, group_concat(key, char(10)) names from latest_metrics
        where (key glob 'system/*' or key glob 'monitoring/*' or key glob 'runtime/*')
          and (:run is null or run_uuid = :run)
        group by run_uuid
    ) m on m.run_uuid = r.run_uuid
    where :run is null or r.run_uuid = :run
    order by r.start_time desc, r.run_uuid
"""
_POINTS = """
    select key, is_nan, timestamp, value, step from metrics
    where run_uuid = :run and (:beginning = '' or key glob :beginning || '*')
"""


@contextmanager
def open_database(path: Path, tables: Collection[str] = _TABLES, title: str = "MLflow") -> Iterator[sqlite3.Connection]:
    """Give a read-only connection to a database that holds a tracker's tables.

    SQLite columns hold values of any type, and a damaged schema any bytes: this refuses the unreadable.
    """
    hint, code = f"give one that {title} wrote; copy it again while nobody writes to it", "not_an_mlflow_database"
    try:
        with open_read_only(path) as connection:
            held = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
            if lacking := {*tables} - held:
                what = f"not a database of {title} (no table {min(lacking)})"
                raise SourceError(str(path), what, hint, code=code)
            yield connection
    except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
        what = f"locked, damaged, or not a database of {title} ({error})"
        raise SourceError(str(path), what, hint, code=code) from error
    except OSError as error:
        raise unreadable(error, path) from error


def holds_tables(path: Path, tables: Collection[str] = _TABLES) -> bool:
    """Return whether a file is a database with tables, those of MLflow unless others are given."""
    with suppress(SourceError):
        if is_database(path):
            with open_database(path, tables):
                return True
    return False


class Database(LocalStore):
    """A SQLite database."""

    kind = "sqlite database"

    def __init__(self, path: Path, where: str) -> None:
        super().__init__(path, where)
        with open_database(path) as connection, suppress(sqlite3.OperationalError):
            for (revision,) in connection.execute("select version_num from alembic_version"):
                self.version = f"schema {revision}"

    def list_runs(self, experiment: str | None) -> list[RunInfo]:
        """Return an experiment's runs, or all for None, newest first; deleted ones too."""
        with open_database(self.path) as connection:
            rows = connection.execute("select experiment_id, name from experiments")
            ids = find_experiments(self.where, {str(key): str(name) for key, name in rows}, experiment)
            return [run for run in _query_runs(connection) if run.experiment_id in ids]

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None without one."""
        with open_database(self.path) as connection:
            return next(_query_runs(connection, run_id), None)

    def read(self, run: RunInfo, beginning: str = "") -> Contents:
        """Return a run's params and tags, and the metrics whose names begin so.

        One pass reads them, as older schemas have no index on both run and key.
        """
        keys: dict[Any, int] = {}
        labels: list[dict[str, str]] = []
        with open_database(self.path) as connection:
            for part in ("params", "tags"):
                query = f"select key, value from {part} where run_uuid = ? order by key"  # noqa: S608 - a constant
                labels.append({str(key): str(value or "") for key, value in connection.execute(query, (run.id,))})
            found = (
                (keys.setdefault(key, len(keys)), time, np.nan if nan else value, step)
                for key, nan, time, value, step in connection.execute(_POINTS, {"run": run.id, "beginning": beginning})
            )
            points = np.fromiter(found, dtype=[("key", "i4"), *POINT.descr])
        ends = np.cumsum(np.bincount(points["key"]))
        parts = np.split(points[np.argsort(points["key"], kind="stable")], ends)
        return order_points(dict(zip(map(str, keys), parts, strict=False)), labels[0], labels[1])


def _query_runs(connection: sqlite3.Connection, run_id: str | None = None) -> Iterator[RunInfo]:
    rows = connection.execute(_RUNS, {"run": run_id})
    for row in rows:
        said = {name: cell for (name, *_), cell in zip(rows.description, row, strict=True)}
        yield read_info(said, str(said["names"] or "").split("\n"))
