"""Short pauses count as work, since nothing shows what they are, though they may be waits."""

from collections.abc import Mapping
from math import fsum

NOTABLE = 0.1  # share of the observed time of jobs from which they may be waits that matter
"""From here on a report tells of them."""


def measure_pauses_ratio(seconds: Mapping[str, float]) -> float:
    """Return which share of the observed time of jobs short pauses took; 0 where none was observed.

    Args:
        seconds: GPU-seconds of each class.
    """
    observed = fsum(amount for name, amount in seconds.items() if name not in {"no_samples", "no_job"})
    return seconds.get("short_pauses", 0.0) / observed if observed else 0.0
