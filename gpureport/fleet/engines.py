"""Runs a function on many tasks, in this process, in others or on a Dask cluster, and survives the death of workers."""

import logging
import math
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, NamedTuple, TypeVar

from gpureport.errors import SettingsError, SourceError
from gpureport.recorder.job_params import count_allowed_cores
from gpureport.redaction import OwnSecrets, get_own_secrets, use_own_secrets

Task = TypeVar("Task")
Result = TypeVar("Result")

TRIES = 3
"""Deaths of workers after which a task is given up: once beside others, then twice alone (pragmatic)."""
_AHEAD, _CLUSTER_AT_ONCE = 2, 1000
"""Tasks handed to each local process: one that waits; to a cluster: enough for hundreds of workers."""
_PATIENCE = "10s"  # that a scheduler may take to answer


class LostWorkerError(Exception):
    """Every worker that was given a task died of it."""

    def __init__(self) -> None:
        super().__init__("its worker was killed each time, perhaps for memory")


class Engine(NamedTuple):
    """Where tasks are run: `open` opens an executor, anew after its workers died, which takes so many `at_once`."""

    open: Callable[[], AbstractContextManager[Executor]]
    at_once: int


def open_engine(name: str, scheduler: str | None) -> Engine | None:
    """Return an engine, `local` or `dask` with a scheduler or a cluster of its own; None is this process alone."""
    if name != "dask" and scheduler:
        raise SettingsError("--scheduler", "only Dask has a scheduler", "add --engine dask", code="needs_dask")
    count = max(1, math.floor(count_allowed_cores() or 1))
    if name == "dask":
        if find_spec("distributed") is None:
            hint = "pip install 'gpureport[fleet]'"
            raise SettingsError("--engine", "Dask is not installed", hint, code="not_installed")
        return Engine(open=partial(_open_dask, scheduler, count), at_once=_CLUSTER_AT_ONCE)
    return None if count == 1 else Engine(open=partial(_open_processes, count), at_once=_AHEAD * count)


def run_tasks(
    engine: Engine | None, function: Callable[[Task], Result], tasks: Sequence[Task]
) -> Iterator[tuple[Task, Result | Exception]]:
    """Yield every finished task with its result, or the error of its worker; the function itself raises none."""
    return ((task, function(task)) for task in tasks) if engine is None else _run_elsewhere(engine, function, tasks)


def _run_elsewhere(
    engine: Engine, function: Callable[[Task], Result], tasks: Sequence[Task]
) -> Iterator[tuple[Task, Result | Exception]]:
    """Yield tasks as they are done, and survive the death of workers.

    An executor says that a worker died, and not which task killed it: every task under way is suspected. Suspects are
    run again one at a time, so that the one to blame is found and the others are done.
    """
    call = partial(_run_with_secrets, get_own_secrets(), function)
    waiting, deaths, under_way = deque(range(len(tasks))), Counter[int](), dict[Future[Result], int]()
    while waiting:
        try:
            with engine.open() as executor:
                while waiting or under_way:
                    while waiting and len(under_way) < engine.at_once:
                        if under_way and any(deaths[place] for place in (waiting[0], *under_way.values())):
                            break
                        under_way[executor.submit(call, tasks[waiting[0]])] = waiting[0]
                        waiting.popleft()
                    for future in futures.wait(under_way, return_when=futures.FIRST_COMPLETED).done:
                        if isinstance(error := future.exception(), BrokenExecutor):
                            raise error
                        yield tasks[under_way.pop(future)], _unwrap(future)
        except BrokenExecutor:
            again = []
            for future, place in under_way.items():
                is_over = future.done() and not future.cancelled()
                if is_over and not isinstance(future.exception(), BrokenExecutor):
                    yield tasks[place], _unwrap(future)
                    continue
                deaths[place] += 1
                if deaths[place] < TRIES:
                    again.append(place)
                else:
                    yield tasks[place], LostWorkerError()
            waiting.extendleft(reversed(again))
        except CancelledError:
            # the executor itself is gone, which says nothing of the tasks
            waiting.extendleft(reversed(under_way.values()))
        under_way.clear()


def _run_with_secrets(own: OwnSecrets, function: Callable[[Task], Result], task: Task) -> Result:
    """Run a task, wherever it is, with the secrets that the settings here name."""
    use_own_secrets(own)
    return function(task)


def _unwrap(future: "Future[Any]") -> Any:
    try:
        return future.result()
    except Exception as error:
        return error


# --- processes of this machine


@contextmanager
def _open_processes(count: int) -> Iterator[Executor]:
    """Open a pool of processes that are not forked, as threads here hold locks of Arrow."""
    way = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    # the server that workers are forked from keeps the environment that it was started with
    context, environment = get_context(way), dict(os.environ)
    with futures.ProcessPoolExecutor(
        count, mp_context=context, initializer=_prepare_worker, initargs=(environment,)
    ) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _prepare_worker(environment: dict[str, str]) -> None:
    """Leave interruptions and other cores alone, and end with the process that owns the pool."""
    import pyarrow as pa

    if owner := parent_process():
        Thread(target=_end_with, args=(owner,), daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pa.set_cpu_count(1)


def _end_with(owner: BaseProcess) -> None:
    # a process that is killed ends no workers; what these write appears whole or not at all, so that they may end too
    owner.join()
    os._exit(1)


# --- a Dask cluster


@contextmanager
def _open_dask(scheduler: str | None, count: int) -> Iterator[Executor]:
    """Connect to a Dask cluster, which runs the tasks of a worker that dies on another one.

    Without the address of a scheduler one is started on this machine, with a process for each of `count` cores.
    """
    from distributed import Client, LocalCluster

    for name in ("distributed", "distributed.client", "tornado"):
        # it reports a worker that dies at length, and its work is done by another
        logging.getLogger(name).setLevel(logging.CRITICAL)
    start: Any = LocalCluster
    with ExitStack() as stack:
        cluster = scheduler or stack.enter_context(
            start(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None)
        )
        try:
            client: Any = Client(cluster, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]  # of distributed
        except (OSError, ValueError) as error:
            how = "check the address, or start one; what is done is kept"
            raise SourceError(str(cluster), "no Dask scheduler answers", how, code="no_connection") from error
        with client, client.get_executor(pure=False) as executor:
            yield executor
