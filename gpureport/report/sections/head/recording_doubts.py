"""What leaves a result in doubt, and what it leaves out: recordings, clocks, work, jobs and lines, a sentence each."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.account.gpu_time import OUTSIDE
from gpureport.analysis.job.events import DATA, MUCH, WAITING
from gpureport.analysis.job.phases import WITHOUT_LASTING_WORK
from gpureport.analysis.results import Analysis, Job
from gpureport.comparison import gains
from gpureport.comparison.chain import Comparison, find_drift, find_steps_not_in_turn, find_work_contradiction
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.data_quality import CLOCK_SET_BACK
from gpureport.importers.protocol.reject_reasons import CHOSEN, NO_TIME
from gpureport.recording import Run
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import format_time
from gpureport.report.wording import display, terms
from gpureport.report.wording.differences.comparison_reasons import describe_state
from gpureport.report.wording.numbered_labels import clean_name, list_labels
from gpureport.report.wording.work_scale import name_work

_LARGE_STEP = 60.0
"""Seconds by which a clock must go back to be told with the headline (pragmatic): daemons that set clocks move them by
less, and findings moved by less than a minute are found all the same."""
_PAIRS, _JOBS = 3, 6
"""Pairs of steps and jobs that are named; the others are counted."""
_MOST_NAMES = 120
"""Characters of a list of names above which all but the first are counted."""
_AROUND = {"startup_idle", "tail_idle"}
"""Kinds that are idle time outside the job."""


def describe_doubts(comparison: Comparison) -> tuple[str, ...]:
    """Return what a reader must know before he believes the headline, a sentence each, the gravest first.

    A part is no repetition of a whole, stated work is wrong, times were repaired, GPUs are not of the run.
    """
    runs = [run for step in comparison.steps for run in step.runs]
    recorded = [run.analysis.run for run in runs]
    doubts = (
        _describe_drift(comparison),
        _describe_unfinished_recordings(recorded),
        _describe_work_contradictions(runs),
        _describe_moved_clocks(recorded),
        _describe_data_waits(runs),
        _describe_other_gpus(comparison.steps[-1].analyses),
    )
    return tuple(filter(None, doubts))


def _describe_drift(comparison: Comparison) -> str:
    """Return how the machine drifted by as much as the judged change; empty if it did not."""
    steps = comparison.steps
    for base, step in [(steps[0], steps[-1]), *pairwise(steps)]:
        delta = comparison.judged(base.label, step.label)
        if delta is not None and (drift := find_drift(base, step, delta)):
            celsius, megahertz = drift.celsius, [f"{hertz / 1e6:,.0f}" for hertz in drift.hertz]
            return (
                f"Not recorded in turn: {display.clean(step.label)} {describe_state(drift.reason)} "
                f"({celsius[0]:.0f} → {celsius[1]:.0f} °C, {megahertz[0]} → {megahertz[1]} MHz), which can make half "
                "of this change or more."
            )
    return ""


def _describe_unfinished_recordings(runs: Sequence[Run]) -> str:
    """Return which recordings have no end, so that they may be a part of their job.

    Beside other runs they need work of their own, or nothing tells how fast they were.
    """
    cut = [run for run in runs if run.quality.unfinished]
    if not cut:
        return ""
    named, todo = list_labels([clean_name(run.name) for run in cut]), ""
    if len(named) > _MOST_NAMES:
        named = f"{clean_name(cut[0].name)} and {display.plural(len(cut) - 1, 'more run')}"
    lacking = [run for run in cut if run.work is None] if len(runs) > 1 else []
    if lacking:
        them = "it" if len(lacking) == 1 else "them"
        whose = f"the work of {list_labels([display.clean(run.name) for run in lacking])}"
        if len(lacking) == len(cut):
            whose = "its work" if len(cut) == 1 else "their work"
        todo = f"; {whose} is not known: give one --work for each source, or leave {them} out"
    if len(cut) == 1:
        return f"{named} is unfinished: it is still recording, or its recorder was killed{todo}."
    return f"{named} are unfinished: they are still recording, or their recorders were killed{todo}."


def _describe_work_contradictions(runs: Sequence[SampledRun]) -> str:
    """Return that the work stated and the training log contradict each other, by the worst run."""
    found = [each for run in runs if (each := find_work_contradiction(run)) is not None]
    if not found:
        return ""
    worst, more = max(found, key=lambda each: each.ratio), len(found) - 1
    others = f" and {display.plural(more, 'more run')}" if more else ""
    whose = f" in {clean_name(worst.run)}{others}" if len(runs) > 1 else ""
    stated, logged = (display.quantity(amount, "") for amount in (worst.stated, float(f"{worst.logged:.3g}")))
    return (
        f"The work stated is {stated} {name_work(worst.unit)} a run, the training log counts about {logged}{whose}: "
        "don't rely on figures per unit of work."
    )


def _describe_moved_clocks(runs: Sequence[Run]) -> str:
    """Return whose times rest on a repaired clock, by the largest step; empty where none is large."""
    steps = [
        (abs(step.step_seconds), display.clean(run.name))
        for run in runs
        for step in run.quality.clock_steps
        if step.cause == CLOCK_SET_BACK and abs(step.step_seconds) >= _LARGE_STEP
    ]
    if not steps:
        return ""
    (seconds, name), more = max(steps), len({each for _, each in steps}) - 1
    others = f" and in {display.plural(more, 'more run')}" if more else ""
    whose = f" in {clean_name(name)}{others}" if len(runs) > 1 else ""
    return f"The clock went back by {display.duration(seconds)}{whose}: times after that are repaired, and may be off."


def _describe_data_waits(runs: Sequence[SampledRun]) -> str:
    """Return how long a training loop waited for data by its log, unless a finding tells it."""
    shares = [
        float(np.median(curve.known))
        for run in runs
        if all(finding.cause != DATA for finding in run.analysis.findings)
        for curve in run.training
        if curve.name == WAITING and len(curve.known)
    ]
    share = max(shares, default=0.0)
    if share < MUCH:
        return ""
    return f"The training log says that {display.percent(share)} of each iteration was waiting for data."


def _describe_other_gpus(analyses: Sequence[Analysis]) -> str:
    """Return which GPUs of a tracker's host are not of a run; empty where all are."""
    for analysis in analyses:
        counted, known = {gpu.device for gpu in analysis.gpu_time}, [gpu.id for gpu in analysis.run.gpus]
        others = [gpu for gpu in known if gpu in analysis.no_job and gpu not in counted]
        if others and counted:
            whose = display.raise_first(phrases.gpu_names(others, known))
            return f"{whose} held no memory: not of this run, and not counted. Name its GPUs with --gpus."
    return ""


def describe_drivers(analysis: Analysis) -> str:
    """Return that the GPUs of one node have several drivers, as on several machines; else empty."""
    drivers: dict[str | None, set[str]] = {}
    for gpu in analysis.run.gpus:
        drivers.setdefault(gpu.node, set()).update([gpu.driver] if gpu.driver else [])
    several = [each for each in drivers.values() if len(each) > 1]
    if not several:
        return ""
    named = display.join_words(sorted(map(display.clean, several[0])))
    return f"The GPUs have different drivers ({named}), so the log is of several machines: read one log per machine."


def describe_recording_order(steps: Sequence[Step]) -> str:
    """Return which steps were not recorded in turn; empty where all were, or nothing tells."""
    found = find_steps_not_in_turn(steps)
    pairs = [f"{display.clean(earlier.label)}, then {display.clean(later.label)}" for earlier, later in found]
    if not pairs:
        return ""
    named = "; ".join([*pairs[:_PAIRS], *([f"{len(pairs) - _PAIRS} more"] if len(pairs) > _PAIRS else [])])
    return f"Not recorded in turn (A B A B), so a machine that drifts can look like a change: {named}."


def list_rejections(runs: Sequence[Run]) -> Iterator[str]:
    """Yield per run with more rejected than kept lines how many, why, and which option reads them."""
    for run in runs:
        rejected = [entry for entry in run.quality.rejected if entry.reason not in CHOSEN]
        count = sum(entry.rows for entry in rejected)
        if count <= run.quality.rows_kept:
            continue
        most = max(rejected, key=lambda entry: entry.rows)
        whose = f" of {display.clean(run.name)}" if len(runs) > 1 else ""
        noun = "points" if run.tracked else "lines"
        why = f"{'' if len(rejected) == 1 else 'most of them: '}{display.clean(most.reason)}"
        remedy = "pass --interval SECONDS to read them" if most.reason == NO_TIME else "see Data quality"
        total = display.integer(run.quality.lines)
        yield f"{display.integer(count)} of {total} {noun}{whose} were rejected ({why}): {remedy}."


def list_jobs(analyses: Sequence[Analysis]) -> Iterator[str]:
    """Yield which logs hold several jobs, and how much GPU time no job held, which no share counts."""
    for analysis in analyses:
        if len(analysis.jobs) > 1:
            whose = f"The log {display.clean(analysis.run.name)}" if len(analyses) > 1 else "The log"
            each = job_list(analysis.run, analysis.jobs)
            yield f"{whose} holds {len(analysis.jobs)} jobs: {each}. Read one of them with --job N."
    seconds, held = gpu_time.no_job_gpu_seconds(analyses), gpu_time.job_gpu_seconds(analyses)
    if held and seconds / held >= gains.NOTABLE_RATIO:
        free = gpu_time.format_held(seconds, len(analyses))
        yield f"No job was on a GPU for another {free}; no figure counts that time."


def job_list(run: Run, jobs: Sequence[Job]) -> str:
    """Return the jobs of a log with their times, the first ones of many."""
    named = []
    for job in jobs[:_JOBS]:
        start, end = format_time(run, job.interval.start), format_time(run, job.interval.end)
        named.append(f"job {job.number}, {start} to {end} ({display.duration(job.interval.seconds)})")
    return "; ".join([*named, *([f"{len(jobs) - _JOBS} more"] if len(jobs) > _JOBS else [])])


def list_idle_without_finding(analyses: Sequence[Analysis]) -> Iterator[str]:
    """Yield the idle time that no finding covers, if it is a notable share.

    A finding has all of that of a run in which no GPU ever worked.
    """
    job_seconds = gpu_time.job_gpu_seconds(analyses)
    worked = [
        analysis
        for analysis in analyses
        if not any(found.kind == "startup_idle" and found.cause in WITHOUT_LASTING_WORK for found in analysis.findings)
    ]
    idle = gpu_time.seconds_by_cause(time for analysis in worked for time in analysis.gpu_time).get("idle", {})
    seconds = idle.get(OUTSIDE, 0.0)
    if not job_seconds or seconds / job_seconds < gains.NOTABLE_RATIO:
        return
    share = f"Idle before or after work: {display.percent(seconds / job_seconds)}"
    unjudged = sorted({entry.kind for analysis in analyses for entry in analysis.not_judged} & _AROUND)
    if unjudged:
        titles = [display.lower_first(terms.kind_title(kind)) for kind in unjudged]
        yield f"{share}; not assessed: {display.join_words(titles)}."
    elif set(idle) != {OUTSIDE}:
        # the lead tells of idle time, and would say the same where there is no other
        yield f"{share}."
