"""Reasons of verdicts and doubts about a comparison, in words."""

from collections.abc import Iterable, Sequence

from gpureport.analysis import phrases
from gpureport.comparison.across import BATCH_DOUBTS, BatchDoubt, PeakDoubt
from gpureport.comparison.changes import FindingChange, UnknownCause
from gpureport.comparison.comparable import Comparability
from gpureport.comparison.evidence import Reason, ReasonKind
from gpureport.comparison.figures import ShortRun
from gpureport.comparison.quality_at_work import NoWork
from gpureport.report.wording import display
from gpureport.report.wording.numbered_labels import group_holders

_REPEAT = "record longer, or repeat each step three times"
_SLOW = "A load that changes slowly can differ as much between recordings this short"
_REASONS = {
    ReasonKind.NOT_RECORDED: "It was not recorded in one of the two steps, or in both.",
    ReasonKind.NO_PRICE: "The price of a GPU-hour is not known for both steps.",
    ReasonKind.OTHER_WORK_UNIT: "The two steps count their work in different units.",
    ReasonKind.UNKNOWN_WORK: "A total grows with the work done, and that both did the same work is not known.",
    ReasonKind.UNEQUAL_WORK: "A total grows with the work done, and the work of these runs differs by {share}.",
    ReasonKind.UNFINISHED: "{run} is unfinished, and what work it did was not stated for it alone.",
    ReasonKind.ZERO: "It is 0 in one of the runs, and a ratio to 0 says nothing.",
    ReasonKind.SINGLE_FIGURE: (
        "This figure has a single value per run, so with one run per step its variation is unknown. A difference is "
        "reported only if it exceeds what repeating a run usually changes."
    ),
    ReasonKind.FEW_BATCHES: f"Too little is left between gaps for {{least:.0f}} batches: {_REPEAT}.",
    ReasonKind.SAME_RECORDING: "The same recording stands on both sides.",
    ReasonKind.MANY_COMPARISONS: (
        "The interval alone would show a change, but among {amount:.0f} comparisons some differ by chance."
    ),
    ReasonKind.WITHIN_USUAL_NOISE: "It is no larger than what repeating a run commonly changes.",
    ReasonKind.TARGET_NOT_REACHED: "Not every run reached the target.",
    ReasonKind.DRIFT: "The later runs {state}, which can make half of this change or more: record in turn, A B A B.",
    ReasonKind.NOT_REPEATED: "A step of one run has no repetition that confirms it.",
}
_UNKNOWN = {
    UnknownCause.TOO_SHORT: "less than a minute of it was recorded",
    UnknownCause.NOT_JUDGED: "the kind could not be judged there",
}
_PEAK_DOUBTS = {
    PeakDoubt.NOT_RECORDED: "Memory in use was not recorded of every GPU.",
    PeakDoubt.UNUSED: "No GPU memory was in use, so nothing tells which kinds would hold the job.",
    PeakDoubt.PREALLOCATED: "Memory was taken in advance, so its peak says nothing about what the job needs.",
    PeakDoubt.PERHAPS_PREALLOCATED: (
        "Memory kept its first value, or was recorded for less than a minute with most of it in use: it may have been "
        "taken in advance."
    ),
}
_NO_WORK = {
    NoWork.NOT_LOGGED: "It is logged without steps or epochs, so whether both steps did as much work is not known.",
    NoWork.OTHER_UNIT: "Its steps differ in size, and not every run says how many samples or epochs they are.",
    NoWork.NO_OVERLAP: "No work is common to all runs.",
}
_COUNTED = {ReasonKind.FEW_SAMPLES: "samples", ReasonKind.FEW_RATES: "points of its throughput"}

CHECKS = {
    "gpu_models": "GPU models",
    "gpu_count": "Number of GPUs",
    "gpu_memory": "Memory installed",
    "source_kind": "Recorded by",
    "sampling_interval": "Sampling interval",
    "power_reading": "Power read from",
    "power_limit": "Power limit",
    "driver": "Driver",
    "duration": "Duration of a run",
    "coverage": "Time sampled",
    "start_temperature": "Temperature at start",
    "observed_time": "Enough time recorded",
    "work_unit": "Work counted in",
    "different_runs": "Run",
    "timezone": "Time zone",
}
"""What is checked before steps are compared, by name."""

_CONSEQUENCES = {
    "observed_time": "Less than 20 s was recorded, which is too short to compare.",
    "gpu_models": (
        "GPUs of other models differ in speed, power and memory, which hides what the change did; work done "
        "and what it took can still be compared."
    ),
    "gpu_count": "GPU-hours and energy count all GPUs, so they differ by the number of GPUs alone.",
    "gpu_memory": "GPUs with another amount of memory are filled to another level.",
    "source_kind": (
        "Recorders differ in what they count as memory in use, and trackers average what nvidia-smi reads at "
        "one moment, which hides idle time."
    ),
    "sampling_interval": (
        "The finer log sees pauses that the coarser one misses, so findings differ by that alone; figures "
        "are made from the finer one thinned to the interval of the coarser."
    ),
    "power_reading": "Power was not measured in the same way, so neither power nor energy should be compared.",
    "power_limit": "Another power limit changes power and clocks by itself.",
    "driver": "Another driver can change clocks, and what it counts as memory in use.",
    "duration": (
        "Start-up and end weigh more in the shorter run, so figures of whole recordings differ in part by that."
    ),
    "coverage": "Too much of the time was not sampled for a total to mean anything.",
    "start_temperature": (
        "A GPU that starts cooler runs at higher clocks and lower power until it is warm, which short "
        "recordings consist of."
    ),
    "work_unit": "Work is not counted in one unit on both sides, so GPU-hours and energy are not for the same work.",
    "different_runs": "The same recording stands on both sides.",
}
"""What follows where the two sides of a check do not agree."""

SINGLE_RUN_SCATTER = "a single run is taken to vary as much as those it is compared with"
"""How a rule decides on a change where either side is one run, which shows no scatter of its own."""

_NO_ZONE = (
    "Whether they agree cannot be told: a log without a time zone is placed by its own clock only. "
    "No figure depends on it."
)


def describe_reason(reason: Reason | None) -> str:
    """Return why no more may be said of a difference, as a sentence; empty where nothing is held back."""
    if reason is None:
        return ""
    if reason.kind is ReasonKind.NOT_COMPARABLE:
        return _CONSEQUENCES[reason.check]
    if reason.kind is ReasonKind.SHORT_STEADY_STATE:
        return _short_steady_state(reason)
    if reason.kind is ReasonKind.SHORT_RUN:
        return _short_run(reason, phrases.duration(reason.least), f"lasts {phrases.duration(reason.amount)}")
    if reason.kind in _COUNTED:
        least = f"{reason.least:.0f} {_COUNTED[reason.kind]}"
        return _short_run(reason, least, f"holds {reason.amount:.0f} {_COUNTED[reason.kind]}")
    return _REASONS[reason.kind].format(
        amount=reason.amount,
        least=reason.least,
        share=display.percent(reason.amount),
        run=reason.run or "A run",
        state=describe_state(reason),
    )


def describe_state(drift: Reason) -> str:
    """Return how a machine had changed: `started 12 °C warmer and ran at a 6% lower clock`."""
    warmer, lower = "warmer" if drift.amount > 0 else "cooler", "lower" if drift.least < 1 else "higher"
    size = display.percent(abs(drift.least - 1))
    return f"started {abs(drift.amount):.0f} °C {warmer} and ran at a {size} {lower} clock"


def count_family(reason: Reason | None) -> int | None:
    """Return how many comparisons keep an interval that excludes no change from showing one; None where none do.

    The interval is that of a single comparison, while the verdict allows for all of them (Holm).
    """
    return round(reason.amount) if reason is not None and reason.kind is ReasonKind.MANY_COMPARISONS else None


def describe_interval(interval: str, comparisons: int | None) -> str:
    """Return the interval of a change, with of how many comparisons it is one where that keeps it from showing one.

    Args:
        interval: in words; empty where there is none.
        comparisons: as `count_family` counts them.
    """
    return f"{interval}, one of {comparisons} comparisons" if interval and comparisons is not None else interval


def _short_steady_state(reason: Reason) -> str:
    if not reason.run:
        return f"A run counts from {reason.least:.0f} s of steady state on: run it again, and longer."
    return (
        f"{reason.run} holds {reason.amount:.0f} s of steady state, and a run needs {reason.least:.0f} s to count: "
        "run it again, and longer."
    )


def _short_run(reason: Reason, least: str, amount: str) -> str:
    held = f": {reason.run} {amount}" if reason.run else ""
    return f"{_SLOW}{held}. Record {least} or more, or repeat each step three times."


def describe_left_out(runs: Sequence[ShortRun]) -> str:
    """Return which runs a figure leaves out because they are too short, in sentences; empty without any."""
    stopped, brief = [run for run in runs if run.stopped], [run for run in runs if not run.stopped]
    said = []
    if stopped:
        verb = "were" if len(stopped) > 1 else "was"
        said.append(f"{_name_lengths(stopped)} did less than a third of the work and {verb} left out.")
    if len(brief) == 1:
        said.append(f"{brief[0].run} holds {display.duration(brief[0].seconds)} of steady state and was left out.")
    elif brief:
        said.append(f"Left out, for too little steady state: {_name_lengths(brief)}.")
    return " ".join(said)


def _name_lengths(runs: Sequence[ShortRun]) -> str:
    return display.join_words([f"{run.run} ({display.duration(run.seconds)})" for run in runs])


def describe_memory_reason(reason: PeakDoubt | BatchDoubt | None) -> str:
    """Return why peak memory tells less than a reader wants, as a sentence; empty where nothing is in the way."""
    if reason is None:
        return ""
    return BATCH_DOUBTS[reason] if isinstance(reason, BatchDoubt) else _PEAK_DOUBTS[reason]


def describe_no_work(reason: NoWork | None) -> str:
    """Return why a training metric is not judged at equal work, as a sentence; empty where nothing is in the way."""
    return "" if reason is None else _NO_WORK[reason]


def list_reasons(reasons: Iterable[tuple[Reason | None, str]]) -> str:
    """Return each reason once, with the names of all that it holds back; empty without any."""
    held = group_holders((reason, name) for reason, name in reasons if reason)
    return " ".join(_with_names(reason, display.join_words(names)) for reason, names in held.items())


def _with_names(reason: Reason, names: str) -> str:
    if reason.kind is ReasonKind.NOT_REPEATED:
        return f"Not confirmed by repetition: {names}."
    return f"{names[:1].upper()}{names[1:]}: {display.lower_first(display.clean_sentence(describe_reason(reason)))}"


def describe_unknown_change(change: FindingChange) -> str:
    """Return why it is not known what became of a finding, with the step that does not tell; empty where it is."""
    if change.unknown is None:
        return ""
    return f"{change.step if change.before else change.base}: {_UNKNOWN[change.unknown]}"


def describe_check(check: Comparability) -> str:
    """Return what follows from a check, as a sentence; empty where both sides agree."""
    if check.agree:
        return ""
    if check.check == "timezone":
        return _NO_ZONE
    doubt = _CONSEQUENCES[check.check]
    unknown = "Whether they agree cannot be told from what was recorded. If they do not: "
    return f"{unknown}{doubt}" if check.agree is None else doubt
