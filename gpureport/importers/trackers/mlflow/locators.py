"""Locators of MLflow stores, and opening the store that one names."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.local import experiment_folders, mlflow_database
from gpureport.importers.trackers.mlflow.local.file_store import FileStore
from gpureport.importers.trackers.mlflow.local.sqlite_store import SqliteStore
from gpureport.importers.trackers.mlflow.run_store import RunStore
from gpureport.importers.trackers.read_only_sqlite import is_database
from gpureport.regular_files import path_exists

PREFIX = "mlflow:"
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):|^(databricks)$")
_DATABASE_SERVERS = {"postgresql", "postgres", "mysql", "mssql", "oracle"}
_WEB = {"http", "https"}
_DATABRICKS = {"databricks", "databricks-uc", "uc"}
_STORES = {"sqlite", *_DATABASE_SERVERS, *_WEB, *_DATABRICKS}
"""Schemes of stores of MLflow, which are URLs of nothing else that takes a file; `file:` may name any folder."""
_SHOWN = 3


def is_mlflow_source(source: str) -> bool:
    """Return whether a source is a locator of MLflow, or a file or folder that is an MLflow store."""
    if source.startswith(PREFIX):
        return True
    try:
        path = Path(source)
        return (
            experiment_folders.is_file_store(path)
            if path.is_dir()
            else path.is_file() and mlflow_database.holds_runs(path)
        )
    except OSError:
        return False


def split_locator(source: str) -> tuple[str, str | None]:
    """Return the store and the run that a locator names; the run is None if it names none."""
    store = source.removeprefix(PREFIX)
    if "#" not in store or path_exists(store):
        return store, None
    store, _, run = store.rpartition("#")
    return store, run or None


def open_store(source: str) -> tuple[RunStore, str | None]:
    """Open the store that a locator names; return it with the named run, if any.

    Raises:
        SourceError: when there is no such store, or it is of a kind that cannot be read.
    """
    named, run = split_locator(source)
    store = named or _default_store()
    match = _SCHEME.match(store)
    if match is None or path_exists(store):
        return _open_path(Path(store).expanduser(), store), run
    return _open_uri((match[1] or match[2]).lower(), store), run


def is_store_scheme(scheme: str) -> bool:
    """Return whether URLs of a scheme name stores of MLflow alone, whatever driver a `+` names."""
    return _name_dialect(scheme) in _STORES


def refuse_database_server(scheme: str, store: str) -> None:
    """Refuse a store that is a database server, by the scheme of its URL.

    Raises:
        SourceError: when it is one.
    """
    if _name_dialect(scheme) in _DATABASE_SERVERS:
        what = "a database server is not opened directly: that could change its schema"
        raise SourceError(
            without_password(store),
            what,
            "run `mlflow server --backend-store-uri ...`, give its http URL",
            code="database_server",
        )


def _name_dialect(scheme: str) -> str:
    return scheme.partition("+")[0]


def _default_store() -> str:
    """Return the store that MLflow itself would use in this folder."""
    if uri := os.environ.get("MLFLOW_TRACKING_URI"):
        return uri
    return next((name for name in ("mlflow.db", "mlruns") if Path(name).exists()), "mlflow.db")


def _open_uri(scheme: str, store: str) -> RunStore:
    refuse_database_server(scheme, store)
    if scheme == "sqlite":
        # three slashes before a relative path, four before one from the root
        path = unquote(store.partition(":")[2].removeprefix("///"))
        return _open_path(Path(path), store)
    if scheme == "file":
        return _open_path(Path(unquote(urlsplit(store).path)), store)
    if scheme in _WEB:
        from gpureport.importers.trackers.mlflow.server.rest_store import open_server  # noqa: PLC0415 - loads http and ssl

        return open_server(store)
    if scheme in _DATABRICKS:
        from gpureport.importers.trackers.mlflow.server.client_store import ClientStore  # noqa: PLC0415 - only here

        return ClientStore(store, store)
    raise SourceError(
        store,
        f"no store of MLflow begins with {scheme}:",
        "give a database, a mlruns folder or an http URL",
        code="unknown_scheme",
    )


def without_password(url: str) -> str:
    """Return a URL without the name and password in it."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def _open_path(path: Path, where: str) -> RunStore:
    if path.is_dir():
        return _open_folder(path, where)
    if not path.exists():
        raise SourceError(
            str(path), "no MLflow database or mlruns folder here", _suggest_stores(path), code="no_mlflow_store"
        )
    if not is_database(path):
        raise SourceError(
            str(path),
            "not an MLflow database",
            "give mlflow.db, a mlruns folder or an http URL",
            code="not_an_mlflow_database",
        )
    return SqliteStore(path, where)


def _open_folder(path: Path, where: str) -> RunStore:
    if experiment_folders.is_file_store(path):
        return FileStore(path, where)
    raise SourceError(
        str(path), "the folder holds no runs of MLflow", _suggest_stores(path / "mlflow.db"), code="no_runs"
    )


def _suggest_stores(path: Path) -> str:
    folder = next((each for each in path.parents if each.is_dir()), Path())
    try:
        found = [each for each in sorted(folder.iterdir()) if _is_store(each)]
    except OSError:
        found = []
    named = ", ".join(str(each) for each in found[:_SHOWN])
    return f"did you mean {named}?" if named else "give mlflow.db, a mlruns folder or an http URL"


def _is_store(path: Path) -> bool:
    return experiment_folders.is_file_store(path) if path.is_dir() else mlflow_database.holds_runs(path)
