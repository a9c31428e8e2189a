"""Files put on one run of MLflow as artifacts, or a comparison put on each of its runs."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from gpureport.errors import SourceError
from gpureport.importers.mlflow.runs import ARTIFACT_FOLDER, PUBLISHED_PREFIX, Store, open_store
from gpureport.importers.mlflow.server import Server, SignedServer, call_client
from gpureport.importers.mlflow.stores import Database, Folder, folder_of_uri
from gpureport.importers.protocol.tracker import RunInfo, Selection, select_runs
from gpureport.publishing.folders import copy_to_folder
from gpureport.publishing.mlflow_figures import KIND, prepare_figures
from gpureport.publishing.published_figures import is_comparison, read_run_figures
from gpureport.redaction import redact_text
from gpureport.report.wording import display

TAG = f"{PUBLISHED_PREFIX}report"
"""Tag that says where among its artifacts a run's report is."""
_SERVED = "mlflow-artifacts"
_NAMED = 5
"""Most runs of a comparison that are named."""


def prepare_mlflow(
    files: Sequence[Path], target: str, *, skip_missing: bool, follow_artifact_uri: bool = False
) -> list[Callable[[], str]]:
    """Return what puts files among the artifacts of the run of a target, or a comparison on each of its runs.

    Arguments as for `prepare`; the target is `mlflow:STORE#RUN`, or `mlflow:STORE` for a comparison.

    Raises:
        SourceError: when there is no such store or run, or it cannot be written to.
    """
    store, named = open_store(target)
    if named is None:
        return _prepare_comparison(
            store, files, target, skip_missing=skip_missing, follow_artifact_uri=follow_artifact_uri
        )
    (run,), _ = select_runs(store, named, Selection())
    puts = [_prepare_artifact(store, run, file, follow_artifact_uri=follow_artifact_uri) for file in files]
    return [partial(_put, put, file, target) for put, file in zip(puts, files, strict=True)]


def _put(put: Callable[[], str], file: Path, target: str) -> str:
    return put() + _explain_unwritten(file, target)


def _explain_unwritten(file: Path, target: str) -> str:
    """Return that figures of a comparison are not written to its run, and what would; else nothing."""
    if not is_comparison(file):
        return ""
    try:
        runs = [run.name for run in read_run_figures(file) if run.tracker_id(KIND) is not None]
    except SourceError as error:
        return f"; no figures were written: {error.what}"
    if not runs:
        return "; no figures were written: none of its runs was read from MLflow"
    whose = display.join_words(runs) if len(runs) <= _NAMED else f"its {len(runs)} runs"
    return f"; no figures were written: --to {redact_text(target.partition('#')[0])} writes them to {whose}"


def _prepare_comparison(
    store: Store, files: Sequence[Path], target: str, *, skip_missing: bool, follow_artifact_uri: bool
) -> list[Callable[[], str]]:
    comparisons = [file for file in files if is_comparison(file)]
    if len(comparisons) != 1:
        what = "it names no run" if not comparisons else "two comparisons, of which a run gets one"
        hint = "give mlflow:STORE#RUN, or the JSON of one comparison: gpureport compare BASE NEXT --format json"
        raise SourceError(target, what, hint, code="unknown_run")
    runs, write_figures = prepare_figures(store, comparisons[0], skip_missing=skip_missing)
    artifacts = [
        _prepare_artifact(store, run, file, follow_artifact_uri=follow_artifact_uri)
        for run in runs
        for file in files
        if file not in comparisons
    ]
    named = ", ".join(run.name or run.id for run in runs)
    return [lambda: f"figures of {named} to {store.where}: {write_figures()} of {len(runs)} runs changed", *artifacts]


# --- artifacts


def _prepare_artifact(
    store: Store, run: RunInfo, file: Path, *, follow_artifact_uri: bool = False
) -> Callable[[], str]:
    """Return a call that puts a file among the artifacts of a run.

    It returns where the file is then, and where MLflow looks if that is elsewhere. A database and a file store stay as
    they are: the file is copied to where their artifacts lie. Whoever wrote the store chose that folder, so that one
    outside the store is written to only when a person says so.
    """
    if isinstance(store, Server):
        return _prepare_upload(store, run, file, follow_artifact_uri=follow_artifact_uri)
    folder = _artifact_folder(store, run) / ARTIFACT_FOLDER
    if not follow_artifact_uri and not folder.resolve().is_relative_to(store.root):
        what = f"it keeps artifacts outside its own folder, in {folder.parent}"
        how = "add --follow-artifact-uri if you trust it to name that folder"
        raise SourceError(store.where, what, how, code="foreign_artifacts")
    return lambda: copy_to_folder(file, folder) + _explain_moved(run, folder.parent)


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
        what = f"the artifacts of its runs lie in {urlsplit(run.artifact_uri).scheme or 'nowhere'}"
        raise SourceError(store.where, what, "give the URL of its server", code="foreign_artifacts")
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
            return lambda: _tag(store, run, file) if copy_to_folder(file, here / ARTIFACT_FOLDER) else ""
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


def _send_by_client(store: Server, run: RunInfo, file: Path) -> str:
    uri = store.uri if isinstance(store, SignedServer) else store.where
    call_client(uri, store.where, "log_artifact", run.id, str(file), ARTIFACT_FOLDER)
    return _tag(store, run, file)


def _tag(store: Server, run: RunInfo, file: Path) -> str:
    name = f"{ARTIFACT_FOLDER}/{file.name}"
    store.ask("runs/set-tag", {"run_id": run.id, "key": TAG, "value": name}, post=True)
    return f"{store.where}#{run.id}, {name}"
