"""`gpureport runs`: what the store holds."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.options.selection_options import tag_selection_options
from gpureport.cli.options.written_paths import OUTPUT, WritingCommand
from gpureport.cli.results import run_list
from gpureport.cli.runs.chosen_store import open_store, store_option
from gpureport.cli.runs.stored_runs import select_stored_runs
from gpureport.store.run_selection import RunSelection

if TYPE_CHECKING:
    from gpureport.places import Place
    from gpureport.store import Entry

_FORMATS = {"text": run_list.render_text, "json": run_list.render_json, "csv": run_list.render_csv}


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
@click.option("--format", "form", type=click.Choice([*_FORMATS]), default="text", help="Text for people, JSON or CSV.")
@tag_selection_options
@store_option
def list_runs(*, store: "Place | None", form: str, selection: RunSelection) -> None:
    """List the runs, oldest first.

    Example: gpureport runs list --since 30d --tag user=ann --where gpus>=8
    """
    place = open_store(store)
    found = select_stored_runs(place, selection)
    if found or form != "text":
        click.echo(_FORMATS[form]([stored.run for stored in found]), nl=False)
    elif selection:
        click.echo(f"No run in {place.folder} matches.")
    else:
        click.echo(f"No runs in {place.folder}. Store one: gpureport ingest LOG")


@runs.command()
@click.argument("run")
@store_option
def show(*, store: "Place | None", run: str) -> None:
    """Print what is known about a run, as JSON."""
    from gpureport.store.run_records import dump_run  # noqa: PLC0415 - loads with the store

    click.echo(dump_run(open_store(store).named(run).stored), nl=False)


@runs.command()
@click.argument("run")
@click.argument("label")
@store_option
def step(*, store: "Place | None", run: str, label: str) -> None:
    """Set the optimization step of a run."""
    _relabel(store, run, step=label)


@runs.command()
@click.argument("run")
@click.argument("name")
@store_option
def rename(*, store: "Place | None", run: str, name: str) -> None:
    """Rename a run."""
    _relabel(store, run, name=name)


@runs.command(cls=WritingCommand)
@click.argument("run")
@click.option("-o", "--output", type=OUTPUT, required=True, metavar="FILE", help="Parquet file.")
@store_option
def export(*, store: "Place | None", run: str, output: "Place") -> None:
    """Copy the series of a run to a Parquet file."""
    place = open_store(store)
    place.export(place.named(run), output)


@runs.command()
@click.argument("run", nargs=-1, required=True)
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
