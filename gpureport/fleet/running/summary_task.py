"""One run to read or summarise: what goes to a worker and comes back, all of it picklable."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpureport.analysis import analyze
from gpureport.errors import GpureportError, InternalError, SettingsError, StoreError, describe_shortage
from gpureport.fleet.gpu_summary import GpuSummary
from gpureport.fleet.summaries import run_summary, summary_key
from gpureport.fleet.summaries.summary_key import KeyMaker, SummarySettings
from gpureport.places import Place, RemotePath
from gpureport.store.store import Entry, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What became of one run.

    Attributes:
        summaries: one a GPU; a single one with an error where it could not be summarised.
        trace: the traceback of a fault of gpureport itself; empty otherwise.
    """

    summaries: tuple[GpuSummary, ...]
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask:
    """A stored run to be summarised."""

    store: Place
    run_id: str
    settings: SummarySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOutcome:
    """What became of a log: the id of its run, or why it failed, with the traceback of a fault."""

    locator: str
    run_id: str = ""
    error: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """A log to be read into the store.

    Attributes:
        store: folder of the store.
        reading: the run, not yet read.
        read: reads it into a store unless it is there, and returns it with what was done.
    """

    store: Place
    reading: Any
    read: Callable[..., tuple[Entry, str]]


def locate_store(store: Place) -> Place:
    """Return a store as a worker finds it, whatever folder that works in."""
    return store if isinstance(store, RemotePath) else store.absolute()


def summarise(store: Store, run_id: str, settings: SummarySettings) -> list[GpuSummary]:
    """Return the summaries of a stored run.

    Raises:
        StoreError: when it is not there, or damaged.
    """
    entry = _find_entry(store, run_id)
    recording = store.read(entry)
    key = KeyMaker(settings).make_key(entry.stored)
    return run_summary.summarise_run(recording, analyze(recording, settings.rules), key)


def run_summary_task(task: SummaryTask) -> RunOutcome:
    """Return the summaries of a stored run, or its error as the only one, whatever happens."""
    try:
        _check_version(task.settings)
        return RunOutcome(summaries=tuple(summarise(Store(task.store), task.run_id, task.settings)))
    except Exception as error:
        is_fault = _is_fault(error)
        failure = describe_failure(task.run_id, error)
        return RunOutcome(
            summaries=(describe_failed_run(task, failure),), trace=traceback.format_exc() if is_fault else ""
        )


def describe_failure(run_id: str, error: Exception) -> str:
    """Return what went wrong with a run, without its name."""
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}; check the store and its permissions"
    if shortage := describe_shortage(error):
        return "; ".join(shortage)
    known = error if isinstance(error, GpureportError) else InternalError(run_id, error)
    return f"{known.what}; {known.hint}"


def _is_fault(error: Exception) -> bool:
    """Return whether an error is none that a person can act on."""
    return not isinstance(error, GpureportError | OSError) and describe_shortage(error) is None


def describe_failed_run(task: SummaryTask, failure: str) -> GpuSummary:
    """Return a summary that says why a run could not be summarised."""
    try:
        known = run_summary.describe_run(_find_entry(Store(task.store), task.run_id).run, "")
    except (GpureportError, OSError):
        known = GpuSummary(key="", run_id=task.run_id, run_name=task.run_id)
    return run_summary.mark_failed(known, failure)


def _find_entry(store: Store, run_id: str) -> Entry:
    entry = store.get(run_id)
    if entry is None:
        raise StoreError(run_id, "no longer in the store", "run the command again", code="unknown_run")
    return entry


def _check_version(settings: SummarySettings) -> None:
    """Refuse a worker with other rules, whose summaries would not compare.

    Raises:
        SettingsError: when its code is another.
    """
    if settings.version != summary_key.hash_rules():
        raise SettingsError(
            "worker",
            "its gpureport is another version",
            "install the same version on every worker",
            code="other_version",
        )


def run_read_task(task: ReadTask) -> ReadOutcome:
    """Read a log into the store and return the id of its run, or why it failed."""
    locator = str(task.reading.locator)
    try:
        entry, _ = task.read(Store(task.store), task.reading, force=False)
        return ReadOutcome(locator=locator, run_id=entry.run.id)
    except Exception as error:
        is_fault = _is_fault(error)
        failure = describe_failure(locator, error)
        # a fault of a store may lie in a file that the name of the run does not tell
        where = error.where if isinstance(error, GpureportError) and error.where != locator else ""
        return ReadOutcome(
            locator=locator,
            error=f"{where}: {failure}" if where else failure,
            trace=traceback.format_exc() if is_fault else "",
        )
