"""What the pages of a PDF say once of several runs and comparisons."""

from dataclasses import replace

from gpureport.answers import Answer, Outcome
from gpureport.report import build
from gpureport.report.model.report_content import Report
from gpureport.report.sections.merging import shared_content
from gpureport.report.sections.merging.shared_facts import SharedFact, SharedText
from tests.report import examples

IDLE = Answer(kind="idle_gap", outcome=Outcome.JUDGED, group="", devices=())
HOT = Answer(kind="thermal_throttle", outcome=Outcome.FOUND, group="", devices=())


def report(*answers: tuple[Answer, ...]) -> Report:
    """Return the content on runs with some answers."""
    pairs = [examples.pair(examples.run(f"run{place}")) for place in range(len(answers))]
    answered = [(one, replace(analysis, answers=said)) for (one, analysis), said in zip(pairs, answers, strict=True)]
    return build(answered, title=None, command="gpureport report", gpu_hour_price=None, version="0.1.0")


def test_kinds_stand_by_what_became_of_them() -> None:
    """Each with the runs that it holds for; an outcome that no run has is not named."""
    found, judged = shared_content.share_content(report((HOT,), (IDLE,), (IDLE,))).answers
    assert found == SharedFact(
        name="Found",
        said=(SharedText(runs="run0", text="GPU slowed by heat"), SharedText(runs="run1 to 2", text="none")),
    )
    assert (judged.name, [each.runs for each in judged.said]) == ("Clear", ["run0", "run1 to 2"])


def test_what_all_comparisons_have_in_common_is_said_without_them() -> None:
    """Of three steps, recorded alike, with the same figures."""
    once = shared_content.share_content(report((), (), ()))
    assert [each.runs for named in (*once.recordings, *once.verdicts) for each in named.said] == [""] * (
        len(once.recordings) + len(once.verdicts)
    )
    assert {named.name for named in once.recordings} >= {"GPU models", "Sampling interval"}


def test_a_value_that_differs_is_said_of_both_sides() -> None:
    """With whether the comparison may be made."""
    pairs = [examples.pair(examples.run(name, model=model)) for name, model in (("a", "A100"), ("b", "H100"))]
    content = build(pairs, title=None, command="gpureport report", gpu_hour_price=None, version="0.1.0")
    (models,) = (named for named in shared_content.share_content(content).recordings if named.name == "GPU models")
    assert [each.text for each in models.said] == ["A100, then H100; alike: doubtful"]
