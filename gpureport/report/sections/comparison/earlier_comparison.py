"""Runs set against earlier ones, such as a baseline or the nights of last week, as one short table."""

from collections.abc import Sequence
from dataclasses import replace

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.chain.step_pairs import pair_steps
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.training.training_goals import TrainingGoals
from gpureport.report.model.comparison_parts import EarlierComparison
from gpureport.report.sections.comparison import figure_formats, step_pair_tables
from gpureport.report.sections.comparison.step_pair_view import describe_doubt

_EARLIER, _LATER = "before", "after"


def compare_with_earlier(
    title: str, earlier: Sequence[SampledRun], later: Sequence[SampledRun], goals: TrainingGoals
) -> EarlierComparison:
    """Return the change of every figure of some runs since earlier ones, with the verdict on each.

    Args:
        title: what the earlier runs are, as a heading.
        earlier: the runs before.
        later: the runs now.
        goals: what a person says of training metrics.
    """
    sides = [_relabel(run, _EARLIER) for run in earlier], [_relabel(run, _LATER) for run in later]
    comparison = compare([*sides[0], *sides[1]], None, goals)
    (pair,) = pair_steps(comparison)
    units = figure_formats.gather_work_units(comparison)
    figures = step_pair_tables.pair_formats_with_deltas(pair.base, pair.step, pair.deltas, units=units)
    return EarlierComparison(
        title=title,
        table=step_pair_tables.build_verdict_table(figures, (), (pair.base, pair.step)),
        notes=tuple(map(describe_doubt, pair.doubts)),
    )


def _relabel(run: SampledRun, label: str) -> SampledRun:
    return replace(run, analysis=replace(run.analysis, run=replace(run.analysis.run, step=label)))
