"""The training rate of two steps: work a second without start-up and tail, compared as a ratio."""

from dataclasses import replace

from gpureport.comparison.steps.compared_figures import Figure
from gpureport.comparison.steps.counted_runs import count_jobs
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.steps.training_rate import TrainingBasis, training_rate
from gpureport.comparison.steps.verdict_reason import ReasonKind
from gpureport.comparison.verdicts import single_run_interval
from gpureport.comparison.verdicts.figure_evidence import Evidence, compare_whole_recordings, read_whole_recordings
from gpureport.comparison.verdicts.work_evidence import (
    compare_ratios,
    convert_to_amounts,
    find_unit_obstacle,
)


def gather_training_evidence(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return how fast two steps trained, by runs that count as whole jobs."""
    jobs = [count_jobs(side.runs) for side in (base, step)]
    left_out = (*jobs[0].left_out, *jobs[1].left_out)
    base, step = (replace(side, runs=each.counted) for side, each in zip((base, step), jobs, strict=True))
    return replace(_compare_training(base, step, figure), left_out=left_out)


def _compare_training(base: Step, step: Step, figure: Figure) -> Evidence:
    if obstacle := find_unit_obstacle(base, step):
        return compare_whole_recordings(base, step, figure, obstacle)
    if base.training_source is None or step.training_source is None:
        return compare_whole_recordings(base, step, figure, ReasonKind.NOT_RECORDED)
    basis = base.training_source.basis
    sides = [[rate for run in side.runs if (rate := training_rate(run, basis))] for side in (base, step)]
    single = len(base.runs) == len(step.runs) == 1
    if not single or basis is TrainingBasis.STEADY_PHASE:
        return compare_ratios(base, step, figure, sides)
    found = single_run_interval.compare_training_rates(base.runs[0], step.runs[0])
    before, after = sides[0][0], sides[1][0]
    return Evidence(
        figure=figure,
        before=before,
        after=after,
        steady=False,
        contrast=found.contrast and convert_to_amounts(found.contrast, before),
        reason=found.reason,
        whole=read_whole_recordings(base, step, figure),
        seconds=min(run.rate_seconds for run in (*base.runs, *step.runs)),
        figures=((before,), (after,)),
        lone=found.contrast is None,
        brief=found.reason,
    )
