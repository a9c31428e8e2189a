"""Commands on the store: ingest, runs and baseline."""

import shutil
import subprocess
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import click

from gpureport.cli import account
from gpureport.cli.messages import (
    Exit,
    Verbosity,
    current_session,
    internal_errors,
    make_printable,
    print_note,
    print_source_error,
    report_internal_error,
)
from gpureport.cli.options import Options
from gpureport.cli.reading import readings, words
from gpureport.errors import InternalError, SettingsError, SourceError
from gpureport.importers.time_window import RunReading
from gpureport.recording import Run

_FORMATS = {"text": account.render_text, "json": account.render_json, "csv": account.render_csv}


def ingest(source: tuple[str, ...], options: Options) -> int:
    """Store each run and say so, or list the runs of trackers; 3 where one cannot be read."""
    if options.anonymise:
        what = "it changes what is shown, not what is stored"
        raise SettingsError("--anonymise", what, "use it with gpureport analyze", code="names_are_kept")
    if options.listing:
        lines, unreadable = readings.list_tracked_runs(source, options)
        for line in lines:
            click.echo(make_printable(line))
        return Exit.SOURCE if unreadable else 0
    store, said, level = words.find_store(options), set[str](), current_session().level

    def take_each() -> Iterator[RunReading]:
        # each is freed once it is stored, as a tracker may hold a thousand
        waiting = deque(readings.find_readings(source, options))
        while waiting:
            yield waiting.popleft()

    def store_each(reading: RunReading) -> list[str]:
        entry, done = words.store_run(store, reading, force=options.force)
        return account.describe_stored(entry.run, done, reading.columns() if level >= Verbosity.VERBOSE else None)

    for lines_or_error in readings.try_each(take_each(), store_each):
        if isinstance(lines_or_error, InternalError):
            report_internal_error(lines_or_error)
        elif isinstance(lines_or_error, SourceError):
            # the other logs of the folder are still read; a fault can be that of many runs
            if str(lines_or_error) not in said:
                print_source_error(lines_or_error)
            said.add(str(lines_or_error))
        else:
            for line in lines_or_error if level > Verbosity.QUIET else ():
                click.echo(make_printable(line))
    return Exit.SOURCE if said else 0


def runs_list(options: Options) -> None:
    place, selection = words.find_store(options, must_exist=True), words.build_selection(options)
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

    click.echo(dump_run(words.find_store(options, must_exist=True).named(name).stored), nl=False)


def runs_step(name: str, label: str, options: Options) -> None:
    place = words.find_store(options, must_exist=True)
    entry = place.named(name)
    click.echo(_describe(place.relabel(entry, replace(entry.run, step=label)).run))


def runs_rename(name: str, new: str, options: Options) -> None:
    place = words.find_store(options, must_exist=True)
    entry = place.named(name)
    click.echo(_describe(place.relabel(entry, replace(entry.run, name=new)).run))


def runs_export(name: str, options: Options) -> None:
    place = words.find_store(options, must_exist=True)
    place.export(place.named(name), options.output)


def runs_rm(names: tuple[str, ...], options: Options) -> None:
    place = words.find_store(options, must_exist=True)
    for entry in {entry.run.id: entry for entry in map(place.named, names)}.values():
        place.remove(entry)
        click.echo(f"Removed {_describe(entry.run)}")


def _describe(run: Run) -> str:
    step = f", step {make_printable(run.step)}" if run.step else ""
    return f"{run.id}  {make_printable(run.name)}{step}"


def baseline_list(options: Options) -> None:
    from gpureport.nightly import baselines

    place = words.find_store(options, must_exist=True)
    found = baselines.list_baselines(place)
    if not found:
        click.echo(f"No baselines in {place.folder}. Make one: gpureport baseline set NAME SOURCE")
    for each in found:
        days = [account.EPOCH + timedelta(microseconds=run.started) for run in each.runs]
        listed = [f"{run.name} ({run.id}, {day:%Y-%m-%d})" for run, day in zip(each.runs, days, strict=True)]
        click.echo(f"{make_printable(each.name)}  {', '.join(map(make_printable, listed)) or 'damaged'}")


baseline = baseline_list


def baseline_set(name: str, source: tuple[str, ...], options: Options) -> None:
    from gpureport.checks import changes
    from gpureport.cli.reading import recordings
    from gpureport.nightly import baselines
    from gpureport.store.run_selection import BASELINES
    from gpureport.store.store import Entry

    if options.anonymise:
        hint = "give runs other names with --name"
        raise SettingsError("--anonymise", "a baseline keeps the names of runs", hint, code="names_are_kept")
    place = words.find_store(options)
    entries: dict[str, Entry] = {}
    for group in recordings.list_groups(words.fetch_sources(source), options):
        kept = recordings.read_group(
            group,
            lambda name, own: [words.relabel_stored_run(place, name, own)],
            lambda each: words.store_run(place, each, force=False)[0],
        )
        for entry in kept:
            if isinstance(entry, Exception):
                raise entry
            entries[entry.run.id] = entry
    made = baselines.set_baseline(place, name, list(entries.values()))
    click.echo(make_printable(f"Baseline {made.name}: {', '.join(f'{each.name} ({each.id})' for each in made.runs)}"))
    try:
        with internal_errors(f"the baseline {made.name}"):
            runs = recordings.analyze_runs(baselines.read_baseline(place, made.name), Options(), fewest_runs=0).runs
            sampled = recordings.sample_runs(runs, options.throughput)
            for line in changes.describe_precision(sampled) if sampled else ():
                click.echo(make_printable(line))
    except InternalError as error:
        report_internal_error(error)
    copies, git = place.folder / BASELINES / made.name / "runs", shutil.which("git")
    asked = [str(git), "-C", str(copies), "check-ignore", "-q", "."]
    # git ends with 0 where the folder lies in a work tree that ignores it
    if git and isinstance(copies, Path) and subprocess.run(asked, check=False, capture_output=True).returncode == 0:  # noqa: S603 - git, on our own folder
        print_note(f"git ignores {copies}; to commit it: git add --force {place.folder / BASELINES}")


def baseline_rm(names: tuple[str, ...], options: Options) -> None:
    from gpureport.nightly import baselines

    for each in names:
        baselines.remove_baseline(words.find_store(options, must_exist=True), each)
        click.echo(f"Removed {make_printable(each)}")
