"""`gpureport baseline`: named runs to check other runs against."""

import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options.completion import complete_files
from gpureport.cli.options.source_options import SourceOptions, source_options
from gpureport.cli.results.baseline_state import describe_baseline
from gpureport.cli.runs.chosen_store import open_store, store_option
from gpureport.cli.runs.run_storing import relabel_stored_run, store_run
from gpureport.cli.sources import source_names, source_readings
from gpureport.errors import SettingsError
from gpureport.store.run_selection import BASELINES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpureport.places import Place
    from gpureport.store.store import Entry, Store

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@click.group(invoke_without_command=True)
@store_option
@click.pass_context
def baseline(ctx: click.Context, *, store: "Place | None") -> None:
    """Set, list or remove named baselines.

    Example: gpureport baseline set main runs/base

    A baseline is a copy of one run, or of several repetitions, in the folder `baselines` of the store. It can be kept
    in git, in an artifact or in a bucket without the rest of the store.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_baselines, store=store)


@baseline.command("set")
@click.argument("baseline_name", metavar="NAME")
@click.argument("source", nargs=-1, required=True, shell_complete=complete_files)
@source_options
@click.pass_context
def set_baseline(ctx: click.Context, *, baseline_name: str, source: tuple[str, ...], options: SourceOptions) -> None:
    """Copy runs as the baseline NAME. Several runs are repetitions of one step.

    A SOURCE is a run of the store, or a log or folder of logs, which is ingested first.
    """
    from gpureport.nightly.history.baselines import set_baseline  # noqa: PLC0415 - loads pyarrow

    if options.anonymise:
        raise SettingsError(
            "--anonymise",
            "a baseline keeps the names of runs",
            "give runs other names with --name",
            code="names_are_kept",
        )
    own = replace(options, store=options.store or (ctx.parent.params.get("store") if ctx.parent else None))
    place = source_names.find_store(own)
    entries = {entry.run.id: entry for entry in _find_entries(place, source, own)}
    made = set_baseline(place, baseline_name, list(entries.values()))
    click.echo(make_printable(f"Baseline {made.name}: {', '.join(f'{each.name} ({each.id})' for each in made.runs)}"))
    for line in describe_baseline(place, made.name, options.tracker.throughput):
        click.echo(make_printable(line))
    runs = place.folder / BASELINES / made.name / "runs"
    if isinstance(runs, Path) and _is_ignored_by_git(runs):
        print_note(f"git ignores {runs}; to commit it: git add --force {place.folder / BASELINES}")


def _is_ignored_by_git(folder: Path) -> bool:
    """Return whether a folder lies in a work tree of git that ignores it; False without git."""
    git = shutil.which("git")
    if git is None:
        return False
    words = [git, "-C", str(folder), "check-ignore", "-q", "."]
    return subprocess.run(words, check=False, capture_output=True).returncode == 0  # noqa: S603 - git, on our own folder


def _find_entries(place: "Store", sources: tuple[str, ...], options: SourceOptions) -> "Iterator[Entry]":
    """Yield the runs of sources as the store holds them."""
    if options.input.as_one_run:
        yield from (
            store_run(place, reading, force=False)[0] for reading in source_readings.find_readings(sources, options)
        )
        return
    for source, own in options.for_each(sources):
        if source_names.is_source(source, own):
            for reading in source_readings.find_readings([source], own):
                yield store_run(place, reading, force=False)[0]
        else:
            yield relabel_stored_run(place, source, own)


@baseline.command("list")
@store_option
def list_baselines(*, store: "Place | None") -> None:
    """List the baselines by name."""
    from gpureport.nightly.history.baselines import list_baselines  # noqa: PLC0415 - loads pyarrow

    place = open_store(store)
    found = list_baselines(place)
    if not found:
        click.echo(f"No baselines in {place.folder}. Make one: gpureport baseline set NAME SOURCE")
    for each in found:
        runs = [f"{run.name} ({run.id}, {_EPOCH + timedelta(microseconds=run.started):%Y-%m-%d})" for run in each.runs]
        click.echo(f"{make_printable(each.name)}  {', '.join(map(make_printable, runs)) or 'damaged'}")


@baseline.command()
@click.argument("name", nargs=-1, required=True)
@store_option
def rm(*, store: "Place | None", name: tuple[str, ...]) -> None:
    """Remove baselines, but not the runs they were copied from."""
    from gpureport.nightly.history.baselines import remove_baseline  # noqa: PLC0415 - loads pyarrow

    for each in name:
        remove_baseline(open_store(store), each)
        click.echo(f"Removed {make_printable(each)}")
