"""The runs of a fleet and their summaries; what sources hold is stored first."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpureport.cli.messages import progress
from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.runs import stored_runs
from gpureport.cli.runs.run_storing import store_run
from gpureport.cli.sources import label_tables, source_names, source_readings
from gpureport.errors import SettingsError, StoreError
from gpureport.store.run_selection import Condition, RunSelection

if TYPE_CHECKING:
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.fleet.engines import Engine
    from gpureport.fleet.running import FleetSummaries, ReadOutcome, SelectedRuns
    from gpureport.fleet.summarise import SummarySettings
    from gpureport.store.store import Store

_DAMAGED = "damaged; ingest the run again"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRuns:
    """The runs of a fleet.

    Attributes:
        selected: the runs of the store.
        unread: sources that could not be read.
        damaged: ids of stored runs of which nothing can be read.
    """

    selected: "SelectedRuns"
    unread: tuple["ReadOutcome", ...]
    damaged: tuple[str, ...]


def find_fleet_runs(
    sources: Sequence[str], options: "SourceOptions", selection: RunSelection, engine: "Engine"
) -> FleetRuns:
    """Return the runs that are wanted; those of sources once they are in the store.

    Without a source, `--tag` selects among the stored runs; with one it labels what is read.

    Raises:
        SettingsError: when reading options have no source, or no run has a label asked for.
        SourceError: when a source is missing, or holds no log. `StoreError` when no stored run is left.
    """
    from gpureport.fleet.running import SelectedRuns  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.store.run_selection import select_runs  # noqa: PLC0415 - as above

    if not sources:
        selection = _select_by_tags(options, selection)
    store = source_names.find_store(options)
    read, unread = _read_sources(store, sources, options, engine)
    index = store.index()
    wanted = [stored for stored in index.runs if stored.run.id in read] if sources else index.runs
    stored_runs.note_undated_runs(wanted, selection)
    runs = select_runs(wanted, selection)
    damaged = () if sources else index.damaged
    if not runs and not unread and not damaged:
        raise _no_run(store, is_empty=not index.runs)
    everything = frozenset(stored.run.id for stored in index.runs)
    return FleetRuns(
        selected=SelectedRuns(store=store.folder, runs=runs, every_run=everything), unread=unread, damaged=damaged
    )


def _select_by_tags(options: "SourceOptions", selection: RunSelection) -> RunSelection:
    given = options.reading_option or next((f"--{name}" for name, value in _label_values(options) if value), None)
    if given:
        raise SettingsError(
            given, "it matters only while a log is read", "name a SOURCE, or leave it out", code="only_while_reading"
        )
    tags = (Condition(key=f"tag:{key}", operator="=", value=value) for key, value in options.labels.tag)
    return (*tags, *selection)


def _label_values(options: "SourceOptions") -> Iterator[tuple[str, object]]:
    """Yield the options that label or cut what is read, `--tag` left out."""
    for name in ("param", "work", "name", "step", "gpu_model"):
        yield name.replace("_", "-"), getattr(options.labels, name)
    yield "labels", options.labels.label_table
    window = options.window
    yield from (("from", window.start), ("to", window.end), ("job", window.job is not None))


def _read_sources(
    store: "Store", sources: Sequence[str], options: "SourceOptions", engine: "Engine"
) -> "tuple[set[str], tuple[ReadOutcome, ...]]":
    """Return the ids of the runs that sources hold, and what could not be read."""
    from gpureport.fleet.running import ReadTask, locate_store, read_sources  # noqa: PLC0415 - loads numpy and pyarrow

    named = [source for source in sources if not source_names.is_source(source, options)]
    lookup = store.lookup()
    ids = {lookup.find(name).run.id for name in named}
    logs = [source for source in sources if source not in named]
    # a table of jobs does not travel to workers: it labels what is stored afterwards
    readings = source_readings.find_readings(logs, options.with_labels(label_table=None)) if logs else []
    folder = locate_store(store.folder)
    tasks = [ReadTask(store=folder, reading=reading, read=store_run) for reading in readings]
    with progress.show_stage("Reading logs") as stage:
        outcomes = read_sources(
            tasks, engine, lambda done, count, name: stage.update(f"Reading logs: {done:,} of {count:,} ({name})")
        )
    unread = tuple(each for each in outcomes if each.error)
    ids |= {each.run_id for each in outcomes if each.run_id}
    _label_from_table(store, ids, options)
    return ids, unread


def _label_from_table(store: "Store", ids: Iterable[str], options: "SourceOptions") -> None:
    """Give stored runs the tags that the table of `--labels` has for them."""
    if options.labels.label_table is None:
        return
    labels = label_tables.build_labels(options.labels)
    for run_id in sorted(ids):
        entry = store.get(run_id)
        if entry is not None and (run := labels.look_up(entry.run)) != entry.run:
            store.relabel(entry, run)


def summarise_fleet(found: FleetRuns, settings: "SummarySettings", engine: "Engine") -> "FleetSummaries":
    """Return the summaries of the runs, then an entry with its error for each that failed."""
    from gpureport.fleet.running import summarise_runs  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.fleet.summary_table import make_row  # noqa: PLC0415 - as above

    with progress.show_stage("Analysing runs") as stage:
        done = summarise_runs(
            found.selected,
            settings,
            engine,
            lambda done, count, name: stage.update(f"Analysing runs: {done:,} of {count:,} ({name})"),
        )
    for path in done.damaged:
        print_note(f"gpureport: {path}: damaged; the runs in it were analysed again")
    unread = [make_row("", "", run_name=each.locator, error=each.error) for each in found.unread]
    damaged = [make_row("", each, run_name=each, error=_DAMAGED) for each in found.damaged]
    traces = [(each.locator, each.trace) for each in found.unread if each.trace]
    return replace(done, summaries=(*done.summaries, *unread, *damaged), traces=(*done.traces, *traces))


def describe_selection(sources: Sequence[str], options: "SourceOptions", selection: RunSelection) -> str:
    """Return how the runs were selected, in words; empty for all."""
    tags = () if sources else options.labels.tag
    words = (*(f"{key}={value}" for key, value in tags), *(each.text for each in selection))
    return ", ".join(word.removeprefix("tag:") for word in words)


def _no_run(store: "Store", *, is_empty: bool) -> StoreError:
    if is_empty:
        return StoreError(
            str(store.folder), "holds no run", "ingest logs first, or name a folder of logs", code="empty_store"
        )
    return StoreError(
        str(store.folder),
        "no run fits",
        "loosen --tag, --where or --since; gpureport runs lists them",
        code="nothing_selected",
    )
