"""The report as JUnit XML."""

from xml.etree import ElementTree as ET

import pytest

from gpureport.report.formats import junit
from gpureport.report.model.report_content import Report
from gpureport.report.wording.display import GAP
from tests.report import sample_reports


def suites(content: Report) -> list[ET.Element]:
    """Return the suites of a report, its counts checked."""
    root = ET.fromstring(junit.render(content))  # noqa: S314 - written by the project itself
    for element in (root, *root):
        cases = list(element.iter("testcase"))
        assert element.get("tests") == str(len(cases))
        assert element.get("skipped") == str(sum(case.find("skipped") is not None for case in cases))
        assert element.get("failures") == str(sum(case.find("failure") is not None for case in cases))
        assert element.get("errors") == "0"
    return list(root)


@pytest.mark.parametrize("name", sample_reports.SETS)
def test_every_kind_is_a_case_once(name: str) -> None:
    """One suite a run, one case a kind and group of devices, no two of the same name."""
    content = sample_reports.report_on(sample_reports.SETS[name])
    found = suites(content)
    assert [suite.get("name") for suite in found] == [run.label for run in content.timeline]
    for suite, answers in zip(found, content.answers, strict=True):
        names = [(case.get("classname"), case.get("name")) for case in suite]
        assert len(names) == len(set(names)) == len(answers.lines)


@pytest.mark.parametrize("name", sample_reports.SETS)
def test_only_what_was_judged_in_whole_passes(name: str) -> None:
    """No case fails without a gate; one passes when its kind was judged and nothing at all was found or left out."""
    content = sample_reports.report_on(sample_reports.SETS[name])
    for suite, answers in zip(suites(content), content.answers, strict=True):
        for case, line in zip(suite, answers.lines, strict=True):
            assert case.find("failure") is None
            skipped = case.find("skipped")
            if skipped is None:
                assert (line.outcome, line.reason) == ("judged, nothing found", "")
            else:
                words = str(skipped.get("message"))
                assert words.startswith(("found", line.outcome))
                assert line.outcome in {"found", "suspected"} or line.reason.replace(GAP, " ") in words


def test_a_finding_tells_its_evidence_and_what_to_do() -> None:
    """The text of a case holds what a person needs who sees only the test page."""
    content = sample_reports.report_on(sample_reports.SETS["broken log"])
    (suite,) = suites(content)
    for card in content.findings:
        texts = [case.findtext("system-out") or "" for case in suite]
        told = [text for text in texts if f"{card.id} " in text]
        assert len(told) == 1
        assert f"Do this: {card.recommendations[0]}".replace(GAP, " ") in told[0]


def test_runs_without_answers_tell_findings_and_what_is_missing(report: Report) -> None:
    """Nothing is lost where only findings and reasons are known."""
    run, missing = suites(report)
    assert [case.get("name") for case in run] == [card.title for card in report.findings]
    assert [case.get("name") for case in missing] == ["Waiting for data: CPU saturated", "Waiting for data: storage"]
    assert len(list(missing.iter("skipped"))) == 2


def test_a_broken_gate_is_a_failure() -> None:
    """What a policy breaks is a failure and nothing else, also where it would be skipped."""
    broken = junit.Case(name="idle share", failure="12% > 5%", skipped="found", text=("since night 31",))
    root = ET.fromstring(junit.render_suites([junit.Suite(name="gates", cases=(broken,))]))  # noqa: S314 - as above
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("1", "1", "0")
    case = root.find("testsuite/testcase")
    assert case is not None
    assert [child.tag for child in case] == ["failure", "system-out"]
