"""`gpureport fleet`: stores runs, summarises each on an engine, and reports the totals."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from gpureport.cli import output, sources, words
from gpureport.cli.messages import Exit, count, current_session, list_names, print_error, print_note, show_stage
from gpureport.cli.options import Options
from gpureport.cli.recordings import read_run_prices
from gpureport.errors import SettingsError, StoreError
from gpureport.fleet import formats, running
from gpureport.fleet.cards import Facts
from gpureport.fleet.summarise import SummarySettings, make_row, read_summary_settings
from gpureport.fleet.totals import LABELS, build_fleet_report
from gpureport.names import group_pairs
from gpureport.nightly.baselines import find_slower
from gpureport.regular_files import is_folder
from gpureport.report import refuse_sources
from gpureport.report.formats.branding import read_brand
from gpureport.report.sections.head.recording_doubts import list_rejections
from gpureport.settings import read_settings
from gpureport.store.run_selection import select_runs
from gpureport.store.store import Store

_MOST_NAMED = 20
_LABELLING = ["param", "work", "name", "step", "gpu_model", "label_table", "start", "end", "job"]
"""Options that label or trim logs, except `--tag`, which selects stored runs if no source is given."""


def fleet(source: tuple[str, ...], options: Options) -> int:
    full = options.text_detail == "full"
    formats.check_fleet_outputs(options.outputs, full=full)
    output.check_openable(options)
    settings = read_settings(options.config)
    brand = read_brand(settings)
    refuse_sources(options.outputs, [*map(str, brand.files)])
    prices = read_run_prices(settings, options)
    rules = read_summary_settings(settings)
    engine = running.open_engine(options.engine, options.scheduler)
    if not source:
        if option := sources.find_given(options, [*sources.READING, *_LABELLING]):
            hint = "name a SOURCE, or leave out the option"
            raise SettingsError(option, "this option applies only when a log is read", hint, code="only_while_reading")
        options = replace(options, tagged=options.tag)
    done = _summarise(source, options, rules, engine)
    asked = ", ".join(each.text.removeprefix("tag:") for each in words.build_selection(options))
    report = build_fleet_report(done.summaries, prices, options.group_by or LABELS, asked, options.gpu_hours_per_month)
    report["mostly_rejected_runs"] = done.rejected
    if options.anonymise:
        report = formats.anonymise_fleet_report(report)
    with show_stage("Writing the report"):
        page = formats.write_fleet_report(report, options.outputs, output.typed_command(), brand=brand, full=full)
    if options.form == "json":
        click.echo(formats.write_json(report), nl=False)
    elif not options.outputs:
        click.echo(formats.render_text(page, output.measure_page(), full=full), nl=False)
    output.show_files(page.verdict.sentence, options)
    return _report_failed_runs(report, done.traces)


def _summarise(
    named: Sequence[str], options: Options, settings: SummarySettings, engine: running.Engine | None
) -> running.FleetSummaries:
    store, selection = words.find_store(options), words.build_selection(options)
    read, unread = _read_sources(store, named, options, engine)
    index = store.index()
    wanted = [each for each in index.runs if each.run.id in read] if named else index.runs
    words.note_undated_runs(wanted, selection)
    runs, damaged = select_runs(wanted, selection), () if named else index.damaged
    if not (runs or unread or damaged):
        if index.runs:
            raise StoreError(str(store.folder), "no stored run matches", words.LIST_RUNS, code="nothing_selected")
        raise StoreError(str(store.folder), "contains no runs", "name a folder of logs", code="empty_store")
    every_run = frozenset(each.run.id for each in index.runs)
    selected = running.SelectedRuns(store=store.folder, runs=runs, every_run=every_run)
    with show_stage("Analysing runs") as say:
        done = running.summarise_runs(selected, settings, engine, _watch(say, "Analysing runs"))
    for path in done.damaged:
        print_note(f"gpureport: {path}: damaged; its runs were analysed again")
    told = {row["run_id"]: (row["run_name"], row["tags"]) for row in done.summaries if not options.anonymise}
    rejected = [*list_rejections([each.run for each in runs])]
    for text in (*find_slower(store.folder, told.values()), *rejected[: 0 if options.anonymise else _MOST_NAMED]):
        print_note(text)
    failed = [make_row("", "", run_name=each.locator, error=each.error) for each in unread]
    failed += [make_row("", each, run_name=each, error="damaged; ingest the run again") for each in damaged]
    traces = [(each.locator, each.trace) for each in unread if each.trace]
    return replace(done, summaries=(*done.summaries, *failed), traces=(*done.traces, *traces), rejected=len(rejected))


def _read_sources(
    store: Store, named: Sequence[str], options: Options, engine: running.Engine | None
) -> tuple[set[str], list[running.Outcome]]:
    logs = [source for source in named if words.is_source(source, options)]
    lookup = store.lookup()
    ids = {lookup.find(name).run.id for name in named if name not in logs}
    # stored runs are labelled later, so workers do not need the table of jobs
    found = sources.find_readings(logs, replace(options, label_table=None)) if logs else []
    known = {parent for each in found for parent in Path(each.locator).resolve().parents}
    for source in filter(is_folder, logs):
        below = [path for path in sorted(Path(source).iterdir()) if path.is_dir() and not path.name.startswith(".")]
        lacking = [path.name for path in below if path.resolve() not in known]
        if 0 < len(lacking) < len(below):
            print_note(f"gpureport: {source}: {count(len(lacking), 'folder')} without a GPU log: {list_names(lacking)}")
    folder = running.locate_store(store.folder)
    tasks = [running.ReadTask(store=folder, reading=reading, read=words.store_run) for reading in found]
    with show_stage("Reading logs") as say:
        outcomes = running.read_sources(tasks, engine, _watch(say, "Reading logs"))
    ids |= {each.run_id for each in outcomes if each.run_id}
    labels = sources.build_labels(options) if options.label_table else None
    for run_id in sorted(ids) if labels else ():
        entry = store.get(run_id)
        if labels and entry is not None and (run := labels.look_up(entry.run)) != entry.run:
            store.relabel(entry, run)
    return ids, [each for each in outcomes if each.error]


def _watch(say: Callable[[str], None], label: str) -> running.Watch:
    return lambda done, count, name: say(f"{label}: {done:,} of {count:,} ({name})")


def _report_failed_runs(report: Facts, traces: Sequence[tuple[str, str]]) -> int:
    session = current_session()
    session.failed = session.failed or bool(traces)
    for name, trace in traces if session.debug else ():
        click.echo(f"{name}:\n{trace}", err=True, nl=False)
    names = group_pairs((failed["error"], failed["run"]["name"]) for failed in report["failed"])
    for error, runs in list(names.items())[:_MOST_NAMED]:
        count = f"{len(runs):,} runs, " if len(runs) > 1 else ""
        print_error(f"left out: {count}{list_names(runs)}: {error}")
    if more := sum(map(len, list(names.values())[_MOST_NAMED:])):
        print_error(f"left out: {more:,} more; --format json lists them all")
    return Exit.SOURCE if report["failed"] and not report["use"]["runs"] and not report["without_gpu"] else 0
