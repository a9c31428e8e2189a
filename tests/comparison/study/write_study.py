"""Write a study of eighteen runs with MLflow's own client: `write_study.py FOLDER`.

Two frameworks, three batches, three runs of each.
"""

import sys
from pathlib import Path

import numpy as np
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

START = 1_795_221_673_000
"""Milliseconds at which the first run began."""
FRAMEWORKS, BATCHES, REPETITIONS = ("torch", "jax"), (16, 32, 8), 3
SPEED = {"torch": 1.0, "jax": 1.3}
GAIN = {8: 1.0, 16: 1.24, 32: 1.55}
SECONDS, EVERY, START_UP = 660, 5, 30
"""Length of a run, and time between its points, in seconds; and how long it takes to start."""


def write_study(folder: Path) -> Path:
    """Write the store; return its database.

    The rate is 400 samples/s times SPEED times GAIN, with 2% between runs and 3% between points. The order of batches
    is not that of their sizes.
    """
    database = folder / "mlflow.db"
    client = MlflowClient(f"sqlite:///{database}")
    experiment = client.create_experiment("sweep", artifact_location=str(folder / "artifacts"))
    rng = np.random.default_rng(24)
    number = 0
    for repetition in range(REPETITIONS):
        for framework in FRAMEWORKS:
            for batch in BATCHES:
                _write_run(client, experiment, number, (framework, batch, repetition), rng)
                number += 1
    return database


def _write_run(
    client: MlflowClient,
    experiment: str,
    number: int,
    setting: tuple[str, int, int],
    rng: np.random.Generator,
) -> None:
    framework, batch, repetition = setting
    begun = START + number * 1_000_000
    run = client.create_run(experiment, start_time=begun, run_name=f"{framework}-{batch}-{repetition}")
    rate = 400 * SPEED[framework] * GAIN[batch] * np.exp(rng.normal(0, 0.02))
    busy = min(0.5 + 0.1 * np.log2(batch / 8) + (0.1 if framework == "jax" else 0), 0.95)
    metrics = []
    for step, second in enumerate(range(EVERY, SECONDS + 1, EVERY)):
        stamp, at_work = begun + second * 1000, second > START_UP
        values = {
            "system/gpu_0_utilization_percentage": round(100 * busy + rng.normal(0, 3)) if at_work else 0.0,
            "system/gpu_0_memory_usage_megabytes": 20_000.0 if at_work else 500.0,
            "system/gpu_0_memory_usage_percentage": 25.0 if at_work else 0.6,
            "system/gpu_0_power_usage_watts": 300.0 if at_work else 70.0,
            "system/cpu_utilization_percentage": 30.0,
        }
        if at_work:
            values["samples_per_second"] = float(rate * np.exp(rng.normal(0, 0.03)))
        metrics += [Metric(key, float(value), stamp, step) for key, value in values.items()]
    params = {"framework": framework, "batch_size": batch, "seed": repetition, "output_dir": f"out/{number}", "lr": 0.1}
    for place in range(0, len(metrics), 900):
        client.log_batch(run.info.run_id, metrics=metrics[place : place + 900])
    client.log_batch(
        run.info.run_id,
        params=[Param(key, str(value)) for key, value in params.items()],
        tags=[RunTag("team", "vision")],
    )
    client.set_terminated(run.info.run_id, end_time=begun + SECONDS * 1000)


if __name__ == "__main__":
    write_study(Path(sys.argv[1]))
