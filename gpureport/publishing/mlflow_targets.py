"""Which targets are stores of MLflow, with `mlflow:` before them or without."""

from gpureport.importers.mlflow.selection import PREFIX, is_mlflow_source, split_locator


def is_mlflow_target(target: str) -> bool:
    """Return whether a target is a store of MLflow or a run of it: by `mlflow:`, or as the path of one."""
    return target.startswith(PREFIX) or ("://" not in target and is_mlflow_source(split_locator(target)[0]))
