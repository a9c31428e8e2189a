"""What a report says of its steps beside their table: of every link what changed and what may be doubted."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.chain import Comparison, pair_steps
from gpureport.comparison.factors import describe_factors
from gpureport.comparison.figures import SHORTEST_SECONDS, recorded_seconds
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study, select_focus
from gpureport.report.model.comparison_parts import ComparisonPart
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.shapes import Fact
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.comparison import (
    remaining_loss_facts,
    step_charts,
    step_pair_view,
    step_summary_table,
    target_facts,
)
from gpureport.report.sections.gains import gain_table
from gpureport.report.sections.study.study_content import build_study_sections
from gpureport.report.wording import display


def build_comparison_part(
    comparison: Comparison, inputs: Sequence[ReportRun], cards: tuple[FindingCard, ...], study: Study | None
) -> ComparisonPart:
    """Return what a report says of its steps beside their table.

    Args:
        comparison: the steps.
        inputs: the runs step by step.
        cards: the findings of the report.
        study: the groups; None where the steps are a chain.
    """
    found = pair_steps(comparison)
    charts = step_charts.build_step_charts(comparison, study)
    return ComparisonPart(
        grouped=display.clean(describe_factors(study.by)) if study else "",
        charts=charts,
        legend=step_charts.describe_marks(charts),
        study=build_study_sections(comparison, study) if study else (),
        estimates=step_summary_table.build_step_summary_table(comparison.steps),
        links=step_pair_view.build_step_pair_views(comparison, found, inputs),
        remaining=tuple(_remaining(comparison, inputs, study, cards)),
        across=tuple(_describe_all_steps(comparison, study)),
        gains=None if study else gain_table.build_gain_table(comparison, found),
    )


def _remaining(
    comparison: Comparison, inputs: Sequence[ReportRun], study: Study | None, cards: tuple[FindingCard, ...] = ()
) -> Iterator[Fact]:
    """Yield what the step in focus still loses; nothing where it is too short to tell."""
    step, runs = _select_focus(comparison, inputs, study)
    if recorded_seconds(step.analyses) >= SHORTEST_SECONDS:
        first = None if study else comparison.steps[0]
        yield from remaining_loss_facts.describe_remaining_loss(step, first, runs[-1], cards)


def _select_focus(
    comparison: Comparison, inputs: Sequence[ReportRun], study: Study | None
) -> tuple[Step, Sequence[ReportRun]]:
    """Return the step that losses and advice are of, with its runs: the last of a chain; of groups the best known."""
    step = select_focus(comparison, study)
    place = [each.label for each in comparison.steps].index(step.label)
    start = sum(len(each.runs) for each in comparison.steps[:place])
    return step, inputs[start : start + len(step.runs)]


def _describe_all_steps(comparison: Comparison, study: Study | None) -> Iterator[Fact]:
    """Yield what all steps together say: the time to the target, and how work scales."""
    yield from target_facts.build_target_facts(comparison)
    yield from step_summary_table.build_scaling_facts(comparison.steps, select_focus(comparison, study))
