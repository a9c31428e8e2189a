"""A step: the runs that share a label, their figures, and their training rate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import fsum

from gpureport.analysis.results import Analysis
from gpureport.comparison import figures
from gpureport.comparison.run import SampledRun
from gpureport.names import group_pairs


class TrainingBasis(StrEnum):
    """The source of a run's training rate: a logged series, or the steady phase of the GPUs."""

    SERIES = "series"
    STEADY_PHASE = "steady_phase"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSource:
    basis: TrainingBasis
    names: tuple[str, ...] = ()


def training_rate(run: SampledRun, basis: TrainingBasis) -> float | None:
    # a series gives all logged work, including the first batch, divided by the time it took; the steady phase gives the
    # run's work divided by the time from the first to the last activity of a GPU
    if basis is TrainingBasis.SERIES:
        return run.logged_work.work.rate if run.logged_work else None
    work, seconds = run.info.work, _steady_seconds(run)
    return work.amount / seconds if work is not None and work.amount > 0 and seconds > 0 else None


def _steady_seconds(run: SampledRun) -> float:
    return fsum(phase.interval.seconds for phase in run.analysis.phases if phase.kind == "steady")


def mean_training_rate(runs: Sequence[SampledRun], source: TrainingSource | None) -> float | None:
    rates = [rate for run in runs if source and (rate := training_rate(run, source.basis))]
    return figures.mean_of_ratios(rates) if rates and len(rates) == len(runs) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    label: str
    runs: tuple[SampledRun, ...]
    values: dict[str, float | None] = field(default_factory=dict)  # Over all runs, or those that count as whole jobs.
    training_source: TrainingSource | None = None  # None unless every run has a training rate.

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        return tuple(run.analysis for run in self.runs)

    @property
    def work_unit(self) -> str | None:
        units = {run.work_unit for run in self.runs}
        return units.pop() if len(units) == 1 else None

    @property
    def gpu_count(self) -> int | None:
        counts = {len(run.info.gpus) for run in self.runs}
        return counts.pop() if len(counts) == 1 else None

    def value(self, metric: str) -> float | None:
        return self.values.get(metric)

    def read(self, figure: figures.Figure) -> list[float | None]:
        if figure.metric == figures.TRAINING_RATE:
            source = self.training_source
            return [training_rate(run, source.basis) if source else None for run in self.runs]
        return [figure.read([run]) for run in self.runs]


def build_steps(runs: Sequence[SampledRun]) -> Iterator[Step]:
    # training rates are comparable only if they share a basis: the logged series if it is known for at least as many
    # steps as the steady phase
    groups = group_pairs((place if run.info.step is None else run.info.step, run) for place, run in enumerate(runs))
    served = {
        basis: [all(training_rate(run, basis) is not None for run in group) for group in groups.values()]
        for basis in TrainingBasis
    }
    basis, taken = max(TrainingBasis, key=lambda each: sum(served[each])), set[str]()
    for group, is_known in zip(groups.values(), served[basis], strict=True):
        name = group[0].info.step or group[0].info.name
        candidates = (name if count == 1 else f"{name} ({count})" for count in range(1, len(taken) + 2))
        label = next(candidate for candidate in candidates if candidate not in taken)
        taken.add(label)
        series = {run.throughput.name for run in group if run.throughput and basis is TrainingBasis.SERIES}
        source = TrainingSource(basis=basis, names=tuple(sorted(series))) if is_known else None
        jobs = figures.count_jobs(group).counted
        values = {
            each.metric: each.read(jobs if each.role is figures.FigureRole.WORK else group) for each in figures.LISTED
        }
        values[figures.TRAINING_RATE] = mean_training_rate(jobs, source)
        yield Step(label=label, runs=tuple(group), values=values, training_source=source)


def find_resolution(base: Step, step: Step, metric: str) -> figures.Resolution:
    runs = (*base.runs, *step.runs)
    if metric != figures.TRAINING_RATE:
        least = figures.find_sampling_step(runs) if metric in figures.TIMED_FIGURES else 0.0
        return figures.Resolution(figures.FINEST_RATIO, least)
    if base.training_source is not None and base.training_source.basis is TrainingBasis.SERIES:
        return figures.Resolution(figures.FINEST_RATIO)
    # the steady phase begins and ends with a sample
    return figures.Resolution(max((run.info.interval or 1.0) / _steady_seconds(run) for run in runs))
