"""Reports from the command line: built once, written to every file."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport import __version__
from gpureport.cli.messages.progress import show_stage
from gpureport.cli.messages.verbosity import print_note
from gpureport.errors import RenderError
from gpureport.redaction import hide_secrets

if TYPE_CHECKING:
    from gpureport.cli.runs.analyses import AnalysedRuns
    from gpureport.comparison.factors import Factor
    from gpureport.findings import Check
    from gpureport.places import Place
    from gpureport.report.formats.branding import Brand
    from gpureport.report.model.report_content import Report
    from gpureport.report.wording.terminal_lines import Page

_WIDEST = 120
_OPENED = (".html", ".pdf")


def typed_command() -> str:
    """Return the command as typed, without output files; with --anonymise without sources and labels."""
    if "--anonymise" in sys.argv:
        return f"gpureport {sys.argv[1]} … --anonymise"
    arguments = iter(sys.argv[1:])
    words = []
    for argument in arguments:
        if argument in {"-o", "--output"}:
            next(arguments, None)
        elif argument != "--open" and not argument.startswith(("-o=", "--output=")):
            words.append(argument)
    return shlex.join(["gpureport", *hide_secrets(words)])


def build_report(  # noqa: PLR0913 - each option of a report is given by name
    analysed: "AnalysedRuns",
    title: str | None = None,
    *,
    by: "Sequence[Factor]" = (),
    throughput: str | None = None,
    checks: "Sequence[Check]" = (),
    command: str | None = None,
) -> "Report":
    """Return the content of the report of some runs; `report.build` says what each argument means.

    `command` is the command that the report prints; the one as typed when None.
    """
    from gpureport.report import build  # noqa: PLC0415 - loads numpy

    with show_stage("Putting the report together"):
        return build(
            analysed.runs,
            title=title,
            command=typed_command() if command is None else command,
            gpu_hour_price=None,
            version=__version__,
            rules=analysed.rules,
            kinds=analysed.kinds,
            by=by,
            throughput=throughput,
            checks=checks,
            goals=analysed.goals,
        )


def print_report(content: "Report", *, full: bool = False) -> None:
    """Print one screen of the report or (`full`) all: as wide as the terminal, plain when piped."""
    from gpureport.report.formats.text import terminal as text  # noqa: PLC0415 - loads the report

    click.echo(text.render(content, measure_page(), full=full), nl=False)


def measure_page() -> "Page":
    """Return how wide standard output is, and which characters and colours it takes."""
    from gpureport.report.wording.terminal_lines import Page  # noqa: PLC0415 - loads the report

    return Page(
        width=min(shutil.get_terminal_size((80, 24)).columns, _WIDEST),
        ascii=not (sys.stdout.encoding or "utf").lower().startswith("utf"),
        colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"),
    )


def check_outputs(
    paths: "Sequence[Place]",
    sources: Sequence[str] = (),
    detail: int | None = None,
) -> None:
    """Refuse files of unknown kinds, any that is a source, and options that no file needs.

    Raises:
        RenderError: naming the file.
    """
    from gpureport.report.formats.output import check_detail, refuse_sources  # noqa: PLC0415 - as above
    from gpureport.report.formats.output import check_path as check_one  # noqa: PLC0415 - loads the report

    for path in paths:
        check_one(path)
    refuse_sources(paths, sources)
    if detail is not None:
        check_detail(paths, detail)


def write_report(
    content: "Report",
    paths: "Sequence[Place]",
    brand: "Brand | None" = None,
    detail: int | None = None,
    *,
    opened: bool = False,
) -> None:
    """Write a report to every path, by its extension; say what it says, its doubts, and where it is.

    Args:
        content: the report.
        paths: the files.
        brand: logo, accent, font and last line of pages and PDFs; gpureport's own when None.
        detail: as `report.write` takes it.
        opened: whether to show the first page or PDF in the system's program for it.
    """
    from gpureport.report import write as write_one  # noqa: PLC0415 - loads the report

    with show_stage("Writing the report") as stage:
        for path in paths:
            stage.update(f"Writing {path}")
            write_one(content, path, brand=brand, detail=detail)
    files = ", ".join(str(path) for path in paths if str(path) != "-")
    if files:
        verdict = content.verdict
        doubts = (*verdict.details[: verdict.doubts], *verdict.notes[: verdict.further_doubts])
        for line in (f"{verdict.sentence.rstrip('.')} → {files}", *doubts):
            print_note(line.replace("\N{NO-BREAK SPACE}", " "))
    if opened:
        open_page(paths)


def open_page(paths: "Sequence[Place]") -> None:
    """Show the first page or PDF in the system's program for it, or say that there is none."""
    path = str(_find_page(paths))
    # without a display a system may start a browser of text in this terminal
    shows = sys.platform in {"win32", "darwin"} or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    if not shows or click.launch(path):
        print_note(f"No browser was found on this machine. Copy {path} to one that has a browser, and open it there.")


def check_openable(paths: "Sequence[Place]") -> None:
    """Refuse to open a report when no file of it can be looked at in a browser.

    Raises:
        RenderError: naming the option.
    """
    if _find_page(paths) is None:
        raise RenderError("--open", "no page and no PDF is written", "add -o report.html", code="nothing_to_open")


def _find_page(paths: "Sequence[Place]") -> Path | None:
    """Return the first page or PDF on this machine."""
    return next((path for path in paths if isinstance(path, Path) and path.suffix.lower() in _OPENED), None)


open_option = click.option("--open", "opened", is_flag=True, help="Open the page or PDF that was written.")
"""The option that shows what was written."""

text_detail_option = click.option(
    "--detail",
    type=click.Choice(["short", "full"]),
    default="short",
    help="One screen of text (short), or everything (full).",
)
"""The option that says how much is printed."""
