"""A person's map of the columns of an unknown table, read from TOML."""

from collections.abc import Mapping as AnyMapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gpureport.errors import SettingsError
from gpureport.limits import MOST_GPUS
from gpureport.metrics import BY_NAME, Scope
from gpureport.parsing import UNITS
from gpureport.settings.toml_files import read_toml

T = TypeVar("T")
ISO = "iso"
EPOCHS = {"epoch_s": "s", "epoch_ms": "ms", "epoch_us": "us", "epoch_ns": "ns"}
"""Formats of a time counted since 1970, and the unit it counts in."""
CLEAR = {"": "", "W": "W", "Cel": "C", "J": "J"}
"""Base units that tables are written in unless they say otherwise, and what these are called."""
_EXAMPLE = 'such as [columns."GPU0 Power"] with metric = "gpu_power_watts", unit = "W", device = "gpu:0"'


class MappedColumn(NamedTuple):
    """A column of a table: `unit` applies to cells that state none, `gpu` is None without a GPU."""

    heading: str
    metric: str
    unit: str
    gpu: int | None


class Mapping(NamedTuple):
    """A table's columns of metrics, and the headings of its time and GPU number, if any.

    `format` is ISO, one of EPOCHS, or strptime's; `zone` that of stamps without one; without a
    `delimiter` the header shows it.
    """

    columns: tuple[MappedColumn, ...]
    time: str
    format: str
    zone: str | None
    device: str
    delimiter: str

    def __str__(self) -> str:
        """Return everything that decides what is read, as one line."""
        columns = ";".join(f"{each.heading}|{each.metric}|{each.unit}|{each.gpu}" for each in self.columns)
        return f"{self.time}|{self.format}|{self.device}|{self.delimiter};{columns}"

    @property
    def headings(self) -> set[str]:
        """Headings the table must have."""
        return {self.time, self.device, *(each.heading for each in self.columns)} - {""}


def read_column_map(path: Path) -> Mapping:
    """Read a map.

    Raises:
        SettingsError: when it is missing, not TOML, or invalid.
    """
    where, content = str(path), read_toml(path, "see docs/how-to/read-logs.md").content
    check_keys(where, "the map", content, "columns delimiter device time")
    time, device, columns = (get_typed(where, content, name, dict) for name in ("time", "device", "columns"))
    check_keys(where, "[time]", time, "column format zone")
    check_keys(where, "[device]", device, "column")
    pattern, named = get_typed(where, time, "format", str) or ISO, get_typed(where, device, "column", str)
    if pattern != ISO and pattern not in EPOCHS and "%" not in pattern:
        hint = f"{', '.join([ISO, *EPOCHS])}, or such as %m-%d-%Y %H:%M:%S"
        raise SettingsError(where, f"no format {pattern!r} of a time", hint, code="unknown_time_format")
    found = [read_column(where, heading, said, by_row=bool(named)) for heading, said in columns.items()]
    if len({(each.metric, each.gpu) for each in found}) < max(len(found), 1):
        what = "two columns hold one metric of one device" if found else "it maps no column"
        raise SettingsError(where, what, _EXAMPLE, code="metric_in_two_columns" if found else "nothing_mapped")
    stamp, zone = (get_typed(where, time, key, str) for key in ("column", "zone"))
    return Mapping(tuple(found), stamp, pattern, zone or None, named, get_typed(where, content, "delimiter", str))


def read_column(where: str, heading: str, said: Any, *, by_row: bool) -> MappedColumn:
    """Return a map's entry for a column; `by_row`: another column names the GPU."""
    column = f"column {heading!r}"
    said = get_typed(where, {column: said}, column, dict)
    check_keys(where, column, said, "device metric unit")
    name, stated, device = (get_typed(where, said, key, str) for key in ("metric", "unit", "device"))
    metric = BY_NAME.get(name)
    if metric is None:
        what, hint = f"no metric {name!r} ({column})", "gpureport explain lists what there is"
        raise SettingsError(where, what, hint, code="unknown_metric")
    unit = stated or CLEAR.get(metric.unit, "")
    if unit not in UNITS or UNITS[unit].base != metric.unit:
        fitting = [each for each, known in UNITS.items() if known.base == metric.unit and each]
        what, hint = f"no unit {stated!r} of {name} ({column})", f"units are {', '.join(fitting) or 'none'}"
        raise SettingsError(where, what, hint, code="wrong_unit")
    index = device.removeprefix("gpu:")
    numbered = index != device and index.isascii() and index.isdigit() and int(index) < MOST_GPUS
    of_host = metric.scope is Scope.HOST
    if not of_host and not numbered and (device or not by_row):
        hint = 'say device = "gpu:0", or name the column with its number in [device]'
        raise SettingsError(where, f"which GPU is {column} of?", hint, code="no_gpu_named")
    return MappedColumn(heading, name, unit, int(index) if numbered and not of_host else None)


def get_typed(where: str, content: AnyMapping[str, Any], name: str, kind: type[T]) -> T:
    """Return what a key says, nothing where it is missing."""
    found = content.get(name, kind())
    if isinstance(found, kind):
        return found
    wanted = "text" if kind is str else "table"
    raise SettingsError(where, f"{name} is not a {wanted}", _EXAMPLE, code=f"not_a_{wanted}")


def check_keys(where: str, part: str, content: AnyMapping[str, Any], names: str) -> None:
    """Refuse a key that is not among these names."""
    if unknown := content.keys() - names.split():
        what, hint = f"unknown key {min(unknown)!r} in {part}", f"keys are {names.replace(' ', ', ')}"
        raise SettingsError(where, what, hint, code="unknown_key")
