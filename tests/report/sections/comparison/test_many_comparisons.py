"""What stands beside an interval that excludes no change, where nothing is claimed because comparisons are many."""

from dataclasses import replace

from gpureport.comparison.chain.step_pairs import pair_steps
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.steps import Comparison, Delta, Verdict
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind
from gpureport.recording import Work
from gpureport.report.sections.comparison.figure_formats import choose_format
from gpureport.report.sections.comparison.step_table import build_step_table
from gpureport.report.sections.gains.gain_table import build_gain_table
from gpureport.report.wording.changes import build_change
from gpureport.report.wording.difference_wording import difference_sentence
from tests.comparison.runs import compared, level, sampled

CLAUSE = "no clear change (one of 5 comparisons)"
NOTE = "One of 5 comparisons: its interval alone would show a change, but among so many, some differ by chance."


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


def test_the_verdict_says_that_it_is_one_of_many() -> None:
    """Beside its interval, which alone would show a change."""
    _, delta = one_of_five()
    change = build_change(delta)
    assert change is not None
    assert (change.verdict, change.interval.count("\N{MINUS SIGN}")) == (CLAUSE, 2)
    assert "comparisons" not in (build_change(replace(delta, reason=None)) or change).verdict
    sentence = difference_sentence(delta, choose_format(delta.metric, "images"))
    assert sentence.endswith("not one of 5: among so many, some differ by chance.")


def test_tables_explain_it_once() -> None:
    """The table of steps and that of gains, in their cells and in a note; without such a case they have none."""
    found, _ = one_of_five()
    steps, gains = build_step_table(found), build_gain_table(found, pair_steps(found))
    changes = [cell.change for cell in steps.rows[1].cells if cell.change]
    assert {change.verdict for change in changes} == {"no clear change"}
    assert all(change.interval.endswith(", one of 5 comparisons") for change in changes)
    assert CLAUSE in {cell.verdict for cell in gains.rows[1].cells}
    assert gains.notes.count(NOTE) == 1
    plain = compared(*three("a", 400), *three("b", 300))
    assert not [note for note in build_gain_table(plain, pair_steps(plain)).notes if "chance" in note]
