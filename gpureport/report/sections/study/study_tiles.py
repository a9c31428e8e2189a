"""The figures at the head of a report on groups: those of the cheapest and the fastest group."""

from collections.abc import Sequence
from dataclasses import replace

from gpureport.comparison.chain import Comparison
from gpureport.comparison.study import BestGroup, Study
from gpureport.report.model.head import Tile
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.gpus import spending
from gpureport.report.wording import display


def choose_best(comparison: Comparison, study: Study) -> Comparison:
    """Return the comparison with the best group alone, or the last one where none is best."""
    step = next((step for step in comparison.steps if step.label == study.best_label), comparison.steps[-1])
    return replace(comparison, steps=(step,), deltas=())


def build_study_tiles(comparison: Comparison, study: Study, of_best: Sequence[Tile]) -> tuple[Tile, ...]:
    """Return four figures: which groups are the best, then more of the best one.

    Args:
        comparison: the groups as steps.
        study: what is said of them together.
        of_best: figures of the best group.
    """
    best = [_build_tile(comparison, each) for each in (study.best_by_cost, study.best_by_speed) if each is not None]
    label = display.clean(choose_best(comparison, study).steps[0].label)
    rest = (replace(tile, context=f"{label}: {display.lower_first(tile.context)}") for tile in of_best[len(best) :])
    return (*best, *rest)


def _build_tile(comparison: Comparison, best: BestGroup) -> Tile:
    analyses = [analysis for step in comparison.steps for analysis in step.analyses]
    shown = figure_formats.choose_format(
        best.metric,
        comparison.steps[0].work_unit,
        spending.currency(analyses),
        units=figure_formats.gather_work_units(comparison),
    )
    context = f"{display.clean(best.label)}; next {display.clean(best.next)}, {shown.value(best.next_value)}"
    return Tile(label=shown.title, value=shown.value(best.value), context=context)
