"""Stores of MLflow: what is one, which one a locator means, and the reader of their runs."""

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from gpureport.errors import SourceError
from gpureport.importers.mlflow.folder import Folder, is_file_store, keeps_artifacts, refuse_artifacts
from gpureport.importers.mlflow.recording import record_run
from gpureport.importers.mlflow.stores import Database, holds_tables
from gpureport.importers.protocol import tracker
from gpureport.importers.protocol.tracker import Tracker
from gpureport.regular_files import path_exists

if TYPE_CHECKING:
    from gpureport.importers.mlflow.server import Server

Store: TypeAlias = "Database | Folder | Server"
PREFIX = "mlflow:"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):|(databricks)$")
_DATABASE_SERVERS = {"postgresql", "postgres", "mysql", "mssql", "oracle"}
_SERVERS = {"http", "https", "databricks", "databricks-uc", "uc"}
_GIVE = "give mlflow.db, a mlruns folder or an http URL"


def is_mlflow_source(source: str) -> bool:
    """Return whether a source is a locator of MLflow, or a file or folder with its store."""
    path = Path(source)
    try:
        of_path = is_file_store(path) if path.is_dir() else path.is_file() and holds_tables(path)
    except OSError:
        of_path = False
    return source.startswith(PREFIX) or of_path


def split_locator(source: str) -> tuple[str, str | None]:
    """Return the store and the run (or None) that a locator names."""
    return tracker.split_locator(source, PREFIX)


def is_store_scheme(scheme: str) -> bool:
    """Return whether URLs of a scheme name only MLflow stores; `file:` may name any folder."""
    return scheme.partition("+")[0] in {"sqlite", *_DATABASE_SERVERS, *_SERVERS}


def refuse_database_server(scheme: str, store: str) -> None:
    """Refuse a database server as a store, by its URL's scheme, with or without a driver after `+`."""
    if scheme.partition("+")[0] in _DATABASE_SERVERS:
        what = "a database server is not opened directly: that could change its schema"
        hint = "run `mlflow server --backend-store-uri ...`, give its http URL"
        raise SourceError(re.sub(r"(?<=://)[^/@]*@", "", store), what, hint, code="database_server")


def open_store(source: str) -> tuple[Store, str | None]:
    """Open a locator's store, or the one MLflow would use here; return it and the named run."""
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
    # three slashes before a relative path of sqlite, four before an absolute one
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


MLFLOW = Tracker(
    kind="mlflow",
    title="MLflow",
    recognised_by="A database or file store of MLflow by its content, or a locator `mlflow:STORE`.",
    claims=is_mlflow_source,
    open=lambda source, _: open_store(source),
    record=record_run,
    keeps_files=keeps_artifacts,
    refuse_folder=partial(refuse_artifacts, wanted="mlflow:STORE"),
)
