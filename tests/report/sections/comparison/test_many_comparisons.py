"""What stands beside an interval that excludes no change, where nothing is claimed because comparisons are many."""

from dataclasses import replace

from gpureport.comparison.chain.step_pairs import pair_steps
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.report.formats import html
from gpureport.report.formats.text import markdown, terminal
from gpureport.report.sections.comparison.figure_formats import choose_format
from gpureport.report.sections.comparison.step_table import build_step_table
from gpureport.report.sections.gains.gain_table import build_gain_table
from gpureport.report.wording.differences.changes import build_change
from gpureport.report.wording.differences.difference_wording import difference_sentence
from gpureport.report.wording.display import GAP
from gpureport.testing import Comparison, Delta, Reason, ReasonKind, Verdict, Work
from tests.comparison.runs import compared, level, sampled
from tests.report.test_steps import chain

CLAUSE = ", one of 5 comparisons"
NOTE = "The interval alone would show a change, but among 5 comparisons some differ by chance."


def three(step: str, seconds: int) -> list[SampledRun]:
    """Return three runs of a step that do the same work in about so many seconds."""
    work = Work(amount=1000, unit="images")
    return [sampled(f"{step}{at}", step=step, work=work, util=[level(90, seconds + 2 * at, at)]) for at in range(3)]


def one_of_five() -> tuple[Comparison, Delta]:
    """Return two steps, of which each difference is one of five and shows nothing beside them; and one difference."""
    found = compared(*three("a", 400), *three("b", 300))
    reason = Reason(kind=ReasonKind.MANY_COMPARISONS, amount=5)
    deltas = tuple(replace(each, verdict=Verdict.NO_CLEAR_CHANGE, reason=reason) for each in found.deltas)
    return replace(found, deltas=deltas), next(each for each in deltas if each.primary)


def test_a_change_says_that_it_is_one_of_many() -> None:
    """Beside its interval, which alone would show a change; its verdict is one of the five."""
    _, delta = one_of_five()
    change = build_change(delta)
    assert change is not None
    assert (change.verdict, change.comparisons, change.interval.count("\N{MINUS SIGN}")) == ("no clear change", 5, 2)
    plain = build_change(replace(delta, reason=None))
    assert plain is not None
    assert (plain.comparisons, f"{plain.interval}{CLAUSE}") == (None, change.interval)
    sentence = difference_sentence(delta, choose_format(delta.metric, "images"))
    assert sentence.endswith(f" {NOTE}")


def test_tables_explain_it_once() -> None:
    """The table of steps and that of gains, in their cells and in a note; without such a case they have none."""
    found, _ = one_of_five()
    steps, gains = build_step_table(found), build_gain_table(found, pair_steps(found))
    changes = [cell.change for cell in steps.rows[1].cells if cell.change]
    assert {change.verdict for change in changes} == {"no clear change"}
    assert {change.comparisons for change in changes} == {5}
    assert {(cell.verdict, cell.comparisons) for cell in gains.rows[1].cells} == {("no clear change", 5)}
    assert gains.notes.count(NOTE) == 1
    plain = compared(*three("a", 400), *three("b", 300))
    assert not [note for note in build_gain_table(plain, pair_steps(plain)).notes if "chance" in note]


def test_every_format_says_it_beside_the_interval() -> None:
    """Of a figure at the top: on the page, in Markdown and in the full text."""
    change = build_change(one_of_five()[1])
    assert change is not None
    plain = chain()
    report = replace(plain, tiles=tuple(replace(tile, change=tile.change and change) for tile in plain.tiles))
    for text in (html.render(report), markdown.render(report), terminal.render(report, 200)):
        assert f"%{CLAUSE}" in text.replace(GAP, " ")
