"""Who got better after which advice."""

from collections.abc import Sequence

from gpureport.analysis.advice.catalogue import STEPS
from gpureport.fleet.fleet_report import Improvement
from gpureport.fleet.page.class_words import shorten_name
from gpureport.fleet.page.page_model import PagePart
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.wording import display, terms
from gpureport.report.wording.differences.relative_changes import format_percent_change

_MOST_ROWS = 20


def build_improvement_part(improvements: Sequence[Improvement]) -> PagePart | None:
    """Return the jobs that got better; None where no job did."""
    if not improvements:
        return None
    shown = improvements[:_MOST_ROWS]
    hidden = len(improvements) - len(shown)
    return PagePart(
        id="improvements",
        title="Who got better",
        line=f"{display.plural(len(improvements), 'job')} lost less after an advised step",
        table=Table(
            columns=("Job", "Share lost", "GPU time per work", "Advised step", "Finding gone", "Runs"),
            numeric=(True, True, False, False, True),
            rows=tuple(map(_build_row, shown)),
        ),
        notes=(
            "The finding is gone in later runs of the same name, and less is lost. Other changes may have helped.",
            *((f"{display.plural(hidden, 'more job')}: the JSON names all.",) if hidden else ()),
        ),
    )


def _build_row(each: Improvement) -> Row:
    step = STEPS.get(each.step)
    before, after = display.percent(each.lost_before), display.percent(each.lost_after)
    return Row(
        head=Cell(text=shorten_name(each.job), small="" if each.user is None else shorten_name(each.user)),
        cells=(
            Cell(text=f"{before} → {after}"),
            Cell(text=_describe_work(each)),
            Cell(
                text=step.title if step else each.step.replace("_", " "),
                small=f"shown by {display.clean(each.setting)}" if each.setting else "advised; not shown by a setting",
            ),
            Cell(text=terms.kind_title(each.kind, each.cause)),
            Cell(text=f"{display.integer(len(each.before))} → {display.integer(len(each.after))}"),
        ),
    )


def _describe_work(each: Improvement) -> str:
    """Return the change of GPU time per unit of work in per cent; `not recorded` where the work is not known."""
    before, after = each.gpu_seconds_per_work_before, each.gpu_seconds_per_work_after
    return format_percent_change(after / before) if before and after is not None else display.NOT_RECORDED
