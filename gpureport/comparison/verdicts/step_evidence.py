"""The evidence on a figure of two steps: both values, and the interval of their difference or why there is none."""

from collections.abc import Sequence

from gpureport.comparison.statistics.difference_estimate import estimate_between_runs
from gpureport.comparison.steps.compared_figures import ENERGY, GPU_SECONDS, Figure, FigureRole
from gpureport.comparison.steps.counted_runs import CountedRuns, count_runs
from gpureport.comparison.steps.sampled_run import SampledRun, find_coarsest_interval
from gpureport.comparison.steps.step_figures import TRAINING_RATE
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind
from gpureport.comparison.verdicts import single_run_interval
from gpureport.comparison.verdicts.figure_evidence import (
    Evidence,
    compare_whole_recordings,
    compute_mean,
    find_brief_recording,
    read_each_run,
    read_whole_recordings,
)
from gpureport.comparison.verdicts.training_evidence import gather_training_evidence
from gpureport.comparison.verdicts.work_evidence import gather_work_evidence


def gather_evidence(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return what two steps hold on a figure."""
    if figure.metric == TRAINING_RATE:
        return gather_training_evidence(base, step, figure)
    made = {
        FigureRole.MEAN: _mean,
        FigureRole.PEAK: _single,
        FigureRole.TOTAL: _single,
        FigureRole.WORK: gather_work_evidence,
    }
    return made[figure.kind](base, step, figure)


def _mean(base: Step, step: Step, figure: Figure) -> Evidence:
    """Return a mean over time: within runs where each side is one, else over runs."""
    runs = (*base.runs, *step.runs)
    interval = find_coarsest_interval(runs)
    if any(run.recorded_seconds(figure.metric, interval) <= 0 for run in runs):
        return compare_whole_recordings(base, step, figure, ReasonKind.NOT_RECORDED)
    before, after = (count_runs(side.runs, figure.metric, interval) for side in (base, step))
    if not before.counted or not after.counted:
        short = _longest_left_out(before if not before.counted else after)
        return compare_whole_recordings(base, step, figure, short)
    counted = (*before.counted, *after.counted)
    single = len(counted) == 2  # noqa: PLR2004 - one on each side
    estimate = single_run_interval.compare_means(counted[0], counted[1], figure, interval) if single else None
    sides = _means(before.counted, figure.metric, interval), _means(after.counted, figure.metric, interval)
    contrast = estimate.contrast if estimate else estimate_between_runs(*sides, figure.finest)
    return Evidence(
        figure=figure,
        before=compute_mean(sides[0]),
        after=compute_mean(sides[1]),
        steady=True,
        contrast=contrast,
        reason=estimate.reason if estimate else None,
        whole=read_whole_recordings(base, step, figure),
        figures=sides,
        unseen=estimate.unseen if estimate else None,
        seconds=min(run.steady_seconds(figure.metric, interval) for run in counted) if single else None,
        left_out=(*before.left_out, *after.left_out),
    )


def _means(runs: Sequence[SampledRun], metric: str, interval: float) -> tuple[float, ...]:
    return tuple(run.steady_mean(metric, interval) for run in runs)


def _longest_left_out(runs: CountedRuns) -> Reason:
    longest = max(runs.left_out, key=lambda run: (run.seconds, run.run))
    return Reason(kind=ReasonKind.SHORT_STEADY_STATE, run=longest.run, amount=longest.seconds, least=longest.least)


def _single(base: Step, step: Step, figure: Figure) -> Evidence:
    plain = compare_whole_recordings(base, step, figure, ReasonKind.SINGLE_FIGURE)
    if plain.whole.difference is None:
        return plain
    sides = [read_each_run(side, figure.metric) for side in (base, step)]
    if None in sides[0] or None in sides[1]:
        return compare_whole_recordings(base, step, figure, ReasonKind.NOT_RECORDED)
    before, after = (tuple(value for value in side if value is not None) for side in sides)
    different_work = _explain_different_work(base, step) if figure.metric in {GPU_SECONDS, ENERGY} else None
    if different_work is not None:
        return compare_whole_recordings(base, step, figure, different_work)
    contrast = estimate_between_runs(before, after, figure.finest)
    return Evidence(
        figure=figure,
        before=compute_mean(before),
        after=compute_mean(after),
        steady=False,
        contrast=contrast,
        reason=None if contrast else Reason(kind=ReasonKind.SINGLE_FIGURE),
        whole=plain.whole,
        figures=(before, after),
        lone=contrast is None,
        brief=find_brief_recording(base, step),
    )


def _explain_different_work(base: Step, step: Step) -> Reason | None:
    """Return why totals of two steps are not for the same work; None where they are."""
    works = [run.analysis.run.work for run in (*base.runs, *step.runs)]
    amounts = [work.amount for work in works if work is not None and work.amount > 0]
    if len(amounts) < len(works) or len({work.unit for work in works if work is not None}) > 1:
        return Reason(kind=ReasonKind.UNKNOWN_WORK)
    least, most = min(amounts), max(amounts)
    return None if least == most else Reason(kind=ReasonKind.UNEQUAL_WORK, amount=most / least - 1)
