"""Which store of MLflow and which of its runs are meant: locators, ids, names, experiments, filters, the newest."""

import os
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias
from urllib.parse import unquote

from gpureport.errors import SourceError
from gpureport.importers.account import list_first
from gpureport.importers.mlflow.folder import Folder, is_file_store, keeps_artifacts, refuse_artifacts
from gpureport.importers.mlflow.recording import parse_names, record_run
from gpureport.importers.mlflow.stores import Database, LocalStore, RunInfo, holds_tables
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.tracker import ListedRun, SelectedRuns, Selection, SkippedRun, Tracked
from gpureport.importers.tracker_series import sort_by_start
from gpureport.regular_files import path_exists

if TYPE_CHECKING:
    from gpureport.importers.mlflow.server import Server

Store: TypeAlias = "Database | Folder | Server"
PREFIX = "mlflow:"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):|(databricks)$")
_DATABASE_SERVERS = {"postgresql", "postgres", "mysql", "mssql", "oracle"}
_SERVERS = {"http", "https", "databricks", "databricks-uc", "uc"}
_GIVE = "give mlflow.db, a mlruns folder or an http URL"
_SHORTEST, _SHOWN = 6, 5


def is_mlflow_source(source: str) -> bool:
    """Return whether a source is a locator of MLflow, or a file or folder that is an MLflow store."""
    path = Path(source)
    try:
        of_path = is_file_store(path) if path.is_dir() else path.is_file() and holds_tables(path)
    except OSError:
        of_path = False
    return source.startswith(PREFIX) or of_path


def split_locator(source: str) -> tuple[str, str | None]:
    """Return the store and the run that a locator names; the run is None if it names none."""
    store = source.removeprefix(PREFIX)
    if "#" not in store or path_exists(store):
        return store, None
    store, _, run = store.rpartition("#")
    return store, run or None


def is_store_scheme(scheme: str) -> bool:
    """Return whether URLs of a scheme name stores of MLflow alone; `file:` may name any folder."""
    return scheme.partition("+")[0] in {"sqlite", *_DATABASE_SERVERS, *_SERVERS}


def refuse_database_server(scheme: str, store: str) -> None:
    """Refuse a store that is a database server, by the scheme of its URL, whatever driver a `+` names."""
    if scheme.partition("+")[0] in _DATABASE_SERVERS:
        what = "a database server is not opened directly: that could change its schema"
        hint = "run `mlflow server --backend-store-uri ...`, give its http URL"
        raise SourceError(re.sub(r"(?<=://)[^/@]*@", "", store), what, hint, code="database_server")


def open_store(source: str) -> tuple[Store, str | None]:
    """Open the store that a locator names, or the one that MLflow would use here; return it and the named run."""
    store, run = split_locator(source)
    usual = (name for name in ("mlflow.db", "mlruns") if Path(name).exists())
    store = store or os.environ.get("MLFLOW_TRACKING_URI") or next(usual, "mlflow.db")
    match = None if path_exists(store) else _SCHEME.match(store)
    scheme = (match[1] or match[2]).lower() if match else ""
    refuse_database_server(scheme, store)
    if scheme in _SERVERS:
        from gpureport.importers.mlflow.server import Server, SignedServer  # noqa: PLC0415 - loads http and ssl

        signed = (
            os.environ.get("MLFLOW_TRACKING_AUTH") or os.environ.get("MLFLOW_TRACKING_AWS_SIGV4", "").lower() == "true"
        )
        return SignedServer(store) if signed or not scheme.startswith("http") else Server(store), run
    # three slashes before a relative path of sqlite, four before one from the root
    paths = {
        "": store,
        "sqlite": unquote(store.partition(":")[2].removeprefix("///")),
        "file": unquote(re.sub("^file:(//[^/]*)?", "", store, flags=re.IGNORECASE)),
    }
    if scheme not in paths:
        raise SourceError(store, f"no store of MLflow begins with {scheme}:", _GIVE, code="unknown_scheme")
    path = Path(paths[scheme]).expanduser()
    if not path.exists():
        raise SourceError(str(path), "no MLflow database or mlruns folder here", _GIVE, code="no_mlflow_store")
    if path.is_dir() and not is_file_store(path):
        hint = next((f"give {each}" for each in sorted(path.iterdir()) if is_mlflow_source(str(each))), _GIVE)
        raise SourceError(str(path), "the folder holds no runs of MLflow", hint, code="no_runs")
    return Folder(path, store) if path.is_dir() else Database(path, store), run


class SelectedRun(NamedTuple):
    """A run of a store that is not read yet."""

    key: str
    locator: str
    fault: SourceError | None
    record: Callable[[ReadOptions], Tracked]

    def read(self, options: ReadOptions) -> Tracked:
        """Read the run."""
        if self.fault is not None:
            raise self.fault
        return self.record(options)


class Mlflow:
    """The reader of MLflow's stores."""

    kind: ClassVar[str] = "mlflow"
    title: ClassVar[str] = "MLflow"
    recognised_by: ClassVar[str] = "A database or file store of MLflow by its content, or a locator `mlflow:STORE`."
    sample: ClassVar[str] = ""

    def claims(self, source: str) -> bool:
        """Return whether a source is a locator or a store of MLflow."""
        return is_mlflow_source(source)

    def _open(self, source: str) -> tuple[Any, str | None]:
        return open_store(source)

    def _record(self, store: Any, selection: Selection, info: RunInfo, options: ReadOptions) -> Tracked:
        return record_run(store, info, selection, options)

    def keeps_files(self, folder: Path) -> bool:
        """Return whether a folder is that of the artifacts of one run."""
        return keeps_artifacts(folder)

    def refuse_folder(self, folder: Path) -> None:
        """Refuse the folder of artifacts that lies beside a database."""
        refuse_artifacts(folder, "mlflow:STORE")

    def runs(self, source: str, selection: Selection) -> SelectedRuns:
        """Return the runs of a store that are meant, and those left out."""
        store, named = self._open(source)
        found, skipped = select_runs(store, named, selection)
        begin, record = f"{self.kind}:{store.where}#", partial(self._record, store, selection)
        runs = [SelectedRun(info.key or info.id, begin + info.id, info.fault, partial(record, info)) for info in found]
        return SelectedRuns(runs=tuple(runs), skipped=tuple(skipped))

    def listed(self, source: str, selection: Selection) -> list[ListedRun]:
        """Return what a store holds, the newest first, then what is deleted where all are wanted."""
        runs = self._open(source)[0].runs(selection.experiment, selection.filter)
        deleted = [run for run in runs if run.deleted and selection.latest is None]
        return [_describe(run) for run in [*[run for run in runs if not run.deleted][: selection.latest], *deleted]]


def _describe(run: RunInfo) -> ListedRun:
    names = parse_names(run.hardware)
    gpus = len({(name.node, name.gpu) for name in names if name.gpu is not None})
    parts = {
        f"{gpus} GPU{'' if gpus == 1 else 's'}": gpus,
        "host": any(name.gpu is None for name in names),
        f"{len(run.hardware)} hardware series": run.hardware and not names,
        f"nested in {run.parent}": run.parent,
    }
    holds = ", ".join(part for part, held in parts.items() if held) or run.lacks or "no hardware series"
    return ListedRun(
        id=run.id,
        name=run.id if run.fault else run.name,
        status=run.status,
        started=None if run.started is None else run.started * 1000,
        holds="" if run.fault else holds,
        fault=run.fault,
        timezone=None if run.is_local else "UTC",
        is_deleted=run.deleted and run.fault is None,
    )


def select_runs(
    store: "LocalStore | Server", named: str | None, selection: Selection
) -> tuple[list[RunInfo], list[SkippedRun]]:
    """Return the runs that are meant, the earliest first, and those left out though nobody said so.

    Runs named one by one come in the order they are named, and leave out none. Where none is named, or many at once,
    those that cannot be read come last, however few are wanted.
    """
    wanted = (*(() if named is None else (named,)), *selection.runs)
    if wanted and not selection.children and all(re.fullmatch("[0-9a-f]{32}", name) for name in wanted):
        # whole ids, for which nobody needs to know all runs of the store
        direct = [run for name in dict.fromkeys(wanted) if (run := store.run(name)) is not None]
        if len(direct) == len({*wanted}):
            return _take_newest(direct, selection.latest), []
    runs = sort_by_start(
        store.runs(selection.experiment, selection.filter),
        start=lambda run: (run.started or 0) * 1000 or None,
        name=lambda run: run.name,
    )
    waiting = [run for name in wanted for run in _find_named(store.where, runs, name)]
    waiting = waiting or _find_finished(store.where, runs, selection)
    found: dict[str, RunInfo] = {}
    while waiting:
        run = waiting.pop(0)
        if run.id not in found and selection.children:
            waiting = [each for each in runs if each.parent == run.id and not each.deleted] + waiting
        found.setdefault(run.id, run)
    skipped = []
    for run in (each for each in runs if not (wanted or each.id in found or each.deleted)):
        reason = "nested in another" if run.parent in found else run.lacks or "without hardware series"
        reason = reason if run.finished else f"still {run.status}"
        skipped.append(SkippedRun(name=run.name or run.id, reason=reason, is_readable=not run.lacks))
    return _take_newest(list(found.values()), selection.latest), skipped


def _take_newest(runs: list[RunInfo], latest: int | None) -> list[RunInfo]:
    """Return the newest of the runs in their order, and those with a fault."""
    sound = sorted((run for run in runs if run.fault is None), key=lambda run: run.started or 0, reverse=True)
    newest = {run.id for run in sound[:latest]}
    return [run for run in runs if run.fault is not None or run.id in newest]


def _find_named(where: str, runs: Sequence[RunInfo], name: str) -> list[RunInfo]:
    """Return the run of an id, of the beginning of one, or of a name; all runs whose name fits one with `*`."""
    active = [run for run in runs if not run.deleted]
    found = [run for run in runs if run.id == name] or [run for run in active if run.name == name]
    if not found and "*" in name:
        # only `*` stands for anything
        pattern = name.replace("[", "[[]").replace("?", "[?]")
        if fitting := [run for run in active if fnmatchcase(run.name, pattern) or fnmatchcase(run.id, pattern)]:
            return fitting
    if not found and len(name) >= _SHORTEST:
        found = [run for run in runs if run.id.startswith(name)]
    if not found:
        raise SourceError(where, f"no run {name!r}", "--list shows the runs", code="unknown_run")
    if len(found) > 1:
        hint = f"name one by its id: {list_first([f'{run.id} ({run.name}, {run.status})' for run in found], _SHOWN)}"
        raise SourceError(where, f"{len(found)} runs are called {name!r}", hint, code="several_runs")
    if found[0].fault is not None:
        raise found[0].fault
    return found


def _find_finished(where: str, runs: Sequence[RunInfo], selection: Selection) -> list[RunInfo]:
    """Return the runs that have ended and hold hardware series, those nested in others left out, and the faulty.

    Monitoring that is switched on everywhere records the same hardware for a run and for each nested in it.
    """
    ended = [run for run in runs if not run.deleted and (run.finished or "status" in (selection.filter or ""))]
    found = [run for run in ended if run.hardware or run.fault is not None]
    if not runs:
        raise SourceError(where, "it holds no run", "name another store or experiment", code="no_finished_run")
    if not found:
        lacking = "; ".join(dict.fromkeys(run.lacks for run in runs if run.lacks))
        what = f"none of {len(runs)} runs has ended and holds hardware series{lacking and f': {lacking}'}"
        hint = f"--list shows the runs{'' if lacking else '; --run reads one whatever it holds'}"
        raise SourceError(where, what, hint, code="no_finished_run")
    ids = {run.id for run in found}
    return [run for run in found if run.parent not in ids]
