"""Reports and figures put where people look: a folder, or runs of MLflow."""

from collections.abc import Sequence

from gpureport.errors import SourceError
from gpureport.places import Place, RemotePath, parse_place
from gpureport.places.fetching import fetch
from gpureport.publishing import folder_copy, mlflow_targets


def check_folders(files: Sequence[Place], targets: Sequence[str]) -> None:
    """Refuse folders that files cannot be put into, before the first is put anywhere.

    Args:
        files: the files.
        targets: as `publish` takes them; runs and stores of MLflow are not looked at.

    Raises:
        SettingsError: when a target is a URL of an unknown scheme.
        SourceError: when a file is there already, another one would be lost, or a folder belongs to somebody else.
    """
    folders = [parse_place(target) for target in targets if not mlflow_targets.is_mlflow_target(target)]
    for folder in folders:
        if not isinstance(folder, RemotePath):
            mlflow_targets.refuse_artifact_folder(folder)
    folder_copy.check_copies(files, folders)


def publish(
    files: Sequence[Place], target: str, *, skip_missing: bool = False, follow_artifact_uri: bool = False
) -> list[str]:
    """Put files somewhere; return what was done, a line each.

    Args:
        files: the files; for `mlflow:STORE` the JSON of a comparison, whose figures its runs get, and what is to be an
            artifact of each of them.
        target: a folder of this machine or of a bucket, `mlflow:STORE#RUN` or `mlflow:STORE`; the path of
            a database or a `mlruns` folder needs no `mlflow:`.
        skip_missing: whether runs of a comparison that the store lacks are left out.
        follow_artifact_uri: whether artifacts are put where a store of MLflow says that they lie, outside its own
            folder too.

    Raises:
        PlaceError: when a bucket cannot be reached, or refuses.
        SettingsError: when the target is a URL of an unknown scheme.
        SourceError: when there is no such file, or it cannot be put there.
    """
    copies = [fetch(file) if isinstance(file, RemotePath) else file for file in files]
    for file in copies:
        if not file.is_file():
            raise SourceError(str(file), "no such file", "write a report first: gpureport report RUN -o report.html")
    if mlflow_targets.is_mlflow_target(target):
        from gpureport.publishing import mlflow_runs  # noqa: PLC0415 - loads numpy and pyarrow

        return mlflow_runs.publish_to_mlflow(
            copies, target, skip_missing=skip_missing, follow_artifact_uri=follow_artifact_uri
        )
    if "#" in target:
        from gpureport.importers import names_run  # noqa: PLC0415 - as above

        if names_run(target):
            raise SourceError(target, "a run of Neptune, which takes no reports", "give a folder, or mlflow:STORE#RUN")
    check_folders(files, [target])
    folder = parse_place(target)
    return [folder_copy.copy_to_folder(file, folder) for file in copies]


__all__ = ["check_folders", "publish"]
