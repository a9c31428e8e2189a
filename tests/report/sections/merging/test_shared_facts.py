"""Named statements of several runs, each said once."""

from gpureport.report.model.report_content import RunFacts, RunQuality
from gpureport.report.model.shapes import Fact
from gpureport.report.sections.merging.shared_facts import SharedFact, SharedText, list_facts, merge_facts, merge_notes


def spent(label: str, **facts: str) -> RunFacts:
    """Return statements on a run."""
    return RunFacts(label=label, facts=tuple(Fact(name=name, text=text) for name, text in facts.items()))


def test_what_holds_for_all_runs_is_said_without_them() -> None:
    """And what holds for some with those; a run of which nothing is said is not counted in."""
    runs = [spent("a/1", Energy="5 Wh", Cost="1"), spent("a/2", Energy="5 Wh", Cost="1"), spent("b", Energy="5 Wh")]
    assert merge_facts(runs) == (
        SharedFact(name="Energy", said=(SharedText(runs="", text="5 Wh"),)),
        SharedFact(name="Cost", said=(SharedText(runs="a/1 to /2", text="1"),)),
    )


def test_each_statement_keeps_its_runs() -> None:
    """One run needs no name."""
    assert merge_facts([spent("a", Energy="5 Wh"), spent("b", Energy="6 Wh")])[0].said == (
        SharedText(runs="a", text="5 Wh"),
        SharedText(runs="b", text="6 Wh"),
    )
    assert [fact.text for fact in list_facts([spent("a", Energy="5 Wh"), spent("b", Energy="6 Wh")])] == [
        "a: 5 Wh",
        "b: 6 Wh",
    ]
    assert merge_facts([spent("a", Energy="5 Wh")]) == (
        SharedFact(name="Energy", said=(SharedText(runs="", text="5 Wh"),)),
    )


def test_a_note_that_several_runs_have_stands_once() -> None:
    """Without their names where all have it, and once where one has it twice."""
    runs = [
        RunQuality(label=label, facts=(), notes=held, events=(), more_events="")
        for label, held in (("a/1", ("Cut.", "Cut.", "Repaired.")), ("a/2", ("Cut.",)), ("b", ("Cut.", "Repaired.")))
    ]
    assert merge_notes(runs) == (SharedText(runs="", text="Cut."), SharedText(runs="a/1 and b", text="Repaired."))
