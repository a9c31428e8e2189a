"""Answers on standard output and in files: reports built once, printed, written to every file, and opened."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport import __version__
from gpureport.cli.messages import print_note, show_stage
from gpureport.errors import RenderError
from gpureport.redaction import hide_secrets

if TYPE_CHECKING:
    from gpureport.cli.options import Options
    from gpureport.cli.reading.analyses import AnalysedRuns
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
    options: "Options",
    *,
    title: str | None = None,
    by: "Sequence[Factor]" = (),
    checks: "Sequence[Check]" = (),
    command: str | None = None,
) -> "Report":
    """Return the content of the report of some runs; `report.build` says what each argument means."""
    from gpureport.report import build  # noqa: PLC0415 - loads numpy

    with show_stage("Putting the report together"):
        return build(
            analysed.runs,
            title=options.title or title,
            command=typed_command() if command is None else command,
            gpu_hour_price=None,
            version=__version__,
            rules=analysed.rules,
            kinds=analysed.kinds,
            by=by,
            throughput=options.throughput,
            checks=checks,
            goals=analysed.goals,
        )


def print_report(content: "Report", options: "Options") -> None:
    """Print one screen of the report, or all: as wide as the terminal, plain when piped."""
    from gpureport.report.formats.text import terminal as text  # noqa: PLC0415 - loads the report

    click.echo(text.render(content, measure_page(), full=options.text_detail == "full"), nl=False)


def measure_page() -> "Page":
    """Return how wide standard output is, and which characters and colours it takes."""
    from gpureport.report.wording.terminal_lines import Page  # noqa: PLC0415 - loads the report

    return Page(
        width=min(shutil.get_terminal_size((80, 24)).columns, _WIDEST),
        ascii=not (sys.stdout.encoding or "utf").lower().startswith("utf"),
        colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"),
    )


def check_outputs(options: "Options", sources: Sequence[str] = ()) -> None:
    """Refuse files of unknown kinds, any that is a source, and options that no file needs.

    Raises:
        RenderError: naming the file, or the option.
    """
    from gpureport.report.formats import output  # noqa: PLC0415 - loads the report

    for path in options.outputs:
        output.check_path(path)
    output.refuse_sources(options.outputs, sources)
    if options.detail is not None:
        output.check_detail(options.outputs, options.detail)
    check_openable(options)


def check_openable(options: "Options") -> None:
    """Refuse to open a report when no file of it can be looked at in a browser.

    Raises:
        RenderError: naming the option.
    """
    if options.opened and _find_page(options.outputs) is None:
        raise RenderError("--open", "no page and no PDF is written", "add -o report.html", code="nothing_to_open")


def write_report(content: "Report", options: "Options", brand: "Brand | None" = None) -> None:
    """Write a report to every path, by its extension; say what it says, its doubts, and where it is."""
    from gpureport.report import write  # noqa: PLC0415 - loads the report

    with show_stage("Writing the report") as stage:
        for path in options.outputs:
            stage.update(f"Writing {path}")
            write(content, path, brand=brand, detail=options.detail)
    verdict = content.verdict
    name_files(verdict.sentence.rstrip("."), options)
    if any(str(path) != "-" for path in options.outputs):
        for line in (*verdict.details[: verdict.doubts], *verdict.notes[: verdict.further_doubts]):
            print_note(line.replace("\N{NO-BREAK SPACE}", " "))
    open_page(options)


def name_files(sentence: str, options: "Options") -> None:
    """Say what was written, and where it is; nothing of what was written to standard output."""
    files = ", ".join(str(path) for path in options.outputs if str(path) != "-")
    if files:
        print_note(f"{sentence} → {files}".replace("\N{NO-BREAK SPACE}", " "))


def open_page(options: "Options") -> None:
    """Show the first page or PDF in the system's program for it where that is wanted, or say that there is none."""
    if not options.opened:
        return
    path = str(_find_page(options.outputs))
    # without a display a system may start a browser of text in this terminal
    shows = sys.platform in {"win32", "darwin"} or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    if not shows or click.launch(path):
        print_note(f"No browser was found on this machine. Copy {path} to one that has a browser, and open it there.")


def write_file(path: "Place", content: str) -> None:
    """Write a file; add to what GitHub shows as the summary of a job."""
    from gpureport.report.formats.output import write_whole  # noqa: PLC0415 - loads the report

    if isinstance(path, Path) and str(path) == os.environ.get("GITHUB_STEP_SUMMARY"):
        with path.open("a", encoding="utf-8") as job:
            job.write(content)
    else:
        write_whole(path, content.encode())
    print_note(f"wrote {path}")


def _find_page(paths: "Sequence[Place]") -> Path | None:
    """Return the first page or PDF on this machine."""
    return next((path for path in paths if isinstance(path, Path) and path.suffix.lower() in _OPENED), None)
