"""The commands for the store: `ingest`, `runs` and `baseline`."""

import shutil
import subprocess
from collections import deque
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from gpureport.cli import account, messages, sources, words
from gpureport.cli.messages import Exit, Verbosity, make_printable, print_lines
from gpureport.cli.options import FIELDS, Options
from gpureport.errors import InternalError, SettingsError, SourceError
from gpureport.importers.time_window import RunReading
from gpureport.recording import Run

_open = partial(words.find_store, must_exist=True)
_LISTING = {"listing", "map", "experiment", "project", "filter", "latest", "group", "store"}
_FORMATS = {"text": account.render_text, "json": account.render_json, "csv": account.render_csv}


def ingest(source: tuple[str, ...], options: Options) -> int:
    sources.refuse_to_hide(options, "a store")
    if options.listing:
        if given := sources.find_given(options, [name for name in FIELDS if name not in _LISTING]):
            raise SettingsError(given, "--list only shows the runs", "leave it out", code="only_while_reading")
        lines, unreadable = sources.list_tracked_runs(source, options)
        print_lines(lines)
        return Exit.SOURCE if unreadable else 0
    store, said, level = words.find_store(options), set[str](), messages.current_session().level

    def store_each(reading: RunReading) -> list[str]:
        entry, done = words.store_run(store, reading, force=options.force)
        return account.describe_stored(entry.run, done, reading.columns() if level >= Verbosity.VERBOSE else None)

    # free each run once it is stored, because a tracker may have thousands
    waiting = deque(sources.find_readings(source, options))
    for lines_or_error in sources.try_each((waiting.popleft() for _ in range(len(waiting))), store_each):
        if isinstance(lines_or_error, InternalError):
            messages.report_internal_error(lines_or_error)
        elif isinstance(lines_or_error, SourceError):
            # several runs may fail with the same error
            if str(lines_or_error) not in said:
                messages.print_error(str(lines_or_error), lines_or_error.aside)
            said.add(str(lines_or_error))
        elif level > Verbosity.QUIET:
            print_lines(lines_or_error)
    return Exit.SOURCE if said else 0


def runs_list(options: Options) -> None:
    place, selection = _open(options), words.build_selection(options)
    found = words.select_stored_runs(place, selection)
    if found or options.list_form != "text":
        click.echo(_FORMATS[options.list_form]([each.run for each in found]), nl=False)
    elif selection:
        click.echo(f"No run in {place.folder} matches.")
    else:
        click.echo(f"No runs in {place.folder}. Store one: gpureport ingest LOG")


runs = runs_list


def runs_show(name: str, options: Options) -> None:
    from gpureport.store.run_records import dump_run

    click.echo(dump_run(_open(options).named(name).stored), nl=False)


def _relabel(label: str, name: str, value: Any, options: Options) -> None:
    place = _open(options)
    entry = place.named(name)
    click.echo(_describe(place.relabel(entry, replace(entry.run, **{label: value})).run))


runs_step, runs_rename = partial(_relabel, "step"), partial(_relabel, "name")


def runs_export(name: str, options: Options) -> None:
    place = _open(options)
    place.export(place.named(name), options.output)


def runs_rm(names: tuple[str, ...], options: Options) -> None:
    place = _open(options)
    for entry in {entry.run.id: entry for entry in map(place.named, names)}.values():
        place.remove(entry)
        click.echo(f"Removed {_describe(entry.run)}")


def _describe(run: Run) -> str:
    return f"{run.id}  {make_printable(run.name)}" + (f", step {make_printable(run.step)}" if run.step else "")


def baseline_list(options: Options) -> None:
    from gpureport.nightly import baselines

    place = _open(options)
    if not (found := baselines.list_baselines(place)):
        click.echo(f"No baselines in {place.folder}. Make one: gpureport baseline set NAME SOURCE")
    for each in found:
        listed = [f"{run.name} ({run.id}, {account.find_date(run):%Y-%m-%d})" for run in each.runs]
        click.echo(f"{make_printable(each.name)}  {', '.join(map(make_printable, listed)) or 'damaged'}")


baseline = baseline_list


def baseline_set(name: str, source: tuple[str, ...], options: Options) -> None:
    from gpureport.checks import changes
    from gpureport.cli import recordings
    from gpureport.nightly import baselines
    from gpureport.store.run_selection import BASELINES
    from gpureport.store.store import Entry

    sources.refuse_to_hide(options, "a baseline")
    place = words.find_store(options)
    entries: dict[str, Entry] = {}
    groups = recordings.read_groups(
        sources.fetch_sources(source),
        options,
        lambda name, own: [words.relabel_stored_run(place, name, own)],
        lambda each: words.store_run(place, each, force=False)[0],
    )
    for (log, *_), entry in ((group, entry) for group, _, kept in groups for entry in kept):
        if isinstance(entry, Exception):
            raise entry
        if entry.run.id in entries:
            messages.print_note(f"gpureport: {log}: same content as {entries[entry.run.id].run.name}, counted once")
        entries[entry.run.id] = entry
    made = baselines.set_baseline(place, name, list(entries.values()))
    print_lines([f"Baseline {made.name}: {', '.join(f'{each.name} ({each.id})' for each in made.runs)}"])
    try:
        with messages.internal_errors(f"the baseline {made.name}"):
            runs = recordings.analyze_runs(baselines.read_baseline(place, made.name), Options(), fewest_runs=0).runs
            sampled = recordings.sample_runs(runs, options.throughput)
            print_lines(changes.describe_precision(sampled) if sampled else ())
    except InternalError as error:
        messages.report_internal_error(error)
    copies = place.folder / BASELINES / made.name / "runs"
    git = shutil.which("git")
    asked = [str(git), "-C", str(copies), "check-ignore", "-q", "."]
    # git exits with 0 if the work tree ignores the folder
    if git and isinstance(copies, Path) and subprocess.run(asked, check=False, capture_output=True).returncode == 0:  # noqa: S603 - git, on our own folder
        messages.print_note(f"git ignores {copies}; to commit it, run git add --force {place.folder / BASELINES}")


def baseline_rm(names: tuple[str, ...], options: Options) -> None:
    from gpureport.nightly import baselines

    for each in names:
        baselines.remove_baseline(_open(options), each)
        click.echo(f"Removed {make_printable(each)}")
