"""The figures at the head of a report on groups: those of the cheapest and the fastest group, then of the last."""

from collections.abc import Sequence
from dataclasses import replace

from gpureport.comparison.steps.steps import Comparison
from gpureport.comparison.study.best_group import BestGroup
from gpureport.comparison.study.study import Study
from gpureport.report.model.head import Tile
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.gpus import spending
from gpureport.report.wording import display


def build_study_tiles(comparison: Comparison, study: Study, of_last: Sequence[Tile]) -> tuple[Tile, ...]:
    """Return as many figures as there are of the last step, the first of them of the best groups.

    Args:
        comparison: the groups as steps.
        study: what is said of them together.
        of_last: figures of the last group, which the others name.
    """
    best = [_build_tile(comparison, each) for each in (study.best_by_cost, study.best_by_speed) if each is not None]
    last = display.clean(comparison.steps[-1].label)
    return (*best, *(replace(tile, context=f"{last}: {tile.context}") for tile in of_last[len(best) :]))


def _build_tile(comparison: Comparison, best: BestGroup) -> Tile:
    analyses = [analysis for step in comparison.steps for analysis in step.analyses]
    shown = figure_formats.choose_format(
        best.metric,
        comparison.steps[0].work_unit,
        spending.currency(analyses),
        in_seconds=figure_formats.uses_seconds(comparison),
    )
    context = f"{display.clean(best.label)}; the next, {display.clean(best.next)}: {shown.value(best.next_value)}"
    return Tile(label=shown.title, value=shown.value(best.value), context=context)
