"""Short forms for thresholds, one a provenance, and what a computation takes of them."""

from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

from gpureport.findings import Provenance, Threshold

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Limits = TypeVar("Limits", bound="DataclassInstance")


def vendor(value: float, unit: str, source: str) -> Threshold:
    """Return a limit that NVIDIA gives."""
    return Threshold(value=value, unit=unit, provenance=Provenance.VENDOR, source=source)


def literature(value: float, unit: str, source: str) -> Threshold:
    """Return a limit that published work or another tool gives."""
    return Threshold(value=value, unit=unit, provenance=Provenance.LITERATURE, source=source)


def pragmatic(value: float, unit: str, source: str) -> Threshold:
    """Return a limit chosen because it works, with the reason."""
    return Threshold(value=value, unit=unit, provenance=Provenance.PRAGMATIC, source=source)


def read_limits(rule: object, wanted: type[Limits]) -> Limits:
    """Return the limits of a computation, each that of the same name which the rule has as a setting or a constant.

    Args:
        rule: the rule.
        wanted: a dataclass of numbers; what the rule lacks keeps its default.
    """
    known = {field.name: getattr(rule, field.name) for field in fields(wanted) if hasattr(rule, field.name)}
    return wanted(**{name: limit.value if isinstance(limit, Threshold) else limit for name, limit in known.items()})
