"""What to record or repeat, so that the next report can say more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpureport.analysis.signals.load import CPU
from gpureport.comparison.statistics.more_data import estimate_runs_for_interval
from gpureport.comparison.steps.step_figures import (
    SHORTEST_REPETITION_SECONDS,
    SHORTEST_SECONDS,
    recorded_seconds,
)
from gpureport.comparison.steps.steps import Comparison, Delta, Verdict
from gpureport.comparison.verdicts.run_interval import measure_run_interval
from gpureport.recording_advice import RECORD
from gpureport.report.model.head import Action
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.rows.row_groups import RowGroup
from gpureport.report.wording import display, numbered_labels

_COARSE = 0.05
"""Relative change from which it matters that a comparison cannot show a smaller one."""

_SHORT_RUN = 300.0
"""Seconds below which longer runs tell more than further repetitions."""

_MANY_CHECKS = 5
"""Checks that a log is too short for, from which a longer one is asked for."""

_ALL_THE_SAME = " Figures are compared all the same; one long run of its own is enough."
"""Said of repetitions that are too short for checks."""

_NUMBERS = {2: "Two", 3: "Three", 4: "Four", 5: "Five"}
_UNEXPLAINED = {"idle_gap", "periodic_stall", "low_util_cause_unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measurement to make, and whether the report is in doubt without it."""

    action: Action
    is_needed: bool = True


def build_measurement_actions(
    runs: Sequence[ReportRun], groups: Sequence[RowGroup], comparison: Comparison, *, is_hinted: bool
) -> tuple[Measurement, ...]:
    """Return what to measure, the most telling first.

    Args:
        runs: the runs of the last step.
        groups: the findings of these runs.
        comparison: all runs as steps.
        is_hinted: whether the lead says how to give steps of one run as repetitions of each other.
    """
    longer = (*_record_longer(runs, comparison), *_measure_longer(comparison))[:1]
    # of a run too short to assess, or without a GPU, what it did tells nothing either
    has_gpu = any(run.analysis.run.gpus for run in runs)
    work = _give_work(comparison) if has_gpu and not any(_record_longer(runs, comparison)) else ()
    return (*(() if is_hinted else _repeat_steps(comparison)), *_log_cpu(runs, groups), *longer, *work)


def record_steps_longer(comparison: Comparison) -> tuple[Action, ...]:
    """Return to record steps for longer, where one that is compared is too short for that; else nothing."""
    ends = (comparison.steps[0], comparison.steps[-1])
    lengths = [recorded_seconds(step.analyses) for step in ends]
    if len(comparison.steps) < 2 or min(lengths) >= SHORTEST_REPETITION_SECONDS:  # noqa: PLR2004 - a comparison
        return ()
    shortest = display.duration_below(min(lengths), SHORTEST_REPETITION_SECONDS)
    least, better = display.duration(SHORTEST_REPETITION_SECONDS), display.duration(SHORTEST_SECONDS)
    return (
        Action(
            title="Record every step for longer",
            gain="Allows a comparison",
            text=f"The shortest step lasts {shortest}. A comparison takes {least} of each at least, and {better} or "
            "more to show small changes.",
            certainty="Nothing can be compared as it is.",
        ),
    )


def _repeat_steps(comparison: Comparison) -> Iterator[Measurement]:
    steps = comparison.steps
    if len(steps) < 2 or max(len(step.runs) for step in steps) > 1:  # noqa: PLR2004 - a comparison
        return
    yield Measurement(
        action=Action(
            title="Repeat each step",
            gain="Shows what is chance",
            text="Each step is one run, so a difference may be chance. Run every step twice more.",
            certainty="Two runs of the same job differ, too.",
        )
    )


def _are_repeated(comparison: Comparison) -> bool:
    """Return whether repetitions of each of several steps are compared, which needs less than checks do."""
    return len(comparison.steps) > 1 and all(len(step.runs) > 1 for step in comparison.steps)


def _record_longer(runs: Sequence[ReportRun], comparison: Comparison) -> Iterator[Measurement]:
    """Yield to record for longer where every run is too short for many checks."""
    lacking = [
        {entry.kind: entry.needed_seconds for entry in run.analysis.not_judged if entry.needed_seconds is not None}
        for run in runs
    ]
    count = min((len(needed) for needed in lacking), default=0)
    if count < _MANY_CHECKS:
        return
    longest = max(run.seconds for run in runs)
    length = "The log holds one moment" if longest <= 0 else f"The log covers {display.duration(longest)}"
    yield Measurement(
        action=Action(
            title=f"Record at least {display.duration(max(max(needed.values()) for needed in lacking))}",
            gain="Allows more checks",
            text=f"{length}, too short for {count} checks.{_ALL_THE_SAME if _are_repeated(comparison) else ''}",
            certainty=f"{count} checks need a longer log.",
        )
    )


def _log_cpu(runs: Sequence[ReportRun], groups: Sequence[RowGroup]) -> Iterator[Measurement]:
    """Yield to log the CPU where GPUs wait for an unknown cause and no CPU was logged."""
    named = [group for group in groups if group.kind in _UNEXPLAINED and group.cause in {None, "unknown"}]
    if not named or any(run.recording.rows.schema.get_field_index(CPU) >= 0 for run in runs):
        return
    yield Measurement(
        action=Action(
            title="Record the CPU beside the GPU",
            gain="May show the cause",
            text="Waiting for data, for storage or for one thread all look the same without it.",
            certainty="The CPU was not recorded.",
            command=RECORD,
        )
    )


def _measure_longer(comparison: Comparison) -> Iterator[Measurement]:
    """Yield to run longer where repetitions show no clear change, and could not have shown a small one."""
    deltas = [comparison.judged(base.label, step.label) for base, step in pairwise(comparison.steps)]
    unclear = [delta for delta in deltas if delta is not None and _is_unclear(delta)]
    if not unclear or max(len(step.runs) for step in comparison.steps) < 2:  # noqa: PLR2004 - repetitions
        return
    coarsest = max(unclear, key=_detectable_share)
    longest = max(run.analysis.seconds for step in comparison.steps for run in step.runs)
    is_short = longest < _SHORT_RUN
    yield Measurement(
        action=Action(
            title="Measure longer runs" if is_short else "Repeat each step more often",
            gain=f"May settle {_name_steps(comparison, unclear)}",
            text=f"{_name_runs(coarsest.runs, is_short=is_short)} only show changes above about "
            f"{display.percent(_detectable_share(coarsest))}. {_advise_runs(comparison, coarsest, is_short=is_short)}",
            certainty=f"No clear change in {display.plural(len(unclear), 'step')}.",
        )
    )


def _advise_runs(comparison: Comparison, delta: Delta, *, is_short: bool) -> str:
    """Return how many runs would show a change that matters, or that no reasonable number would."""
    base, step = (one for one in comparison.steps if one.label in {delta.base, delta.step})
    if delta.interval is None:
        return ""
    now = measure_run_interval(delta, delta.interval, base, step, repeat_base=delta.runs[0] <= delta.runs[1])
    is_repeated = min(delta.runs) > 1
    runs = estimate_runs_for_interval(now, now.half_width * _COARSE / _detectable_share(delta), on_both=is_repeated)
    fewer = display.clean(min(base, step, key=lambda one: len(one.runs)).label)
    if runs is None:
        return f"More runs show smaller ones, but no reasonable number shows {_COARSE:.0%}."
    longer = "longer runs or " if is_short else ""
    return f"To show {_COARSE:.0%}, take {longer}{runs} runs of {'each step' if is_repeated else fewer}."


def _name_runs(counts: tuple[int, int], *, is_short: bool) -> str:
    """Return how many runs stand on either side: `Three runs this short`, `3 runs and 1 of this length`."""
    size = "this short" if is_short else "of this length"
    if counts == (1, 1):
        return f"Two single runs {size}"
    if counts[0] == counts[1]:
        return f"{_NUMBERS.get(counts[0], str(counts[0]))} runs {size}"
    return f"{display.plural(max(counts), 'run')} and {min(counts)} {size}"


def _name_steps(comparison: Comparison, unclear: Sequence[Delta]) -> str:
    """Return steps by number where several follow each other, else by name."""
    order = [step.label for step in comparison.steps]
    places = [order.index(delta.step) + 1 for delta in unclear]
    if len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        return f"steps {places[0]} {'and' if len(places) == 2 else 'to'} {places[-1]}"  # noqa: PLR2004 - a pair
    return numbered_labels.list_labels([display.clean(delta.step) for delta in unclear])


def _is_unclear(delta: Delta) -> bool:
    return delta.verdict is Verdict.NO_CLEAR_CHANGE and _detectable_share(delta) >= _COARSE


def _detectable_share(delta: Delta) -> float:
    if delta.detectable_difference is None or not delta.before:
        return 0.0
    return delta.detectable_difference / delta.before


def _give_work(comparison: Comparison) -> Iterator[Measurement]:
    if any(step.work_unit is None for step in comparison.steps):
        yield Measurement(
            action=Action(
                title="Give the work done",
                gain="Shows cost per unit of work",
                text="Without it, a faster run can look worse: add --work N:UNIT, such as --work 12000:batches.",
                certainty="No work was given.",
            ),
            is_needed=False,
        )
