"""What the last step could gain at most, in a sentence or two."""

from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import observed_seconds
from gpureport.comparison.gains import NOTABLE_RATIO, Potential, PotentialLoss, estimate_potential
from gpureport.report.runs import gpu_time
from gpureport.report.sections.head.loss_sentence import describe_short_pauses
from gpureport.report.wording import display, terms
from gpureport.report.wording.differences import relative_changes

_NAMED = 3
"""Classes of lost time that the sentence names."""
_STARTUP_SHARE, _LONG_SECONDS = 0.05, 600.0
"""Share of start-up that is large, and the length of a run in which that is no accident of a trial (pragmatic)."""


def describe_potential(comparison: Comparison) -> str:
    """Return how many times as fast the last step could be at most, and what it would have to lose for that."""
    found = estimate_potential(comparison.remaining, comparison.steps[-1].analyses)
    label = display.clean(found.step)
    if found.lost_ratio is None:
        return f"What {label} could still gain is not known: most of its time holds no utilisation."
    if found.unmeasured:
        kinds = display.join_words([display.lower_first(terms.kind_title(kind)) for kind in found.unmeasured])
        return f"What {label} could still gain is not known: how much it lost to {kinds} was not recorded."
    pauses = gpu_time.excessive_short_pauses(comparison.steps[-1].analyses)
    is_hardly_lost = found.lost_ratio + found.unseen_ratio < NOTABLE_RATIO and pauses is not None
    if is_hardly_lost or (found.at_most is None and found.pauses_ratio >= NOTABLE_RATIO):
        said = describe_short_pauses(pauses or found.pauses_ratio)
        return f"What {label} could still gain is {said} of its time."
    if found.lost_ratio + found.unseen_ratio + found.pauses_ratio < NOTABLE_RATIO:
        return f"{label} loses hardly any GPU time: only faster computing would help it."
    if found.at_most is None:
        unseen = " that was observed" if found.unseen_ratio >= NOTABLE_RATIO else ""
        return f"{label} lost all of its GPU time{unseen}."
    parts = [f"{display.lower_first(terms.CLASSES[loss.name])} {_percent(loss.lost_ratio)}" for loss in _named(found)]
    if found.pauses_ratio >= NOTABLE_RATIO:
        parts.append(f"short pauses {_percent(found.pauses_ratio)}, as far as they are waits")
    if found.unseen_ratio >= NOTABLE_RATIO:
        parts.append(f"{_percent(found.unseen_ratio)} that was not observed and may be lost")
    lost = display.join_words(parts)
    sentences = [
        f"At most {relative_changes.format_times(found.at_most)} as fast without what {label} loses: {lost}.",
        "This is an upper bound for the whole job, not a promise.",
    ]
    startup = next((loss.lost_ratio for loss in found.losses if loss.name == "startup"), 0.0)
    if startup >= _STARTUP_SHARE and observed_seconds(comparison.steps[-1].analyses) < _LONG_SECONDS:
        sentences.append("Start-up weighs less in longer runs.")
    return " ".join(sentences)


def _named(found: Potential) -> list[PotentialLoss]:
    return [loss for loss in found.losses if loss.lost_ratio >= NOTABLE_RATIO][:_NAMED]


def _percent(ratio: float) -> str:
    return display.percent(ratio).replace(display.GAP, "")
