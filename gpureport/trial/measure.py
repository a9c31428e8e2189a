"""Measures the runs of a trial: their speed or duration, their GPU time, and whether their quality fell."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from gpureport.comparison.quality import MissingTarget, compare_quality, measure_run_time_to_target
from gpureport.comparison.run import SampledRun, unify_work
from gpureport.comparison.steps import TrainingBasis, build_steps, training_rate
from gpureport.comparison.training import TrainingGoals
from gpureport.errors import SourceError
from gpureport.trial.decision import Setting, TriedRun

NOT_MEASURED, EQUAL_WORK, NO_TARGET = "not_measured", "assumes_equal_work", "target_not_recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Runs with values: speeds if more is `better` (1), durations if less is (-1).

    The `refused` settings lower the quality or miss the target. `notes` are codes for what is assumed or not known.
    """

    runs: tuple[TriedRun, ...]
    better: int
    metric: str
    unit: str
    refused: tuple[Setting, ...]
    notes: tuple[str, ...]


def measure_runs(
    runs: Sequence[TriedRun], base: Setting, goals: TrainingGoals, sample: Callable[[str], SampledRun]
) -> Measured:
    """Return the runs with their values. `sample` reads the folder of a run."""
    found: dict[str, SampledRun] = {}
    for run in runs:
        with suppress(SourceError):
            found[run.folder] = sample(run.folder)
    finished = [run for run in runs if not run.failure]
    read = [run for run in finished if run.folder in found]
    sampled = dict(zip(read, unify_work([found[run.folder] for run in read]), strict=True))
    # only the first round decides what is compared, so that later rounds do not change which settings were dropped
    first = [sampled.get(run) for run in finished if run.round == 1]
    units, bases = {each and each.work_unit for each in first}, list(TrainingBasis) if first else []
    basis = next((each for each in bases if all(run and training_rate(run, each) for run in first)), None)
    is_rate = basis is not None and len(units) == 1
    values: dict[str, float | None] = {run.folder: run.seconds for run in finished}
    if basis is not None and len(units) == 1:
        values = {run.folder: training_rate(each, basis) for run, each in sampled.items() if each.work_unit in units}
    measured = []
    for run in runs:
        gpu_seconds = found[run.folder].analysis.job_gpu_seconds if run.folder in found else None
        value = values.get(run.folder) or None
        failure = run.failure or (None if value else NOT_MEASURED)
        measured.append(replace(run, value=value, gpu_seconds=gpu_seconds or None, failure=failure))
    missing = {measure_run_time_to_target(each, goals).missing for each in sampled.values() if goals.target}
    notes = {
        EQUAL_WORK: not is_rate and not all(run in sampled and sampled[run].info.work for run in finished),
        NO_TARGET: bool(missing - {None, MissingTarget.NOT_REACHED}),
    }
    return Measured(
        runs=tuple(measured),
        better=1 if is_rate else -1,
        metric="training_rate_hertz" if is_rate else "duration",
        unit=f"{units.pop()}/s" if is_rate else "s",
        refused=tuple(dict.fromkeys(_find_refused(sampled, base, goals))),
        notes=tuple(code for code, applies in notes.items() if applies),
    )


def _find_refused(sampled: Mapping[TriedRun, SampledRun], base: Setting, goals: TrainingGoals) -> Iterator[Setting]:
    settings = list(dict.fromkeys([base, *(run.setting for run in sampled)]))
    labelled = [each.in_step(str(settings.index(run.setting))) for run, each in sampled.items()]
    steps = {settings[int(step.label)]: step for step in build_steps(labelled)}
    for setting, step in steps.items():
        changes = compare_quality(steps[base], step, goals) if base in steps and setting != base else ()
        missed = [measure_run_time_to_target(run, goals).missing for run in step.runs]
        if any(each.leading and each.fell for each in changes) or MissingTarget.NOT_REACHED in missed:
            yield setting
