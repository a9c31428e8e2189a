"""Reports and figures put where people look: a folder, or runs of MLflow."""

from collections.abc import Sequence

from gpureport.errors import SourceError
from gpureport.places import Place, RemotePath, parse_place
from gpureport.places.fetching import fetch
from gpureport.publishing import folder_copy


def publish(files: Sequence[Place], target: str, *, skip_missing: bool = False) -> list[str]:
    """Put files somewhere; return what was done, a line each.

    Args:
        files: the files; for `mlflow:STORE` the JSON of a comparison, whose figures its runs get, and what is to be an
            artifact of each of them.
        target: a folder of this machine or of a bucket, `mlflow:STORE#RUN` or `mlflow:STORE`.
        skip_missing: whether runs of a comparison that the store lacks are left out.

    Raises:
        PlaceError: when a bucket cannot be reached, or refuses.
        SettingsError: when the target is a URL of an unknown scheme.
        SourceError: when there is no such file, or it cannot be put there.
    """
    copies = [fetch(file) if isinstance(file, RemotePath) else file for file in files]
    for file in copies:
        if not file.is_file():
            raise SourceError(str(file), "no such file", "write a report first: gpureport report RUN -o report.html")
    if target.startswith("mlflow:"):
        from gpureport.publishing import mlflow_runs  # noqa: PLC0415 - loads numpy and pyarrow

        return mlflow_runs.publish_to_mlflow(copies, target, skip_missing=skip_missing)
    if "#" in target:
        from gpureport.importers import names_run  # noqa: PLC0415 - as above

        if names_run(target):
            raise SourceError(target, "a run of a store, and no folder", f"give mlflow:{target} for a run of MLflow")
    folder = parse_place(target)
    return [folder_copy.copy_to_folder(file, folder) for file in copies]


__all__ = ["publish"]
