"""GPU time lost, in words."""

from collections.abc import Mapping, Sequence

from gpureport.analysis.results import Analysis
from gpureport.comparison.gains import known_loss
from gpureport.report.runs import gpu_time
from gpureport.report.wording import display

_NAMED = 3
REASONS = {
    "throttled": "to a lowered clock",
    "waiting_for_input": "waiting for data",
    "idle": "idle",
    "unused": "on unused GPUs",
    "hollow": "busy at low power",
    "startup": "at start-up",
    "tail": "after the work",
    "gpu_lost": "on lost GPUs",
    "low_use": "to low use",
}


def is_lower_bound(analyses: Sequence[Analysis]) -> bool:
    """Return whether what is known of the loss is its lower end; otherwise it is its upper one."""
    unknown = any(known_loss.loses_unknown_time(analysis.findings) for analysis in analyses)
    return unknown or gpu_time.excessive_short_pauses(analyses) is not None


def describe_short_pauses(ratio: float) -> str:
    """Return that the loss is not known where pauses took some share of the time, as a sentence without full stop."""
    return f"not known: short pauses took {display.percent(ratio)}"


def describe_largest_losses(lost: Mapping[str, float], held: float) -> str:
    """Return the largest classes with their shares, and what the others come to.

    Args:
        lost: GPU-seconds of each class, the largest first.
        held: GPU-seconds in all.
    """
    if len(lost) == 1:
        return f"all of it {REASONS[next(iter(lost))]}"
    named = [name for name in lost if lost[name] / held >= known_loss.NOTABLE_RATIO][:_NAMED]
    shares = [f"{display.percent(lost[name] / held)} {REASONS[name]}" for name in named]
    others = [name for name in lost if name not in named and lost[name] > 0]
    rest = sum(lost[name] for name in others) / held
    why = REASONS[others[0]] if len(others) == 1 else "for other reasons"
    return display.join_words(
        [*shares, f"{display.percent(rest)} {why}"] if rest >= known_loss.NEGLIGIBLE_RATIO else shares
    )


def format_gpu_time(held: float, runs: int) -> str:
    """Return GPU time as GPU-hours; of several runs their mean.

    Args:
        held: GPU-seconds of all runs.
        runs: how many there are.
    """
    return f"{display.gpu_time(held / runs)} a run" if runs > 1 else display.gpu_time(held)
