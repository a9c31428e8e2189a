"""Every format shows the same content: each text of the model stands in each of them, or a reason why not is given."""

import html
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gpureport
from gpureport.comparison.study.factors import group_runs, parse_factors
from gpureport.comparison.training.training_goals import QualityTarget, TrainingGoals
from gpureport.report import build, render
from gpureport.report.formats.text import markdown, terminal_comparison
from gpureport.report.model.report_content import Report
from gpureport.report.sections.comparison.comparison_content import build_comparison_view
from gpureport.testing import Recording
from tests.report import content_leaves, pdf_reading, sample_reports
from tests.report.test_agreement import strings
from tests.samples.archives import unpack

_RECORDED = sample_reports.SAMPLES / "recorded/training_steps"
_TARGET = TrainingGoals(target=QualityTarget(name="loss", value=6.9))

_KEYS = {
    "schema": "names the JSON",
    "findings.fingerprints": "identifies a finding for programs",
    "findings.kind": "the title is the kind in words",
    "findings.status": "open unless a store says otherwise, which stands in words beside the confidence",
    "tiles.change.arrow": "names a direction for programs; the sign of the change says it",
    "spent.bars.change.arrow": "as of a tile",
    "spent.bars.beside_change.arrow": "as of a tile",
    "spent.since_first.arrow": "as of a tile",
    "spent.beside_since_first.arrow": "as of a tile",
    "findings.steps.name": "the title is the step in words",
    "findings.occurrences.device": "the text of the stretch, and where the finding is, name the GPU",
    "gpu_time.parts.key": "the label is the class in words",
    "timeline.strips.band": "names a class for programs; the legend has its name, the bars its time",
    "timeline.strips.limits.metric": "the limit in words names the metric",
    "spent.bars.segments.key": "the label is the class in words",
    "spent.legend.key": "the label is the class in words",
    "use.rows.band": "as of a strip",
    "timeline.strips.device": "the label is the GPU in words",
    "timeline.strips.marks": "the finding itself is shown",
    "timeline.events": "listed under data quality",
    "answers.lines.kind": "the title is the kind in words",
    "answers.lines.outcome": "the outcome in the words of the report says it",
    "answers.lines.reason_code": "the reason in words",
    "checklists.lines.reason_code": "the reason in words",
    "checklists.lines.state": "the answer in the words of the report says it",
    "checklists.lines.item": "the title is the question in words",
    "comparison.charts.form": "how the chart is drawn",
    "comparison.charts.rows.runs": "each_run says all of them",
    "comparison.links.figures": "effects holds the same figures, with verdicts",
    "actions.finding": "leads to the row of findings",
    "rows.id": "leads from what to do to the row",
    "rows.cards": "lead from the row to its cards",
}
"""Names for programs, and what another field says in words."""

_ONCE_FOR_ALL = {
    "answers.lines.reason": "what could not be judged gives each reason once for all runs",
    "answers.lines.recording": "as the reason",
    "answers.lines.title": "what was found and what could not be judged have their titles",
    "checklists": "the answers for the last run; the page and JSON hold those of every run",
}
_NO_DRAWING = {
    "comparison.legend": "explains marks of a drawing",
    "timeline.caption": "explains a drawing; data quality gives start and sampling",
    "timeline.column": "explains a drawing",
}
_METHOD = {"method": "limits, terms and inputs are reference; the page, PDF and JSON hold them"}

_DRAWN = {
    "spent.bars.segments.text": "of a short segment, the alternative text of the bar says it",
    "spent.bars.interval_text": "drawn as a line; the alternative text of the bar says it",
    "rows.marks": "drawn as dots in the order of the runs; the row says in how many",
}
_FOLDS = {"folds": "say what the folds of a page hold; here the sections are open"}
_REFERENCE = dict.fromkeys(
    (
        "comparison.charts",
        "comparison.legend",
        "comparison.estimates",
        "comparison.links",
        "comparison.remaining",
        "comparison.across",
        "comparison.gains",
        "gpu_time",
        "gpu_time_table",
        "findings",
        "order",
        "timeline",
        "clocks",
        "answers",
        "checklists",
        "method.thresholds",
        "method.definitions",
        "method.kinds",
    ),
    "reference: PDF with --detail full, the page and JSON hold it",
)

ALLOWED: dict[str, dict[str, str]] = {
    ".json": {},
    ".html": _KEYS
    | {
        "gpu_time.total": "the table of classes has it",
        "timeline.strips.limits": "drawn in the charts of one GPU, whose panels of findings name those that matter",
    },
    ".pdf": _KEYS
    | _ONCE_FOR_ALL
    | {
        "comparison.charts.rows.each_run": "drawn as dots; the alternative text of the figure says it",
        "answers.summary": "the kinds stand by what became of them",
        "gpu_time.total": "the table of classes has it",
        "comparison.links.checks.columns": "each check says both values and whether they are alike",
        "gpu_time.parts.causes": "the table of classes has them",
        "method.kinds": "the page and explain say when a kind is found",
        "timeline.strips.limits": "lines of the timeline on the page; those of the worst GPU are in its panels",
    }
    | _DRAWN
    | _FOLDS,
    "short .pdf": _KEYS
    | _DRAWN
    | _FOLDS
    | _REFERENCE
    | {
        "method.inputs": "with --detail full, as all reference",
        "rows.history": "of the costliest row; --detail full has each",
        "quality.facts": "what differs from run to run comes with --detail full",
        "spending": "of several runs the tiles and the table of steps have it; --detail full has each",
    },
    ".md": _KEYS
    | _FOLDS
    | _REFERENCE
    | {
        "verdict.notes": "the page and PDF have what else is worth knowing",
        "method": "limits, terms, inputs and versions are reference; the page, PDF and JSON hold them",
        "quality": "the page says what became of every line",
        "spending": "the tiles and the table of steps have energy and cost",
        "gpus": "the page has each GPU; the worst is told of",
        "judgement.lines": "the page and JSON say of each check why, and what to record",
        "judgement.limits": "as the lines",
        "judgement.command": "as the lines",
        "judgement.other_commands": "as the lines",
        "spent.ticks": "a bar of characters has no axis; its figure stands beside it",
        "spent.bars.segments": "a sign a class; the page has the figure of each",
        "spent.bars.interval_text": "the change has an interval",
        "use": "a drawing; the page and PDF have it",
        "worst.caption": "explains a drawing",
        "worst.ticks": "an axis of a drawing",
        "worst.panels.limit_text": "a line of a drawing",
        "rows.cost": "the page and PDF have it",
        "rows.caveats": "the page and PDF have them",
        "rows.marks": "drawn as dots; the row says in how many runs",
        "rows.confidence": "the page and PDF have it",
        "rows.advice": "shortened to a cell",
        "rows.history": "a drawing; the page and PDF have it",
    },
    ".txt": _KEYS
    | {
        "spent.legend.key": "the label is the class in words",
        "spent.bars.segments.key": "the label is the class in words",
        "use.rows.band.key": "the bars name the classes",
        "timeline.strips.band.key": "the bars name the classes",
        "timeline.strips.limits": "the signals of the worst GPU have the limits",
        "spent.ticks": "explains a drawing",
        "use.ticks": "explains a drawing",
        "worst.ticks": "explains a drawing",
        "rows.history.ticks": "explains a drawing",
        "rows.marks.outcome": "the answers say what became of every check in each run",
        "folds": "says what a fold of the page holds; the text has no folds",
    }
    | _ONCE_FOR_ALL
    | _NO_DRAWING
    | _METHOD
    | {
        "findings.steps.source": "the page and explain give the source of advice",
        "findings.occurrences": "the finding says when in one line",
        "gpu_time_table": "the bars have the same shares and hours",
        "version": "the reader ran it",
    },
}
"""What each format leaves out, by path, and why."""


def _report(recordings: Sequence[Recording], price: float | None = None, **asked: Any) -> Report:  # noqa: ANN401 - as `build` takes them
    runs = [(recording, gpureport.analyze(recording)) for recording in recordings]
    return build(runs, title=None, command="gpureport report", gpu_hour_price=price, version="0.1.0", **asked)


def recorded_steps() -> list[Recording]:
    """Return three runs of each recorded step."""
    found: list[Recording] = []
    for step in ("1-starved", "2-more-workers", "3-pinned-memory", "4-mixed-precision", "5-larger-batch"):
        for run in (1, 2, 3):
            labels = {"name": f"{step}/{run}", "step": step, "work": (32768, "images")}
            found += gpureport.read(_RECORDED / step / str(run), labels=labels)
    return found


def mlflow_runs(folder: Path) -> Sequence[Recording]:
    """Return the runs of the store of MLflow that the recorded steps wrote, one of each step."""
    unpack(_RECORDED / "mlruns.tar.gz", folder)
    return sorted(gpureport.read(f"mlflow:{folder / 'mlruns'}"), key=lambda recording: recording.run.started)


def mlflow_study(folder: Path) -> Report:
    """Return the report of the runs of MLflow as groups by two params."""
    found, by = mlflow_runs(folder), parse_factors("param:batch,param:workers")
    order = group_runs([recording.run for recording in found], by)
    return _report([replace(found[place], run=replace(found[place].run, step=label)) for place, label in order], by=by)


CONTENTS: dict[str, Callable[[Path], Report]] = {
    "five steps": lambda _: _report(recorded_steps(), price=2.5),
    "steps of MLflow with a target": lambda folder: _report(mlflow_runs(folder), goals=_TARGET),
    "a study of MLflow": mlflow_study,
    "four GPUs": lambda _: sample_reports.report_on(["thermal_throttle"], price=2.0),
}


@pytest.fixture(scope="module", params=CONTENTS)
def content(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return each content in turn."""
    return CONTENTS[request.param](tmp_path_factory.mktemp("content"))


def _read_page(text: str) -> str:
    """Return the words of a page: its text, and the alternative text of its figures."""
    plain = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.DOTALL)
    labels = " ".join(re.findall(r'aria-label="([^"]*)"', plain))
    return html.unescape(labels + re.sub(r"<[^>]+>", " ", plain))


def _words(content: Report, extension: str, folder: Path) -> str:
    """Return what a reader of a format reads, in its long form unless it is called short."""
    form, _, extension = extension.rpartition(" ")
    found = render(content, extension, detail=0 if extension in {".txt", ".pdf"} and form != "short" else None)
    if extension == ".pdf":
        path = folder / "report.pdf"
        path.write_bytes(found)
        return pdf_reading.body(path)
    text = found.decode()
    if extension == ".json":
        return " ".join(strings(json.loads(text)))
    if extension == ".html":
        return _read_page(text)
    return html.unescape(text.replace("\\", "")).replace("<br>", " ") if extension == ".md" else text


@pytest.mark.parametrize("extension", [".json", ".html", ".md", ".txt"])
def test_every_text_of_the_content_stands_in_every_format(
    content: Report, extension: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels, figures, verdicts, intervals, findings, reasons; Markdown before it is cut to its size."""
    monkeypatch.setattr(markdown, "LIMIT", 10**7)
    assert content_leaves.missing(content, _words(content, extension, tmp_path), ALLOWED[extension]) == []


def test_every_text_of_a_chart_stands_in_a_picture_of_its_own(content: Report) -> None:
    """In the vector file, as words or as alternative text."""
    charts = content.comparison.charts if content.comparison else ()
    allowed = {path.removeprefix("comparison.charts."): why for path, why in _KEYS.items()}
    assert content_leaves.missing(charts, _read_page(render(content, ".svg").decode()), allowed) == []


@pdf_reading.needs_poppler
@pytest.mark.parametrize("form", [".pdf", "short .pdf"])
def test_every_text_of_the_content_stands_in_the_pdf(content: Report, form: str, tmp_path: Path) -> None:
    """As in the other formats; in the short form what is not for reference."""
    assert content_leaves.missing(content, _words(content, form, tmp_path), ALLOWED[form]) == []


def test_reasons_left_out_of_a_kind_are_given_once(content: Report) -> None:
    """A kind that could not be judged has a line that says why, in every format."""
    open_kinds = {line.title for run in content.answers for line in run.lines if line.outcome == "cannot judge"}
    # in how many runs stands beside a kind that some could judge
    assert open_kinds <= {kind.partition(" (")[0] for line in content.judgement.lines for kind in line.kinds}
    assert {line.reason != "" for line in content.judgement.lines} <= {True}


def test_a_comparison_in_a_terminal_says_what_the_report_says() -> None:
    """`compare` shows every text of its content, and of the report's part on steps."""
    recordings = recorded_steps()
    view = build_comparison_view([(recording, gpureport.analyze(recording)) for recording in recordings])
    text = terminal_comparison.render(view)
    allowed = {path.removeprefix("comparison."): why for path, why in (_KEYS | _NO_DRAWING).items()}
    assert content_leaves.missing(view, text, allowed) == []
    part = _report(recordings).comparison
    assert part is not None
    # findings have no ids in a comparison
    assert content_leaves.missing(part, text, allowed | {"remaining.text": "names a finding of the report"}) == []


def test_a_comparison_in_full_gives_every_advice_of_the_screen() -> None:
    """With its reason, which the screen has no room for."""
    recordings = recorded_steps()
    view = build_comparison_view([(recording, gpureport.analyze(recording)) for recording in recordings])
    report = _report(recordings)
    text = " ".join(terminal_comparison.render(view, report=report).split())
    assert report.actions
    for action in report.actions:
        for words in (action.title, action.gain, action.text, action.certainty, action.command):
            assert " ".join(words.split()) in text


def test_what_a_format_lacks_is_noticed() -> None:
    """A text that is taken out of a format is reported with its place; a cell counts beside its heading only."""
    content = sample_reports.report_on(["thermal_throttle"])
    text = render(content, ".txt", detail=0).decode()
    (card, *_) = content.findings
    cut = text.replace(card.recommendations[0].split()[0], "")
    assert "findings.recommendations" in {leaf.path for leaf in content_leaves.missing(content, cut, ALLOWED[".txt"])}
    (row, *_) = content.gpus[0].table.rows
    swapped = content_leaves.missing(content.gpus[0].table, f"{row.cells[0].text} {row.head.text}", {})
    assert content_leaves.Leaf(".cells", row.cells[0].text, row.head.text) in swapped


def test_no_reason_outlives_what_it_excuses() -> None:
    """Each path that a format may leave out is one of a content."""
    samples = [sample_reports.report_on([name]) for name in ("thermal_throttle", "faulty_hardware")]
    made = [*samples, _report(recorded_steps())]
    paths = {leaf.path for each in made for leaf in content_leaves.leaves(each)}
    stale = {path for kind in ALLOWED.values() for path in kind if not any(each.startswith(path) for each in paths)}
    assert stale == set()
