"""Runs set against earlier ones, such as a baseline or the nights of last week, as one short table."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.chain import compare, pair_steps
from gpureport.comparison.run import SampledRun
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.report.model.comparison_parts import EarlierComparison
from gpureport.report.sections.comparison import figure_formats, step_pair_tables
from gpureport.report.sections.comparison.step_pair_view import describe_doubt
from gpureport.report.wording.differences.comparison_reasons import SINGLE_RUN_SCATTER

_EARLIER, _LATER = "before", "after"


def compare_with_earlier(
    title: str,
    earlier: Sequence[SampledRun],
    later: Sequence[SampledRun],
    goals: TrainingGoals,
    *,
    is_baseline: bool = False,
) -> EarlierComparison:
    """Return the change of every figure of some runs since earlier ones, with the verdict on each.

    Args:
        title: what the earlier runs are, as a heading.
        earlier: the runs before.
        later: the runs now.
        goals: what a person says of training metrics.
        is_baseline: whether rules on a change compare with them.
    """
    sides = [run.in_step(_EARLIER) for run in earlier], [run.in_step(_LATER) for run in later]
    comparison = compare([*sides[0], *sides[1]], goals)
    (pair,) = pair_steps(comparison)
    units = figure_formats.gather_work_units(comparison)
    figures = step_pair_tables.pair_formats_with_deltas(pair.base, pair.step, pair.deltas, units=units)
    return EarlierComparison(
        title=title,
        table=step_pair_tables.build_verdict_table(figures, (), (pair.base, pair.step)),
        notes=(*map(describe_doubt, pair.doubts), *(_explain_rules(pair.deltas) if is_baseline else ())),
    )


def _explain_rules(deltas: Sequence[Delta]) -> Iterator[str]:
    """Yield why a rule decides on what the table calls unconfirmed, where it does."""
    if any(delta.verdict is Verdict.UNCONFIRMED and max(delta.runs) > 1 for delta in deltas):
        yield (
            f"A rule on a change decides on what is unconfirmed here: {SINGLE_RUN_SCATTER}. It fails where the whole "
            "interval lies beyond its size."
        )
