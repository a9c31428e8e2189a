"""Sentences about doubtful recordings, clocks and work, and about omitted jobs and lines."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.job.events import DATA, LONG_WAIT, WAITING
from gpureport.analysis.results import Analysis, Job
from gpureport.comparison import chain, gains
from gpureport.comparison.run import AT_WORK, SampledRun
from gpureport.comparison.steps import Step
from gpureport.data_quality import CLOCK_SET_BACK
from gpureport.importers.account import CHOSEN, NO_TIME
from gpureport.names import group_pairs
from gpureport.recording import Run
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import format_time
from gpureport.report.wording import display
from gpureport.report.wording.reasons import describe_state
from gpureport.report.wording.scales import name_work
from gpureport.report.wording.words import clean_name, list_labels

UNTIMED = "pass --interval SECONDS to read them"
_LARGE_STEP = 60.0
"""Minimum backward clock step to mention, in seconds. Clock daemons make smaller steps."""
_FEW_SAMPLES, _FAR_APART, _FEWEST = 30, 60.0, 12
"""Fewest samples for reliable shares at intervals of this many seconds, and at shorter ones."""
_PAIRS, _JOBS = 3, 6  # Maximum step pairs and jobs to name.
_MOST_NAMES = 120  # Longest list of names; if longer, just the first.


def describe_doubts(comparison: chain.Comparison) -> tuple[str, ...]:
    runs = [run for step in comparison.steps for run in step.runs]
    told = (
        _describe_drift(comparison),
        _describe_other_use(comparison),
        _describe_unfinished([run.analysis.run for run in runs]),
        *_list_failures(runs),
        *_list_cut_logs(runs),
        _describe_few_samples(runs),
        *_list_doubts_on_runs(runs),
        describe_data_waits(runs),
        *_list_doubts_on_gpus(comparison.steps[-1].analyses),
    )
    return tuple(filter(None, told))


def _describe_few_samples(runs: Sequence[SampledRun]) -> str:
    analysis = runs[0].analysis
    count, apart = gains.count_samples(analysis), analysis.run.interval or 0.0
    is_enough = count >= (_FEW_SAMPLES if apart >= _FAR_APART else _FEWEST)
    if len(runs) > 1 or is_enough or gains.is_recording_too_short(analysis):
        return ""
    between = " show little of the time between them" if apart >= _FAR_APART else " show little of this job"
    return f"Rough: {count} samples, {display.duration(apart)} apart,{between}."


def _describe_drift(comparison: chain.Comparison) -> str:
    steps = comparison.steps
    for base, step in [(steps[0], steps[-1]), *pairwise(steps)]:
        delta = comparison.judged(base.label, step.label)
        if delta is not None and (drift := chain.find_drift(base, step, delta)):
            celsius, megahertz = drift.celsius, [f"{hertz / 1e6:,.0f}" for hertz in drift.hertz]
            return (
                f"Steps not alternated: {display.clean(step.label)} {describe_state(drift.reason)} "
                f"({celsius[0]:.0f} → {celsius[1]:.0f} °C, {megahertz[0]} → {megahertz[1]} MHz), which can explain "
                "at least half of this change."
            )
    return ""


def _describe_other_use(comparison: chain.Comparison) -> str:
    found = chain.find_other_use(comparison.steps)
    if found is None or len(comparison.steps) == 1:
        return ""
    info = found.run.analysis.run
    return (
        f"Something else kept {phrases.gpu_names(found.devices, [gpu.id for gpu in info.gpus])} "
        f"{display.percent(found.busy)} busy alongside the job of {display.clean(info.step or info.name)}, "
        "which can explain part of this change. Measure again without it."
    )


def describe_recording_order(steps: Sequence[Step]) -> str:
    found = chain.find_steps_not_in_turn(steps)
    named = [f"{display.clean(one.label)}, then {display.clean(other.label)}" for one, other in found]
    if not named:
        return ""
    return f"Steps were not alternated (A B A B), so drift can look like a change: {display.join_first(named, _PAIRS)}."


def _describe_unfinished(runs: Sequence[Run]) -> str:
    cut = [run for run in runs if run.quality.unfinished]
    if not cut:
        return ""
    named = list_labels([clean_name(run.name) for run in cut])
    if len(named) > _MOST_NAMES:
        named = f"{clean_name(cut[0].name)} and {display.plural(len(cut) - 1, 'more run')}"
    state = f"{'are' if len(cut) > 1 else 'is'} unfinished: still recording, or the recorder was killed"
    lacking = [display.clean(run.name) for run in cut if run.work is None] if len(runs) > 1 else []
    todo = "is not known: give one --work per source, or omit it" if lacking else ""
    return f"{named} {state}{f'; the work of {list_labels(lacking)} {todo}' if lacking else ''}."


def _list_failures(runs: Sequence[SampledRun]) -> Iterator[str]:
    if failed := [run for run in runs if run.exit_code]:
        named = [f"{clean_name(run.info.name)} (exit {run.exit_code})" for run in failed]
        unknown = "" if all(run.info.work for run in failed) else ", so its work is not known"
        yield f"Job failed: {display.join_first(named, _JOBS)}{unknown}."


def _list_cut_logs(runs: Sequence[SampledRun]) -> Iterator[str]:
    given = [run for run in runs if run.info.work and not run.logged_work and "exit_code" not in dict(run.info.tags)]
    if cut := [clean_name(run.info.name) for run in given if AT_WORK in run.edges]:
        logs = f"{display.plural(len(cut), 'log')}, such as {cut[0]}" if len(cut) > 1 else cut[0]
        yield f"The GPU was working at the start or end of {logs}: specify only the work done during the recording."


def _list_doubts_on_runs(runs: Sequence[SampledRun]) -> Iterator[str]:
    def name_run(name: str, others: int, more: str) -> str:
        more = f" {more} {display.plural(others, 'more run')}" if others else ""
        return f" in {clean_name(name)}{more}" if len(runs) > 1 else ""

    found = [each for run in runs if (each := chain.find_work_contradiction(run)) is not None]
    if found:
        worst = max(found, key=lambda each: each.ratio)
        stated, logged = (display.quantity(amount, "") for amount in (worst.stated, float(f"{worst.logged:.3g}")))
        yield (
            f"The work given is {stated} {name_work(worst.unit)} per run, but the training log shows about {logged}"
            f"{name_run(worst.run, len(found) - 1, 'and')}: don't rely on figures per unit of work."
        )
    steps = [(step, run.analysis.run) for run in runs for step in run.analysis.run.quality.clock_steps]
    back = [(abs(step.step_seconds), run.name) for step, run in steps if step.cause == CLOCK_SET_BACK]
    large = [(seconds, display.clean(name)) for seconds, name in back if seconds >= _LARGE_STEP]
    if large:
        seconds, name = max(large)
        whose = name_run(name, len({each for _, each in large}) - 1, "and in")
        yield f"The clock went back {display.duration(seconds)}{whose}: later times are corrected, but may be inexact."


def describe_data_waits(runs: Sequence[SampledRun]) -> str:
    # if waits explain low use, a finding reports them
    silent = [run for run in runs if all(finding.cause != DATA for finding in run.analysis.findings)]
    curves = [curve.known for run in silent for curve in run.training if curve.name == WAITING]
    share = max((float(np.median(known)) for known in curves if len(known)), default=0.0)
    said = f"The training log shows that {display.percent(share)} of each iteration was spent waiting for data."
    return said if share >= LONG_WAIT else ""


def describe_drivers(analysis: Analysis) -> str:
    drivers = group_pairs((gpu.node, display.clean(gpu.driver)) for gpu in analysis.run.gpus if gpu.driver)
    named = next((sorted(set(each)) for each in drivers.values() if len(set(each)) > 1), [])
    said = f"The GPUs have different drivers ({display.join_words(named)}), so the log covers several machines"
    return f"{said}: read one log per machine." if named else ""


def _list_doubts_on_gpus(analyses: Sequence[Analysis]) -> Iterator[str]:
    for analysis in analyses:
        counted = {gpu.device for gpu in analysis.gpu_time}
        known = [gpu.id for gpu in analysis.run.gpus]
        others = [gpu for gpu in known if gpu in analysis.no_job and gpu not in counted]
        if others and counted:
            whose = display.raise_first(phrases.gpu_names(others, known))
            yield f"{whose} held no memory and did not count towards this run. Specify the run's GPUs with --gpus."
            return


def list_rejections(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        rejected = [entry for entry in run.quality.rejected if entry.reason not in CHOSEN]
        count = sum(entry.rows for entry in rejected)
        if count <= run.quality.rows_kept:
            continue
        most = max(rejected, key=lambda entry: entry.rows)
        whose = f" of {display.clean(run.name)}" if len(runs) > 1 else ""
        noun = "points" if run.tracked else "lines"
        why = f"{'' if len(rejected) == 1 else 'most of them: '}{display.clean(most.reason)}"
        remedy = UNTIMED if most.reason == NO_TIME else "see Data quality"
        total = display.integer(run.quality.lines)
        yield f"{display.integer(count)} of {total} {noun}{whose} were rejected ({why}): {remedy}."


def list_jobs(analyses: Sequence[Analysis]) -> Iterator[str]:
    for analysis in analyses:
        if len(analysis.jobs) > 1:
            whose = f"The log {display.clean(analysis.run.name)}" if len(analyses) > 1 else "The log"
            each = job_list(analysis.run, analysis.jobs)
            yield f"{whose} contains {len(analysis.jobs)} jobs: {each}. Read one of them with --job N."
    seconds, held = gpu_time.no_job_gpu_seconds(analyses), gpu_time.job_gpu_seconds(analyses)
    if held and seconds / held >= gains.NOTABLE_RATIO:
        yield f"No job ran for another {gpu_time.format_held(seconds, len(analyses))}; no figure includes that time."


def job_list(run: Run, jobs: Sequence[Job]) -> str:
    times = [(job, format_time(run, job.interval.start), format_time(run, job.interval.end)) for job in jobs]
    lengths = [display.duration(job.interval.seconds) for job in jobs]
    named = [f"job {job.number}, {start} to {end}" for job, start, end in times]
    return display.join_first([f"{job} ({length})" for job, length in zip(named, lengths, strict=True)], _JOBS)
