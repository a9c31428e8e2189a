"""Reports and figures put where people look: a folder, or runs of MLflow."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.mlflow.runs import PREFIX, is_mlflow_source, split_locator
from gpureport.importers.mlflow.stores import refuse_artifacts
from gpureport.places import Place, RemotePath
from gpureport.places.transfer import fetch
from gpureport.publishing import folder_copy, folder_targets


def prepare(
    files: Sequence[Place], targets: Sequence[str], *, skip_missing: bool = False, follow_artifact_uri: bool = False
) -> list[Callable[[], str]]:
    """Return what puts files somewhere, a call each, which returns in a line what it did.

    All that can be known before is checked here, for every target, so that nothing is put anywhere when one is wrong.

    Args:
        files: the files; for `mlflow:STORE` the JSON of a comparison, whose figures its runs get, and what is to be an
            artifact of each of them.
        targets: folders of this machine or of a bucket, `mlflow:STORE#RUN` or `mlflow:STORE`; the path of
            a database or a `mlruns` folder needs no `mlflow:`.
        skip_missing: whether runs of a comparison that the store lacks are left out.
        follow_artifact_uri: whether artifacts are put where a store of MLflow says that they lie, outside its own
            folder too.

    Raises:
        PlaceError: when a bucket cannot be reached, or refuses.
        SettingsError: when a target begins with a scheme that is not known.
        SourceError: when there is no such file, or it cannot be put there.
    """
    stores = [target for target in targets if _is_mlflow_target(target)]
    folders = {target: folder_targets.parse_folder(target) for target in targets if target not in stores}
    for folder in folders.values():
        if not isinstance(folder, RemotePath):
            refuse_artifacts(folder, "mlflow:STORE#RUN")
    copies = list(_fetch_files(files))
    folder_copy.check_copies(files, [folders[target] for target in targets if target in folders])
    actions: list[Callable[[], str]] = []
    for target in targets:
        if target in folders:
            actions += [partial(folder_copy.copy_to_folder, file, folders[target]) for file in copies]
            continue
        from gpureport.publishing import mlflow_runs  # noqa: PLC0415 - loads numpy and pyarrow

        actions += mlflow_runs.prepare_mlflow(
            copies, target, skip_missing=skip_missing, follow_artifact_uri=follow_artifact_uri
        )
    return actions


def _fetch_files(files: Sequence[Place]) -> Iterator[Path]:
    for file in files:
        copy = fetch(file) if isinstance(file, RemotePath) else file
        if not copy.is_file():
            raise SourceError(
                str(copy),
                "no such file",
                "write a report first: gpureport report RUN -o report.html",
                code="no_such_file",
            )
        yield copy


def publish(
    files: Sequence[Place], target: str, *, skip_missing: bool = False, follow_artifact_uri: bool = False
) -> list[str]:
    """Put files somewhere; return what was done, a line each. Arguments and errors as for `prepare`."""
    actions = prepare(files, [target], skip_missing=skip_missing, follow_artifact_uri=follow_artifact_uri)
    return [action() for action in actions]


__all__ = ["prepare", "publish"]


def _is_mlflow_target(target: str) -> bool:
    """Return whether a target is a store of MLflow or a run of it: by `mlflow:`, or as the path of one."""
    return target.startswith(PREFIX) or ("://" not in target and is_mlflow_source(split_locator(target)[0]))
