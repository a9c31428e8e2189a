"""What would save most: the advice merged over all runs, three steps open and the others in a table."""

import re
from collections.abc import Sequence

from gpureport.analysis.advice.choose import STEPS, Step
from gpureport.analysis.kinds import GROUPS
from gpureport.fleet.fleet_report import Saving
from gpureport.fleet.page.amounts import Amounts
from gpureport.fleet.page.class_words import shorten_name
from gpureport.fleet.page.page_model import PagePart
from gpureport.fleet.page.run_names import name_runs
from gpureport.report.model.head import Action
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.wording import display, terms

HEADING = "What would save most"

_OPEN = 3
_MOST_ROWS = 30
UNKNOWN_GAIN = "Gain not known"
_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")


def build_actions(savings: Sequence[Saving], amounts: Amounts) -> tuple[Action, ...]:
    """Return the most promising steps."""
    return tuple(_build_action(each, amounts) for each in savings[:_OPEN])


def _build_action(saving: Saving, amounts: Amounts) -> Action:
    runs = display.plural(saving.runs, "run")
    step = STEPS.get(saving.step)
    return Action(
        title=shorten_name(saving.title),
        gain=f"{_describe_gain(saving, amounts)}, in {runs}",
        text=_describe_step(step, saving.title) if step else "",
        certainty=_describe_evidence(saving),
    )


def _describe_step(step: Step, title: str) -> str:
    """Return how to save: the step of the catalogue, named unless the title is its name."""
    how = _SENTENCE.split(step.do, maxsplit=1)[0]
    return how if step.title == title else f"{step.title}: {display.lower_first(how)}"


def _describe_gain(saving: Saving, amounts: Amounts) -> str:
    """Return what a step could save; of one that looks for a cause, what may be explained by it."""
    if not saving.gpu_seconds:
        return UNKNOWN_GAIN
    amount = amounts.format_both(saving.gpu_seconds, saving.cost)
    return f"Cause of {amount} not known" if saving.step in GROUPS["probe"] else f"Up to {amount}"


def _describe_evidence(saving: Saving) -> str:
    """Return the finding of these runs that lost most, and where it was worst."""
    found = terms.kind_title(saving.kinds[0]) if saving.kinds else ""
    worst = f"worst in {display.join_words(name_runs(saving.examples))}" if saving.examples else ""
    said = "; ".join(filter(None, (found, worst)))
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def build_saving_part(savings: Sequence[Saving], amounts: Amounts) -> PagePart | None:
    """Return the steps that are not shown open; None where there are none."""
    rest = savings[_OPEN:]
    if not rest:
        return None
    shown = rest[:_MOST_ROWS]
    money = ("Cost",) if amounts.is_priced else ()
    hidden = len(rest) - len(shown)
    return PagePart(
        id="savings",
        title="What else would save",
        line=display.plural(len(rest), "more step"),
        table=Table(
            columns=("What to do", f"Up to {amounts.unit}", *money, "Runs", "Found", "Worst runs"),
            numeric=(True, *(True for _ in money), True, False, False),
            rows=tuple(_build_row(each, amounts) for each in shown),
        ),
        notes=(
            "Each lost hour counts with one step only, the most promising one, so the rows can be added up.",
            *((f"{hidden} more are in the JSON.",) if hidden else ()),
        ),
    )


def _build_row(saving: Saving, amounts: Amounts) -> Row:
    figures = (
        amounts.format_time(saving.gpu_seconds) if saving.gpu_seconds else UNKNOWN_GAIN,
        *((amounts.format_money(saving.cost),) if amounts.is_priced else ()),
        display.integer(saving.runs),
        ", ".join(dict.fromkeys(terms.kind_title(kind) for kind in saving.kinds[:2])),
        ", ".join(name_runs(saving.examples)),
    )
    return Row(head=Cell(text=shorten_name(saving.title)), cells=tuple(Cell(text=text) for text in figures))
