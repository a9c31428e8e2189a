"""The rows of many runs: those that a store keeps, and the others made on an engine; logs are read into it first.

What goes to a worker and comes back is picklable.
"""

import pickle
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpureport.analysis import analyze
from gpureport.errors import GpureportError, InternalError, SettingsError, StoreError, describe_shortage
from gpureport.fleet import summarise
from gpureport.fleet.engines import Engine, run_tasks
from gpureport.fleet.summarise import SummarySettings
from gpureport.fleet.summary_table import Row, SummaryFile, make_row
from gpureport.places import Place, RemotePath
from gpureport.store.run_records import StoredRun
from gpureport.store.store import Entry, Store

Watch = Callable[[int, int, str], None]
"""Takes how many runs are done, how many there are, and the name of the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummaries:
    """The rows of the selected runs, in the order of the runs, each GPU after the other.

    `damaged` are files of rows that could not be read, whose runs were summarised again, `traces` the tracebacks of
    faults of gpureport itself, by the name of their run.
    """

    summaries: tuple[Row, ...]
    damaged: tuple[Place, ...]
    traces: tuple[tuple[str, str], ...]


class SelectedRuns(NamedTuple):
    """The runs of a store that are wanted; rows of any other than `every_run` of the store are forgotten."""

    store: Place
    runs: Sequence[StoredRun]
    every_run: frozenset[str]


class _SummaryTask(NamedTuple):
    store: Place
    run_id: str
    settings: SummarySettings


class ReadTask(NamedTuple):
    """A log to be read into a store; `read` stores it unless it is there, and returns it with what was done."""

    store: Place
    reading: Any
    read: Callable[..., tuple[Entry, str]]


class Outcome(NamedTuple):
    """What became of a task: the id or the rows of a run, or why it failed, with the traceback of a fault."""

    locator: str = ""
    run_id: str = ""
    rows: Sequence[Row] = ()
    error: str = ""
    trace: str = ""


def locate_store(store: Place) -> Place:
    """Return a store as a worker finds it, whatever folder that works in."""
    return store if isinstance(store, RemotePath) else store.absolute()


def summarise_runs(
    selected: SelectedRuns, settings: SummarySettings, engine: Engine | None, watch: Watch
) -> FleetSummaries:
    """Return the rows of runs; only those are made that the store does not keep.

    A run whose summary failed is tried again each time.
    """
    store, runs = locate_store(selected.store), [stored.run for stored in selected.runs]
    file, make_key = SummaryFile(store), summarise.make_keys(settings)
    known: dict[str, Sequence[Row]] = {}
    for row in file.load():
        known[row["run_id"]] = [*known.get(row["run_id"], ()), row]
    keys = {stored.run.id: make_key(stored) for stored in selected.runs}
    # the key of a failed run fits no run
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
    """Return the rows of a stored run, or its error as the only one, whatever happens."""
    try:
        if task.settings.version != summarise.hash_rules():
            how = "install the same version on every worker"
            raise SettingsError("worker", "it runs another version of gpureport", how, code="other_version")
        entry = _find_entry(task)
        recording = Store(task.store).read(entry)
        key = summarise.make_keys(task.settings)(entry.stored)
        return Outcome(rows=summarise.summarise_run(recording, analyze(recording, task.settings.rules), key))
    except Exception as error:
        return _fail(task, *_describe_failure(task.run_id, error))


def _find_entry(task: _SummaryTask) -> Entry:
    entry = Store(task.store).get(task.run_id)
    if entry is None:
        raise StoreError(task.run_id, "no longer in the store", "run the command again", code="unknown_run")
    return entry


def _fail(task: _SummaryTask, failure: str, trace: str = "") -> Outcome:
    """Return a row that says why a run could not be summarised; its key fits no run."""
    try:
        known = summarise.describe_run(_find_entry(task).run, "")
    except (GpureportError, OSError):
        known = make_row("", task.run_id, run_name=task.run_id)
    return Outcome(rows=[known | {"error": failure}], trace=trace)


def _describe_worker_error(error: Exception) -> str:
    return error.what if isinstance(error, GpureportError) else f"{error}; give workers more memory, or fewer of them"


def _describe_failure(name: str, error: Exception) -> tuple[str, str]:
    """Return what went wrong with a run, without its name, and the traceback of what no person can act on."""
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}; check the store and its permissions", ""
    if shortage := describe_shortage(error):
        return "; ".join(shortage), ""
    known = error if isinstance(error, GpureportError) else InternalError(name, error)
    return f"{known.what}; {known.hint}", "" if known is error else traceback.format_exc()


def read_sources(tasks: Sequence[ReadTask], engine: Engine | None, watch: Watch) -> list[Outcome]:
    """Read logs into a store and return what became of each, in their order.

    Runs of a tracker do not travel: they are read here, not by a worker.
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
        # a fault of a store may lie in a file that the name of the run does not tell
        where = error.where if isinstance(error, GpureportError) and error.where != locator else ""
        return Outcome(locator, error=f"{where}: {failure}" if where else failure, trace=trace)
