"""Reads runs from an MLflow database or `mlruns` folder, without using MLflow.

MLflow's own client would migrate a database, and has refused folders since 3.13.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt

from gpureport.errors import SourceError
from gpureport.importers.protocol import RUN_ID, RunInfo, Store, describe_devices
from gpureport.importers.read_only_sqlite import holds_tables, open_database, unreadable
from gpureport.importers.tracker_series import Series, is_dated
from gpureport.parsing import DEEPEST_FOLDER, MOST_RECORD_BYTES, MOST_SETTINGS_BYTES
from gpureport.record_folder import COMPRESSED_SUFFIXES
from gpureport.regular_files import lies_within, read_regular_file

HARDWARE_PREFIX = "system/"
ARTIFACT_FOLDER = "gpureport"
"""The artifact folder that may contain a run's logs, and to which reports are published."""
LOG_SUFFIXES = (".csv", ".log", ".txt", ".out", *COMPRESSED_SUFFIXES)
POINT = np.dtype([("time", "i8"), ("value", "f8"), ("step", "i8")])
Points: TypeAlias = npt.NDArray[Any]
_STATUSES = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_DEVICE = re.compile(rf"{HARDWARE_PREFIX}((?:.+/)?gpu_[0-9]+(?=_))?")
_STORED_INFINITY = 1.7976931348623157e308
T = TypeVar("T")


class Contents(NamedTuple):
    points: dict[str, Series]
    params: dict[str, str]
    tags: dict[str, str]
    torn: int = 0


def order_points(series: Mapping[str, Points], params: dict[str, str], tags: dict[str, str], torn: int = 0) -> Contents:
    """Return series by name, ordered by time, step and value; points at impossible times count as torn."""
    ordered = {}
    for name, points in sorted(series.items()):
        # a product could overflow 64 bits
        own = points[is_dated(points["time"].astype(np.float64) * 1000)]
        torn += len(points) - len(own)
        if (np.diff(own["time"]) <= 0).any():
            own = own[np.lexsort((own["value"], own["step"], own["time"]))]
        values = np.where(np.abs(own["value"]) >= _STORED_INFINITY, np.copysign(np.inf, own["value"]), own["value"])
        ordered[name] = Series(own["time"] * 1000, values, own["step"])
    return Contents(ordered, params, tags, torn)


def read_info(said: Mapping[str, Any], metrics: Iterable[str]) -> RunInfo:
    """Build a run from its MLflow fields and the added keys `parent` and `deleted`."""
    status = str(said.get("status") or "")
    dates = [str(said.get(f"{name}_time")) for name in ("start", "end")]
    times = [1000 * int(date) if re.fullmatch("[0-9]{1,15}", date) else 0 for date in dates]
    # MLflow's server writes 0 for a missing time
    started, ended = (time if time > 0 and is_dated(time) else None for time in times)
    return RunInfo(
        id=str(said["run_id"]),
        name=str(said.get("run_name") or ""),
        status=_STATUSES.get(status, status),
        started=started,
        ended=ended,
        experiment_id=str(said["experiment_id"]),
        artifact_uri=str(said.get("artifact_uri") or ""),
        deleted=bool(said.get("deleted")) or said.get("lifecycle_stage") == "deleted",
        parent=said.get("parent"),
        hardware=describe_devices({match[1] for match in map(_DEVICE.match, metrics) if match}),
    )


def find_experiments(where: str, known: Mapping[str, str], experiment: str | None) -> list[str]:
    found = [key for key, name in known.items() if experiment in {None, key, name}]
    if experiment is not None and not found:
        hint = f"it has {', '.join(sorted(set(known.values()))[:5]) or 'none'}"
        raise SourceError(where, f"no experiment {experiment!r}", hint, code="no_such_experiment")
    return found


def folder_of_uri(uri: str, beside: Path | None = None) -> Path | None:
    """Return the folder (it may not exist) of an artifact URI, relative to `beside`; None if not local."""
    with suppress(ValueError):
        parts = urlsplit(uri)
        said = {"file": unquote(parts.path), "": uri}.get(parts.scheme)
        if said and (Path(said).is_absolute() or (beside is not None and not parts.scheme)):
            return (beside or Path()) / said
    return None


class LocalStore(Store):
    def __init__(self, path: Path, where: str) -> None:
        self.path, self.where = path, where
        self.root = path.resolve() if path.is_dir() else path.resolve().parent

    def home(self, run: RunInfo) -> Path:
        return self.root / "mlruns" / run.experiment_id / run.id

    def artifact_folder(self, run: RunInfo) -> Path | None:
        for place in (self.home(run) / "artifacts", folder_of_uri(run.artifact_uri, self.path.parent)):
            # the name may be too long or contain NUL
            with suppress(OSError, ValueError):
                if place is not None and place.is_dir():
                    return place
        return None

    def artifacts(self, run: RunInfo) -> dict[str, Path]:
        root = self.artifact_folder(run)
        files = sorted((root / ARTIFACT_FOLDER).glob("*")) if root else []
        logs = (each for each in files if each.name.lower().endswith(LOG_SUFFIXES) and each.is_file())
        return {f"{ARTIFACT_FOLDER}/{each.name}": each for each in logs if root and lies_within(each, root)}

    def describe_logs(self, run: RunInfo) -> RunInfo:
        return replace(run, hardware=run.hardware or "attached logs" * bool(self.artifacts(run)))


_TABLES = {"experiments", "runs", "metrics", "latest_metrics", "params", "tags"}
_RUNS = """
    select r.run_uuid run_id, coalesce(nullif(r.name, ''), n.value) run_name, r.status, r.start_time, r.end_time, names,
           r.experiment_id, r.artifact_uri, r.lifecycle_stage, e.lifecycle_stage = 'deleted' deleted, t.value parent
    from runs r join experiments e using (experiment_id)
    left join tags t on t.run_uuid = r.run_uuid and t.key = 'mlflow.parentRunId'
    left join tags n on n.run_uuid = r.run_uuid and n.key = 'mlflow.runName'
    left join (
        select run_uuid, group_concat(key, char(10)) names from latest_metrics
        where key glob 'system/*' and (:run is null or run_uuid = :run)
        group by run_uuid
    ) m on m.run_uuid = r.run_uuid
    where :run is null or r.run_uuid = :run
    order by r.start_time desc, r.run_uuid
"""
_EXPERIMENTS = "select cast(experiment_id as text), cast(coalesce(name, '') as text) from experiments"
_LABELS = (
    "select cast(coalesce(key, '') as text), cast(coalesce(value, '') as text) from {} where run_uuid = ? order by key"
)
_POINTS = """
    select key, is_nan, timestamp, value, step from metrics
    where run_uuid = :run and (:beginning = '' or key glob :beginning || '*')
"""
_open = partial(open_database, tables=_TABLES, title="MLflow")


class Database(LocalStore):
    kind = "sqlite database"

    def __init__(self, path: Path, where: str) -> None:
        super().__init__(path, where)
        with _open(path) as connection, suppress(sqlite3.OperationalError):
            for (revision,) in connection.execute("select version_num from alembic_version"):
                self.version = f"schema {revision}"

    def runs(
        self, experiment: str | None = None, wanted: str | None = None, run_id: str | None = None
    ) -> list[RunInfo]:
        with _open(self.path) as connection:
            ids = find_experiments(self.where, dict(connection.execute(_EXPERIMENTS)), experiment)
            rows = connection.execute(_RUNS, {"run": run_id})
            said = [dict(zip([name for name, *_ in rows.description], row, strict=True)) for row in rows]
            found = [read_info(each, str(each["names"] or "").split("\n")) for each in said]
        return [self.describe_logs(run) for run in found if run.experiment_id in ids]

    def run(self, run_id: str) -> RunInfo | None:
        return next(iter(self.runs(run_id=run_id)), None)

    def read(self, run: RunInfo, beginning: str = "") -> Contents:
        # all keys are read in one pass, since older schemas have no index on both run and key
        keys: dict[Any, int] = {}
        with _open(self.path) as connection:
            params, tags = (dict(connection.execute(_LABELS.format(each), (run.id,))) for each in ("params", "tags"))
            found = (
                (keys.setdefault(key, len(keys)), time, np.nan if nan else value, step)
                for key, nan, time, value, step in connection.execute(_POINTS, {"run": run.id, "beginning": beginning})
            )
            points = np.fromiter(found, dtype=[("key", "i4"), *POINT.descr])
        parts = np.split(points[np.argsort(points["key"], kind="stable")], np.cumsum(np.bincount(points["key"])))
        return order_points(dict(zip(map(str, keys), parts, strict=False)), params, tags)


# the folder `mlruns`

_META, _RESTORE = "meta.yaml", "restore it, or move its folder out of the store"
# a long value continues on indented lines
_ENTRY = re.compile(r"^(\w+):[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
_NUMBER = r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?|inf(?:inity)?|nan)"
_POINT_LINE = re.compile(rf"-?\d{{1,18}} {_NUMBER} -?\d{{1,18}}(?: [^\r]*)?\r?", re.ASCII | re.IGNORECASE)


def _read_meta(folder: Path, root: Path) -> dict[str, str]:
    """Return the values in a `meta.yaml`; only a flat mapping of plain values is supported."""
    found = {}
    for name, text in _ENTRY.findall(_read_text(folder / _META, root)):
        value = re.sub(r"\s*\n\s*", " ", text.strip())
        value = value[1:-1].replace("''", "'") if value[:1] == "'" else value
        with suppress(ValueError, RecursionError):
            value = str(json.loads(value)).encode(errors="replace").decode() if value[:1] == '"' else value
        found[name] = "" if value == "null" else value
    return found


def _read_metric(content: str) -> tuple[Points, int]:
    """Return a metric's points and the number of bad lines. A dataset's name may follow a point."""
    parse: Any = partial(np.loadtxt, dtype=POINT, delimiter=" ", comments=None, usecols=(0, 1, 2), ndmin=1)
    # the last line may be cut off; NumPy warns about empty input
    *lines, cut = content.split("\n")
    whole = lines = ["0 0 0", *(line for line in lines if line.strip())]
    try:
        points = parse(whole)
    except ValueError:
        points = parse(whole := [line for line in lines if _POINT_LINE.fullmatch(line)])
    return points[1:], len(lines) - len(whole) + bool(cut.strip())


def _look(path: Path, read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except (FileNotFoundError, NotADirectoryError):
        return otherwise
    except OSError as error:
        raise unreadable(error, path) from error


def _read_text(path: Path, root: Path, most: int = MOST_SETTINGS_BYTES) -> str:
    return _look(path, lambda: read_regular_file(path, root=root, most=most).decode(errors="replace"), "")


def _list_folder(folder: Path) -> list[Path]:
    return _look(folder, lambda: sorted(folder.iterdir()), [])


def _list_names(folder: Path, deepest: int = DEEPEST_FOLDER) -> list[str]:
    found = []
    for path in _list_folder(folder):
        is_folder = deepest and path.is_dir() and not path.is_symlink()
        below = [f"/{name}" for name in _list_names(path, deepest - 1)] if is_folder else [""]
        found += [path.name + name for name in below]
    return sorted(found)


def _find_experiments(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each experiment's folder and name; one with damaged metadata is recognised by its runs."""
    for path in (*_list_folder(root), *_list_folder(root / ".trash")):
        if path.name.isdigit() and path.is_dir():
            said: dict[str, str] = {}
            with suppress(SourceError):
                said = _read_meta(path, root)
            runs = (each for each in _list_folder(path) if RUN_ID.fullmatch(each.name) and (each / _META).is_file())
            if said.get("experiment_id") == path.name or any(runs):
                yield path, said.get("name") or path.name


def holds_runs(path: Path) -> bool:
    if not path.is_dir():
        return path.is_file() and holds_tables(path, _TABLES)
    with suppress(SourceError):
        return any(True for _ in _find_experiments(path))
    return False


def refuse_artifacts(folder: Path, wanted: str) -> None:
    # a folder that is missing or cannot be listed matters only when it is opened
    with suppress(OSError):
        if any(RUN_ID.fullmatch(each.parent.name) for each in folder.glob("[0-9]*/*/artifacts")):
            hint = f"give the database or server of these runs: {wanted}"
            raise SourceError(str(folder), "it contains the artifacts of MLflow runs", hint, code="folder_of_artifacts")


class Folder(LocalStore):
    kind = "file store"

    def home(self, run: RunInfo) -> Path:
        experiment = self.path / run.experiment_id
        return (experiment if experiment.is_dir() else self.path / ".trash" / run.experiment_id) / run.id

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        known = dict(_find_experiments(self.path))
        ids = find_experiments(self.where, {path.name: name for path, name in known.items()}, experiment)
        found: list[RunInfo | None] = []
        for path in (path for folder in known if folder.name in ids for path in _list_folder(folder)):
            try:
                found.append(self._find_run(path))
            except SourceError as error:
                found.append(RunInfo(id=path.name, name=path.name, experiment_id=path.parent.name, fault=error))
        return sorted(filter(None, found), key=lambda run: (-(run.started or 0), run.id))

    def run(self, run_id: str) -> RunInfo | None:
        places = (folder / run_id for folder, _ in _find_experiments(self.path))
        return next((self._find_run(place) for place in places if place.is_dir()), None)

    def _find_run(self, path: Path) -> RunInfo | None:
        said: dict[str, Any] = {**_read_meta(path, self.path)}
        if said.get("run_id", said.get("run_uuid")) != path.name:
            if RUN_ID.fullmatch(path.name) and path.is_dir():
                what = f"it is missing, damaged, or about a run other than {path.name}"
                raise SourceError(str(path / _META), what, _RESTORE, code="damaged_run")
            return None
        # the tag contains the name as given, whereas YAML quotes it
        name, parent = (_read_text(path / "tags" / f"mlflow.{tag}", self.path) for tag in ("runName", "parentRunId"))
        said |= {"run_id": path.name, "run_name": name or said.get("run_name"), "parent": parent}
        said |= {"experiment_id": path.parent.name, "deleted": path.parents[1].name == ".trash"}
        return self.describe_logs(read_info(said, _list_names(path / "metrics")))

    def read(self, run: RunInfo, beginning: str = "") -> Contents:
        def read_all(part: str, start: str = "", most: int = MOST_SETTINGS_BYTES) -> Iterator[tuple[str, str]]:
            folder = self.home(run) / part
            names = (name for name in _list_names(folder) if name.startswith(start))
            return ((name, _read_text(folder / name, self.path, most)) for name in names)

        found = {name: _read_metric(text) for name, text in read_all("metrics", beginning, MOST_RECORD_BYTES)}
        points = {name: each for name, (each, _) in found.items()}
        torn = sum(lost for _, lost in found.values())
        return order_points(points, dict(read_all("params")), dict(read_all("tags")), torn)
