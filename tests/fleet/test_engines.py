"""The engines make the same table, to the byte, whatever dies on the way."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fleet.fleet_logs import Card, generate_fleet, report, write_job
from tests.support.program import Program

RUNS = 24
PROGRAM = (sys.executable, "-m", "gpureport")
_PATIENCE = 120


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    generate_fleet(folder / "jobs", RUNS)
    subprocess.run([*PROGRAM, "-q", "ingest", "jobs"], cwd=folder, check=True)
    max(folder.glob(".gpureport/runs/*/hardware.parquet")).write_bytes(b"PAR1")
    return folder


def summarise(folder: Path, *words: str, cores: int = 1, kill: Callable[[int], int] | None = None) -> bytes:
    """Return the table that the command makes from nothing on some cores; a process may be killed in the middle."""
    table = folder / ".gpureport" / "fleet" / "summaries.parquet"
    shutil.rmtree(table.parent, ignore_errors=True)
    # the number of worker processes is that of the cores this process may use
    limit = f"import psutil; psutil.Process.cpu_affinity = lambda _: [*range({cores})]\n"
    code = f"{limit}from gpureport.cli import main\nmain(['fleet', '--format', 'json', *{words!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        if kill is not None:
            wait_for(lambda: len([*table.parent.rglob("*.parquet")]) >= RUNS // 3)
            psutil.Process(kill(running.pid)).kill()
        _, err = running.communicate(timeout=_PATIENCE)
    assert (running.returncode, err.count("left out: ")) == (0, 1), err
    return table.read_bytes()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def list_workers(owner: int) -> list[psutil.Process]:
    return [each for each in psutil.Process(owner).children(recursive=True) if each.ppid() != owner]


@pytest.fixture(scope="module")
def expected(fleet: Path) -> bytes:
    return summarise(fleet)


@pytest.mark.slow
def test_four_processes_one_of_them_killed(fleet: Path, expected: bytes) -> None:
    assert summarise(fleet, cores=4, kill=lambda owner: list_workers(owner)[0].pid) == expected


@pytest.fixture
def cluster() -> Iterator[tuple[str, int]]:
    from distributed import Client, LocalCluster

    start: Any = LocalCluster
    connect: Any = Client
    with start(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made:
        with connect(made) as client:
            workers = client.run(os.getpid)
        yield made.scheduler_address, min(workers.values())


@pytest.mark.slow
def test_dask_with_a_worker_killed(fleet: Path, expected: bytes, cluster: tuple[str, int]) -> None:
    address, worker = cluster
    assert summarise(fleet, "--engine", "dask", "--scheduler", address, kill=lambda _: worker) == expected


@pytest.mark.slow
def test_a_cluster_of_its_own_with_a_worker_killed(fleet: Path, expected: bytes) -> None:
    def find_worker(owner: int) -> int:
        # a process of each worker, and one that looks after what they share
        workers = [each for each in psutil.Process(owner).children() if "spawn_main" in " ".join(each.cmdline())]
        return workers[0].pid

    assert summarise(fleet, "--engine", "dask", cores=2, kill=find_worker) == expected


@pytest.mark.slow
def test_workers_end_when_their_owner_is_killed(fleet: Path) -> None:
    table = fleet / ".gpureport" / "fleet" / "summaries.parquet"
    shutil.rmtree(table.parent, ignore_errors=True)
    code = (
        "import psutil; psutil.Process.cpu_affinity = lambda _: [0, 1]\nfrom gpureport.cli import main\nmain(['fleet'])"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=fleet, stdout=subprocess.DEVNULL) as owner:
        try:
            wait_for(lambda: len([*table.parent.rglob("*.parquet")]) >= 2)
            workers = psutil.Process(owner.pid).children(recursive=True)
        finally:
            owner.kill()
    assert len(workers) >= 2
    _, running = psutil.wait_procs(workers, timeout=20)
    # one that has ended and that nobody asked about does not run
    running = [each for each in running if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    for each in running:
        each.kill()
    assert running == []


class FragileExecutor(Executor):
    """Runs tasks at once instead of in processes, and breaks on those of some runs."""

    deadly: frozenset[str] = frozenset()
    opened = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        type(self).opened += 1
        self._is_broken = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> "Future[Any]":
        if self._is_broken:
            raise BrokenExecutor
        future: Future[Any] = Future()
        if any(run in repr(args) for run in self.deadly):
            self._is_broken = True
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(fn(*args))
        return future


@pytest.mark.parametrize("cores", [2, 50])
def test_the_run_that_kills_its_workers_is_given_up(
    gpureport: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    for place in range(10):
        write_job(tmp_path / "jobs", f"r{place}", Card(spans=(("work", 1),)), start=f"2026-10-{place + 1:02}T12:00")
    assert gpureport("ingest", "jobs").code == 0
    listed = json.loads(gpureport("runs", "list", "--format", "json").out)["runs"]
    ids = {run["name"]: run["id"] for run in listed}
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: [*range(cores)])
    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", FragileExecutor)
    monkeypatch.setattr(FragileExecutor, "deadly", frozenset((ids["r3"], ids["r6"])))
    monkeypatch.setattr(FragileExecutor, "opened", 0)
    found = report(gpureport)
    assert {each["run"]["name"] for each in found["failed"]} == {"r3", "r6"}
    assert found["use"]["runs"] == 8
    assert 1 < FragileExecutor.opened <= 2 * 3 + 1
