"""Reports and figures put where people look: a folder, or runs of MLflow."""

from collections.abc import Sequence
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.publishing import folder_copy


def publish(files: Sequence[Path], target: str, *, skip_missing: bool = False) -> list[str]:
    """Put files somewhere; return what was done, a line each.

    Args:
        files: the files; for `mlflow:STORE` the JSON of a comparison, whose figures its runs get, and what is to be an
            artifact of each of them.
        target: a folder, `mlflow:STORE#RUN` or `mlflow:STORE`.
        skip_missing: whether runs of a comparison that the store lacks are left out.

    Raises:
        SourceError: when there is no such file, or it cannot be put there.
    """
    for file in files:
        if not file.is_file():
            raise SourceError(str(file), "no such file", "write a report first: gpureport report RUN -o report.html")
    if target.startswith("mlflow:"):
        from gpureport.publishing import mlflow_runs  # noqa: PLC0415 - loads numpy and pyarrow

        return mlflow_runs.publish_to_mlflow(files, target, skip_missing=skip_missing)
    if "#" in target:
        from gpureport.importers import names_run  # noqa: PLC0415 - as above

        if names_run(target):
            raise SourceError(target, "a run of a store, and no folder", f"give mlflow:{target} for a run of MLflow")
    return [folder_copy.copy_to_folder(file, Path(target)) for file in files]


__all__ = ["publish"]
