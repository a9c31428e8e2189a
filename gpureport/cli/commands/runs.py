"""`gpureport runs`: what the store holds."""

from dataclasses import replace

import click

from gpureport.cli import run_list
from gpureport.cli.command import command, command_group
from gpureport.cli.messages import make_printable
from gpureport.cli.options import Options
from gpureport.cli.reading import stored
from gpureport.cli.reading.words import find_store

_FORMATS = {"text": run_list.render_text, "json": run_list.render_json, "csv": run_list.render_csv}
_RUN = click.Argument(["run"])


def _print_list(options: Options) -> None:
    place, selection = find_store(options, must_exist=True), stored.build_selection(options)
    found = stored.select_stored_runs(place, selection)
    if found or options.list_form != "text":
        click.echo(_FORMATS[options.list_form]([each.run for each in found]), nl=False)
    elif selection:
        click.echo(f"No run in {place.folder} matches.")
    else:
        click.echo(f"No runs in {place.folder}. Store one: gpureport ingest LOG")


runs = command_group(
    "runs",
    _print_list,
    """List, show, label, export or remove stored runs.

    Example: gpureport runs show base
    """,
)


@command("list", group=runs)
def _list(options: Options) -> None:
    """List the runs, oldest first.

    Example: gpureport runs list --since 30d --tag user=ann --where gpus>=8
    """
    _print_list(options)


@command("show", _RUN, group=runs)
def _show(run: str, options: Options) -> None:
    """Print what is known about a run, as JSON."""
    from gpureport.store.run_records import dump_run  # noqa: PLC0415 - loads with the store

    click.echo(dump_run(find_store(options, must_exist=True).named(run).stored), nl=False)


@command("step", _RUN, click.Argument(["label"]), group=runs)
def _step(run: str, label: str, options: Options) -> None:
    """Set the optimization step of a run."""
    _relabel(run, options, step=label)


@command("rename", _RUN, click.Argument(["name"]), group=runs)
def _rename(run: str, name: str, options: Options) -> None:
    """Rename a run."""
    _relabel(run, options, name=name)


@command("export", _RUN, group=runs)
def _export(run: str, options: Options) -> None:
    """Copy the series of a run to a Parquet file."""
    place = find_store(options, must_exist=True)
    place.export(place.named(run), options.output)


@command("rm", click.Argument(["run"], nargs=-1, required=True), group=runs)
def _rm(run: tuple[str, ...], options: Options) -> None:
    """Remove runs."""
    place = find_store(options, must_exist=True)
    for entry in {entry.run.id: entry for entry in map(place.named, run)}.values():
        place.remove(entry)
        step = f", step {make_printable(entry.run.step)}" if entry.run.step else ""
        click.echo(f"Removed {entry.run.id}  {make_printable(entry.run.name)}{step}")


def _relabel(run: str, options: Options, **labels: str) -> None:
    place = find_store(options, must_exist=True)
    entry = place.named(run)
    found = place.relabel(entry, replace(entry.run, **labels)).run  # type: ignore[arg-type]  # labels are texts
    step = f", step {make_printable(found.step)}" if found.step else ""
    click.echo(f"{found.id}  {make_printable(found.name)}{step}")
