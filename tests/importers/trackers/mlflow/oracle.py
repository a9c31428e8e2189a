"""Prints what MLflow's own client says of every run of a store, as JSON; run as a script on a copy.

Usage: oracle.py URI
"""

import json
import sys

from mlflow import MlflowClient
from mlflow.entities import ViewType


def main() -> None:
    client = MlflowClient(sys.argv[1])
    experiments = [each.experiment_id for each in client.search_experiments(view_type=ViewType.ALL)]
    runs = client.search_runs(experiments, run_view_type=ViewType.ALL, max_results=50_000)
    found = {}
    for run in runs:
        keys = sorted(run.data.metrics)
        found[run.info.run_id] = {
            "name": run.info.run_name,
            "status": run.info.status,
            "start": run.info.start_time,
            "end": run.info.end_time,
            "deleted": run.info.lifecycle_stage == "deleted",
            "params": sorted(run.data.params.items()),
            "tags": sorted(run.data.tags.items()),
            "metrics": {
                key: sorted(
                    (each.timestamp, each.step, repr(each.value))
                    for each in client.get_metric_history(run.info.run_id, key)
                )
                for key in keys
            },
        }
    json.dump(found, sys.stdout)


main()
