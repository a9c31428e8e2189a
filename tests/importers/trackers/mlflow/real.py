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
from pathlib import Path
from typing import Any

import numpy as np

from gpureport.importers.trackers.mlflow.run_store import MetricSeries, RunStore
from tests.importers.trackers.mlflow.servers import free_port

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


def contents(store: RunStore) -> dict[str, Any]:
    found = {}
    for run in store.runs():
        labelled = store.labels(run)
        found[run.id] = {
            "name": run.name,
            "status": run.status,
            "start": run.started,
            "end": run.ended,
            "deleted": run.deleted,
            "params": [list(pair) for pair in labelled.params],
            "tags": [list(pair) for pair in labelled.tags],
            "metrics": {each.key: _points(each) for each in store.series(run)},
        }
    return found


def _points(series: MetricSeries) -> list[list[Any]]:
    points = zip(series.times.tolist(), series.steps.tolist(), series.values.tolist(), strict=True)
    return sorted([time, step, repr(value)] for time, step, value in points)


def with_infinities(found: dict[str, Any]) -> dict[str, Any]:
    for run in found.values():
        for points in run["metrics"].values():
            for point in points:
                if abs(float(point[2])) >= _LARGEST:
                    point[2] = repr(float(np.copysign(np.inf, float(point[2]))))
            points.sort()
    return found


def copied(database: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    target = Path(shutil.copyfile(database, folder / "copy.db"))
    target.chmod(0o644)
    return target
