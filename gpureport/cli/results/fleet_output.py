"""The report on many runs: printed, written to files, and what failed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpureport import __version__
from gpureport.cli.messages.progress import show_stage
from gpureport.cli.messages.styled_text import print_error
from gpureport.cli.messages.verbosity import current_session, print_note
from gpureport.cli.results import report_output
from gpureport.cli.sources.skipped_sources import list_names

if TYPE_CHECKING:
    from gpureport.fleet.cards import Facts
    from gpureport.places import Place
    from gpureport.report.formats.branding import Brand

_SOURCE = 3
"""Exit code when no run could be read and analysed."""
_MOST_NAMED = 20
"""Reasons of failed runs that are named on standard error; the report names all."""


def check_fleet_options(outputs: "Sequence[Place]", *, full: bool, opened: bool) -> None:
    """Refuse files of unknown kinds, and options that no file needs.

    Raises:
        RenderError: naming the file, or the option.
    """
    from gpureport.fleet.formats import check_fleet_outputs  # noqa: PLC0415 - loads the report

    check_fleet_outputs(outputs, full=full)
    if opened:
        report_output.check_openable(outputs)


def write_fleet(  # noqa: PLR0913 - each option of the command is given by name
    report: "Facts",
    outputs: "Sequence[Place]",
    form: str,
    *,
    brand: "Brand",
    full: bool = False,
    opened: bool = False,
) -> None:
    """Print the report unless files are named, and write it to every file by its extension.

    Args:
        report: the report.
        outputs: the files; none to print it as text.
        form: `json` to print it as JSON, whatever is written.
        brand: logo, accent, font and last line of page and PDF.
        full: whether text and PDF have everything.
        opened: whether to show the first page or PDF in the system's program for it.
    """
    from gpureport.fleet.fleet_json import write_json  # noqa: PLC0415 - loads the report
    from gpureport.fleet.formats import render_text, write_fleet_report  # noqa: PLC0415 - as above

    with show_stage("Writing the report"):
        page = write_fleet_report(
            report,
            outputs,
            command=report_output.typed_command(),
            version=__version__,
            brand=brand,
            full=full,
        )
    if form == "json":
        click.echo(write_json(report), nl=False)
    elif not outputs:
        width, colour = report_output.measure_output()
        click.echo(render_text(page, width=width, colour=colour, full=full), nl=False)
    files = ", ".join(str(path) for path in outputs if str(path) != "-")
    if files:
        print_note(f"{page.verdict.sentence} → {files}".replace("\N{NO-BREAK SPACE}", " "))
    if opened:
        report_output.open_page(outputs)


def report_failed_runs(report: "Facts", traces: Sequence[tuple[str, str]]) -> int:
    """Name the failed runs on standard error, and return the exit code.

    Args:
        report: the report.
        traces: tracebacks of faults of gpureport itself, by the name of their run.
    """
    session = current_session()
    session.failed = session.failed or bool(traces)
    for name, trace in traces if session.debug else ():
        click.echo(f"{name}:\n{trace}", err=True, nl=False)
    names: dict[str, list[str]] = {}
    for failed in report["failed"]:
        names.setdefault(failed["error"], []).append(failed["run"]["name"])
    shown = list(names.items())[:_MOST_NAMED]
    for error, runs in shown:
        count = f"{len(runs):,} runs, " if len(runs) > 1 else ""
        print_error(f"left out: {count}{list_names(runs)}: {error}")
    if more := len(report["failed"]) - sum(len(runs) for _, runs in shown):
        print_error(f"left out: {more:,} more; --format json names all")
    return _SOURCE if report["failed"] and not report["use"]["runs"] and not report["without_gpu"] else 0
