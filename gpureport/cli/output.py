"""Writes results to standard output and to files."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
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
from gpureport.report.model.blocks import Block, Form
from gpureport.report.model.head import Verdict
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Fact, build_table
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Page


def typed_command() -> str:
    if "--anonymise" in sys.argv:
        return f"gpureport {sys.argv[1]} … --anonymise"
    typed, outputs = sys.argv[1:], ("-o", "--output")
    kept = [word for before, word in zip(["", *typed], typed, strict=False) if before not in outputs]
    kept = [word for word in kept if word.partition("=")[0] not in {*outputs, "--open"}]
    return shlex.join(hide_secrets(["gpureport", *kept]))


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
        content = build(analysed.runs, **given | more)
    return _add_decision(content, analysed, options.trial) if options.trial and not options.anonymise else content


def _add_decision(content: Report, analysed: AnalysedRuns, trial: dict[str, Any]) -> Report:
    """Put the decision of a trial first, and list what was advised before, what was tried, and what came of it."""
    from gpureport.trial.suggest import suggest

    today = next(label for changed, (label, *_) in trial["rows"] if not changed)
    first = [each for _, each in analysed.runs if each.run.step == today][:1]
    line, notes = suggest(first) if first else ("", [])
    suggested, advised, rows = shlex.split(line), set[tuple[str, str]](), list[list[str]]()
    end = suggested.index("--") if line else 0
    values = dict(each.split("=", 1) for each in suggested[5:end:2])
    for ours, theirs in zip(trial["plan"]["command"], suggested[end + 1 :], strict=False):
        # the trial may have its own name for an option
        own, name = (each.rpartition("{")[2].removesuffix("}") for each in (ours, theirs))
        advised |= {(own if ours.endswith("}") else name, each) for each in values.get(name, "").split(",")[1:]}
    for changed, (label, *cells) in trial["rows"]:
        rows.append([label, "advised" if changed & advised else "not advised" if changed and first else "", *cells])
        advised -= changed
    rows += [["=".join(pair), "advised", "0", "", "", "not tried"] for pair in sorted(advised)]
    columns = ("Setting", "Advice", "Runs", "Time per run" if trial["unit"] == "s" else "Speed", "Change", "Outcome")
    note = "Advice is on the first run of the setting in use today, and changes are against this setting."
    table = build_table(columns, rows, note, in_words=("Advice", "Outcome"))
    tried = Block(forms=Form.ALL | Form.PAPER, part="bars", title="Advised, tried, outcome", table=table)
    before = ("(hidden_secrets)", "(quality_unknown)")
    facts = [Fact(name="Advice", text=each) for each in notes if not each.endswith(before)]
    verdict, part = content.verdict, content.comparison
    said = "The decision compares settings within each round. Whole steps are compared here: "
    details = (said + display.lower_first(verdict.sentence) if part else verdict.sentence, *verdict.details)
    return replace(
        content,
        # doubts are about whole steps
        verdict=Verdict(sentence=trial["headline"], details=details, notes=verdict.notes),
        steps=content.steps or table,
        comparison=part and replace(part, study=(tried, Block(forms=Form.LONG | Form.PAPER, facts=facts), *part.study)),
        # a chosen setting needs no further measurements
        actions=tuple(each for each in content.actions if each.finding or each.is_trial or not trial["chosen"]),
    )


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
