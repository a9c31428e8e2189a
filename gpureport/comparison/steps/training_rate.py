"""How fast a step trained: work a second without start-up and tail, and what that figure rests on."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, fsum, log

from gpureport.comparison.steps.sampled_run import SampledRun


class TrainingBasis(StrEnum):
    """What the training rate of a run is taken from."""

    SERIES = "series"
    STEADY_PHASE = "steady_phase"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSource:
    """What the training rates of a step rest on.

    Attributes:
        basis: a throughput that the training loop logged, or the steady phase of the GPU log.
        names: the series, each name once; empty for the steady phase.
    """

    basis: TrainingBasis
    names: tuple[str, ...] = ()


def training_rate(run: SampledRun, basis: TrainingBasis) -> float | None:
    """Return the work a second that a run did while it trained; None where the basis does not give it.

    By a series it is all logged work over the time that it took, first batch and warm-up included. By the steady phase
    it is the work of the run over the time from the first to the last activity of a GPU.
    """
    if basis is TrainingBasis.SERIES:
        return run.logged_work.work.rate if run.logged_work else None
    work = run.analysis.run.work
    seconds = steady_seconds(run)
    return work.amount / seconds if work is not None and work.amount > 0 and seconds > 0 else None


def steady_seconds(run: SampledRun) -> float:
    """Return the length of the steady phase, from the first to the last activity of a GPU."""
    return fsum(phase.interval.seconds for phase in run.analysis.phases if phase.kind == "steady")


def choose_training_sources(steps: Sequence[Sequence[SampledRun]]) -> list[TrainingSource | None]:
    """Return what the training rate of each step rests on; None where that does not tell.

    All steps rest on the same basis, for rates of two bases cannot be compared: a series where it serves as many
    steps as the steady phase does.

    Args:
        steps: the runs of each step.
    """
    served = {
        basis: [all(training_rate(run, basis) is not None for run in runs) for runs in steps] for basis in TrainingBasis
    }
    by_series = sum(served[TrainingBasis.SERIES]) >= sum(served[TrainingBasis.STEADY_PHASE])
    basis = TrainingBasis.SERIES if by_series else TrainingBasis.STEADY_PHASE
    return [
        TrainingSource(basis=basis, names=_names(runs) if by_series else ()) if known else None
        for runs, known in zip(steps, served[basis], strict=True)
    ]


def _names(runs: Sequence[SampledRun]) -> tuple[str, ...]:
    return tuple(sorted({run.throughput.name for run in runs if run.throughput is not None}))


def mean_training_rate(runs: Sequence[SampledRun], source: TrainingSource | None) -> float | None:
    """Return the geometric mean of the training rates of runs; None without a source."""
    rates = [rate for run in runs if source and (rate := training_rate(run, source.basis))]
    return exp(fsum(map(log, rates)) / len(rates)) if rates and len(rates) == len(runs) else None
