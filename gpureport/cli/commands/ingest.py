"""`gpureport ingest`."""

from collections import deque
from collections.abc import Iterator

import click

from gpureport.cli.account import describe_stored
from gpureport.cli.messages import (
    Exit,
    Verbosity,
    current_session,
    make_printable,
    print_source_error,
    report_internal_error,
)
from gpureport.cli.options import Options
from gpureport.cli.reading import readings, words
from gpureport.errors import InternalError, SettingsError, SourceError
from gpureport.importers.time_window import RunReading


def ingest(source: tuple[str, ...], options: Options) -> int:
    """Store each run and say so, or list the runs of trackers; 3 where one cannot be read."""
    if options.anonymise:
        what = "it changes what is shown, not what is stored"
        raise SettingsError("--anonymise", what, "give it to analyze", code="names_are_kept")
    if options.listing:
        lines, unreadable = readings.list_tracked_runs(source, options)
        for line in lines:
            click.echo(make_printable(line))
        return Exit.SOURCE if unreadable else 0
    store, said, level = words.find_store(options), set[str](), current_session().level

    def store_each(reading: RunReading) -> list[str]:
        entry, done = words.store_run(store, reading, force=options.force)
        return describe_stored(entry.run, done, reading.columns() if level >= Verbosity.VERBOSE else None)

    for lines_or_error in readings.try_each(_take_each(source, options), store_each):
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


def _take_each(source: tuple[str, ...], options: Options) -> Iterator[RunReading]:
    """Yield the runs of sources; each is freed once it is stored, as a tracker may hold a thousand."""
    waiting = deque(readings.find_readings(source, options))
    while waiting:
        yield waiting.popleft()
