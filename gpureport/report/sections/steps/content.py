"""What a report says of its steps beside their table."""

from collections.abc import Sequence

from gpureport.comparison.chain import Comparison, pair_steps
from gpureport.comparison.factors import describe_factors
from gpureport.comparison.study import Study
from gpureport.report.model.comparison_parts import ComparisonPart
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.steps import across, charts, gains, pairs, study, tables
from gpureport.report.wording import display


def build_comparison_part(
    comparison: Comparison, inputs: Sequence[ReportRun], cards: Sequence[FindingCard], groups: Study | None
) -> ComparisonPart:
    """Return what a report says of its steps beside their table.

    Args:
        comparison: the steps.
        inputs: the runs step by step.
        cards: the findings of the report.
        groups: what is said of the steps as groups; None where they are a chain.
    """
    links, drawn = pair_steps(comparison), charts.build_charts(comparison, groups)
    return ComparisonPart(
        grouped=display.clean(describe_factors(groups.by)) if groups else "",
        charts=drawn,
        legend=charts.describe_marks(drawn),
        study=tuple(study.build_study_sections(groups, comparison)) if groups else (),
        estimates=tables.build_summary_table(comparison),
        links=tuple(pairs.build_step_pairs(comparison, links, inputs)),
        remaining=tuple(across.list_remaining(comparison, inputs, groups, cards)),
        across=tuple(across.list_across(comparison, groups)),
        gains=None if groups else gains.build_gain_table(comparison, links),
    )
