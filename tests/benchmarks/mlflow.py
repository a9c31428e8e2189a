"""Prints what reading runs of MLflow costs beside MLflow's own client, as ratios.

Run by hand: `python -m tests.benchmarks.mlflow [--rounds 5] [--points 10000] [--served 3000]`. Candidates take turns,
each a process of its own; figures are medians. It needs the extra `mlflow`.
"""

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.benchmarks import cost
from tests.importers.trackers.mlflow import real

_KEYS = [
    *(f"system/gpu_{gpu}_{what}" for gpu in range(3) for what in (
        "utilization_percentage", "memory_usage_megabytes", "memory_usage_percentage", "power_usage_watts",
        "power_usage_percentage")),
    "system/cpu_utilization_percentage", "system/system_memory_usage_megabytes",
    "system/system_memory_usage_percentage", "system/network_receive_megabytes", "system/network_transmit_megabytes",
]  # fmt: skip
_START = 1_795_000_000_000
_TICK = 10_050


def empty(path: Path) -> Path:
    """Let MLflow make an empty database."""
    code = "import sys; from mlflow import MlflowClient; MlflowClient(sys.argv[1]).create_experiment('measured')"
    command = [sys.executable, "-c", code, f"sqlite:///{path}"]
    subprocess.run(command, check=True, env=real.environment(), capture_output=True)
    return path


def filled(path: Path, runs: int, points: int) -> Path:
    """Put runs of twenty system metrics into a database."""
    connection = sqlite3.connect(path)
    for number in range(runs):
        run = f"{number:032x}"
        end = _START + (points + 1) * _TICK
        connection.execute(
            "insert into runs (run_uuid, name, status, start_time, end_time, lifecycle_stage, artifact_uri,"
            " experiment_id, source_type, user_id)"
            " values (?, ?, 'FINISHED', ?, ?, 'active', 'mlflow-artifacts:/1/x', 1, 'LOCAL', 'me')",
            (run, f"run {number}", _START, end),
        )
        insert = "insert into metrics (key, value, timestamp, run_uuid, step, is_nan) values (?, ?, ?, ?, ?, 0)"
        connection.executemany(insert, _rows(run, points))
        latest = "insert into latest_metrics (key, value, timestamp, run_uuid, step, is_nan) values (?, 1, ?, ?, ?, 0)"
        connection.executemany(latest, [(key, end - _TICK, run, points - 1) for key in _KEYS])
    connection.commit()
    connection.close()
    return path


def _rows(run: str, points: int) -> Iterator[tuple[str, float, int, str, int]]:
    for step in range(points):
        for place, key in enumerate(_KEYS):
            yield key, (step * 7 + place * 13) % 1000 / 10, _START + (step + 1) * _TICK, run, step


def folder(path: Path, points: int) -> Path:
    """Write one run of twenty system metrics into a file store."""
    run, experiment = "f" * 32, "123456789012345678"
    home = path / experiment / run
    for name in ("params", "tags", "artifacts", "metrics/system"):
        (home / name).mkdir(parents=True)
    (path / experiment / "meta.yaml").write_text(
        f"artifact_location: file://{path}/{experiment}\nexperiment_id: '{experiment}'\nlifecycle_stage: active\n"
        "name: measured\n",
        encoding="utf-8",
    )
    (home / "meta.yaml").write_text(
        f"artifact_uri: file://{home}/artifacts\nend_time: {_START + points * _TICK}\nentry_point_name: ''\n"
        f"experiment_id: '{experiment}'\nlifecycle_stage: active\nrun_id: {run}\nrun_name: run\nsource_name: ''\n"
        f"source_type: 4\nsource_version: ''\nstart_time: {_START}\nstatus: 3\ntags: []\nuser_id: me\n",
        encoding="utf-8",
    )
    for key in _KEYS:
        rows = (f"{time} {value} {step}\n" for name, value, time, _, step in _rows(run, points) if name == key)
        (home / "metrics" / key).write_text("".join(rows), encoding="utf-8")
    return path


def seconds(way: str, uri: str) -> float:
    """Return how long one way of reading took, its imports aside."""
    command = [sys.executable, "-m", "tests.benchmarks.mlflow_readers", way, uri]
    done = subprocess.run(command, check=True, env=real.environment(), capture_output=True, text=True)
    return float(done.stdout.split()[1])


def turns(ways: list[str], uri: str, rounds: int) -> dict[str, float]:
    """Return the median of each way, which take turns."""
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            taken[way].append(seconds(way, uri))
    return {way: median(each) for way, each in taken.items()}


def ingest(source: str, store: Path) -> list[str]:
    """Return the command that reads a source into a new store."""
    shutil.rmtree(store, ignore_errors=True)
    return [sys.executable, "-m", "gpureport", "ingest", source, "--store", str(store)]


def processes(source: str, uri: str, store: Path, rounds: int) -> tuple[cost.Cost, cost.Cost]:
    """Return the median cost of `gpureport ingest` and of a script that reads with the client."""
    script = [sys.executable, "-m", "tests.benchmarks.mlflow_readers", "client", uri]
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(cost.of(ingest(source, store)))
        theirs.append(cost.of(script))
    return _typical(ours), _typical(theirs)


def _typical(costs: list[cost.Cost]) -> cost.Cost:
    return cost.Cost(
        wall=median(each.wall for each in costs),
        cpu=median(each.cpu for each in costs),
        memory=round(median(each.memory for each in costs)),
    )


def compare(rounds: int, points: int, served: int, place: Path) -> Iterator[str]:
    """Yield a line for each goal, with what was reached."""
    blank = empty(place / "blank.db")
    database = filled(Path(shutil.copy(blank, place / "mlflow.db")), 1, points)
    uri = f"sqlite:///{database}"
    read = turns(["gpureport", "client", "floor"], uri, rounds)
    yield f"sqlite, 20 x {points}: client / gpureport {read['client'] / read['gpureport']:.1f}, goal 15"
    yield f"sqlite, gpureport / bare numbers {read['gpureport'] / read['floor']:.2f}, goal 3 with the Parquet file"
    ours, theirs = processes(str(database), uri, place / "store", rounds)
    yield f"sqlite, whole ingest / script {ours.wall / theirs.wall:.2f} (cpu {ours.cpu / theirs.cpu:.2f}), goal 0.20"
    files = folder(place / "mlruns", points)
    read = turns(["gpureport", "client"], f"file://{files}", rounds)
    yield f"file store, client / gpureport {read['client'] / read['gpureport']:.1f}, goal 10"
    remote = filled(Path(shutil.copy(blank, place / "served.db")), 1, served)
    with real.served(remote, place / "artifacts") as url:
        ours, theirs = processes(f"mlflow:{url}", url, place / "store", rounds)
    yield f"http, 20 x {served}: whole ingest / script {ours.wall / theirs.wall:.2f}, goal 0.50"
    yield f"http, cpu {ours.cpu / theirs.cpu:.2f}, goal 0.20; memory {ours.memory / theirs.memory:.2f}"
    many = filled(Path(shutil.copy(blank, place / "many.db")), 100, 1000)
    taken = cost.of(ingest(str(many), place / "store"))
    yield f"100 runs x 20 x 1000 from sqlite: {taken.wall:.1f} s, {taken.memory / 1e6:.0f} MB at most"


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--served", type=int, default=3_000)
    given = parser.parse_args()
    os.environ.update(real.environment())
    with TemporaryDirectory() as name:
        for line in compare(given.rounds, given.points, given.served, Path(name)):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
