"""`gpureport baseline`: named runs to check other runs against."""

import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.command import command, command_group, sources
from gpureport.cli.messages import internal_errors, make_printable, print_note, report_internal_error
from gpureport.cli.options import Options
from gpureport.cli.reading import given, readings, words
from gpureport.cli.reading.analyses import analyze_runs, sample_runs
from gpureport.cli.reading.stored import relabel_stored_run, store_run
from gpureport.errors import InternalError, SettingsError
from gpureport.store.run_selection import BASELINES

if TYPE_CHECKING:
    from gpureport.store.store import Entry, Store

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _print_list(options: Options) -> None:
    from gpureport.nightly.baselines import list_baselines  # noqa: PLC0415 - loads pyarrow

    place = words.find_store(options, must_exist=True)
    found = list_baselines(place)
    if not found:
        click.echo(f"No baselines in {place.folder}. Make one: gpureport baseline set NAME SOURCE")
    for each in found:
        runs = [f"{run.name} ({run.id}, {_EPOCH + timedelta(microseconds=run.started):%Y-%m-%d})" for run in each.runs]
        click.echo(f"{make_printable(each.name)}  {', '.join(map(make_printable, runs)) or 'damaged'}")


baseline = command_group(
    "baseline",
    _print_list,
    """Set, list or remove named baselines.

    Example: gpureport baseline set main runs/base

    A baseline is a copy of one run, or of several repetitions, in the folder `baselines` of the store. It can be kept
    in git, in an artifact or in a bucket without the rest of the store.
    """,
)


@command("set", click.Argument(["baseline_name"], metavar="NAME"), sources(required=True), group=baseline)
def _set(name: str, source: tuple[str, ...], options: Options) -> None:
    """Copy runs as the baseline NAME. Several runs are repetitions of one step.

    A SOURCE is a run of the store, or a log or folder of logs, which is ingested first.
    """
    from gpureport.nightly.baselines import set_baseline  # noqa: PLC0415 - loads pyarrow

    if options.anonymise:
        hint = "give runs other names with --name"
        raise SettingsError("--anonymise", "a baseline keeps the names of runs", hint, code="names_are_kept")
    place = words.find_store(options)
    entries = {entry.run.id: entry for entry in _find_entries(place, source, options)}
    made = set_baseline(place, name, list(entries.values()))
    click.echo(make_printable(f"Baseline {made.name}: {', '.join(f'{each.name} ({each.id})' for each in made.runs)}"))
    for line in _describe_precision(place, made.name, options):
        click.echo(make_printable(line))
    runs = place.folder / BASELINES / made.name / "runs"
    if isinstance(runs, Path) and _is_ignored_by_git(runs):
        print_note(f"git ignores {runs}; to commit it: git add --force {place.folder / BASELINES}")


def _find_entries(place: "Store", source: tuple[str, ...], options: Options) -> "Iterator[Entry]":
    """Yield the runs of sources as the store holds them."""
    if options.as_one_run:
        yield from (store_run(place, each, force=False)[0] for each in readings.find_readings(source, options))
        return
    for word, own in given.give_each(source, options):
        if words.is_source(word, own):
            yield from (store_run(place, each, force=False)[0] for each in readings.find_readings([word], own))
        else:
            yield relabel_stored_run(place, word, own)


def _describe_precision(place: "Store", name: str, options: Options) -> list[str]:
    """Return the smallest changes that a rule can hold against a baseline."""
    from gpureport.checks import changes  # noqa: PLC0415 - loads numpy
    from gpureport.nightly.baselines import read_baseline  # noqa: PLC0415 - loads pyarrow

    try:
        with internal_errors(f"the baseline {name}"):
            runs = analyze_runs(read_baseline(place, name), Options(), fewest_runs=0).runs
            sampled = sample_runs(runs, options.throughput)
            return [*changes.describe_precision(sampled)] if sampled else []
    except InternalError as error:
        report_internal_error(error)
        return []


def _is_ignored_by_git(folder: Path) -> bool:
    """Return whether a folder lies in a work tree of git that ignores it; False without git."""
    git = shutil.which("git")
    if git is None:
        return False
    line = [git, "-C", str(folder), "check-ignore", "-q", "."]
    return subprocess.run(line, check=False, capture_output=True).returncode == 0  # noqa: S603 - git, on our own folder


@command("list", group=baseline)
def _list(options: Options) -> None:
    """List the baselines by name."""
    _print_list(options)


@command("rm", click.Argument(["name"], nargs=-1, required=True), group=baseline)
def _rm(names: tuple[str, ...], options: Options) -> None:
    """Remove baselines, but not the runs they were copied from."""
    from gpureport.nightly.baselines import remove_baseline  # noqa: PLC0415 - loads pyarrow

    for each in names:
        remove_baseline(words.find_store(options, must_exist=True), each)
        click.echo(f"Removed {make_printable(each)}")
