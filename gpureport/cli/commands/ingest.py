"""`gpureport ingest`."""

import re
import shutil
import sys
import textwrap
from collections import deque
from collections.abc import Iterator

import click

from gpureport.cli.account import describe_stored
from gpureport.cli.command import command, sources
from gpureport.cli.messages import (
    Verbosity,
    current_session,
    internal_errors,
    make_printable,
    print_source_error,
    report_internal_error,
    show_progress,
)
from gpureport.cli.options import Options
from gpureport.cli.reading import readings, words
from gpureport.cli.reading.stored import store_run
from gpureport.errors import InternalError, SettingsError, SourceError

_SOURCE = 3
"""Exit code when a source could not be read."""
_TABLE = re.compile(r"\S {2,}\S")
"""Columns of a table."""
_NARROW = 40


@command("ingest", sources(required=True))
def ingest(source: tuple[str, ...], options: Options) -> int:
    """Read logs into the store and say what was kept, what was rejected, and why.

    Example: gpureport ingest gpu.csv --name base

    A SOURCE is a log, compressed or not, or a folder of logs. A run that the store holds is not read again. It keeps
    its labels unless options give others.
    """
    if options.anonymise:
        what = "it changes what is shown, not what is stored"
        raise SettingsError("--anonymise", what, "give it to analyze", code="names_are_kept")
    if options.listing:
        lines, unreadable = readings.list_tracked_runs(source, options)
        for line in lines:
            click.echo(make_printable(line))
        return _SOURCE if unreadable else 0
    return _SOURCE if list(_store(source, options)) else 0


def _store(source: tuple[str, ...], options: Options) -> Iterator[str]:
    """Store each run and say so; yield the errors of those that cannot be read."""
    store, said, level = words.find_store(options), set[str](), current_session().level
    waiting = deque(readings.find_readings(source, options))
    while waiting:
        # frees each run once it is stored: a tracker may hold a thousand
        reading = waiting.popleft()
        try:
            with internal_errors(reading.locator), show_progress(reading):
                entry, done = store_run(store, reading, force=options.force)
                columns = reading.columns() if level >= Verbosity.VERBOSE else None
                lines = describe_stored(entry.run, done, columns)
        except SourceError as error:
            # the other logs of the folder are still read; a fault can be that of many runs
            if str(error) not in said:
                print_source_error(error)
            said.add(str(error))
            yield str(error)
        except InternalError as error:
            report_internal_error(error)
        else:
            for line in lines if level > Verbosity.QUIET else ():
                click.echo(_wrap(make_printable(line)))


def _wrap(line: str) -> str:
    """Return a line as printed: on a terminal in several, with the later ones indented by two more.

    What goes to a file or another program, and a line of a table, stays one line.
    """
    if not sys.stdout.isatty() or _TABLE.search(line):
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(
        line.strip(),
        max(shutil.get_terminal_size((80, 24)).columns, _NARROW),
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
