"""Which targets are stores of MLflow, with `mlflow:` before them or without."""

from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.local.experiment_folders import RUN_ID
from gpureport.importers.trackers.mlflow.locators import PREFIX, is_mlflow_source, split_locator


def is_mlflow_target(target: str) -> bool:
    """Return whether a target is a store of MLflow or a run of it: by `mlflow:`, or as the path of one."""
    return target.startswith(PREFIX) or ("://" not in target and is_mlflow_source(split_locator(target)[0]))


def refuse_artifact_folder(folder: Path) -> None:
    """Refuse the folder in which MLflow keeps the artifacts of runs that a database lists.

    Raises:
        SourceError: when a folder in it is that of a run.
    """
    try:
        runs = (run for each in folder.iterdir() if each.name.isdigit() and each.is_dir() for run in each.iterdir())
        found = any(RUN_ID.fullmatch(run.name) and (run / "artifacts").is_dir() for run in runs)
    except OSError:
        # not there, or of nobody's concern until it is written to
        return
    if found:
        what = "MLflow keeps the artifacts of its runs in it"
        raise SourceError(str(folder), what, "give the database or the server of these runs, mlflow:STORE#RUN")
