"""`gpureport baseline`: named runs to check other runs against."""

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from gpureport.cli.messages import internal_errors, make_printable, print_note, report_internal_error
from gpureport.cli.options import Options
from gpureport.cli.reading import recordings, words
from gpureport.errors import InternalError, SettingsError
from gpureport.nightly import baselines
from gpureport.store.run_selection import BASELINES
from gpureport.store.store import Entry

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def baseline_list(options: Options) -> None:
    """Print the baselines by name."""
    place = words.find_store(options, must_exist=True)
    found = baselines.list_baselines(place)
    if not found:
        click.echo(f"No baselines in {place.folder}. Make one: gpureport baseline set NAME SOURCE")
    for each in found:
        runs = [f"{run.name} ({run.id}, {_EPOCH + timedelta(microseconds=run.started):%Y-%m-%d})" for run in each.runs]
        click.echo(f"{make_printable(each.name)}  {', '.join(map(make_printable, runs)) or 'damaged'}")


baseline = baseline_list


def baseline_set(name: str, source: tuple[str, ...], options: Options) -> None:
    """Copy runs as a baseline, and say which changes it can show."""
    from gpureport.checks import changes
    from gpureport.cli.reading.analyses import analyze_runs, sample_runs

    if options.anonymise:
        hint = "give runs other names with --name"
        raise SettingsError("--anonymise", "a baseline keeps the names of runs", hint, code="names_are_kept")
    place = words.find_store(options)
    entries: dict[str, Entry] = {}
    for group in recordings.list_groups(words.fetch_sources(source), options):
        named, found = recordings.find_group(group, lambda name, own: [words.relabel_stored_run(place, name, own)])
        kept = [*named, *(words.store_run(place, each, force=False)[0] for each in found)]
        entries |= {entry.run.id: entry for entry in kept}
    made = baselines.set_baseline(place, name, list(entries.values()))
    click.echo(make_printable(f"Baseline {made.name}: {', '.join(f'{each.name} ({each.id})' for each in made.runs)}"))
    try:
        with internal_errors(f"the baseline {made.name}"):
            runs = analyze_runs(baselines.read_baseline(place, made.name), Options(), fewest_runs=0).runs
            sampled = sample_runs(runs, options.throughput)
            for line in changes.describe_precision(sampled) if sampled else ():
                click.echo(make_printable(line))
    except InternalError as error:
        report_internal_error(error)
    copies = place.folder / BASELINES / made.name / "runs"
    if isinstance(copies, Path) and _is_ignored_by_git(copies):
        print_note(f"git ignores {copies}; to commit it: git add --force {place.folder / BASELINES}")


def baseline_rm(names: tuple[str, ...], options: Options) -> None:
    """Remove baselines."""
    for each in names:
        baselines.remove_baseline(words.find_store(options, must_exist=True), each)
        click.echo(f"Removed {make_printable(each)}")


def _is_ignored_by_git(folder: Path) -> bool:
    """Return whether a folder lies in a work tree of git that ignores it; False without git."""
    git = shutil.which("git")
    line = [str(git), "-C", str(folder), "check-ignore", "-q", "."]
    return bool(git) and subprocess.run(line, check=False, capture_output=True).returncode == 0  # noqa: S603 - git, on our own folder
