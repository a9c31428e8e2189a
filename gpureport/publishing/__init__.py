"""Publishes reports and figures to a local folder or a bucket, or to runs in MLflow."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from gpureport.errors import RenderError, SettingsError, SourceError
from gpureport.importers.mlflow.runs import MLFLOW, PREFIX, is_store_scheme, refuse_database_server
from gpureport.importers.mlflow.stores import refuse_artifacts
from gpureport.importers.protocol import split_locator
from gpureport.importers.sources import names_run
from gpureport.places import Place, RemotePath, fetch, parse_place
from gpureport.places.written_paths import ReadPath, WrittenPath, refuse_taken_paths
from gpureport.store import atomic_writes

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def prepare(
    files: Sequence[Place], targets: Sequence[str], *, skip_missing: bool = False, follow_artifact_uri: bool = False
) -> list[Callable[[], str]]:
    """Return functions that each publish something and return a line about the result.

    All checks run before the first upload. For `mlflow:STORE`, one file must be a comparison as JSON.
    """

    def is_of_mlflow(target: str) -> bool:
        return target.startswith(PREFIX) or ("://" not in target and MLFLOW.claims(split_locator(target, PREFIX)[0]))

    places = {target: _parse_folder(target) for target in targets if not is_of_mlflow(target)}
    for folder in places.values():
        if not isinstance(folder, RemotePath):
            refuse_artifacts(folder, "mlflow:STORE#RUN")
    copies = [fetch(file) for file in files]
    if missing := next((copy for copy in copies if not copy.is_file()), None):
        hint = "write a report first: gpureport report RUN -o report.html"
        raise SourceError(str(missing), "no such file", hint, code="no_such_file")
    pairs = [(file, folder / file.name) for folder in places.values() for file in files]
    for file, copy in pairs:
        if isinstance(file, Path) and isinstance(copy, Path) and copy.exists() and copy.samefile(file):
            raise SourceError(str(file), "it already exists", "choose another folder", code="file_taken")
    try:
        read = [ReadPath(place=each, name="published") for each in files]
        refuse_taken_paths([WrittenPath(place=copy) for _, copy in pairs], read)
    except RenderError as error:
        raise SourceError(error.where, error.what, error.hint, code=error.code) from error
    puts: list[Callable[[], str]] = []
    for target in targets:
        if target in places:
            puts += [partial(copy_to_folder, file, places[target]) for file in copies]
            continue
        from gpureport.publishing.mlflow_runs import prepare_mlflow

        puts += prepare_mlflow(copies, target, skip_missing=skip_missing, follow_uri=follow_artifact_uri)
    return puts


def _parse_folder(target: str) -> Place:
    match = _SCHEME.match(target)
    scheme = match[1].lower() if match else ""
    if scheme in {"neptune", "trackio", "accounting"} or names_run(target):
        what = "nothing can be published to Neptune, Trackio or a table"
        raise SourceError(target, what, "give a folder, or mlflow:STORE#RUN", code="read_only_store")
    refuse_database_server(scheme, target)
    if match is None or (not is_store_scheme(scheme) and target[match.end() :].startswith("//")):
        return parse_place(target)
    what = f"{match[0]} is not a known type of target"
    hint = f"write ./{target} for a folder with that name, or give a folder, s3://BUCKET/FOLDER or mlflow:STORE#RUN"
    if is_store_scheme(scheme):
        what, hint = f"{scheme}: does not name a folder", f"write mlflow:{target} for an MLflow store"
    raise SettingsError(target, what, hint, code="not_a_publish_target")


def copy_to_folder(file: Path, folder: Place) -> str:
    target = folder / file.name
    try:
        atomic_writes.replace_file(target, file.read_bytes(), folder)
        if isinstance(target, Path):
            target.chmod(0o644)
    except OSError as error:
        raise refuse_writing(error, folder) from error
    return str(target)


def refuse_writing(error: OSError, folder: Place) -> SourceError:
    what, hint = error.strerror or "cannot be written", "check permissions and space"
    return SourceError(str(folder), what, hint, code="cannot_write")
