"""The runs of a fleet and their summaries, what sources hold stored first; and the report printed and written."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from gpureport import __version__
from gpureport.cli.messages import current_session, list_names, print_error, print_note, show_stage
from gpureport.cli.options import Options
from gpureport.cli.output import check_openable, measure_page, name_files, open_page, typed_command
from gpureport.cli.reading import given, readings, stored, words
from gpureport.errors import SettingsError, StoreError

if TYPE_CHECKING:
    from gpureport.fleet.fleet_report import FleetReport
    from gpureport.fleet.running.fleet_summaries import FleetSummaries, SelectedRuns
    from gpureport.fleet.running.summary_task import ReadOutcome
    from gpureport.fleet.running.task_pool import Engine
    from gpureport.fleet.summaries.summary_key import SummarySettings
    from gpureport.report.formats.branding import Brand
    from gpureport.store.store import Store

_SOURCE = 3
"""Exit code when no run could be read and analysed."""
_MOST_NAMED = 20
"""Reasons of failed runs that are named on standard error; the report names all."""
_DAMAGED = "damaged; ingest the run again"
_LABELLING = {
    "param": "--param",
    "work": "--work",
    "name": "--name",
    "step": "--step",
    "gpu_model": "--gpu-model",
    "label_table": "--labels",
    "start": "--from",
    "end": "--to",
}
"""Options that label or cut what is read, `--tag` left out."""


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


def find_fleet_runs(sources: Sequence[str], options: Options, engine: "Engine") -> FleetRuns:
    """Return the runs that are wanted; those of sources once they are in the store.

    Without a source, `--tag` selects among the stored runs; with one it labels what is read.

    Raises:
        SettingsError: when reading options have no source, or no run has a label asked for.
        SourceError: when a source is missing, or holds no log. `StoreError` when no stored run is left.
    """
    from gpureport.fleet.running.fleet_summaries import SelectedRuns  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.store.run_selection import select_runs  # noqa: PLC0415 - as above

    if not sources:
        _refuse_reading_option(options)
        options = replace(options, tagged=options.tag)
    store, selection = words.find_store(options), stored.build_selection(options)
    read, unread = _read_sources(store, sources, options, engine)
    index = store.index()
    wanted = [each for each in index.runs if each.run.id in read] if sources else index.runs
    stored.note_undated_runs(wanted, selection)
    runs = select_runs(wanted, selection)
    damaged = () if sources else index.damaged
    if not runs and not unread and not damaged:
        where = str(store.folder)
        if not index.runs:
            hint = "ingest logs first, or name a folder of logs"
            raise StoreError(where, "holds no run", hint, code="empty_store")
        hint = "loosen --tag, --where or --since; gpureport runs lists them"
        raise StoreError(where, "no run fits", hint, code="nothing_selected")
    everything = frozenset(each.run.id for each in index.runs)
    selected = SelectedRuns(store=store.folder, runs=runs, every_run=everything)
    return FleetRuns(selected=selected, unread=unread, damaged=damaged)


def _refuse_reading_option(options: Options) -> None:
    """Refuse an option that needs a source.

    Raises:
        SettingsError: naming it.
    """
    labelling = (option for name, option in _LABELLING.items() if getattr(options, name))
    option = given.find_reading_option(options) or next(labelling, "--job" if options.job is not None else "")
    if option:
        what, hint = "it matters only while a log is read", "name a SOURCE, or leave it out"
        raise SettingsError(option, what, hint, code="only_while_reading")


def _read_sources(
    store: "Store", sources: Sequence[str], options: Options, engine: "Engine"
) -> "tuple[set[str], tuple[ReadOutcome, ...]]":
    """Return the ids of the runs that sources hold, and what could not be read."""
    from gpureport.fleet.running import fleet_summaries  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.fleet.running.summary_task import ReadTask, locate_store  # noqa: PLC0415 - as above

    named = [source for source in sources if not words.is_source(source, options)]
    lookup = store.lookup()
    ids = {lookup.find(name).run.id for name in named}
    logs = [source for source in sources if source not in named]
    # a table of jobs does not travel to workers: it labels what is stored afterwards
    found = readings.find_readings(logs, replace(options, label_table=None)) if logs else []
    folder = locate_store(store.folder)
    tasks = [ReadTask(store=folder, reading=reading, read=stored.store_run) for reading in found]
    with show_stage("Reading logs") as stage:
        outcomes = fleet_summaries.read_sources(
            tasks, engine, lambda done, count, name: stage.update(f"Reading logs: {done:,} of {count:,} ({name})")
        )
    ids |= {each.run_id for each in outcomes if each.run_id}
    labels = given.build_labels(options) if options.label_table else None
    for run_id in sorted(ids) if labels else ():
        entry = store.get(run_id)
        if labels and entry is not None and (run := labels.look_up(entry.run)) != entry.run:
            store.relabel(entry, run)
    return ids, tuple(each for each in outcomes if each.error)


def summarise_fleet(found: FleetRuns, settings: "SummarySettings", engine: "Engine") -> "FleetSummaries":
    """Return the summaries of the runs, then an entry with its error for each that failed."""
    from gpureport.fleet.gpu_summary import GpuSummary  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.fleet.running.fleet_summaries import summarise_runs  # noqa: PLC0415 - as above

    with show_stage("Analysing runs") as stage:
        done = summarise_runs(
            found.selected,
            settings,
            engine,
            lambda done, count, name: stage.update(f"Analysing runs: {done:,} of {count:,} ({name})"),
        )
    for path in done.damaged:
        print_note(f"gpureport: {path}: damaged; the runs in it were analysed again")
    unread = [GpuSummary(key="", run_id="", run_name=each.locator, error=each.error) for each in found.unread]
    damaged = [GpuSummary(key="", run_id=each, run_name=each, error=_DAMAGED) for each in found.damaged]
    traces = [(each.locator, each.trace) for each in found.unread if each.trace]
    return replace(done, summaries=(*done.summaries, *unread, *damaged), traces=(*done.traces, *traces))


def describe_selection(sources: Sequence[str], options: Options) -> str:
    """Return how the runs were selected, in words; empty for all."""
    chosen = stored.build_selection(replace(options, tagged=() if sources else options.tag))
    return ", ".join(each.text.removeprefix("tag:") for each in chosen)


def check_fleet_outputs(options: Options) -> None:
    """Refuse files of unknown kinds, and options that no file needs.

    Raises:
        RenderError: naming the file, or the option.
    """
    from gpureport.fleet.formats.fleet_output import check_fleet_outputs  # noqa: PLC0415 - loads the report

    check_fleet_outputs(options.outputs, full=options.text_detail == "full")
    check_openable(options)


def write_fleet(report: "FleetReport", options: Options, brand: "Brand") -> None:
    """Print the report unless files are named or JSON is wanted, and write it to every file by its extension."""
    from gpureport.fleet.formats import fleet_json, fleet_output, terminal_page  # noqa: PLC0415 - loads the report

    full = options.text_detail == "full"
    with show_stage("Writing the report"):
        page = fleet_output.write_fleet_report(
            report, options.outputs, command=typed_command(), version=__version__, brand=brand, full=full
        )
    if options.form == "json":
        click.echo(fleet_json.render(report), nl=False)
    elif not options.outputs:
        click.echo(terminal_page.render(page, measure_page(), full=full), nl=False)
    name_files(page.verdict.sentence, options)
    open_page(options)


def report_failed_runs(report: "FleetReport", traces: Sequence[tuple[str, str]]) -> int:
    """Name the failed runs on standard error, and return the exit code.

    Args:
        report: the report.
        traces: tracebacks of faults of gpureport itself, by the name of their run.
    """
    session = current_session()
    session.failed = session.failed or bool(traces)
    for name, trace in traces if session.debug else ():
        click.echo(f"{name}:\n{trace}", err=True, nl=False)
    names: dict[str, list[str]] = {}
    for failed in report.failed:
        names.setdefault(failed.error, []).append(failed.run.name)
    shown = list(names.items())[:_MOST_NAMED]
    for error, runs in shown:
        count = f"{len(runs):,} runs, " if len(runs) > 1 else ""
        print_error(f"left out: {count}{list_names(runs)}: {error}")
    if more := len(report.failed) - sum(len(runs) for _, runs in shown):
        print_error(f"left out: {more:,} more; --format json names all")
    return _SOURCE if report.failed and not report.use.runs and not report.without_gpu else 0
