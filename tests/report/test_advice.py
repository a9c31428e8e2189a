"""Steps, answers and checklist in every format."""

import json
import re
from dataclasses import replace

import pytest

from gpureport.analysis import RULES
from gpureport.analysis.advice.catalogue import STEPS
from gpureport.analysis.advice.checklist import ITEMS
from gpureport.answers import Outcome
from gpureport.report import build
from gpureport.report.formats import html
from gpureport.report.formats.json import analysis_json, report_json
from gpureport.report.formats.text import terminal
from gpureport.report.model.report_content import Report
from gpureport.testing import analyze, recording, steps

KINDS = [kind for rule in RULES for kind in rule.kinds]
_RUN = recording(
    util=steps((97, 100), (30, 200), (0, 20), (30, 200), (97, 100), (0, 20), (97, 100)),
    cpu=steps((20, 100), (95, 420), (20, 220)),
)
_ANALYSIS = analyze(_RUN)


@pytest.fixture
def content() -> Report:
    """Return the report of a run that waits for the CPU, with a gap inside the wait and one outside."""
    return build([(_RUN, _ANALYSIS)], title=None, command="", gpu_hour_price=None, version="0")


def _words(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).replace("\N{NO-BREAK SPACE}", " ").split())


def test_a_consequence_is_shown_beneath_its_root(content: Report) -> None:
    """It repeats none of the steps that its root has already."""
    root, gap, *others = content.findings
    assert (root.kind, root.explains) == ("cpu_bound", (gap.id,))
    assert (gap.kind, gap.root) == ("idle_gap", root.id)
    assert root.steps
    assert gap.steps == ()
    assert [card.root for card in others if card.kind == "idle_gap"] == [""]


def test_every_format_names_the_root(content: Report) -> None:
    """Text, HTML and both kinds of JSON."""
    assert "Follows from F1." in terminal.render(content)
    page = html.render(content)
    assert 'Follows from <a href="#F1">F1</a>.' in page
    assert '<article class="card warning under" id="F2">' in page
    assert json.loads(report_json.render(content))["findings"][1]["root"] == "F1"
    found = json.loads(analysis_json.render([_ANALYSIS]))["runs"][0]["findings"]
    (root,) = (one for one in found if one["kind"] == "cpu_bound")
    assert {one["root"] for one in found if one["cause"] == "data" and one["kind"] == "idle_gap"} == {
        root["fingerprint"]
    }


def test_steps_in_full_text_and_page(content: Report) -> None:
    """Full text and HTML have all that is said of them; one screen has not."""
    step = content.findings[0].steps[0]
    full, brief = (_words(terminal.render(content, full=long)) for long in (True, False))
    page = _words(html.render(content).replace("&#39;", "'"))
    for text in (step.do, step.when, step.risk, step.check):
        assert _words(text) in full
        assert _words(text) in page
        assert _words(text) not in brief
    unknown = next(one.unknown for one in content.findings[0].steps if one.unknown)
    assert unknown in full
    assert unknown in page


def test_json_holds_each_step_once() -> None:
    """Findings name steps; the document says what these are."""
    document = json.loads(analysis_json.render([_ANALYSIS, _ANALYSIS]))
    named = {step["name"] for run in document["runs"] for one in run["findings"] for step in one["steps"]}
    assert set(document["advice"]) == named
    assert all(entry["do"] == STEPS[name].do for name, entry in document["advice"].items())


def test_every_kind_has_an_answer_in_every_format(content: Report) -> None:
    """One line a kind in HTML and JSON, by outcome in full text."""
    (asked,) = content.answers
    assert [line.kind for line in asked.lines] == KINDS
    counts = re.findall(r"(\d+) ", asked.summary)
    assert sum(map(int, counts)) == len(KINDS)
    full = terminal.render(content)
    section = full[full.index("EVERY KIND") :]
    assert [kind for kind in KINDS if not re.search(rf"\b{kind}\b", section)] == []
    assert f"{asked.summary}." in _words(full)
    page = html.render(content)
    assert page.count('<td class="state">') == len(KINDS) + len(ITEMS)
    answers = json.loads(analysis_json.render([_ANALYSIS]))["runs"][0]["answers"]
    assert [answer["kind"] for answer in answers] == KINDS
    assert {answer["outcome"] for answer in answers} <= {outcome.value for outcome in Outcome}


def test_answers_point_to_cards(content: Report) -> None:
    """What was found leads to where it is told; what was not judged says what to record."""
    (asked,) = content.answers
    lines = {line.kind: line for line in asked.lines}
    assert lines["cpu_bound"].cards == ("F1",)
    gaps = tuple(card.id for card in content.findings if card.kind == "idle_gap")
    assert set(lines["idle_gap"].cards) == set(gaps)
    assert lines["thermal_throttle"].outcome == "cannot judge"
    assert "gpureport record" in lines["thermal_throttle"].recording
    assert lines["cpu_bound"].recording == ""


def test_devices_of_a_partial_answer_are_named_as_everywhere() -> None:
    """GPU 1, not gpu:1."""
    run = recording(util=[steps((97, 100)), steps((float("nan"), 100))])
    analysis = analyze(run)
    content = build([(run, analysis)], title=None, command="", gpu_hour_price=None, version="0")
    (line,) = (line for line in content.answers[0].lines if line.kind == "idle_gap")
    assert line.reason.startswith("GPU 1: ")


def test_the_checklist_in_every_format(content: Report) -> None:
    """Question, answer and why; where it cannot be judged, what to record."""
    texts = (terminal.render(content), html.render(content).replace("&#39;", "'"))
    for line in content.checklists[0].lines:
        for text in map(_words, texts):
            assert line.title in text
            assert line.state_text in text
    entries = json.loads(analysis_json.render([_ANALYSIS]))["runs"][0]["checklist"]
    assert [entry["item"] for entry in entries] == list(ITEMS)


def test_the_checklist_of_a_terminal_is_a_column(content: Report) -> None:
    """The longest answer sets where every question begins."""
    (run,) = content.checklists
    lines = terminal.render(content).splitlines()
    starts = {
        line.index(each.title)
        for each in run.lines
        for line in lines
        if line.startswith(f"  {each.state_text}") and each.title in line
    }
    assert len({each.state for each in run.lines}) > 1
    assert len(starts) == 1


def test_causes_of_gpu_time_are_told_of_all_gpus_together() -> None:
    """The row of a GPU has its share and time; eight repetitions of the causes would be taller than the rest."""
    (time,) = _ANALYSIS.gpu_time
    pair = tuple(replace(time, device=device) for device in ("gpu:0", "gpu:1"))
    table = build(
        [(_RUN, replace(_ANALYSIS, gpu_time=pair))], title=None, command="", gpu_hour_price=None, version="0"
    ).gpu_time_table
    assert table is not None
    place = table.columns.index("Waiting for data") - 1
    whole, *each = (row.cells[place].small for row in table.rows)
    assert ";" in whole
    assert not any(";" in small for small in each)
    assert table.columns[1] == "GPU time"
    assert all(re.fullmatch(r"[0-9.]+\sGPU-(min|h|s)", row.cells[0].text) for row in table.rows)


def test_idle_time_by_cause_in_every_format() -> None:
    """The bar's figures name what lies behind a class."""
    (time,) = _ANALYSIS.gpu_time
    parts = tuple(replace(part, cause="checkpoint") if part.cause == "unknown" else part for part in time.parts)
    told = replace(_ANALYSIS, gpu_time=(replace(time, parts=parts),))
    content = build([(_RUN, told)], title=None, command="", gpu_hour_price=None, version="0")
    said = re.compile(r"checkpoint \d")
    assert said.search(_words(terminal.render(content)))
    assert said.search(_words(html.render(content)))
    causes = json.loads(analysis_json.render([told]))["runs"][0]["gpu_time_causes"]["gpu:0"]
    assert set(causes) == {"idle", "waiting_for_input"}
    assert causes["idle"]["checkpoint"] == pytest.approx(20, abs=1)


def test_several_runs_have_a_matrix_and_a_checklist_each() -> None:
    """Each under its own name, none empty."""
    other = replace(_ANALYSIS, run=replace(_ANALYSIS.run, name="other", id="ff"))
    runs = [(_RUN, _ANALYSIS), (replace(_RUN, run=other.run), other)]
    content = build(runs, title=None, command="", gpu_hour_price=None, version="0")
    assert [asked.label for asked in content.answers] == [asked.label for asked in content.checklists]
    assert len(content.answers) == 2
    page = html.render(content)
    assert all(f"<summary>{asked.label}: {asked.summary}</summary>" in page for asked in content.answers)
