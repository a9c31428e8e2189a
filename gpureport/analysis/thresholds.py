"""Short forms for thresholds, one a provenance."""

from gpureport.findings import Provenance, Threshold


def vendor(value: float, unit: str, source: str) -> Threshold:
    """Return a limit that NVIDIA gives."""
    return Threshold(value=value, unit=unit, provenance=Provenance.VENDOR, source=source)


def literature(value: float, unit: str, source: str) -> Threshold:
    """Return a limit that published work or another tool gives."""
    return Threshold(value=value, unit=unit, provenance=Provenance.LITERATURE, source=source)


def pragmatic(value: float, unit: str, source: str) -> Threshold:
    """Return a limit chosen because it works, with the reason."""
    return Threshold(value=value, unit=unit, provenance=Provenance.PRAGMATIC, source=source)
