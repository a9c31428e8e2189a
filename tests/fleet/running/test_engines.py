"""The engines make the same table, to the byte, whatever dies on the way."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpureport.errors import SettingsError, SourceError
from gpureport.fleet.running import engines
from gpureport.fleet.running.engines import open_engine
from gpureport.fleet.running.fleet_summaries import SelectedRuns, summarise_runs
from gpureport.fleet.running.task_pool import Engine
from gpureport.fleet.summaries.summary_key import read_summary_settings
from gpureport.settings import Settings
from gpureport.store import Store
from tests.fleet.stored_samples import store_fleet

RUNS = 24


@pytest.mark.parametrize(
    ("name", "scheduler", "message"),
    [
        ("local", "tcp://head:8786", "only Dask has a scheduler"),
        ("dask", None, "dask needs a scheduler"),
    ],
)
def test_options_that_do_not_fit(name: str, scheduler: str | None, message: str) -> None:
    """Each says what to add or to leave out."""
    with pytest.raises(SettingsError, match=message):
        open_engine(name, scheduler)


def test_workers_have_the_environment_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are forked from a server that lives as long as this process: credentials set since then must count."""
    seen = []
    for value in ("before", "after"):
        monkeypatch.setenv("GPUREPORT_TEST_CREDENTIALS", value)
        with open_engine("local", None, 2).open() as pool:
            seen.append(pool.submit(os.getenv, "GPUREPORT_TEST_CREDENTIALS").result())
    assert seen == ["before", "after"]


def test_dask_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says how to install it."""
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"Dask is not installed; pip install 'gpureport\[fleet\]'"):
        open_engine("dask", "tcp://head:8786")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of runs, one of which is corrupt."""
    folder = tmp_path_factory.mktemp("fleet") / "store"
    store_fleet(folder, RUNS)
    max(folder.glob("runs/*/hardware.parquet")).write_bytes(b"PAR1")
    return folder


def summarise(store: Path, engine: Engine, kill: Callable[[], int] | None = None) -> str:
    """Return the hash of the table that an engine makes from nothing; a process may be killed in the middle."""
    shutil.rmtree(store / "fleet", ignore_errors=True)
    runs = Store(store).index().runs

    def watch(done: int, count: int, name: str) -> None:
        del count, name
        if kill is not None and done == RUNS // 3:
            os.kill(kill(), signal.SIGKILL)

    selected = SelectedRuns(store=store, runs=runs, every_run=frozenset(run.id for run in runs))
    found = summarise_runs(selected, read_summary_settings(Settings()), engine, watch)
    assert [gpu.error for gpu in found.summaries if gpu.error] == ["damaged or missing; ingest the run again"]
    assert len({gpu.run_id for gpu in found.summaries}) == RUNS
    return sha256((store / "fleet" / "summaries.parquet").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def expected(fleet: Path) -> str:
    """Return the hash of the table that this process makes alone."""
    return summarise(fleet, open_engine("local", None, 1))


@pytest.mark.slow
def test_four_processes_one_of_them_killed(fleet: Path, expected: str) -> None:
    """A broken pool is opened anew, and what was under way is done again."""
    assert summarise(fleet, open_engine("local", None, 4), kill=_find_worker) == expected


def _find_worker() -> int:
    """Return one of the processes that a server forked for this one."""
    return next(each.pid for each in psutil.Process().children(recursive=True) if each.ppid() != os.getpid())


@pytest.fixture
def cluster() -> Iterator[tuple[str, int]]:
    """Return the address of a Dask cluster with two workers, and the process of one."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - the quick tests do without

    start: Any = LocalCluster
    connect: Any = Client
    with start(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made:
        with connect(made) as client:
            workers = client.run(os.getpid)
        yield made.scheduler_address, min(workers.values())


@pytest.mark.slow
def test_dask_with_a_worker_killed(fleet: Path, expected: str, cluster: tuple[str, int]) -> None:
    """The scheduler gives its runs to the other worker."""
    address, worker = cluster
    assert summarise(fleet, open_engine("dask", address), kill=lambda: worker) == expected


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line names the address."""
    monkeypatch.setattr(engines, "_PATIENCE", "1s")
    with pytest.raises(SourceError, match="no Dask scheduler answers"):
        summarise(fleet, open_engine("dask", "tcp://127.0.0.1:9"))


_OWNER = """
import os, time
from concurrent.futures import wait
from gpureport.fleet.running.engines import open_engine
with open_engine("local", None, 2).open() as pool:
    pids = set()
    while len(pids) < 2:
        pids.update(future.result() for future in [pool.submit(os.getpid) for _ in range(4)])
    print("ready", flush=True)
    wait([pool.submit(time.sleep, 600), pool.submit(time.sleep, 600)])
"""


def test_workers_end_when_their_owner_is_killed() -> None:
    """A process that is killed, as by a batch system, leaves no workers behind."""
    with subprocess.Popen([sys.executable, "-c", _OWNER], stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "ready\n"
            workers = psutil.Process(owner.pid).children(recursive=True)
        finally:
            # one that is left alive is waited for, ten minutes
            owner.kill()
    assert len(workers) >= 2
    _, running = psutil.wait_procs(workers, timeout=20)
    # one that has ended and that nobody asked about does not run
    running = [each for each in running if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    for each in running:
        each.kill()
    assert running == []
