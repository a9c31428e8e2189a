"""Whether it is known how much GPU time was lost, and from which share of it something is said."""

from collections.abc import Iterable, Mapping
from math import fsum

from gpureport.analysis.results import LOST_CLASSES, Analysis, sum_seconds_by_class
from gpureport.analysis.rules import RULES
from gpureport.analysis.rules.low_use import BELOW
from gpureport.analysis.signals.load import measure_pauses_ratio
from gpureport.findings import Finding

SHORTEST_SECONDS, FEWEST_SAMPLES = 10.0, 5
"""Seconds and samples of a GPU below which no share of its time means anything (pragmatic)."""

NOTABLE_RATIO = 0.005
"""Share of the GPU time from which a loss is worth naming (pragmatic)."""

NEGLIGIBLE_RATIO = 0.0005
"""Share of the GPU time below which a part would print as less than 0.1%."""

UNSEEN_RATIO = 0.05
"""Share of the GPU time without utilisation from which a report says so (pragmatic)."""

MOST_UNSEEN_RATIO = 0.5
"""Share of the GPU time without utilisation above which a loss is known of the observed time alone (pragmatic)."""

_UTILISATION = "gpu_utilization_ratio"
_UNEXPLAINED_KIND = "low_util_cause_unknown"
ALWAYS_LOSING_KINDS = frozenset(kind.name for rule in RULES for kind in rule.descriptions if kind.always_loses_time)
"""Kinds that always lose GPU time: where no amount is given it is unknown, rather than none."""


def is_too_short(seconds: float, samples: int) -> bool:
    """Return whether a recording is too short for a share of it to mean anything."""
    return seconds < SHORTEST_SECONDS or samples < FEWEST_SAMPLES


def loses_unknown_time(findings: Iterable[Finding]) -> bool:
    """Return whether findings that lost GPU time do not say how much."""
    return bool(list_unmeasured_kinds(findings))


def list_unmeasured_kinds(findings: Iterable[Finding]) -> frozenset[str]:
    """Return the kinds of findings that lost GPU time and do not say how much; a root counts what follows from it."""
    return ALWAYS_LOSING_KINDS & {one.kind for one in findings if one.lost_gpu_seconds is None and one.root is None}


def measure_excessive_short_pauses(seconds: Mapping[str, float]) -> float | None:
    """Return which share of the observed time of jobs short pauses took; None where it is no more than usual.

    A pause counts as work, since a check that would call it lost found nothing or could not assess it. Where pauses
    take more time than calls for no change, all of them may have been lost, so that "hardly any" cannot be said.

    Args:
        seconds: GPU-seconds of each class.
    """
    ratio = measure_pauses_ratio(seconds)
    return ratio if ratio > 1 - BELOW.value else None


def list_possible_waits(analysis: Analysis) -> dict[str, float]:
    """Return the GPU-seconds that may be waits for input though nothing shows it, by what they are.

    They are low use of unknown cause, and short pauses that take more than 30% of the time.
    """
    unexplained = [each.devices for each in analysis.findings if each.kind == _UNEXPLAINED_KIND]
    low_use = fsum(
        dict(gpu.seconds).get("low_use", 0.0)
        for gpu in analysis.gpu_time
        if any(not devices or gpu.device in devices for devices in unexplained)
    )
    seconds = sum_seconds_by_class(gpu.seconds for gpu in analysis.gpu_time)
    pauses = 0.0 if measure_excessive_short_pauses(seconds) is None else seconds["short_pauses"]
    return {"low use of unknown cause": low_use, "short pauses": pauses}


def measure_lost_ratio(analysis: Analysis) -> float | None:
    """Return which share of the GPU time of jobs was lost.

    Returns:
        None where the recording is too short, most of the time holds no utilisation, or a further amount was lost, or
        may have been, that is not known: a report then says "at least", which a bare number cannot.
    """
    held = analysis.job_gpu_seconds
    seconds = sum_seconds_by_class(gpu.seconds for gpu in analysis.gpu_time)
    if not held or is_recording_too_short(analysis) or seconds.get("no_samples", 0.0) > MOST_UNSEEN_RATIO * held:
        return None
    is_unknown = loses_unknown_time(analysis.findings) or measure_excessive_short_pauses(seconds) is not None
    lost = fsum(seconds.get(name, 0.0) for name in LOST_CLASSES)
    return None if is_unknown else lost / held


def is_recording_too_short(analysis: Analysis) -> bool:
    """Return whether a run is too short, or has too few samples with a utilisation, for a share of its GPU time."""
    return is_too_short((analysis.run.ended - analysis.run.started) / 1e6, count_samples(analysis))


def count_samples(analysis: Analysis) -> int:
    """Return how many samples of a run hold a utilisation, of the GPU that has most of them."""
    summaries = [each.metric(_UTILISATION) for each in (analysis.whole_statistics or analysis.statistics)]
    return max((summary.samples for summary in summaries if summary is not None), default=0)
