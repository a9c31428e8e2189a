"""A report as an artifact of a run of MLflow, sent to its server or copied beside its database."""

from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from gpureport.errors import SourceError
from gpureport.importers.mlflow.runs import ARTIFACT_FOLDER, PUBLISHED_PREFIX, Store
from gpureport.importers.mlflow.server import Server, SignedServer, call_client
from gpureport.importers.mlflow.stores import Database, Folder, folder_of_uri
from gpureport.importers.protocol.tracker import RunInfo
from gpureport.publishing import folder_copy

TAG = f"{PUBLISHED_PREFIX}report"
"""Tag that says where among its artifacts a run's report is."""
_SERVED = "mlflow-artifacts"


def prepare_artifact(store: Store, run: RunInfo, file: Path, *, follow_artifact_uri: bool = False) -> Callable[[], str]:
    """Return a call that puts a file among the artifacts of a run.

    It returns where the file is then, and where MLflow looks if that is elsewhere. A database and a file store stay as
    they are: the file is copied to where their artifacts lie. Whoever wrote the store chose that folder, so that one
    outside the store is written to only when a person says so.

    Args:
        store: the store.
        run: the run.
        file: the file.
        follow_artifact_uri: whether artifacts may be put outside the folder of the store.

    Raises:
        SourceError: when the file cannot be put there.
    """
    if isinstance(store, Server):
        return _prepare_upload(store, run, file, follow_artifact_uri=follow_artifact_uri)
    folder = _artifact_folder(store, run) / ARTIFACT_FOLDER
    if not follow_artifact_uri and not folder.resolve().is_relative_to(store.root):
        raise _build_outside_error(store.where, folder)
    return lambda: folder_copy.copy_to_folder(file, folder) + _explain_moved(run, folder.parent)


def _build_outside_error(where: str, folder: Path) -> SourceError:
    what = f"it keeps artifacts outside its own folder, in {folder.parent}"
    return SourceError(
        where, what, "add --follow-artifact-uri if you trust it to name that folder", code="foreign_artifacts"
    )


def _explain_moved(run: RunInfo, folder: Path) -> str:
    """Return where MLflow looks for the artifacts of a moved store; empty where it looks here."""
    stated = folder_of_uri(run.artifact_uri)
    if stated is None or stated.resolve() == folder.resolve():
        return ""
    return f"; MLflow looks in {stated}, which is not on this machine: copy it there"


def _artifact_folder(store: Database | Folder, run: RunInfo) -> Path:
    known = store.artifact_folder(run)
    if known is not None:
        return known
    folder = folder_of_uri(run.artifact_uri)
    # the store may have been moved here from a machine on which that folder was
    if folder is not None and any(parent.is_dir() and parent.name for parent in list(folder.parents)[:3]):
        return folder
    if isinstance(store, Database) and folder is None:
        if beside := folder_of_uri(run.artifact_uri, store.path.parent):
            return beside
        where = urlsplit(run.artifact_uri).scheme or "nowhere"
        raise SourceError(
            store.where,
            f"the artifacts of its runs lie in {where}",
            "give the URL of its server",
            code="foreign_artifacts",
        )
    return store.home(run) / "artifacts"


def _prepare_upload(store: Server, run: RunInfo, file: Path, *, follow_artifact_uri: bool) -> Callable[[], str]:
    parts = urlsplit(run.artifact_uri)
    if not isinstance(store, SignedServer):
        if parts.scheme == _SERVED:
            return partial(_send, store, run, file)
        here = folder_of_uri(run.artifact_uri)
        if here is not None and here.parent.is_dir():
            if not follow_artifact_uri:
                what = f"the server keeps artifacts in a folder of this machine, {here / ARTIFACT_FOLDER}"
                hint = "add --follow-artifact-uri if it runs on this machine and you trust it"
                raise SourceError(store.where, what, hint, code="foreign_artifacts")
            return partial(_copy_for_server, store, run, file, here / ARTIFACT_FOLDER)
    if not parts.scheme:
        what = f"the artifacts of its runs lie in a folder of the server, {run.artifact_uri}"
        hint = "give its database on that machine, or start it with --serve-artifacts"
        raise SourceError(store.where, what, hint, code="foreign_artifacts")
    # where artifacts lie in a bucket, MLflow's own client knows how to reach it
    return partial(_send_by_client, store, run, file)


def _send(store: Server, run: RunInfo, file: Path) -> str:
    inside = PurePosixPath(urlsplit(run.artifact_uri).path.lstrip("/")) / ARTIFACT_FOLDER / file.name
    path = f"/api/2.0/mlflow-artifacts/artifacts/{quote(str(inside))}"
    store.request("PUT", path, file.read_bytes())
    return _tag(store, run, file)


def _copy_for_server(store: Server, run: RunInfo, file: Path, folder: Path) -> str:
    folder_copy.copy_to_folder(file, folder)
    return _tag(store, run, file)


def _send_by_client(store: Server, run: RunInfo, file: Path) -> str:
    uri = store.uri if isinstance(store, SignedServer) else store.where
    call_client(uri, store.where, "log_artifact", run.id, str(file), ARTIFACT_FOLDER)
    return _tag(store, run, file)


def _tag(store: Server, run: RunInfo, file: Path) -> str:
    name = f"{ARTIFACT_FOLDER}/{file.name}"
    store.ask("runs/set-tag", {"run_id": run.id, "key": TAG, "value": name}, post=True)
    return f"{store.where}#{run.id}, {name}"
