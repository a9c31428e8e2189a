"""The rows of many runs, from a store or computed on an engine.

An engine runs a function on many tasks, in this process, other processes or a Dask cluster, and survives the
death of workers. Everything sent to or from a worker is picklable.
"""

import logging
import math
import os
import pickle
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, NamedTuple, TypeVar

from gpureport.analysis import analyze
from gpureport.errors import GpureportError, InternalError, SettingsError, SourceError, StoreError, describe_shortage
from gpureport.fleet import summarise
from gpureport.fleet.summarise import Row, SummaryFile, SummarySettings, make_row
from gpureport.names import group_pairs
from gpureport.places import Place, RemotePath
from gpureport.recorder.job_params import count_allowed_cores
from gpureport.redaction import OwnSecrets, get_own_secrets, use_own_secrets
from gpureport.store.run_records import StoredRun
from gpureport.store.store import Entry, Store

Task = TypeVar("Task")
Result = TypeVar("Result")
TRIES = 3
"""Worker deaths after which a task is abandoned: one alongside other tasks, then two while it runs alone."""
_AHEAD, _CLUSTER_AT_ONCE = 2, 1000
"""Tasks submitted at once, per local process (so that one is always waiting) and per cluster."""
_PATIENCE = "10s"  # seconds that a scheduler may take to respond
Watch = Callable[[int, int, str], None]
"""Receives the numbers of finished runs and of all runs, and the name of the latest."""


class Engine(NamedTuple):
    """Runs up to `at_once` tasks at a time. `open` starts an executor, and is called again if its workers die."""

    open: Callable[[], AbstractContextManager[Executor]]
    at_once: int


def open_engine(name: str, scheduler: str | None) -> Engine | None:
    if name != "dask" and scheduler:
        raise SettingsError("--scheduler", "only Dask has a scheduler", "add --engine dask", code="needs_dask")
    count = max(1, math.floor(count_allowed_cores() or 1))
    if name == "dask":
        if find_spec("distributed") is None:
            raise SettingsError("--engine", "needs Dask", "pip install 'gpureport[fleet]'", code="not_installed")
        return Engine(open=partial(_open_dask, scheduler, count), at_once=_CLUSTER_AT_ONCE)
    return None if count == 1 else Engine(open=partial(_open_processes, count), at_once=_AHEAD * count)


def run_tasks(
    engine: Engine | None, function: Callable[[Task], Result], tasks: Sequence[Task]
) -> Iterator[tuple[Task, Result | Exception]]:
    """Yield every finished task with its result or its worker's error; `function` itself must not raise."""
    return ((task, function(task)) for task in tasks) if engine is None else _run_elsewhere(engine, function, tasks)


def _run_elsewhere(
    engine: Engine, function: Callable[[Task], Result], tasks: Sequence[Task]
) -> Iterator[tuple[Task, Result | Exception]]:
    """Yield tasks as they finish, and survive the death of workers.

    An executor reports that a worker died, but not which task killed it, so every task under way is a suspect. Suspects
    run again one at a time, so that the culprit is found and the others finish.
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
                    yield tasks[place], RuntimeError("its worker was killed each time, perhaps for lack of memory")
            waiting.extendleft(reversed(again))
        except CancelledError:
            # the executor itself is gone, so no task is at fault
            waiting.extendleft(reversed(under_way.values()))
        under_way.clear()


def _run_with_secrets(own: OwnSecrets, function: Callable[[Task], Result], task: Task) -> Result:
    use_own_secrets(own)
    return function(task)


def _unwrap(future: "Future[Any]") -> Any:
    return future.exception() or future.result()


@contextmanager
def _open_processes(count: int) -> Iterator[Executor]:
    """Open a pool without forking this process, whose threads may hold Arrow's locks."""
    way = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    # workers would inherit the environment with which the fork server was started
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
    """Ignore interrupts, use one core and the owner's environment, and exit when the owner exits."""
    import pyarrow as pa

    if owner := parent_process():
        Thread(target=_end_with, args=(owner,), daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pa.set_cpu_count(1)


def _end_with(owner: BaseProcess) -> None:
    # killing a process spares its workers, which write atomically and may exit at any time
    owner.join()
    os._exit(1)


@contextmanager
def _open_dask(scheduler: str | None, count: int) -> Iterator[Executor]:
    """Connect to a Dask cluster, which moves the tasks of a dead worker to another one."""
    from distributed import Client, LocalCluster

    for name in ("distributed", "distributed.client", "tornado"):
        # silence Dask's reports about dead workers, as others take over
        logging.getLogger(name).setLevel(logging.CRITICAL)
    start: Any = LocalCluster
    with ExitStack() as stack:
        cluster = scheduler or stack.enter_context(
            start(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None)
        )
        try:
            client: Any = Client(cluster, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]  # of distributed
        except (OSError, ValueError) as error:
            how = "check the address, or start a scheduler; finished runs are kept"
            raise SourceError(str(cluster), "no Dask scheduler responded", how, code="no_connection") from error
        with client, client.get_executor(pure=False) as executor:
            yield executor


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummaries:
    """The rows of the selected runs, ordered by run and then by GPU."""

    summaries: tuple[Row, ...]
    damaged: tuple[Place, ...]
    traces: tuple[tuple[str, str], ...]
    rejected: int = 0  # runs most of whose lines were rejected


class SelectedRuns(NamedTuple):
    store: Place
    runs: Sequence[StoredRun]
    every_run: frozenset[str]


class _SummaryTask(NamedTuple):
    store: Place
    run_id: str
    settings: SummarySettings


class ReadTask(NamedTuple):
    """A log to store. `read` stores the log if new, and returns its entry and a message."""

    store: Place
    reading: Any
    read: Callable[..., tuple[Entry, str]]


class Outcome(NamedTuple):
    """The result of a task: the id or rows of a run, or why it failed, with a traceback if it is a bug."""

    locator: str = ""
    run_id: str = ""
    rows: Sequence[Row] = ()
    error: str = ""
    trace: str = ""


def locate_store(store: Place) -> Place:
    return store if isinstance(store, RemotePath) else store.absolute()


def summarise_runs(
    selected: SelectedRuns, settings: SummarySettings, engine: Engine | None, watch: Watch
) -> FleetSummaries:
    store, runs = locate_store(selected.store), [stored.run for stored in selected.runs]
    file, make_key = SummaryFile(store), summarise.make_keys(settings)
    known: dict[str, Sequence[Row]] = {**group_pairs((row["run_id"], row) for row in file.load())}
    keys = {stored.run.id: make_key(stored) for stored in selected.runs}
    # a failed run's key never matches, so it is tried again
    missing = [run for run in runs if {row["key"] for row in known.get(run.id, ())} != {keys[run.id]}]
    tasks = [_SummaryTask(store, run.id, settings) for run in missing]
    names = {run.id: run.name for run in runs}
    traces = []
    for done, (task, found) in enumerate(run_tasks(engine, _summarise_run, tasks), 1):
        outcome = _fail(task, _describe_worker_error(found)) if isinstance(found, Exception) else found
        file.add(outcome.rows)
        known[task.run_id] = outcome.rows
        if outcome.trace:
            traces.append((names[task.run_id], outcome.trace))
        watch(done, len(tasks), names[task.run_id])
    labelled = {run.id: [summarise.apply_labels(row, run) for row in known[run.id]] for run in runs}
    kept = {run_id: rows for run_id, rows in known.items() if run_id in selected.every_run}
    file.replace(row for rows in (kept | labelled).values() for row in rows)
    summaries = tuple(row for run in runs for row in labelled[run.id])
    return FleetSummaries(summaries=summaries, damaged=tuple(file.damaged), traces=tuple(sorted(traces)))


def _summarise_run(task: _SummaryTask) -> Outcome:
    try:
        if task.settings.version != summarise.hash_rules():
            how = "install the same version on every worker"
            raise SettingsError("worker", "it runs a different version of gpureport", how, code="other_version")
        entry = _find_entry(task)
        recording = Store(task.store).read(entry)
        key = summarise.make_keys(task.settings)(entry.stored)
        return Outcome(rows=summarise.summarise_run(recording, analyze(recording, task.settings.rules), key))
    except Exception as error:
        return _fail(task, *_describe_failure(task.run_id, error))


def _find_entry(task: _SummaryTask) -> Entry:
    if (entry := Store(task.store).get(task.run_id)) is None:
        raise StoreError(task.run_id, "no longer in the store", "run the command again", code="unknown_run")
    return entry


def _fail(task: _SummaryTask, failure: str, trace: str = "") -> Outcome:
    try:
        known = summarise.describe_run(_find_entry(task).run, "")
    except (GpureportError, OSError):
        known = make_row("", task.run_id, run_name=task.run_id)
    return Outcome(rows=[known | {"error": failure}], trace=trace)


def _describe_worker_error(error: Exception) -> str:
    return error.what if isinstance(error, GpureportError) else f"{error}; give workers more memory, or use fewer"


def _describe_failure(name: str, error: Exception) -> tuple[str, str]:
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}; check the store and its permissions", ""
    if shortage := describe_shortage(error):
        return "; ".join(shortage), ""
    known = error if isinstance(error, GpureportError) else InternalError(name, error)
    return f"{known.what}; {known.hint}", known.trace if isinstance(known, InternalError) else ""


def read_sources(tasks: Sequence[ReadTask], engine: Engine | None, watch: Watch) -> list[Outcome]:
    """Read logs into a store, and return their outcomes in order.

    Runs from a tracker cannot be pickled, so they are read here rather than by a worker.
    """
    portable = [task for task in tasks if _can_travel(task)]
    outcomes: dict[int, Outcome] = {}
    for chosen, own in ((engine, portable), (None, [task for task in tasks if task not in portable])):
        for task, found in run_tasks(chosen, _read_source, own):
            locator = str(task.reading.locator)
            failed = _describe_worker_error(found) if isinstance(found, Exception) else ""
            outcomes[id(task)] = found if isinstance(found, Outcome) else Outcome(locator, error=failed)
            watch(len(outcomes), len(tasks), locator)
    return [outcomes[id(task)] for task in tasks]


def _can_travel(task: ReadTask) -> bool:
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True


def _read_source(task: ReadTask) -> Outcome:
    locator = str(task.reading.locator)
    try:
        entry, _ = task.read(Store(task.store), task.reading, force=False)
        return Outcome(locator, run_id=entry.run.id)
    except Exception as error:
        failure, trace = _describe_failure(locator, error)
        # a store's error may concern a file that the run's name does not reveal
        where = error.where if isinstance(error, GpureportError) and error.where != locator else ""
        return Outcome(locator, error=f"{where}: {failure}" if where else failure, trace=trace)
