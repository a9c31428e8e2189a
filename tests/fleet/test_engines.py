"""The engines make the same table, to the byte, whatever dies on the way."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpureport.fleet.running.task_pool import TRIES, Engine, LostWorkerError, TaskPool
from tests.fleet.generated_fleet import generate_fleet

RUNS = 24
PROGRAM = (sys.executable, "-m", "gpureport")
_PATIENCE = 120


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of runs, one of which is corrupt."""
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
    """Return the processes that a server forked for a process."""
    return [each for each in psutil.Process(owner).children(recursive=True) if each.ppid() != owner]


@pytest.fixture(scope="module")
def expected(fleet: Path) -> bytes:
    """The table that one process makes alone."""
    return summarise(fleet)


@pytest.mark.slow
def test_four_processes_one_of_them_killed(fleet: Path, expected: bytes) -> None:
    assert summarise(fleet, cores=4, kill=lambda owner: list_workers(owner)[0].pid) == expected


@pytest.fixture
def cluster() -> Iterator[tuple[str, int]]:
    """The address of a Dask cluster with two workers, and the process of one."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - the quick tests do without

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
def test_workers_end_when_their_owner_is_killed(fleet: Path) -> None:
    """A process that is killed, as by a batch system, leaves no workers behind, and what was done is kept."""
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
    """Runs tasks at once, and breaks on a deadly one."""

    def __init__(self, deadly: set[int]) -> None:
        self._deadly = deadly
        self._is_broken = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> "Future[Any]":
        if self._is_broken:
            raise BrokenExecutor
        future: Future[Any] = Future()
        if args[0] in self._deadly:
            self._is_broken = True
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(fn(*args))
        return future


def test_the_task_that_kills_its_workers_is_given_up() -> None:
    """After as many deaths as it is granted; the tasks that were under way with it are done."""
    opened = 0

    @contextmanager
    def open_fragile() -> Iterator[Executor]:
        nonlocal opened
        opened += 1
        yield FragileExecutor({3, 6})

    for at_once in (1, 4, 100):
        opened = 0
        outcomes = dict(TaskPool(Engine(open=open_fragile, at_once=at_once), abs, range(10)).run())
        assert [number for number, outcome in outcomes.items() if isinstance(outcome, LostWorkerError)] == [3, 6]
        assert sorted(outcomes) == list(range(10))
        assert opened <= 2 * TRIES + 1
