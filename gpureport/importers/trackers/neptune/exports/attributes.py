"""Single values of a run, from rows of an export."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from gpureport.importers.trackers.neptune.run_content import Scalar

_VALUES = {"float": "float_value", "int": "int_value", "string": "string_value", "bool": "bool_value"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNNAMED = {"", "Untitled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Single values of a run.

    Attributes:
        scalars: values by path.
        moments: times by path, in microseconds.
        tags: its tags.
    """

    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    moments: Mapping[str, int] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """Paths of all of them."""
        return [*self.scalars, *self.moments]

    @property
    def name(self) -> str:
        """What a person called the run, empty where nobody did."""
        return run_name(self.scalars)

    @property
    def status(self) -> str:
        """What became of the run, in Neptune's word."""
        return run_status(self.scalars)


def run_name(scalars: Mapping[str, Scalar]) -> str:
    """Return what a person called a run, empty where nobody did."""
    name = str(scalars.get("sys/name", ""))
    return "" if name in _UNNAMED else name


def run_status(scalars: Mapping[str, Scalar]) -> str:
    """Return what became of a run, in Neptune's word."""
    return "failed" if scalars.get("sys/failed") is True else str(scalars.get("sys/state", "")).lower()


def read_attributes(rows: Iterable[Mapping[str, Any]]) -> Attributes:
    """Return the single values that rows of an export hold."""
    scalars: dict[str, Scalar] = {}
    moments: dict[str, int] = {}
    tags: tuple[str, ...] = ()
    for row in rows:
        kind, path = row["attribute_type"], row["attribute_path"]
        value = row.get(_VALUES.get(kind, ""))
        if value is not None:
            scalars[path] = value
        elif kind == "datetime" and row.get("datetime_value") is not None:
            moments[path] = (row["datetime_value"] - EPOCH) // timedelta(microseconds=1)
        elif kind == "string_set" and path == "sys/tags":
            tags = tuple(sorted(row.get("string_set_value") or ()))
    return Attributes(scalars=scalars, moments=moments, tags=tags)
