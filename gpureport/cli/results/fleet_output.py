"""The report on many runs from the command line: printed, written to every file, and what failed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.styled_text import print_error
from gpureport.cli.messages.verbosity import current_session

if TYPE_CHECKING:
    from gpureport.fleet.fleet_report import FleetReport

_SOURCE = 3
"""Exit code when no run could be read and analysed."""
_MOST_NAMED = 20
"""Failed runs that are named on standard error; the report names all."""


def write_fleet(report: "FleetReport", outputs: Sequence[Path], form: str) -> None:
    """Print the report unless it is written to files alone, and write it to every path by its extension."""
    from gpureport.fleet.formats import fleet_json  # noqa: PLC0415 - loads the report

    if form == "json":
        click.echo(fleet_json.render(report), nl=False)


def report_failed_runs(report: "FleetReport", traces: Sequence[tuple[str, str]]) -> int:
    """Name on standard error the runs that failed, and return the exit code.

    Args:
        report: the report.
        traces: tracebacks of faults of gpureport itself, by the name of their run.
    """
    session = current_session()
    session.failed = session.failed or bool(traces)
    for name, trace in traces if session.debug else ():
        click.echo(f"{name}:\n{trace}", err=True, nl=False)
    for failed in report.failed[:_MOST_NAMED]:
        print_error(f"left out: {failed.run.name}: {failed.error}")
    if len(report.failed) > _MOST_NAMED:
        print_error(f"left out: {len(report.failed) - _MOST_NAMED:,} more; --format json names all")
    return _SOURCE if report.failed and not report.use.runs and not report.without_gpu else 0
