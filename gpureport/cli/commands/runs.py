"""`gpureport runs`: what the store holds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.options.completion import complete_runs
from gpureport.cli.options.place_type import PLACE
from gpureport.cli.runs.chosen_store import open_store, store_option

if TYPE_CHECKING:
    from gpureport.places import Place
    from gpureport.store import Entry

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@click.group(invoke_without_command=True)
@store_option
@click.pass_context
def runs(ctx: click.Context, *, store: "Place | None") -> None:
    """List, show, label, export or remove stored runs.

    Example: gpureport runs show base
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_runs, store=store)


@runs.command("list")
@store_option
def list_runs(*, store: "Place | None") -> None:
    """List the runs, oldest first."""
    place = open_store(store)
    entries = place.entries()
    for folder in place.damaged():
        click.echo(
            f"gpureport: {make_printable(str(folder))}: damaged; ingest the run again, or remove the folder", err=True
        )
    if not entries:
        click.echo(f"No runs in {place.folder}. Store one: gpureport ingest LOG")
        return
    from gpureport.analysis.rules.phrases import duration  # noqa: PLC0415 - loads the analysis

    width = max(len(make_printable(entry.run.name)) for entry in entries)
    for entry in entries:
        run = entry.run
        length = duration((run.ended - run.started) / 1e6)
        step = f"  step {make_printable(run.step)}" if run.step else ""
        began = f"{_EPOCH + timedelta(microseconds=run.started):%Y-%m-%d %H:%M}"
        started = "no time stamps" if run.quality.synthetic_time else began
        click.echo(
            f"{run.id}  {started:16}  {make_printable(run.name):{width}}"
            f"  {len(run.gpus):3} {'GPU ' if len(run.gpus) == 1 else 'GPUs'}  {length:>12}{step}"
        )


@runs.command()
@click.argument("run", shell_complete=complete_runs)
@store_option
def show(*, store: "Place | None", run: str) -> None:
    """Print what is known about a run, as JSON."""
    click.echo((open_store(store).named(run).folder / "run.json").read_text(encoding="utf-8"), nl=False)


@runs.command()
@click.argument("run", shell_complete=complete_runs)
@click.argument("label")
@store_option
def step(*, store: "Place | None", run: str, label: str) -> None:
    """Set the optimization step of a run."""
    _relabel(store, run, step=label)


@runs.command()
@click.argument("run", shell_complete=complete_runs)
@click.argument("name")
@store_option
def rename(*, store: "Place | None", run: str, name: str) -> None:
    """Rename a run."""
    _relabel(store, run, name=name)


@runs.command()
@click.argument("run", shell_complete=complete_runs)
@click.option("-o", "--output", type=PLACE, required=True, metavar="FILE", help="Parquet file.")
@store_option
def export(*, store: "Place | None", run: str, output: "Place") -> None:
    """Copy the series of a run to a Parquet file."""
    place = open_store(store)
    place.export(place.named(run), output)


@runs.command()
@click.argument("run", nargs=-1, required=True, shell_complete=complete_runs)
@store_option
def rm(*, store: "Place | None", run: tuple[str, ...]) -> None:
    """Remove runs."""
    place = open_store(store)
    for entry in {entry.run.id: entry for entry in map(place.named, run)}.values():
        place.remove(entry)
        _echo(entry, "Removed ")


def _relabel(store: "Place | None", run: str, **labels: str) -> None:
    place = open_store(store)
    entry = place.named(run)
    _echo(place.relabel(entry, replace(entry.run, **labels)))  # type: ignore[arg-type]  # labels are texts


def _echo(entry: "Entry", before: str = "") -> None:
    step = f", step {make_printable(entry.run.step)}" if entry.run.step else ""
    click.echo(f"{before}{entry.run.id}  {make_printable(entry.run.name)}{step}")
