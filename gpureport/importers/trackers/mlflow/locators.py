"""What a person calls an MLflow store, and opening it."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.entities import RunStore
from gpureport.importers.trackers.mlflow.local import experiment_folders, sqlite_files
from gpureport.importers.trackers.mlflow.local.file_store import FileStore
from gpureport.importers.trackers.mlflow.local.sqlite import SqliteStore

PREFIX = "mlflow:"
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):|^(databricks)$")
_SERVERS = {"postgresql", "postgres", "mysql", "mssql", "oracle"}
_SHOWN = 3


def claims(source: str) -> bool:
    """Return whether a source is a locator of MLflow, or a file or folder that is a store of it."""
    if source.startswith(PREFIX):
        return True
    try:
        path = Path(source)
        return experiment_folders.is_store(path) if path.is_dir() else path.is_file() and sqlite_files.holds_runs(path)
    except OSError:
        return False


def split(source: str) -> tuple[str, str | None]:
    """Return the store and the run that a locator names, the run None where it names none."""
    store = source.removeprefix(PREFIX)
    if "#" not in store or _exists(store):
        return store, None
    store, _, run = store.rpartition("#")
    return store, run or None


def opened(source: str) -> tuple[RunStore, str | None]:
    """Return the store that a locator names, and the run in it if it names one.

    Raises:
        SourceError: when there is no such store, or it is of a kind that cannot be read.
    """
    named, run = split(source)
    store = named or _default()
    match = _SCHEME.match(store)
    if match is None or _exists(store):
        return _local(Path(store).expanduser(), store), run
    return _of_scheme((match[1] or match[2]).lower(), store), run


def _exists(store: str) -> bool:
    try:
        return Path(store).exists()
    except OSError:
        return False


def _default() -> str:
    """Return the store MLflow itself would take in this folder."""
    if uri := os.environ.get("MLFLOW_TRACKING_URI"):
        return uri
    return next((name for name in ("mlflow.db", "mlruns") if Path(name).exists()), "mlflow.db")


def _of_scheme(scheme: str, store: str) -> RunStore:
    dialect = scheme.partition("+")[0]
    if dialect in _SERVERS:
        what = "a database server is not read directly: opening it could change its schema"
        raise SourceError(
            without_password(store), what, "run `mlflow server --backend-store-uri ...`, give its http URL"
        )
    if scheme == "sqlite":
        # three slashes before a relative path, four before one from the root
        path = unquote(store.partition(":")[2].removeprefix("///"))
        return _local(Path(path), store)
    if scheme == "file":
        return _local(Path(unquote(urlsplit(store).path)), store)
    if scheme in {"http", "https"}:
        from gpureport.importers.trackers.mlflow.server.rest import server  # noqa: PLC0415 - loads http and ssl

        return server(store)
    if scheme in {"databricks", "databricks-uc", "uc"}:
        from gpureport.importers.trackers.mlflow.server.client import ClientStore  # noqa: PLC0415 - only here

        return ClientStore(store, store)
    raise SourceError(
        store, f"no store of MLflow begins with {scheme}:", "give a database, a mlruns folder or an http URL"
    )


def without_password(url: str) -> str:
    """Return a URL without the name and password in it."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def _local(path: Path, where: str) -> RunStore:
    if path.is_dir():
        return _folder(path, where)
    if not path.exists():
        raise SourceError(str(path), "no MLflow database or mlruns folder here", _nearest(path))
    if not sqlite_files.is_database(path):
        raise SourceError(str(path), "not an MLflow database", "give mlflow.db, a mlruns folder or an http URL")
    return SqliteStore(path, where)


def _folder(path: Path, where: str) -> RunStore:
    if experiment_folders.is_store(path):
        return FileStore(path, where)
    raise SourceError(str(path), "the folder holds no runs of MLflow", _nearest(path / "mlflow.db"))


def _nearest(path: Path) -> str:
    """Return which stores lie where one was looked for."""
    folder = next((each for each in path.parents if each.is_dir()), Path())
    try:
        found = [each for each in sorted(folder.iterdir()) if _is_store(each)]
    except OSError:
        found = []
    named = ", ".join(str(each) for each in found[:_SHOWN])
    return f"did you mean {named}?" if named else "give mlflow.db, a mlruns folder or an http URL"


def _is_store(path: Path) -> bool:
    return experiment_folders.is_store(path) if path.is_dir() else sqlite_files.holds_runs(path)
