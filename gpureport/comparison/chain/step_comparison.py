"""Every step against the one before it and against the first, figure by figure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpureport.comparison.statistics.difference_estimate import LEVEL
from gpureport.comparison.steps.batch_size import convert_work_to_samples, unify_work_units
from gpureport.comparison.steps.compared_figures import FIGURES, UTILISATION
from gpureport.comparison.steps.remaining_loss import measure_remaining_loss
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import PER_WORK, SECONDS_TO_TARGET, TRAINING_RATE
from gpureport.comparison.steps.steps import Comparison, Delta, Step, build_steps
from gpureport.comparison.time_to_target import (
    add_time_to_target,
    gather_target_evidence,
    judge_missed_target,
)
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.comparison.verdicts.comparability import check_comparability, is_same_recording
from gpureport.comparison.verdicts.figure_evidence import Evidence
from gpureport.comparison.verdicts.significance import (
    SignificanceResult,
    Trial,
    compute_holm_levels,
    estimate_needed_data,
    find_obstacle,
    judge_difference,
)
from gpureport.comparison.verdicts.step_evidence import gather_evidence

UNSEEN = 3.0
"""Of gaps that come at random none is seen in three times their distance in one case of twenty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """The evidence on one figure of two steps, and the verdict where it must not be compared."""

    base: Step
    step: Step
    evidence: Evidence
    obstacle: SignificanceResult | None

    @property
    def testable(self) -> bool:
        """Whether its interval can be tested against zero."""
        return self.obstacle is None and self.evidence.contrast is not None


def compare(runs: Sequence[SampledRun], goals: TrainingGoals = NO_GOALS) -> Comparison:
    """Return runs as steps in the order given, each against the one before it and against the first.

    Args:
        runs: in the order of their steps; those of one label are repetitions of it.
        goals: what a person says of training metrics.
    """
    steps = tuple(
        add_time_to_target(step, goals) for step in build_steps(unify_work_units(convert_work_to_samples(runs)))
    )
    entries = [entry for base, step in _sides(steps) for entry in _entries(base, step, goals)]
    primary = PER_WORK if _one_work(steps) else UTILISATION
    tested, training = (
        [entry for entry in entries if entry.testable and entry.evidence.figure.metric == metric]
        for metric in (primary, TRAINING_RATE)
    )
    trials = _correct(tested) | _correct(training)
    plain = Trial()
    deltas = (_delta(entry, trials.get(id(entry), plain), primary) for entry in entries)
    last = steps[-1]
    return Comparison(
        steps=steps,
        deltas=tuple(deltas),
        primary=primary,
        tested=len(tested),
        training_tested=len(training),
        remaining=measure_remaining_loss(last.label, last.analyses),
        goals=goals,
    )


def _correct(family: Sequence[_Entry]) -> dict[int, Trial]:
    """Return how each comparison of a family is tested, so that none is claimed because there are many."""
    levels = compute_holm_levels([entry.evidence for entry in family])
    return {id(entry): Trial(level=level, family=len(family)) for entry, level in zip(family, levels, strict=True)}


def _sides(steps: Sequence[Step]) -> Iterator[tuple[Step, Step]]:
    yield from pairwise(steps)
    yield from ((steps[0], step) for step in steps[2:])


def _entries(base: Step, step: Step, goals: TrainingGoals) -> Iterator[_Entry]:
    checks, same = check_comparability(base, step), is_same_recording(base, step)
    for figure in FIGURES:
        found = gather_evidence(base, step, figure)
        barred = (
            None
            if found.whole.difference is None and found.contrast is None
            else find_obstacle(checks, figure.metric, same=same)
        )
        yield _Entry(base=base, step=step, evidence=found, obstacle=barred)
    if goals.target is not None:
        missed = find_obstacle((), SECONDS_TO_TARGET, same=same) or judge_missed_target(base, step, goals)
        yield _Entry(base=base, step=step, evidence=gather_target_evidence(base, step, goals), obstacle=missed)


def _one_work(steps: Sequence[Step]) -> bool:
    units = {step.work_unit for step in steps}
    return len(units) == 1 and None not in units


def _delta(entry: _Entry, trial: Trial, primary: str) -> Delta:
    found, contrast = entry.evidence, entry.evidence.contrast
    is_primary, training = found.figure.metric == primary, found.figure.metric == TRAINING_RATE
    judgement = entry.obstacle or judge_difference(found, trial)
    return Delta(
        metric=found.figure.metric,
        unit=found.figure.unit,
        device=None,
        base=entry.base.label,
        step=entry.step.label,
        before=found.before,
        after=found.after,
        difference=found.difference,
        interval=None if contrast is None else found.figure.clip(contrast.interval(LEVEL), found.before),
        level=None if contrast is None else LEVEL,
        basis=None if contrast is None else contrast.basis.value,
        detectable_difference=None if contrast is None else contrast.detectable,
        verdict=judgement.verdict,
        reason=judgement.reason,
        window="training" if training else "steady" if found.steady else "whole",
        whole=found.whole,
        primary=is_primary,
        family="primary" if is_primary else "training" if training else None,
        runs=(len(found.figures[0]), len(found.figures[1]))
        if found.left_out and all(found.figures)
        else (len(entry.base.runs), len(entry.step.runs)),
        needed=estimate_needed_data(found),
        unseen_gap_seconds=None if found.unseen is None else found.unseen / UNSEEN,
        left_out=found.left_out,
    )
