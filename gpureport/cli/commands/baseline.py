"""`gpureport baseline`: named runs to check other runs against."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.options.completion import complete_baselines, complete_runs
from gpureport.cli.runs.chosen_store import open_store, store_option

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@click.group(invoke_without_command=True)
@store_option
@click.pass_context
def baseline(ctx: click.Context, *, store: Path | None) -> None:
    """Set, list or remove named baselines.

    A baseline is a copy of one run, or of several repetitions, in the folder `baselines` of the store. It can be kept
    in git, in an artifact or in a bucket without the rest of the store.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_baselines, store=store)


@baseline.command("set")
@click.argument("name", shell_complete=complete_baselines)
@click.argument("run", nargs=-1, required=True, shell_complete=complete_runs)
@store_option
def set_baseline(*, store: Path | None, name: str, run: tuple[str, ...]) -> None:
    """Copy stored runs as the baseline NAME. Several runs are repetitions of one step."""
    from gpureport.nightly.history.baselines import set_baseline  # noqa: PLC0415 - loads pyarrow

    place = open_store(store)
    entries = {entry.run.id: entry for entry in map(place.named, run)}
    made = set_baseline(place, name, list(entries.values()))
    click.echo(f"Baseline {made.name}: {', '.join(make_printable(f'{each.name} ({each.id})') for each in made.runs)}")


@baseline.command("list")
@store_option
def list_baselines(*, store: Path | None) -> None:
    """List the baselines by name."""
    from gpureport.nightly.history.baselines import list_baselines  # noqa: PLC0415 - loads pyarrow

    place = open_store(store)
    found = list_baselines(place)
    if not found:
        click.echo(f"No baselines in {place.folder}. Make one: gpureport baseline set NAME RUN")
    for each in found:
        runs = [f"{run.name} ({run.id}, {_EPOCH + timedelta(microseconds=run.started):%Y-%m-%d})" for run in each.runs]
        click.echo(f"{each.name}  {', '.join(map(make_printable, runs)) or 'damaged'}")


@baseline.command()
@click.argument("name", nargs=-1, required=True, shell_complete=complete_baselines)
@store_option
def rm(*, store: Path | None, name: tuple[str, ...]) -> None:
    """Remove baselines, but not the runs they were copied from."""
    from gpureport.nightly.history.baselines import remove_baseline  # noqa: PLC0415 - loads pyarrow

    for each in name:
        remove_baseline(open_store(store), each)
        click.echo(f"Removed {make_printable(each)}")
