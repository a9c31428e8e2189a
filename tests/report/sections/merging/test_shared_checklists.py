"""Checklists of several runs with the same answers."""

from dataclasses import replace

import pytest

from gpureport.report import build
from gpureport.report.formats import html
from gpureport.report.formats.text import terminal
from gpureport.report.model.report_content import CheckLine, Checklist, Report
from gpureport.report.sections.merging import shared_checklists
from gpureport.testing import analyze, recording, steps


def checklist(label: str, reason: str = "") -> Checklist:
    """Return a checklist of one question."""
    line = CheckLine(item="input", title="Input pipeline", state="done", reason=reason, recording="", state_text="done")
    return Checklist(label=label, lines=(line,))


def test_the_last_run_comes_first_with_those_that_share_its_answers() -> None:
    """A reason that differs is another answer; no run is lost."""
    runs = [checklist("a", "one"), checklist("b", "two"), checklist("c", "one"), checklist("d", "two")]
    shared = shared_checklists.merge_checklists(runs)
    assert [each.labels for each in shared] == [("b", "d"), ("a", "c")]
    assert [each.runs for each in shared] == ["b and d", "a and c"]
    assert shared_checklists.merge_checklists([]) == ()


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["five/1", "five/2", "five/3"], "five/1 to /3"),
        (["a/1", "a/2", "b/1", "b/2"], "a/1 to /2 and b/1 to /2"),
        (["a/1", "a/3", "b"], "a/1, a/3 and b"),
        (["run 9", "run 10", "run 11"], "run 9 to 11"),
        (["a, b/1", "a, c/2"], "a, b/1 and a, c/2"),
        (["1", "2"], "1 and 2"),
        (["x/" + "9" * 5000, "x/1"], "x/" + "9" * 5000 + " and x/1"),
    ],
)
def test_numbered_runs_are_named_by_their_ends(labels: list[str], said: str) -> None:
    """What was numbered one after the other is told from first to last."""
    (shared,) = shared_checklists.merge_checklists([checklist(label) for label in labels])
    assert shared.runs == said


def report(*utilisations: float) -> Report:
    """Return a report of a run for each utilisation, each long enough to be judged."""
    runs = []
    for number, busy in enumerate(utilisations, 1):
        run = recording(util=[steps((busy, 300))])
        named = replace(run, run=replace(run.run, id=f"{number:02x}", name=f"run {number}"))
        runs.append((named, analyze(named)))
    return build(runs, title=None, command="", gpu_hour_price=None, version="0")


def test_equal_checklists_stand_once() -> None:
    """The page has one table for three runs that differ in nothing, and says whose it is."""
    content = report(97, 97, 97)
    page = html.render(content)
    assert page.count('aria-label="Checklist of ') == 1
    assert "answered for run 3. The answers are the same for all 3 runs." in page
    assert terminal.render(content, full=True).count("CHECKLIST, run 1 to 3") == 1


def test_answers_that_differ_are_folded_and_named() -> None:
    """Those of other runs follow the last run's, one fold for each set of answers."""
    content = report(97, 97, 97)
    first, *rest = content.checklists
    line = replace(first.lines[0], state="done", reason="Another reason")
    page = html.render(replace(content, checklists=(replace(first, lines=(line, *first.lines[1:])), *rest)))
    assert "answered for run 3. The answers are the same for run 2 to 3." in page
    assert page.count("<summary>Answers for ") == 1
    assert "<summary>Answers for run 1</summary>" in page
