"""`gpureport ingest`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from gpureport.cli import progress, sources
from gpureport.cli.options import SourceOptions, source_options
from gpureport.cli.text import printable
from gpureport.errors import SourceError, StoreError

if TYPE_CHECKING:
    from gpureport.importers import Labels, Reading
    from gpureport.recording import Run
    from gpureport.store import Entry, Store

_LISTED = 8
"""Events of a log that are printed."""

_SOURCE = 3
"""Exit code when a source could not be read."""
_SMALL = 16 * 2**20
"""Bytes that are hashed faster than a store of many runs is searched."""


@click.command()
@click.argument("source", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Read again what is already in the store.")
@source_options
def ingest(*, source: tuple[str, ...], force: bool, options: SourceOptions) -> int:
    """Read logs into the store and say what was kept, what was rejected, and why.

    A SOURCE is a log, compressed or not, or a folder of logs. What is in the store already is not read again; it
    keeps its labels unless options give others.
    """
    store, failed = sources.store(options), 0
    for reading in sources.readings(source, options):
        try:
            with progress.shown(reading):
                entry, done = _ingested(store, reading, options.labels(), force=force)
        except SourceError as error:
            # one log of a folder that cannot be read does not keep the others out
            failed += 1
            click.echo(f"gpureport: {printable(str(error))}", err=True)
            continue
        for line in summary(entry.run, done):
            click.echo(printable(line))
    return _SOURCE if failed else 0


def _ingested(store: "Store", reading: "Reading", labels: "Labels", *, force: bool) -> tuple["Entry", str]:
    """Return the stored run, and what was done with it.

    A run that is there already keeps its labels, unless the options say otherwise.
    """
    from gpureport.importers import IMPORTER_VERSION  # noqa: PLC0415 - loads pyarrow

    # the id of a large log is known when all of it was read: not worth it where the store cannot hold the run
    asked = sum(reading.sizes) <= _SMALL or store.may_hold(reading.sizes)
    try:
        known = store.get(reading.run_id) if asked else None
    except StoreError:
        return store.write(reading, IMPORTER_VERSION), ", was damaged, read again"
    if known is None:
        return store.write(reading, IMPORTER_VERSION), ""
    run = labels.applied(known.run)
    if not store.intact(known):
        return store.write(reading, IMPORTER_VERSION, run), ", was damaged, read again"
    if force or known.stored.importer_version != IMPORTER_VERSION:
        return store.write(reading, IMPORTER_VERSION, run), ", read again"
    if run == known.run:
        return known, ", already in the store"
    return store.relabel(known, run), ", already in the store, labels changed"


def summary(run: "Run", done: str) -> list[str]:
    """Return what was read, and what became of every line of it.

    Args:
        run: the run as stored.
        done: what else happened to it, as the end of the first line.
    """
    gpus = f"{len(run.gpus)} GPU{'s' if len(run.gpus) != 1 else ''}"
    every = f"every {run.interval:.3g} s" if run.interval else "one sample"
    return [
        f"{run.id}  {run.name}: {gpus}, {(run.ended - run.started) / 1e6:.0f} s, {every}{done}",
        *_account(run),
    ]


def _account(run: "Run") -> list[str]:
    quality = run.quality
    rejected = sum(entry.rows for entry in quality.rejected)
    others = f"{rejected} rejected + {quality.headers} header{_s(quality.headers)}"
    others += f" + {quality.noise} noise + {quality.events} event{_s(quality.events)}"
    lines = [
        f"  {quality.lines} lines = {quality.rows_kept} rows kept + {others}",
    ]
    lines += [f"  rejected {e.rows}: {e.reason} (first at line {e.first_line})" for e in quality.rejected]
    lines += [f"  no value in {e.cells} cells of {e.column}: {e.reason}" for e in quality.absent_cells]
    lines += [f"  clock of {s.device} stepped by {s.step_seconds:.1f} s: {s.cause}" for s in quality.clock_steps]
    if quality.gaps:
        total = sum(gap.end - gap.start for gap in quality.gaps) / 1e6
        lines.append(f"  {len(quality.gaps)} gap{_s(len(quality.gaps))} without samples, {total:.0f} s over all GPUs")
    if quality.duplicates:
        lines.append(f"  {quality.duplicates} rows share the time stamp of the row before (kept)")
    if quality.synthetic_time:
        lines.append("  the log has no time stamps; times count from --interval")
    return lines + list(_events(run)) + [f"  {note}" for note in quality.notes]


def _events(run: "Run") -> Iterator[str]:
    """Yield what the log says happened, a few in full; plain messages last."""
    events = sorted(run.quality.log_events, key=lambda event: event.kind == "driver_message")
    for event in events[:_LISTED]:
        when = "" if event.at is None else f", {(event.at - run.started) / 1e6:.0f} s after the first sample"
        where = f" of {event.device}" if event.device else ""
        yield f"  {event.kind.replace('_', ' ')}{where}{when}: {event.text} (line {event.line})"
    if len(events) > _LISTED:
        yield f"  {len(events) - _LISTED} more events"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
