"""Stores that MLflow itself made and serves."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from tests.importers.trackers.mlflow.servers import free_port
from tests.importers.trackers.tracked import codes, recording

_HERE = Path(__file__).parent
_STAND_IN = _HERE.parents[2] / "native" / "nvml_stand_in.c"
_LARGEST = 1.7976931348623157e308
_PATIENCE = 120


def environment(**more: str) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    own = {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    return known | own | more


def nvml(folder: Path) -> Path:
    target = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(target), str(_STAND_IN)], check=True)  # noqa: S607 - the system's compiler
    return folder


def recorded(uri: str, libraries: Path, seconds: float) -> None:
    command = [sys.executable, str(_HERE / "recorder.py"), uri, str(seconds)]
    subprocess.run(command, check=True, env=environment(LD_LIBRARY_PATH=str(libraries)), capture_output=True)


def oracle(uri: str) -> dict[str, Any]:
    command = [sys.executable, str(_HERE / "oracle.py"), uri]
    done = subprocess.run(command, check=True, env=environment(), capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def served(database: Path, artifacts: Path) -> Iterator[str]:
    port = free_port()
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "2",
        "--backend-store-uri", f"sqlite:///{database}", "--artifacts-destination", str(artifacts),
    ]  # fmt: skip
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        url = f"http://127.0.0.1:{port}"
        try:
            _await(url)
            yield url
        finally:
            server.terminate()
            server.wait(30)


def _await(url: str) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < _PATIENCE:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310 - an address from above
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.3)
    raise TimeoutError(url)


def contents(source: str, known: dict[str, Any]) -> dict[str, Any]:
    """What the API reads of each run that is known, in the form of the oracle."""
    found = {}
    for run_id in known:
        read = recording(source, runs=run_id, mlflow_raw_times=True)
        points: dict[str, list[list[Any]]] = {}
        for row in read.training.to_pylist():
            value = repr(float("nan") if row["value"] is None else row["value"])
            points.setdefault(row["name"], []).append([_milliseconds(row["timestamp"]), row["step"], value])
        for device in read.run.gpus:
            for row in read.rows_of(device.id).to_pylist():
                value = round(100 * row["gpu_utilization_ratio"], 4)
                points.setdefault(f"system/gpu_{device.index}_utilization_percentage", []).append(
                    [_milliseconds(row["timestamp"]), value]
                )
        found[run_id] = {
            "name": read.run.name,
            "deleted": "deleted_run" in codes(read),
            "params": [list(pair) for pair in read.run.params],
            "tags": [list(pair) for pair in read.run.tags if pair[0] != "user"],
            "points": read.run.quality.lines,
            "metrics": {key: sorted(each) for key, each in sorted(points.items())},
        }
    return found


def expected(known: dict[str, Any]) -> dict[str, Any]:
    """What MLflow's own client says of each run, without what has another place or another unit in a recording."""
    found = {}
    for run_id, run in known.items():
        metrics = {}
        for key, points in sorted(run["metrics"].items()):
            if not key.startswith("system/"):
                metrics[key] = sorted(
                    [
                        time,
                        step,
                        (repr(float(np.copysign(np.inf, float(value)))) if abs(float(value)) >= _LARGEST else value),
                    ]
                    for time, step, value in points
                )
            elif key.endswith("_utilization_percentage") and "gpu" in key:
                metrics[key] = sorted([time, round(float(value), 4)] for time, _, value in points)
        found[run_id] = {
            "name": run["name"],
            "deleted": run["deleted"],
            "params": run["params"],
            "tags": [pair for pair in run["tags"] if not pair[0].startswith("mlflow.")],
            "points": sum(map(len, run["metrics"].values())),
            "metrics": metrics,
        }
    return found


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def copied(database: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    target = Path(shutil.copyfile(database, folder / "copy.db"))
    target.chmod(0o644)
    return target
