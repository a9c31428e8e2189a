"""The summaries of many stored runs: those that are kept, and the others made on an engine."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpureport import label_tags
from gpureport.errors import GpureportError
from gpureport.fleet.gpu_summary import GpuSummary
from gpureport.fleet.running import summary_task
from gpureport.fleet.running.engines import IN_PROCESS
from gpureport.fleet.running.summary_task import ReadOutcome, ReadTask, RunOutcome, SummaryTask
from gpureport.fleet.running.task_pool import Engine, TaskPool
from gpureport.fleet.summaries.summary_file import SummaryFile, group_by_run
from gpureport.fleet.summaries.summary_key import KeyMaker, SummarySettings
from gpureport.places import Place
from gpureport.recording import Run
from gpureport.store.run_records import StoredRun

Watch = Callable[[int, int, str], None]
"""Takes how many runs are done, how many there are, and the name of the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummaries:
    """The summaries of the selected runs.

    Attributes:
        summaries: in the order of the runs, each GPU after the other.
        analysed: how many runs were summarised now; the others were kept from an earlier time.
        damaged: files of summaries that could not be read, whose runs were summarised again.
        traces: tracebacks of faults of gpureport itself, by the name of their run.
    """

    summaries: tuple[GpuSummary, ...]
    analysed: int
    damaged: tuple[Place, ...]
    traces: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRuns:
    """The runs of a store that are wanted.

    Attributes:
        store: folder of the store.
        runs: the selected runs, in order.
        every_run: ids of all runs of the store: summaries of any other run are forgotten.
    """

    store: Place
    runs: Sequence[StoredRun]
    every_run: frozenset[str]


def summarise_runs(selected: SelectedRuns, settings: SummarySettings, engine: Engine, watch: Watch) -> FleetSummaries:
    """Return the summaries of runs; only those are made that the store does not keep.

    A run whose summary failed is tried again each time.

    Args:
        selected: the runs.
        settings: what decides about summaries besides the runs.
        engine: where they are made.
        watch: is called after each run.

    Raises:
        StoreError: when the summaries cannot be written.
    """
    runs, store = [stored.run for stored in selected.runs], summary_task.locate_store(selected.store)
    file, keys = SummaryFile(store), KeyMaker(settings)
    known = group_by_run(file.load())
    wanted = {stored.run.id: keys.make_key(stored) for stored in selected.runs}
    missing = [run for run in runs if not _is_current(known.get(run.id, []), wanted[run.id])]
    tasks = [SummaryTask(store=store, run_id=run.id, settings=settings) for run in missing]
    names = {run.id: run.name for run in runs}
    traces = []
    for done, (task, outcome) in enumerate(_summarise_each(engine, tasks), 1):
        file.add(outcome.summaries)
        known[task.run_id] = list(outcome.summaries)
        if outcome.trace:
            traces.append((names[task.run_id], outcome.trace))
        watch(done, len(tasks), names[task.run_id])
    labelled = {run.id: [apply_labels(one, run) for one in known[run.id]] for run in runs}
    kept = {run_id: summaries for run_id, summaries in known.items() if run_id in selected.every_run}
    file.replace(one for summaries in (kept | labelled).values() for one in summaries)
    return FleetSummaries(
        summaries=tuple(one for run in runs for one in labelled[run.id]),
        analysed=len(missing),
        damaged=tuple(file.damaged),
        traces=tuple(sorted(traces)),
    )


def _is_current(summaries: Sequence[GpuSummary], key: str) -> bool:
    return bool(summaries) and all(one.key == key and not one.error for one in summaries)


def _summarise_each(engine: Engine, tasks: Sequence[SummaryTask]) -> Iterator[tuple[SummaryTask, RunOutcome]]:
    pool: TaskPool[SummaryTask, RunOutcome] = TaskPool(engine, summary_task.run_summary_task, tasks)
    for task, outcome in pool.run():
        if isinstance(outcome, RunOutcome):
            yield task, outcome
        else:
            failed = summary_task.describe_failed_run(task, _describe_worker_error(outcome))
            yield task, RunOutcome(summaries=(failed,))


def _describe_worker_error(error: Exception) -> str:
    return (
        f"{error}; give workers more memory, or fewer of them" if not isinstance(error, GpureportError) else error.what
    )


def apply_labels(summary: GpuSummary, run: Run) -> GpuSummary:
    """Return a summary under the labels that its run has now."""
    node, slash, _ = (summary.device or "").rpartition("/")
    named = (summary.node or node) if slash else label_tags.find_label(run.params_and_tags, "node")
    return replace(
        summary,
        run_name=run.name,
        step=run.step,
        node=named if summary.device else None,
        params=run.params,
        tags=run.tags,
        work_amount=run.work.amount if run.work else None,
        work_unit=run.work.unit if run.work else None,
    )


def read_sources(tasks: Sequence[ReadTask], engine: Engine, watch: Watch) -> list[ReadOutcome]:
    """Read logs into a store and return what became of each, in their order."""
    places = {id(task): place for place, task in enumerate(tasks)}
    outcomes: dict[int, ReadOutcome] = {}
    for done, (task, found) in enumerate(_read_each(tasks, engine), 1):
        locator = str(task.reading.locator)
        if isinstance(found, Exception):
            outcomes[places[id(task)]] = ReadOutcome(locator=locator, error=_describe_worker_error(found))
        else:
            outcomes[places[id(task)]] = found
        watch(done, len(tasks), locator)
    return [outcomes[place] for place in range(len(tasks))]


def _read_each(tasks: Sequence[ReadTask], engine: Engine) -> Iterator[tuple[ReadTask, ReadOutcome | Exception]]:
    """Yield what became of each log. Runs of a tracker are read here, not by a worker."""
    portable: list[ReadTask] = []
    others: list[ReadTask] = []
    for task in tasks:
        (portable if _can_travel(task) else others).append(task)
    for chosen, own in ((engine, portable), (IN_PROCESS, others)):
        pool: TaskPool[ReadTask, ReadOutcome] = TaskPool(chosen, summary_task.run_read_task, own)
        yield from pool.run()


def _can_travel(task: ReadTask) -> bool:
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True
