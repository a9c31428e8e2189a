"""What every store of MLflow holds of a run, and its database, which MLflow's own client would migrate.

Times are milliseconds of UTC, as in MLflow.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np

from gpureport.columns import FloatArray, IntArray
from gpureport.errors import SettingsError, SourceError
from gpureport.importers.read_only_sqlite import is_database, open_read_only
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND, MOST_VALUE_BYTES
from gpureport.regular_files import UnsafeFileError, lies_within

HARDWARE_PREFIXES = ("system/", "monitoring/", "runtime/")
"""What hardware series begin with: MLflow's own, and those of runs that came from Neptune."""
_STATUSES = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_POINT = np.dtype([("time", "i8"), ("value", "f8"), ("step", "i8")])
_STORED_INFINITY = 1.7976931348623157e308


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run without its metrics; `hardware` names its hardware series, `fault` says why it cannot be read.

    `key` identifies it among the runs of all stores, where its id does not; `lacks` says why it holds no hardware
    series where its store knows. Times are local where `is_local`.
    """

    id: str
    key: str = ""
    name: str = ""
    status: str = "cannot be read"
    started: int | None = None
    ended: int | None = None
    experiment_id: str = ""
    artifact_uri: str = ""
    deleted: bool = False
    parent: str | None = None
    hardware: tuple[str, ...] = ()
    fault: SourceError | None = None
    lacks: str = ""
    is_local: bool = False

    @property
    def finished(self) -> bool:
        """Whether it has ended; one whose process was killed has not."""
        return self.status not in {"RUNNING", "SCHEDULED"}


@dataclass(frozen=True, slots=True)
class Points:
    """All points of a metric in the order of time, step and value; `torn` counts those that could not be read."""

    times: IntArray
    values: FloatArray
    steps: IntArray
    torn: int = 0


class Contents(NamedTuple):
    """What a store holds of a run, by name."""

    points: dict[str, Points]
    params: dict[str, str]
    tags: dict[str, str]


def order_points(times: IntArray, values: FloatArray, steps: IntArray, torn: int = 0) -> Points:
    """Return points in order; those whose time has no date are torn, the largest number stands for infinity."""
    dated = (times >= FIRST_MICROSECOND // 1000) & (times < LAST_MICROSECOND // 1000)
    if not dated.all():
        torn += int((~dated).sum())
        times, values, steps = times[dated], values[dated], steps[dated]
    if (np.diff(times) <= 0).any():
        order = np.lexsort((values, steps, times))
        times, values, steps = times[order], values[order], steps[order]
    huge = np.abs(values) >= _STORED_INFINITY
    return Points(times, np.where(huge, np.copysign(np.inf, values), values), steps, torn)


def make_points(points: Iterable[tuple[Any, float, Any]], torn: int = 0) -> Points:
    """Return points of time, value and step in order."""
    found = np.fromiter(points, dtype=_POINT)
    return order_points(found["time"].copy(), found["value"].copy(), found["step"].copy(), torn)


def _read_time(said: object) -> int | None:
    """Return a time that has a date, None for any other; MLflow's server writes 0 for none."""
    with suppress(ValueError):
        time = int(str(said))
        return time if time > 0 and FIRST_MICROSECOND <= time * 1000 < LAST_MICROSECOND else None
    return None


def read_info(said: Mapping[str, Any], tags: Mapping[str, str], metrics: Iterable[str], *, deleted: bool) -> RunInfo:
    """Return a run by what its store says of it under the names that MLflow has in its files and answers.

    `metrics` holds the names of its metrics, `deleted` whether its experiment was deleted.
    """
    status = str(said.get("status") or "")
    return RunInfo(
        id=str(said["run_id"]),
        name=str(said.get("run_name") or tags.get("mlflow.runName", "")),
        status=_STATUSES.get(status, status),
        started=_read_time(said.get("start_time")),
        ended=_read_time(said.get("end_time")),
        experiment_id=str(said["experiment_id"]),
        artifact_uri=str(said.get("artifact_uri") or ""),
        deleted=deleted or said.get("lifecycle_stage") == "deleted",
        parent=tags.get("mlflow.parentRunId"),
        hardware=tuple(sorted(key for key in metrics if key.startswith(HARDWARE_PREFIXES))),
    )


def find_experiments(where: str, known: Mapping[str, str], experiment: str | None) -> list[str]:
    """Return the ids of the experiments of a name or id, given the names by id; all when None."""
    found = [key for key, name in known.items() if experiment in {None, key, name}]
    if experiment is not None and not found:
        hint = f"it has {', '.join(sorted(set(known.values()))[:5]) or 'none'}"
        raise SourceError(where, f"no experiment {experiment!r}", hint, code="no_such_experiment")
    return found


def unreadable(error: OSError, path: Path) -> SourceError:
    """Return an error that names the path that the system names, else this one."""
    hint = error.hint if isinstance(error, UnsafeFileError) else "check its permissions, or copy it"
    return SourceError(str(error.filename or path), error.strerror or "cannot be read", hint, code="cannot_read")


def folder_of_uri(uri: str, beside: Path | None = None) -> Path | None:
    """Return the folder that a URI of artifacts names, there or not; None where it names none of this machine.

    A relative one is taken as seen from `beside`: MLflow takes it as seen from wherever it was started, which is the
    folder of its database as a rule.
    """
    with suppress(ValueError):
        parts = urlsplit(uri)
        said = {"file": unquote(parts.path), "": uri}.get(parts.scheme)
        if said and (Path(said).is_absolute() or (beside is not None and not parts.scheme)):
            return (beside or Path()) / said
    return None


class LocalStore:
    """What stores on this machine have in common; their artifacts lie there as well."""

    kind = version = ""

    def __init__(self, path: Path, where: str) -> None:
        """Take a file or folder, and what a person called it."""
        self.path = path
        self.where = where

    @property
    def root(self) -> Path:
        """Its folder, links followed."""
        return self.path.resolve() if self.path.is_dir() else self.path.resolve().parent

    def refuse_filter(self, wanted: str | None) -> None:
        """Refuse a filter, which nobody but a server understands."""
        if wanted is not None:
            hint = f"name runs with --run or --experiment, or start one: mlflow server --backend-store-uri {self.where}"
            raise SettingsError("--filter", "only a server filters runs", hint, code="filter_needs_server")

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return the runs of an experiment, of all when None, the newest first; deleted ones too."""
        raise NotImplementedError

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None if there is none, and its fault is raised."""
        return next((run for run in self.runs() if run.id == run_id), None)

    def home(self, run: RunInfo) -> Path:
        """Return the folder of a run, if the store lies where it was made."""
        return self.root / "mlruns" / run.experiment_id / run.id

    def artifact_folder(self, run: RunInfo) -> Path | None:
        """Return the folder in which the artifacts of a run lie; None where they are not on this machine."""
        for place in (self.home(run) / "artifacts", folder_of_uri(run.artifact_uri, self.path.parent)):
            # a name that is too long, or holds NUL
            with suppress(OSError, ValueError):
                if place is not None and place.is_dir():
                    return place
        return None

    def artifacts(self, run: RunInfo, folder: str, endings: tuple[str, ...]) -> dict[str, Path]:
        """Return the files in a folder of a run's artifacts whose names end so, by their paths among the artifacts."""
        root = self.artifact_folder(run)
        if root is None or not (root / folder).is_dir():
            return {}
        files = (each for each in sorted((root / folder).iterdir()) if each.name.lower().endswith(endings))
        return {f"{folder}/{each.name}": each for each in files if each.is_file() and lies_within(each, root)}


_TABLES = {"experiments", "runs", "metrics", "latest_metrics", "params", "tags"}
_ROW = np.dtype([("key", "i4"), ("nan", "i1"), *_POINT.descr])
_RUNS = """
    select r.run_uuid run_id, coalesce(nullif(r.name, ''), n.value) run_name, r.status, r.start_time, r.end_time,
           r.experiment_id, r.artifact_uri, r.lifecycle_stage, e.lifecycle_stage = 'deleted' deleted, t.value parent
    from runs r join experiments e using (experiment_id)
    left join tags t on t.run_uuid = r.run_uuid and t.key = 'mlflow.parentRunId'
    left join tags n on n.run_uuid = r.run_uuid and n.key = 'mlflow.runName'
    where :run is null or r.run_uuid = :run
    order by r.start_time desc, r.run_uuid
"""
_HARDWARE = """
    select run_uuid, key from latest_metrics
    where (key glob 'system/*' or key glob 'monitoring/*' or key glob 'runtime/*')
      and (:run is null or run_uuid = :run)
"""
_POINTS = """
    select key, is_nan, timestamp, value, step from metrics
    where run_uuid = :run and (:beginning = '' or key glob :beginning || '*')
"""


def holds_tables(path: Path, tables: Collection[str] = _TABLES) -> bool:
    """Return whether a file is a database that holds tables, those of MLflow unless others are given."""
    with suppress(SourceError):
        if is_database(path):
            with open_database(path, tables):
                return True
    return False


@contextmanager
def open_database(path: Path, tables: Collection[str] = _TABLES, title: str = "MLflow") -> Iterator[sqlite3.Connection]:
    """Give a connection that can only read to a database that holds the tables of a tracker.

    A column of SQLite holds values of any type, and a damaged schema any bytes: what cannot be read is refused here.
    """
    try:
        with open_read_only(path) as connection:
            held = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
            if lacking := {*tables} - held:
                said = f"not a database of {title} (no table {min(lacking)})"
                raise SourceError(str(path), said, f"give one that {title} wrote", code="other_schema")
            yield connection
    except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
        raise _explain(str(path), error, title) from error
    except OSError as error:
        raise unreadable(error, path) from error


def _explain(where: str, error: Exception, title: str) -> SourceError:
    match getattr(error, "sqlite_errorname", "").split("_")[1:]:
        case ["BUSY", *_] | ["LOCKED"]:
            return SourceError(where, "the database is locked by a writer", "try again", code="database_locked")
        case ["READONLY", "ROLLBACK"]:
            hint = "copy it again with its -journal after the writer ends, or copy it with the .backup of sqlite3"
            return SourceError(where, "it was copied while being written", hint, code="copied_while_written")
        case ["INTERRUPT"]:
            what = "its queries take far longer than its size explains"
            return SourceError(where, what, "leave it out", code="queries_too_slow")
        case ["TOOBIG"]:
            large = f"a value is larger than {MOST_VALUE_BYTES:,} bytes"
            return SourceError(where, large, "leave the run out", code="value_too_large")
        case _:
            what = f"damaged, or not a database of {title} ({error})"
            return SourceError(where, what, f"give one that {title} wrote", code="not_an_mlflow_database")


class Database(LocalStore):
    """A SQLite database."""

    kind = "sqlite database"

    def __init__(self, path: Path, where: str) -> None:
        """Take a file, and look up the revision of its schema."""
        super().__init__(path, where)
        with open_database(path) as connection, suppress(sqlite3.OperationalError):
            for (revision,) in connection.execute("select version_num from alembic_version"):
                self.version = f"schema {revision}"

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return the runs of an experiment, of all when None, the newest first; deleted ones too."""
        self.refuse_filter(wanted)
        with open_database(self.path) as connection:
            rows = connection.execute("select experiment_id, name from experiments")
            ids = find_experiments(self.where, {str(key): str(name) for key, name in rows}, experiment)
            return [run for run in _query_runs(connection) if run.experiment_id in ids]

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None if there is none."""
        with open_database(self.path) as connection:
            return next(iter(_query_runs(connection, run_id)), None)

    def read(self, run: RunInfo, beginning: str = "") -> Contents:
        """Return params and tags of a run, and the metrics whose names begin so.

        They are read in one pass, since older schemas have no index on both run and key.
        """
        keys: dict[str, int] = {}
        labels: dict[str, dict[str, str]] = {}
        with open_database(self.path) as connection:
            for part in ("params", "tags"):
                query = f"select key, value from {part} where run_uuid = ? order by key"  # noqa: S608 - a constant
                labels[part] = {str(key): str(value or "") for key, value in connection.execute(query, (run.id,))}
            found = (
                (keys.setdefault(key, len(keys)), nan, time, value, step)
                for key, nan, time, value, step in connection.execute(_POINTS, {"run": run.id, "beginning": beginning})
            )
            points = np.fromiter(found, dtype=_ROW)
        points["value"][points["nan"] != 0] = np.nan
        points = points[np.argsort(points["key"], kind="stable")]
        bounds = np.searchsorted(points["key"], np.arange(len(keys) + 1))
        parts = {str(key): points[bounds[code] : bounds[code + 1]] for key, code in keys.items()}
        series = {
            key: order_points(own["time"].copy(), own["value"].copy(), own["step"].copy())
            for key, own in sorted(parts.items())
        }
        return Contents(series, **labels)


def _query_runs(connection: sqlite3.Connection, run_id: str | None = None) -> list[RunInfo]:
    hardware: dict[str, list[str]] = {}
    for holder, key in connection.execute(_HARDWARE, {"run": run_id}):
        hardware.setdefault(str(holder), []).append(str(key))
    rows, found = connection.execute(_RUNS, {"run": run_id}), []
    names = [name for name, *_ in rows.description]
    for row in rows:
        said = dict(zip(names, row, strict=True))
        tags = {} if said["parent"] is None else {"mlflow.parentRunId": str(said["parent"])}
        metrics = hardware.get(str(said["run_id"]), ())
        found.append(read_info(said, tags, metrics, deleted=bool(said["deleted"])))
    return found
