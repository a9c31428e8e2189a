"""Which targets are stores of MLflow, with `mlflow:` before them or without."""

from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.local import experiment_folders
from gpureport.importers.trackers.mlflow.locators import PREFIX, is_mlflow_source, split_locator


def is_mlflow_target(target: str) -> bool:
    """Return whether a target is a store of MLflow or a run of it: by `mlflow:`, or as the path of one."""
    return target.startswith(PREFIX) or ("://" not in target and is_mlflow_source(split_locator(target)[0]))


def refuse_artifact_folder(folder: Path) -> None:
    """Refuse the folder in which MLflow keeps the artifacts of runs that a database lists.

    Raises:
        SourceError: when a folder in it is that of a run.
    """
    if experiment_folders.holds_artifacts(folder):
        what = "MLflow keeps the artifacts of its runs in it"
        raise SourceError(str(folder), what, "give the database or the server of these runs, mlflow:STORE#RUN")
