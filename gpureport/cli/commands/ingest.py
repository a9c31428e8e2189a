"""`gpureport ingest`."""

from collections import deque

import click

from gpureport.cli.messages import progress
from gpureport.cli.messages.internal_errors import InternalError, internal_errors, report_internal_error
from gpureport.cli.messages.line_account import describe_stored
from gpureport.cli.messages.styled_text import make_printable, print_error, wrap_for_terminal
from gpureport.cli.messages.verbosity import Verbosity, current_verbosity
from gpureport.cli.options.completion import complete_files
from gpureport.cli.options.source_options import SourceOptions, source_options
from gpureport.cli.runs.run_storing import store_run
from gpureport.cli.sources import source_names, source_readings
from gpureport.errors import SettingsError, SourceError

_SOURCE = 3
"""Exit code when a source could not be read."""


@click.command()
@click.argument("source", nargs=-1, required=True, shell_complete=complete_files)
@click.option("--force", is_flag=True, help="Read a log again even if the store holds it.")
@click.option("--list", "listing", is_flag=True, help="Print the runs that a tracker holds, and store nothing.")
@source_options
def ingest(*, source: tuple[str, ...], force: bool, listing: bool, options: SourceOptions) -> int:
    """Read logs into the store and say what was kept, what was rejected, and why.

    Example: gpureport ingest gpu.csv --name base

    A SOURCE is a log, compressed or not, or a folder of logs. A run that the store holds is not read again. It keeps
    its labels unless options give others.
    """
    if options.anonymise:
        raise SettingsError(
            "--anonymise", "it changes what is shown, not what is stored", "give it to analyze", code="names_are_kept"
        )
    if listing:
        lines, unreadable = source_readings.list_tracked_runs(source, options)
        for line in lines:
            click.echo(make_printable(line))
        return _SOURCE if unreadable else 0
    store, failures = source_names.find_store(options), list[str]()
    waiting = deque(source_readings.find_readings(source, options))
    while waiting:
        # frees each run once it is stored: a tracker may hold a thousand
        reading = waiting.popleft()
        try:
            with internal_errors(reading.locator), progress.show_progress(reading):
                entry, done = store_run(store, reading, force=force)
                columns = reading.columns() if current_verbosity() >= Verbosity.VERBOSE else None
                lines = describe_stored(entry.run, done, columns)
        except SourceError as error:
            # the other logs of the folder are still read
            _print_once(error, failures)
            continue
        except InternalError as error:
            report_internal_error(error)
            continue
        for line in lines if current_verbosity() > Verbosity.QUIET else ():
            click.echo(wrap_for_terminal(make_printable(line)))
    return _SOURCE if failures else 0


def _print_once(error: SourceError, failures: list[str]) -> None:
    """Print an error and keep its text; one that was printed is not said again, as a fault can be that of many runs."""
    if str(error) not in failures:
        print_error(str(error), error.aside)
    failures.append(str(error))
