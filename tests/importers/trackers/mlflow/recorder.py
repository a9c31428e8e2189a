"""Records runs with MLflow itself; run as a script, since MLflow takes seconds to import and warns while it does.

Usage: recorder.py URI SECONDS

Runs: `long` with one metric of 60 000 points; `odd` with what is no number and points out of order; `nested` in `long`;
then, all at the same time, `every second`, `every five seconds`, and `mean of four`, with MLflow's own system metrics.
"""

import math
import sys
import time
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric
from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

_BATCH = 1_000
_Monitor: Any = SystemMetricsMonitor


def main() -> None:
    uri, seconds = sys.argv[1], float(sys.argv[2])
    client = MlflowClient(uri)
    experiment = client.create_experiment("recorded", artifact_location="mlflow-artifacts:/recorded")
    # before the monitors run, which would wait for it
    _others(client, experiment)
    monitors: list[tuple[str, Any]] = []
    for name, interval, samples in (("every second", 1, 1), ("every five seconds", 5, 1), ("mean of four", 1, 4)):
        run = client.create_run(experiment, run_name=name, tags={"kind": "monitored"})
        client.log_param(run.info.run_id, "interval", interval)
        monitor: Any = _Monitor(run.info.run_id, interval, samples, tracking_uri=uri)
        monitor.start()
        monitors.append((run.info.run_id, monitor))
    time.sleep(seconds)
    for run_id, monitor in monitors:
        monitor.finish()
        client.set_terminated(run_id)


def _others(client: MlflowClient, experiment: str) -> None:
    now = int(time.time() * 1000)
    long = client.create_run(experiment, run_name="long").info.run_id
    points = [Metric("system/gpu_0_utilization_percentage", step % 101, now + step, step) for step in range(60_000)]
    for start in range(0, len(points), _BATCH):
        client.log_batch(long, metrics=points[start : start + _BATCH])
    client.set_terminated(long)
    nested = client.create_run(experiment, run_name="nested", tags={"mlflow.parentRunId": long}).info.run_id
    client.log_metric(nested, "val/loss", 0.5)
    client.set_terminated(nested, "FAILED")
    odd = client.create_run(experiment, run_name="odd").info.run_id
    values = [(1.0, 0, 0), (math.nan, 1000, 1), (math.inf, 2000, 2), (-math.inf, 3000, 3), (0.9, 500, 2), (0.4, 500, 2)]
    client.log_batch(odd, metrics=[Metric("loss", value, now + late, step) for value, late, step in values])
    client.set_terminated(odd)
    client.delete_run(odd)


main()
