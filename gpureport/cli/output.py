"""Writes results to standard output and to files."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from gpureport.cli.messages import print_note, show_stage
from gpureport.cli.options import Options
from gpureport.cli.recordings import AnalysedRuns
from gpureport.errors import RenderError
from gpureport.places import Place
from gpureport.redaction import hide_secrets
from gpureport.report import build, check_detail, check_path, refuse_sources, write, write_whole
from gpureport.report.formats import terminal
from gpureport.report.formats.branding import Brand
from gpureport.report.model.report_content import Report
from gpureport.report.wording.terminal_lines import Page

_OUTPUT = re.compile(r"\0(?:(?:-o|--output)[\0=][^\0]*|--open)(?=\0|$)")
_HALF_AN_ID = re.compile(r"(?:#|\0--run[\0=])[0-9a-f]{16}(?=[0-9a-f]{16}(?:\0|$))")


def typed_command() -> str:
    if "--anonymise" in sys.argv:
        return f"gpureport {sys.argv[1]} … --anonymise"
    typed = _OUTPUT.sub("", "\0".join(["gpureport", *sys.argv[1:]]))
    # a run's id looks random but is no secret, so a mark splits it while secrets are hidden
    return shlex.join(word.replace("\1", "") for word in hide_secrets(_HALF_AN_ID.sub("\\g<0>\1", typed).split("\0")))


def build_report(analysed: AnalysedRuns, options: Options, **more: Any) -> Report:
    given: dict[str, Any] = {
        "title": options.title,
        "command": typed_command(),
        "rules": analysed.rules,
        "kinds": analysed.kinds,
        "throughput": options.throughput,
        "goals": analysed.goals,
    }
    with show_stage("Putting the report together"):
        content = build(analysed.runs, **given | more, is_trial=bool(options.trial))
    if not options.trial:
        return content
    from gpureport.report.sections.builder import add_decision
    from gpureport.trial.suggest import suggest

    today = next(label for changed, (label, *_) in options.trial["rows"] if not changed)
    first = [each for _, each in analysed.runs if each.run.step == today][:1]
    return add_decision(content, options.trial, suggest(first) if first else None)


def print_report(content: Report, options: Options) -> None:
    click.echo(terminal.render(content, measure_page(), full=options.text_detail == "full"), nl=False)


def measure_page() -> Page:
    return Page(
        width=min(shutil.get_terminal_size((80, 24)).columns, 120),
        ascii=not (sys.stdout.encoding or "utf").lower().startswith("utf"),
        colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"),
    )


def check_outputs(options: Options, sources: Sequence[str] = ()) -> None:
    for path in options.outputs:
        check_path(path)
    refuse_sources(options.outputs, sources)
    if options.detail is not None:
        check_detail(options.outputs, options.detail)
    check_openable(options)


def check_openable(options: Options) -> Path | None:
    pages = [each for each in options.outputs if isinstance(each, Path) and each.suffix.lower() in {".html", ".pdf"}]
    if options.opened and not pages:
        raise RenderError("--open", "there is no page or PDF to open", "add -o report.html", code="nothing_to_open")
    return pages[0] if options.opened else None


def write_report(content: Report, options: Options, brand: Brand | None = None) -> None:
    with show_stage("Writing the report") as say:
        for path in options.outputs:
            say(f"Writing {path}")
            write(content, path, brand=brand, detail=options.detail)
    verdict = content.verdict
    doubts = (*verdict.details[: verdict.doubts], *verdict.notes[: verdict.further_doubts])
    show_files(verdict.sentence.rstrip("."), options, doubts)


def show_files(sentence: str, options: Options, doubts: Sequence[str] = ()) -> None:
    if files := ", ".join(str(path) for path in options.outputs if str(path) != "-"):
        for line in (f"{sentence} → {files}", *doubts):
            print_note(line.replace("\N{NO-BREAK SPACE}", " "))
    if (page := check_openable(options)) is None:
        return
    # without a display, a text browser could start in this terminal
    shows = sys.platform in {"win32", "darwin"} or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    if not shows or click.launch(str(page)):
        print_note(f"No browser was found on this machine. Copy {page} to a machine with a browser, and open it there.")


def write_file(path: Place, content: str) -> None:
    # GitHub expects programs to append to its job summary
    if isinstance(path, Path) and str(path) == os.environ.get("GITHUB_STEP_SUMMARY"):
        with path.open("a", encoding="utf-8") as job:
            job.write(content)
    else:
        write_whole(path, content.encode())
    print_note(f"wrote {path}")
