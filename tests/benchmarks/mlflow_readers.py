"""Reads the runs of an MLflow store in one way, and prints how many points and seconds it took without the imports.

Usage: `python -m tests.benchmarks.mlflow_readers WAY URI`, where WAY is `gpureport`, `client` or `floor`.
"""

import sqlite3
import sys
import time
from collections.abc import Callable


def gpureport(uri: str) -> Callable[[], int]:
    """Return what reads as gpureport does."""
    from gpureport.importers.trackers.mlflow.locators import open_store  # noqa: PLC0415 - each way imports its own

    def read() -> int:
        store, _ = open_store(f"mlflow:{uri}")
        return sum(len(series) for run in store.runs() for series in store.series(run))

    return read


def client(uri: str) -> Callable[[], int]:
    """Return what reads as MLflow's own client does, one metric after the other."""
    from mlflow import MlflowClient  # noqa: PLC0415 - as above

    own = MlflowClient(uri)
    experiments = [each.experiment_id for each in own.search_experiments()]

    def read() -> int:
        runs = own.search_runs(experiments, max_results=50_000)
        return sum(len(own.get_metric_history(run.info.run_id, key)) for run in runs for key in run.data.metrics)

    return read


def floor(uri: str) -> Callable[[], int]:
    """Return what reads the numbers of a database and nothing else."""
    import numpy as np  # noqa: PLC0415 - as above

    def read() -> int:
        connection = sqlite3.connect(f"file:{uri.removeprefix('sqlite:///')}?mode=ro", uri=True)
        rows = connection.execute("select timestamp, value, is_nan, step from metrics")
        return len(np.fromiter(rows, dtype="i8,f8,i1,i8"))

    return read


if __name__ == "__main__":
    way = {"gpureport": gpureport, "client": client, "floor": floor}[sys.argv[1]](sys.argv[2])
    begun = time.perf_counter()
    points = way()
    sys.stdout.write(f"{points} {time.perf_counter() - begun}\n")
