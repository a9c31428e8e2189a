"""The engines: this process, processes of this machine, or a Dask cluster."""

import logging
import math
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, TypeVar

from gpureport.errors import SettingsError, SourceError
from gpureport.fleet.running.task_pool import Engine
from gpureport.recorder.job_params import count_allowed_cores

Result = TypeVar("Result")

ENGINES = ("local", "dask")
_AHEAD = 2
"""Tasks handed to each local process: one that it works on, one that waits."""
_CLUSTER_AT_ONCE = 1000
"""Tasks handed to a cluster at once: enough for hundreds of workers, without keeping all in the scheduler's memory."""
_PATIENCE = "10s"
"""How long a scheduler may take to answer."""


class InProcessExecutor(Executor):
    """Runs each task at once, in this process: what a single core does best."""

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> "Future[Result]":
        """Run a task and return it done."""
        future: Future[Result] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


IN_PROCESS = Engine(open=InProcessExecutor, at_once=1)
"""The engine that is this process."""


def open_engine(name: str, scheduler: str | None) -> Engine:
    """Return an engine by its name.

    Args:
        name: one of ENGINES.
        scheduler: address of the Dask scheduler.

    Raises:
        SettingsError: when the options do not fit, or Dask is not installed.
    """
    if name == "dask":
        return _choose_dask(scheduler)
    if scheduler:
        raise SettingsError("--scheduler", "only Dask has a scheduler", "add --engine dask", code="needs_dask")
    count = max(1, math.floor(count_allowed_cores() or 1))
    if count == 1:
        return IN_PROCESS
    return Engine(open=partial(_open_processes, count), at_once=_AHEAD * count)


@contextmanager
def _open_processes(count: int) -> Iterator[Executor]:
    """Open a pool of processes that are not forked, as threads here hold locks of Arrow."""
    way = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    # the server that workers are forked from keeps the environment that it was started with
    environment = dict(os.environ)
    with ProcessPoolExecutor(
        count, mp_context=get_context(way), initializer=_prepare_worker, initargs=(environment,)
    ) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _prepare_worker(environment: dict[str, str]) -> None:
    """End with the process that owns the pool; leave interruptions and other cores alone."""
    import pyarrow as pa  # noqa: PLC0415 - a worker of its own

    owner = parent_process()
    if owner is not None:
        Thread(target=_end_with, args=(owner,), daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pa.set_cpu_count(1)


def _end_with(owner: BaseProcess) -> None:
    """End this process once the one that owns the pool has ended, which may be killed.

    What a worker writes appears whole or not at all, so that it may end anywhere.
    """
    owner.join()
    os._exit(1)


def _choose_dask(scheduler: str | None) -> Engine:
    if not scheduler:
        raise SettingsError(
            "--engine", "dask needs a scheduler", "add --scheduler tcp://HOST:8786", code="needs_scheduler"
        )
    if find_spec("distributed") is None:
        raise SettingsError("--engine", "Dask is not installed", "pip install 'gpureport[fleet]'", code="not_installed")
    return Engine(open=partial(_open_dask, scheduler), at_once=_CLUSTER_AT_ONCE)


@contextmanager
def _open_dask(scheduler: str) -> Iterator[Executor]:
    """Connect to a Dask cluster, which runs the tasks of a worker that dies on another one.

    Raises:
        SourceError: when no scheduler answers there.
    """
    from distributed import Client  # noqa: PLC0415 - only with --engine dask

    for name in ("distributed", "distributed.client", "tornado"):
        # it reports a worker that dies at length, and its work is done by another
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client: Any = Client(scheduler, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]  # of distributed
    except (OSError, ValueError) as error:
        raise SourceError(
            scheduler,
            "no Dask scheduler answers",
            "check the address, or start one; what is done is kept",
            code="no_connection",
        ) from error
    with client, client.get_executor(pure=False) as executor:
        yield executor
