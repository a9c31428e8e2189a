"""What a person says of the columns of a table that no importer knows: a map, read from TOML."""

from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedColumn:
    """A column of a table: `unit` is that of a cell that states none, `gpu` None where no GPU is named."""

    heading: str
    metric: str
    unit: str
    gpu: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """The columns of a table that hold metrics, and the headings of its time and of the GPU's number, if any.

    `format` is ISO, one of EPOCHS, or a pattern of strptime; `zone` that of stamps that name none; without a
    `delimiter` the header shows what parts cells.
    """

    columns: tuple[MappedColumn, ...]
    time: str = ""
    format: str = ISO
    zone: str | None = None
    device: str = ""
    delimiter: str = ""

    def __str__(self) -> str:
        """Return everything that decides what is read, as one line."""
        columns = ";".join(f"{each.heading}|{each.metric}|{each.unit}|{each.gpu}" for each in self.columns)
        return f"{self.time}|{self.format}|{self.device}|{self.delimiter};{columns}"

    @property
    def headings(self) -> tuple[str, ...]:
        """Headings the table must have."""
        named = (each for each in (self.time, self.device) if each)
        return (*named, *(each.heading for each in self.columns))


def read_column_map(path: Path) -> Mapping:
    """Read a map.

    Raises:
        SettingsError: when it is missing, no TOML, or says what cannot be.
    """
    where, content = str(path), read_toml(path, "see docs/how-to/read-logs.md").content
    check_keys(where, "the map", content, "columns delimiter device time")
    time, device, columns = (get_typed(where, content, name, dict) for name in ("time", "device", "columns"))
    check_keys(where, "[time]", time, "column format zone")
    check_keys(where, "[device]", device, "column")
    if not columns:
        raise SettingsError(where, "it maps no column", _EXAMPLE, code="nothing_mapped")
    pattern, named = get_typed(where, time, "format", str) or ISO, get_typed(where, device, "column", str)
    if pattern != ISO and pattern not in EPOCHS and "%" not in pattern:
        hint = f"{', '.join([ISO, *EPOCHS])}, or such as %m-%d-%Y %H:%M:%S"
        raise SettingsError(where, f"no format {pattern!r} of a time", hint, code="unknown_time_format")
    found = tuple(read_column(where, heading, said, by_row=bool(named)) for heading, said in columns.items())
    filled = [(each.metric, each.gpu) for each in found]
    if twice := next((each for each in filled if filled.count(each) > 1), None):
        of = "the machine" if BY_NAME[twice[0]].scope is Scope.HOST else f"gpu:{twice[1]}"
        raise SettingsError(
            where, f"two columns hold {twice[0]} of {of}", "map one of them", code="metric_in_two_columns"
        )
    return Mapping(
        columns=found,
        time=get_typed(where, time, "column", str),
        format=pattern,
        zone=get_typed(where, time, "zone", str) or None,
        device=named,
        delimiter=get_typed(where, content, "delimiter", str),
    )


def read_column(where: str, heading: str, said: Any, *, by_row: bool) -> MappedColumn:
    """Return what a map says of a column; `by_row` says that another column of the table names the GPU."""
    if not isinstance(said, dict):
        raise SettingsError(where, f"[columns] {heading!r} is no table", _EXAMPLE, code="not_a_table")
    check_keys(where, f"[columns.{heading!r}]", said, "device metric unit")
    name, stated, device = (get_typed(where, said, key, str) for key in ("metric", "unit", "device"))
    metric = BY_NAME.get(name)
    if metric is None:
        what, hint = f"no metric {name!r} (column {heading!r})", "gpureport explain lists what there is"
        raise SettingsError(where, what, hint, code="unknown_metric")
    unit = stated or CLEAR.get(metric.unit, "")
    if unit not in UNITS or UNITS[unit].base != metric.unit:
        fitting = ", ".join(each for each, known in UNITS.items() if known.base == metric.unit and each)
        what = (
            f"{stated!r} is no unit of its metric (column {heading!r})" if stated else f"no unit (column {heading!r})"
        )
        hint = f"units are {fitting}" if fitting else "leave the unit out"
        raise SettingsError(where, what, hint, code="wrong_unit")
    index = device.removeprefix("gpu:")
    numbered = device.startswith("gpu:") and index.isascii() and index.isdigit() and int(index) < MOST_GPUS
    if metric.scope is not Scope.HOST and not numbered and (device or not by_row):
        hint = 'say device = "gpu:0", or name the column with its number in [device]'
        raise SettingsError(where, f"which GPU is column {heading!r} of?", hint, code="no_gpu_named")
    gpu = int(index) if numbered and metric.scope is not Scope.HOST else None
    return MappedColumn(heading=heading, metric=name, unit=unit, gpu=gpu)


def get_typed(where: str, content: AnyMapping[str, Any], name: str, kind: type[T]) -> T:
    """Return what a key says, nothing where it is missing."""
    found = content.get(name, kind())
    if isinstance(found, kind):
        return found
    if kind is str:
        raise SettingsError(where, f"{name} is no text", f'write {name} = "..."', code="not_a_text")
    raise SettingsError(where, f"{name} is no table", _EXAMPLE, code="not_a_table")


def check_keys(where: str, part: str, content: AnyMapping[str, Any], names: str) -> None:
    """Refuse a key that is not among these names."""
    known = names.split()
    if unknown := next((name for name in content if name not in known), None):
        raise SettingsError(
            where, f"unknown key {unknown!r} in {part}", f"keys are {', '.join(known)}", code="unknown_key"
        )
