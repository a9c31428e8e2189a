"""`gpureport runs`: what the store holds."""

from dataclasses import replace

import click

from gpureport.cli import run_list
from gpureport.cli.messages import make_printable
from gpureport.cli.options import Options
from gpureport.cli.reading import words
from gpureport.recording import Run
from gpureport.store.run_records import dump_run

_FORMATS = {"text": run_list.render_text, "json": run_list.render_json, "csv": run_list.render_csv}


def runs_list(options: Options) -> None:
    """Print the wanted runs, oldest first."""
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
    """Print what is known about a run, as JSON."""
    click.echo(dump_run(words.find_store(options, must_exist=True).named(name).stored), nl=False)


def runs_step(name: str, label: str, options: Options) -> None:
    """Set the step of a run."""
    _relabel(name, options, step=label)


def runs_rename(name: str, new: str, options: Options) -> None:
    """Rename a run."""
    _relabel(name, options, name=new)


def runs_export(name: str, options: Options) -> None:
    """Copy the series of a run to a Parquet file."""
    place = words.find_store(options, must_exist=True)
    place.export(place.named(name), options.output)


def runs_rm(names: tuple[str, ...], options: Options) -> None:
    """Remove runs."""
    place = words.find_store(options, must_exist=True)
    for entry in {entry.run.id: entry for entry in map(place.named, names)}.values():
        place.remove(entry)
        click.echo(f"Removed {_describe(entry.run)}")


def _relabel(known: str, options: Options, **labels: str) -> None:
    place = words.find_store(options, must_exist=True)
    entry = place.named(known)
    # labels are texts
    found = place.relabel(entry, replace(entry.run, **labels)).run  # type: ignore[arg-type]
    click.echo(_describe(found))


def _describe(run: Run) -> str:
    step = f", step {make_printable(run.step)}" if run.step else ""
    return f"{run.id}  {make_printable(run.name)}{step}"
