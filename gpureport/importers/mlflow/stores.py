"""What every store of MLflow holds, and its database, read without MLflow: its client would migrate it.

Times are milliseconds of UTC, as in MLflow.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np

from gpureport.columns import FloatArray, IntArray
from gpureport.errors import SettingsError, SourceError
from gpureport.importers.read_only_sqlite import is_database, open_read_only
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND, MOST_LABELS, MOST_VALUE_BYTES
from gpureport.regular_files import UnsafeFileError, lies_within

HARDWARE_PREFIXES = ("system/", "monitoring/", "runtime/")
"""What hardware series begin with: MLflow's own, and those of runs that came from Neptune."""
_STATUSES = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_STORED_INFINITY = 1.7976931348623157e308


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run without its metrics; `hardware` names its hardware series, `fault` says why it cannot be read."""

    id: str
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

    @property
    def finished(self) -> bool:
        """Whether it has ended; one whose process was killed has not."""
        return self.status not in {"RUNNING", "SCHEDULED"}


class RunLabels(NamedTuple):
    """Params and tags of a run, by name."""

    params: Mapping[str, str]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Points:
    """All points of a metric in the order of time, step and value; `torn` counts those that could not be read."""

    times: IntArray
    values: FloatArray
    steps: IntArray
    torn: int = 0


def order_points(times: IntArray, values: FloatArray, steps: IntArray, torn: int = 0) -> Points:
    """Return points in order; those whose time is no date are torn, the largest number stands for infinity."""
    dated = (times >= FIRST_MICROSECOND // 1000) & (times < LAST_MICROSECOND // 1000)
    if not dated.all():
        torn += int((~dated).sum())
        times, values, steps = times[dated], values[dated], steps[dated]
    forward, same = times[1:] > times[:-1], times[1:] == times[:-1]
    if not (forward | (same & (steps[1:] > steps[:-1]))).all():
        order = np.lexsort((values, steps, times))
        times, values, steps = times[order], values[order], steps[order]
    huge = np.abs(values) >= _STORED_INFINITY
    return Points(times, np.where(huge, np.copysign(np.inf, values), values), steps, torn)


def read_time(said: object) -> int | None:
    """Return a time that has a date, None for any other; MLflow's server writes 0 for none."""
    try:
        time = int(str(said)) if said else 0
    except ValueError:
        return None
    return time if time > 0 and FIRST_MICROSECOND <= time * 1000 < LAST_MICROSECOND else None


def read_info(said: Mapping[str, Any], tags: Mapping[str, str], metrics: Iterable[str], *, deleted: bool) -> RunInfo:
    """Return a run by what its store says of it under the names that MLflow has in its files and answers.

    `metrics` holds the names of its metrics, `deleted` whether its experiment was deleted.
    """
    status = read_text(said.get("status"))
    return RunInfo(
        id=read_text(said["run_id"]),
        name=read_text(said.get("run_name")) or tags.get("mlflow.runName", ""),
        status=_STATUSES.get(status, status),
        started=read_time(said.get("start_time")),
        ended=read_time(said.get("end_time")),
        experiment_id=read_text(said["experiment_id"]),
        artifact_uri=read_text(said.get("artifact_uri")),
        deleted=deleted or said.get("lifecycle_stage") == "deleted",
        parent=tags.get("mlflow.parentRunId"),
        hardware=tuple(sorted(key for key in metrics if key.startswith(HARDWARE_PREFIXES))),
    )


def read_text(value: object) -> str:
    """Return a value of any type as text; nothing for null."""
    if value is None:
        return ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def unreadable(error: OSError, path: Path) -> SourceError:
    """Return an error that names the path that the system names, else this one."""
    hint = error.hint if isinstance(error, UnsafeFileError) else "check its permissions, or copy it"
    return SourceError(str(error.filename or path), error.strerror or "cannot be read", hint, code="cannot_read")


def find_experiments(where: str, known: Mapping[str, str], experiment: str | None) -> list[str]:
    """Return the ids of the experiments of a name or id, given the names by id; all when None."""
    found = [key for key, name in known.items() if experiment in {None, key, name}]
    if experiment is not None and not found:
        names = sorted(set(known.values()))
        close = ", ".join(get_close_matches(experiment, names, n=5, cutoff=0.5) or names[:5])
        raise SourceError(
            where, f"no experiment {experiment!r}", f"it has {close or 'none'}", code="no_such_experiment"
        )
    return found


def folder_of_uri(uri: str, beside: Path | None = None) -> Path | None:
    """Return the folder that a URI of artifacts names, there or not; None where it names none of this machine.

    A relative one is taken as seen from `beside`: MLflow takes it as seen from wherever it was started, which is the
    folder of its database as a rule.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    said = {"file": unquote(parts.path), "": uri}.get(parts.scheme)
    if not said or Path(said).is_absolute():
        return Path(said) if said else None
    return beside / said if beside is not None and not parts.scheme else None


class LocalStore:
    """What a database and a folder have in common: artifacts lie on this machine, and nobody understands a filter."""

    kind: ClassVar[str]

    def __init__(self, path: Path, where: str) -> None:
        """Take a file or folder, and what a person called it."""
        self.path = path
        self.where = where

    def _narrow(
        self, runs: list[RunInfo], known: Mapping[str, str], experiment: str | None, wanted: str | None
    ) -> list[RunInfo]:
        """Return the runs of an experiment of a name or id; all when None."""
        if wanted is not None:
            hint = f"name runs with --run or --experiment, or start one: mlflow server --backend-store-uri {self.where}"
            raise SettingsError("--filter", "only a server filters runs", hint, code="filter_needs_server")
        ids = find_experiments(self.where, known, experiment)
        return [run for run in runs if experiment is None or run.experiment_id in ids]

    @property
    def root(self) -> Path:
        """Its folder, links followed."""
        return self.path.resolve() if self.path.is_dir() else self.path.resolve().parent

    def _artifact_places(self, run: RunInfo) -> Sequence[Path | None]:
        raise NotImplementedError

    def artifact_folder(self, run: RunInfo) -> Path | None:
        """Return the folder in which the artifacts of a run lie; None where they are not on this machine."""
        for place in self._artifact_places(run):
            # a name that is too long, or holds NUL
            with suppress(OSError, ValueError):
                if place is not None and place.is_dir():
                    return place
        return None

    def artifacts(self, run: RunInfo, folder: str, endings: tuple[str, ...]) -> dict[str, Path]:
        """Return the files in a folder of a run's artifacts whose names end so, by their paths among the artifacts."""
        root = self.artifact_folder(run)
        files = sorted((root / folder).iterdir()) if root is not None and (root / folder).is_dir() else []
        return {
            f"{folder}/{each.name}": each
            for each in files
            if each.name.lower().endswith(endings) and each.is_file() and root is not None and lies_within(each, root)
        }


_TABLES = {"experiments", "runs", "metrics", "latest_metrics", "params", "tags"}
_POINT = np.dtype([("key", "i4"), ("time", "i8"), ("value", "f8"), ("nan", "i1"), ("step", "i8")])
_RUNS = """
    select r.run_uuid run_id, coalesce(nullif(r.name, ''), n.value) run_name, r.status, r.start_time, r.end_time,
           r.experiment_id, r.artifact_uri, r.lifecycle_stage, e.lifecycle_stage = 'deleted' deleted, t.value parent
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
_OF_RUN = "from metrics where run_uuid = :run and (:beginning = '' or key glob :beginning || '*')"
_POINTS = f"select key, timestamp, value, is_nan, step {_OF_RUN} and {_SOUND}"
_TORN = f"select key, count(*) {_OF_RUN} and not ({_SOUND}) group by key"
_SERVER = "give the mlflow.db of a tracking server"


def holds_runs(path: Path) -> bool:
    """Return whether a file is a database that holds MLflow's tables."""
    with suppress(SourceError):
        if is_database(path):
            with _open_database(path):
                return True
    return False


@contextmanager
def _open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that can only read to a database that holds MLflow's tables."""
    try:
        with open_read_only(path) as connection:
            tables = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
            if lacking := _TABLES - tables:
                said = f"not an MLflow database (no table {min(lacking)})"
                raise SourceError(str(path), said, _SERVER, code="other_schema")
            yield connection
    except sqlite3.Error as error:
        raise _explain(str(path), error) from error
    except UnicodeDecodeError as error:
        # SQLite repeats a damaged schema in its own words, and Python takes them for text
        what = f"not an MLflow database ({error.reason} in its schema)"
        raise SourceError(str(path), what, _SERVER, code="not_an_mlflow_database") from error
    except OSError as error:
        raise unreadable(error, path) from error


def _explain(where: str, error: sqlite3.Error) -> SourceError:
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
        case ["CANTOPEN"]:
            check = "check its permissions, or copy it"
            return SourceError(where, "the database cannot be opened", check, code="cannot_read")
        case _:
            return SourceError(where, f"not an MLflow database ({error})", _SERVER, code="not_an_mlflow_database")


class Database(LocalStore):
    """A SQLite database."""

    kind = "sqlite database"

    @property
    def version(self) -> str:
        """The revision of its schema."""
        with _open_database(self.path) as connection, suppress(sqlite3.OperationalError):
            for (revision,) in connection.execute("select version_num from alembic_version"):
                return f"schema {revision}"
        return ""

    def home(self, run: RunInfo) -> Path:
        """Return the folder of a run where the database lies in the folder it was made in."""
        return self.root / "mlruns" / run.experiment_id / run.id

    def _artifact_places(self, run: RunInfo) -> Sequence[Path | None]:
        return folder_of_uri(run.artifact_uri, self.path.parent), self.home(run) / "artifacts"

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return runs, the newest first; deleted ones too."""
        with _open_database(self.path) as connection:
            found = _query_runs(connection)
            known = {
                read_text(key): read_text(name)
                for key, name in connection.execute("select experiment_id, name from experiments")
            }
        return self._narrow(found, known, experiment, wanted)

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id, deleted or not; None if there is none."""
        with _open_database(self.path) as connection:
            return next(iter(_query_runs(connection, run_id)), None)

    def labels(self, run: RunInfo) -> RunLabels:
        """Return params and tags of a run."""
        found = {}
        with _open_database(self.path) as connection:
            for table in RunLabels._fields:
                query = f"select key, value from {table} where run_uuid = ? order by key limit ?"  # noqa: S608 - a constant
                rows = connection.execute(query, (run.id, MOST_LABELS + 1)).fetchall()
                if len(rows) > MOST_LABELS:
                    what = f"run {run.id} has more than {MOST_LABELS:,} {table}"
                    raise SourceError(str(self.path), what, "leave the run out", code="too_many_labels")
                found[table] = {read_text(key): read_text(value) for key, value in rows}
        return RunLabels(**found)

    def series(self, run: RunInfo, beginning: str = "") -> dict[str, Points]:
        """Return the metrics of a run whose names begin so.

        They are read in one pass, since older schemas have no index on both run and key.
        """
        keys: dict[str, int] = {}
        asked = {"run": run.id, "beginning": beginning}
        with _open_database(self.path) as connection:
            rows = (
                (keys.setdefault(key, len(keys)), time, value, nan, step)
                for key, time, value, nan, step in connection.execute(_POINTS, asked)
            )
            points = np.fromiter(rows, dtype=_POINT)
            torn = {str(key): count for key, count in connection.execute(_TORN, asked)}
        for key in torn:
            keys.setdefault(key, len(keys))
        order = np.argsort(points["key"], kind="stable")
        bounds = np.searchsorted(points["key"][order], np.arange(len(keys) + 1))
        found = {}
        for key, code in sorted(keys.items()):
            own = points[order[bounds[code] : bounds[code + 1]]]
            values = np.where(own["nan"] != 0, np.nan, own["value"])
            found[key] = order_points(own["time"].copy(), values, own["step"].copy(), torn.get(key, 0))
        return found


def _query_runs(connection: sqlite3.Connection, run_id: str | None = None) -> list[RunInfo]:
    hardware: dict[str, list[str]] = {}
    for holder, key in connection.execute(_HARDWARE, {"run": run_id}):
        hardware.setdefault(read_text(holder), []).append(read_text(key))
    rows, found = connection.execute(_RUNS, {"run": run_id}), []
    names = [name for name, *_ in rows.description]
    for row in rows:
        said = dict(zip(names, row, strict=True))
        tags = {} if said["parent"] is None else {"mlflow.parentRunId": read_text(said["parent"])}
        metrics = hardware.get(read_text(said["run_id"]), ())
        found.append(read_info(said, tags, metrics, deleted=bool(said["deleted"])))
    return found
