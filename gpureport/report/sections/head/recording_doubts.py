"""What runs were recorded or stated with that leaves a comparison in doubt, each in one line."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.job.events import DATA, MUCH, WAITING
from gpureport.analysis.results import Analysis
from gpureport.comparison.chain import Comparison, find_drift, find_steps_not_in_turn, find_work_contradiction
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.data_quality import CLOCK_SET_BACK
from gpureport.recording import Run
from gpureport.report.sections.head.excluded_data import describe_unfinished_recordings
from gpureport.report.wording import display
from gpureport.report.wording.numbered_labels import clean_name
from gpureport.report.wording.reasons import describe_state
from gpureport.report.wording.work_scale import name_work

_LARGE_STEP = 60.0
"""Seconds by which a clock must go back to be told with the headline (pragmatic): daemons that set clocks move them by
less, and findings moved by less than a minute are found all the same."""
_NAMED = 3
"""Pairs of steps that are named; the others are counted."""


def describe_doubts(comparison: Comparison) -> tuple[str, ...]:
    """Return what a reader must know before he believes the headline, a sentence each, the gravest first.

    A part is no repetition of a whole, stated work is wrong, times were repaired, GPUs are not of the run.

    Args:
        comparison: the steps.
    """
    runs = [run for step in comparison.steps for run in step.runs]
    recorded = [run.analysis.run for run in runs]
    return tuple(
        filter(
            None,
            (
                describe_drift(comparison),
                describe_unfinished_recordings(recorded),
                describe_work_contradictions(runs),
                describe_moved_clocks(recorded),
                describe_data_waits(runs),
                describe_other_gpus(comparison.steps[-1].analyses),
            ),
        )
    )


def describe_drift(comparison: Comparison) -> str:
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


def describe_moved_clocks(runs: Sequence[Run]) -> str:
    """Return whose times rest on a repaired clock, by the largest step; empty where none is large."""
    steps = [
        (abs(step.step_seconds), display.clean(run.name))
        for run in runs
        for step in run.quality.clock_steps
        if step.cause == CLOCK_SET_BACK and abs(step.step_seconds) >= _LARGE_STEP
    ]
    if not steps:
        return ""
    seconds, name = max(steps)
    more = len({each for _, each in steps}) - 1
    others = f" and in {display.plural(more, 'more run')}" if more else ""
    whose = f" in {clean_name(name)}{others}" if len(runs) > 1 else ""
    return f"The clock went back by {display.duration(seconds)}{whose}: times after that are repaired, and may be off."


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


def describe_other_gpus(analyses: Sequence[Analysis]) -> str:
    """Return which GPUs of a tracker's host are not of a run; empty where all are."""
    for analysis in analyses:
        counted = {gpu.device for gpu in analysis.gpu_time}
        others = tuple(gpu.id for gpu in analysis.run.gpus if gpu.id in analysis.no_job and gpu.id not in counted)
        if others and counted:
            whose = phrases.capitalize(phrases.gpu_names(others, [gpu.id for gpu in analysis.run.gpus]))
            return f"{whose} held no memory: not of this run, and not counted. Name its GPUs with --gpus."
    return ""


def describe_data_waits(runs: Sequence[SampledRun]) -> str:
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


def describe_work_contradictions(runs: Sequence[SampledRun]) -> str:
    """Return that the work stated and the training log contradict each other, by the worst run; empty where not.

    Args:
        runs: of all steps.
    """
    found = [each for run in runs if (each := find_work_contradiction(run)) is not None]
    if not found:
        return ""
    worst = max(found, key=lambda each: each.ratio)
    more = len(found) - 1
    others = f" and {display.plural(more, 'more run')}" if more else ""
    whose = f" in {clean_name(worst.run)}{others}" if len(runs) > 1 else ""
    stated, logged = (display.quantity(amount, "") for amount in (worst.stated, float(f"{worst.logged:.3g}")))
    return (
        f"The work stated is {stated} {name_work(worst.unit)} a run, the training log counts about {logged}{whose}: "
        "don't rely on figures per unit of work."
    )


def describe_recording_order(steps: Sequence[Step]) -> str:
    """Return which steps were not recorded in turn; empty where all were, or nothing tells."""
    found = find_steps_not_in_turn(steps)
    pairs = [f"{display.clean(earlier.label)}, then {display.clean(later.label)}" for earlier, later in found]
    if not pairs:
        return ""
    more = len(pairs) - _NAMED
    named = [*pairs[:_NAMED], *([f"{more} more"] if more > 0 else [])]
    return f"Not recorded in turn (A B A B), so a machine that drifts can look like a change: {'; '.join(named)}."
