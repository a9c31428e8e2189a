"""Who got better after which advice: a finding that asked for a step is gone in later runs, and less is lost."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from gpureport import label_tags
from gpureport.analysis.advice.catalogue import STEPS
from gpureport.analysis.advice.run_facts import read_setup
from gpureport.comparison.steps.step_figures import SHORTEST_SECONDS
from gpureport.fleet.fleet_report import Improvement
from gpureport.fleet.gpu_summary import FindingSummary, GpuSummary
from gpureport.fleet.totals.label_groups import read_label
from gpureport.fleet.totals.priced_gpu import PricedGpu
from gpureport.fleet.totals.worst_runs import group_by_run

_NOTABLE = 0.05
"""Share of the GPU time that the finding must have lost, and by which the share lost must have fallen (pragmatic)."""

Cause = tuple[str, str | None]
"""Kind and cause of a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobRun:
    """One run of a job.

    Attributes:
        gpus: its GPUs.
        gpu_seconds: its GPU time of jobs.
        lost_seconds: the part that was lost.
        losses: seconds that findings lost, by kind and cause.
        advice: these findings.
        not_judged: kinds that could not be judged on one of its GPUs.
    """

    gpus: Sequence[PricedGpu]
    gpu_seconds: float
    lost_seconds: float
    losses: dict[Cause, float]
    advice: dict[Cause, FindingSummary]
    not_judged: frozenset[str]

    @property
    def first(self) -> GpuSummary:
        """What is known of the run."""
        return self.gpus[0].summary

    @property
    def machine(self) -> tuple[str | None, ...]:
        """Models of its GPUs: only runs on the same compare."""
        return tuple(sorted({gpu.summary.model or "" for gpu in self.gpus}))


def find_improvements(gpus: Sequence[PricedGpu]) -> tuple[Improvement, ...]:
    """Return the jobs that got better after an advised step, the largest gain first.

    Runs are one job where they share its name, else their own name, and the user; those under a minute are left out.
    The finding must have lost a
    notable share, must be gone and judged in every later run on the same models, and the share lost must have fallen,
    as must the GPU time a unit of work where the work is known.
    """
    jobs: defaultdict[tuple[str, str | None], list[_JobRun]] = defaultdict(list)
    for own in group_by_run(gpus).values():
        first = own[0].summary
        # shares of a shorter run say nothing, and a comparison would not claim a change either
        if first.started is not None and max(gpu.gpu_seconds for gpu in own) >= SHORTEST_SECONDS:
            name = label_tags.find_label((*first.params, *first.tags), "job_name") or first.run_name
            jobs[name, read_label(first, "user")].append(_describe_run(own))
    found = [
        each
        for (name, user), runs in jobs.items()
        if len(runs) > 1
        for each in _compare_job(name, user, sorted(runs, key=lambda run: (run.first.started or 0, run.first.run_id)))
    ]
    return tuple(each for _, each in sorted(found, key=lambda gain: (-gain[0], gain[1].job, gain[1].kind)))


def _describe_run(gpus: Sequence[PricedGpu]) -> _JobRun:
    losses: defaultdict[Cause, float] = defaultdict(float)
    advice: dict[Cause, FindingSummary] = {}
    for gpu in gpus:
        for finding, seconds in gpu.summary.root_losses():
            losses[finding.kind, finding.cause] += seconds
            if finding.steps:
                advice.setdefault((finding.kind, finding.cause), finding)
    return _JobRun(
        gpus=gpus,
        gpu_seconds=fsum(gpu.gpu_seconds for gpu in gpus),
        lost_seconds=fsum(gpu.lost_seconds for gpu in gpus),
        losses=dict(losses),
        advice=advice,
        not_judged=frozenset(kind for gpu in gpus for kind in gpu.summary.not_judged),
    )


def _compare_job(name: str, user: str | None, runs: Sequence[_JobRun]) -> Iterator[tuple[float, Improvement]]:
    """Yield the improvements of one job with the GPU-seconds gained; of findings that went together the largest."""
    by_place: dict[int, tuple[float, Improvement]] = {}
    for cause in sorted({cause for run in runs for cause in run.advice}, key=lambda each: (each[0], each[1] or "")):
        last = max(place for place, run in enumerate(runs) if cause in run.losses)
        before = [run for run in runs[: last + 1] if cause in run.advice]
        after = runs[last + 1 :]
        built = _build_improvement(name, user, cause, before, after)
        lost = sum(run.losses[cause] for run in before)
        if built is not None and (last not in by_place or lost > by_place[last][0]):
            by_place[last] = (lost, built)
    for place, (_, built) in by_place.items():
        spent = fsum(run.gpu_seconds for run in runs[place + 1 :])
        yield (built.lost_before - built.lost_after) * spent, built


def _build_improvement(
    name: str, user: str | None, cause: Cause, before: Sequence[_JobRun], after: Sequence[_JobRun]
) -> Improvement | None:
    """Return the improvement; None without evidence for one."""
    spent, spent_after = (fsum(run.gpu_seconds for run in runs) for runs in (before, after))
    is_judged = after and not any(cause[0] in run.not_judged for run in after)
    if not is_judged or not spent or not spent_after or len({run.machine for run in (*before, *after)}) > 1:
        return None
    lost, lost_after = (fsum(run.lost_seconds for run in runs) for runs in (before, after))
    lost_before_ratio, lost_after_ratio = lost / spent, lost_after / spent_after
    share = fsum(run.losses[cause] for run in before) / spent
    work, work_after = _measure_work(before), _measure_work(after)
    is_slower = work and work_after and work[1] == work_after[1] and work_after[0] >= work[0]
    if share < _NOTABLE or lost_before_ratio - lost_after_ratio < _NOTABLE or is_slower:
        return None
    step, setting = _find_taken_step(before[-1], after[0], before[-1].advice[cause].steps)
    is_measured = work is not None and work_after is not None and work[1] == work_after[1]
    return Improvement(
        job=name,
        user=user,
        kind=cause[0],
        cause=cause[1],
        step=step,
        setting=setting,
        before=tuple(run.gpus[0].run for run in before),
        after=tuple(run.gpus[0].run for run in after),
        lost_before=lost_before_ratio,
        lost_after=lost_after_ratio,
        gpu_seconds_per_work_before=work[0] if work and is_measured else None,
        gpu_seconds_per_work_after=work_after[0] if work_after and is_measured else None,
        work_unit=work[1] if work and is_measured else None,
    )


def _measure_work(runs: Sequence[_JobRun]) -> tuple[float, str] | None:
    """Return the GPU-seconds a unit of work took, and the unit; None where a run does not say, or says another one."""
    units = {run.first.work_unit for run in runs}
    amounts = [run.first.work_amount for run in runs]
    done = fsum(amount for amount in amounts if amount)
    unit = units.pop() if len(units) == 1 else None
    if unit is None or not all(amounts) or not done:
        return None
    return fsum(run.gpu_seconds for run in runs) / done, unit


def _find_taken_step(before: _JobRun, after: _JobRun, steps: Sequence[str]) -> tuple[str, str | None]:
    """Return the advised step that a changed setting shows as taken, with the setting; else the first without one."""
    for name in steps:
        for change in STEPS[name].applied_by if name in STEPS else ():
            first, last = _read_setting(before, change.setting), _read_setting(after, change.setting)
            if change.is_made(first, last):
                return name, change.setting
    return steps[0], None


def _read_setting(run: _JobRun, setting: str) -> float | None:
    if setting == "gpu_count":
        return float(len(run.gpus))
    if setting == "gpu_memory":
        sizes = {gpu.summary.memory_total_bytes for gpu in run.gpus}
        return float(size) if len(sizes) == 1 and (size := sizes.pop()) else None
    pairs = (*run.first.params, *run.first.tags)
    value = getattr(read_setup(pairs), setting, None) if pairs else None
    return None if value is None else float(value.value)
