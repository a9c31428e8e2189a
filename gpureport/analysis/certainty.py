"""How sure a finding can be, by the number of its readings and their distance."""

from gpureport.findings import Confidence

SURE_READINGS = 5  # readings from which a direct column is believed
FEW_READINGS = 2  # readings below which anything may be an accident
COARSE_SECONDS = 60.0  # distance between samples from which edges and lengths are guesses

_RANK = list(Confidence)


def confidence_by_readings(readings: int, interval: float = 0.0) -> Confidence:
    """Return high from five readings of one device on, medium from two, low for one or from samples a minute apart."""
    if readings < FEW_READINGS or interval >= COARSE_SECONDS:
        return Confidence.LOW
    return Confidence.HIGH if readings >= SURE_READINGS else Confidence.MEDIUM


def lowest_confidence(*each: Confidence) -> Confidence:
    return max(each, key=_RANK.index)
