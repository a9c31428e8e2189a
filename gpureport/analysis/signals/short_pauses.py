"""How much of the GPU time passes in pauses too short for a finding, and from which share on that is said."""

from collections.abc import Iterable

from gpureport.analysis.thresholds import pragmatic

CLASS = "short_pauses"
"""Class of GPU time that they count as."""
NOTABLE = pragmatic(0.1, "1", "as of GPU time lost: from a tenth on, a run is not called healthy")
"""Share of the observed time from which short pauses are told and worth a trial."""
_UNOBSERVED = {"no_samples", "no_job"}


def measure_ratio(seconds: Iterable[tuple[str, float]]) -> float:
    """Return which share of the observed time of jobs passed in short pauses; 0 where none was observed.

    Args:
        seconds: classes of GPU time with GPU-seconds; a class may come more than once.
    """
    paused = observed = 0.0
    for name, amount in seconds:
        paused += amount if name == CLASS else 0.0
        observed += 0.0 if name in _UNOBSERVED else amount
    return paused / observed if observed else 0.0
