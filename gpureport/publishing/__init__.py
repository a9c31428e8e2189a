"""A finished report put where people look: a folder, or a run of MLflow."""

from pathlib import Path

from gpureport.errors import SourceError
from gpureport.publishing import folder_copy


def publish(file: Path, target: str) -> str:
    """Put a file somewhere; return where it is then.

    Args:
        file: the file.
        target: a folder, or `mlflow:STORE#RUN`.

    Raises:
        SourceError: when there is no such file, or it cannot be put there.
    """
    if not file.is_file():
        raise SourceError(str(file), "no such file", "write a report first: gpureport report RUN -o report.html")
    if target.startswith("mlflow:"):
        from gpureport.publishing import mlflow_artifacts  # noqa: PLC0415 - loads numpy and pyarrow

        return mlflow_artifacts.publish_to_mlflow(file, target)
    if "#" in target:
        from gpureport.importers import names_run  # noqa: PLC0415 - as above

        if names_run(target):
            raise SourceError(target, "a run of a store, and no folder", f"give mlflow:{target} for a run of MLflow")
    return folder_copy.copy_to_folder(file, Path(target))


__all__ = ["publish"]
