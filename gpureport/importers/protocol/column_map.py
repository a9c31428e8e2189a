"""What a person says of the columns of a table that no importer knows: a map, read from TOML."""

from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gpureport.errors import SettingsError
from gpureport.limits import MOST_GPUS
from gpureport.metrics import BY_NAME, Scope
from gpureport.settings.toml_files import read_toml
from gpureport.units import UNITS

ISO = "iso"
EPOCHS = {"epoch_s": "s", "epoch_ms": "ms", "epoch_us": "us", "epoch_ns": "ns"}
"""Formats of a time counted since 1970, and the unit it counts in."""
CLEAR = {"", "W", "Cel", "J"}
"""Base units that tables are written in unless they say otherwise."""
_DEFAULTS = {"": "", "W": "W", "Cel": "C", "J": "J"}
_EXAMPLE = 'such as [columns."GPU0 Power"] with metric = "gpu_power_watts", unit = "W", device = "gpu:0"'


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedColumn:
    """A column of a table.

    Attributes:
        heading: its heading.
        metric: metric it holds.
        unit: unit of a cell that states none.
        gpu: index of the GPU; None for the machine, and where a column of the table names the GPU.
    """

    heading: str
    metric: str
    unit: str
    gpu: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """The columns of a table.

    Attributes:
        columns: those that hold metrics.
        time: heading of the time, empty where there is none.
        format: ISO, one of EPOCHS, or a pattern of strptime.
        zone: zone of stamps that name none; None when unknown.
        device: heading of the GPU's number, empty where columns name the GPU.
        delimiter: what parts cells; empty when the header tells.
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
    return _Map(str(path)).mapping(read_toml(path, "see docs/how-to/read-logs.md").content)


@dataclass(frozen=True, slots=True)
class _Map:
    """Checks a map; `path` is what errors name."""

    path: str

    def mapping(self, content: AnyMapping[str, Any]) -> Mapping:
        """Return the map that TOML holds."""
        self._refuse_unknown_keys("the map", content, {"time", "device", "columns", "delimiter"})
        time, device = self._table(content, "time"), self._table(content, "device")
        self._refuse_unknown_keys("[time]", time, {"column", "format", "zone"})
        self._refuse_unknown_keys("[device]", device, {"column"})
        columns = self._table(content, "columns")
        if not columns:
            raise SettingsError(self.path, "it maps no column", _EXAMPLE, code="nothing_mapped")
        by_row = bool(self._text(device, "column"))
        found = tuple(self._column(heading, said, by_row=by_row) for heading, said in columns.items())
        self._refuse_repeated_metric(found)
        return Mapping(
            columns=found,
            time=self._text(time, "column"),
            format=self._format(self._text(time, "format") or ISO),
            zone=self._text(time, "zone") or None,
            device=self._text(device, "column"),
            delimiter=self._text(content, "delimiter"),
        )

    def _column(self, heading: str, said: object, *, by_row: bool) -> MappedColumn:
        if not isinstance(said, dict):
            raise SettingsError(self.path, f"[columns] {heading!r} is no table", _EXAMPLE, code="not_a_table")
        self._refuse_unknown_keys(f"[columns.{heading!r}]", said, {"metric", "unit", "device"})
        name = self._text(said, "metric")
        metric = BY_NAME.get(name)
        if metric is None:
            close = get_close_matches(name, list(BY_NAME), n=1)
            hint = f"did you mean {close[0]!r}?" if close else "gpureport explain lists what there is"
            raise SettingsError(self.path, f"no metric {name!r} (column {heading!r})", hint, code="unknown_metric")
        device = self._text(said, "device")
        return MappedColumn(
            heading=heading,
            metric=name,
            unit=self._unit(heading, self._text(said, "unit"), metric.unit),
            gpu=None if metric.scope is Scope.HOST else self._gpu(heading, device, by_row=by_row),
        )

    def _unit(self, heading: str, unit: str, base: str) -> str:
        if not unit and base in CLEAR:
            return _DEFAULTS[base]
        if unit not in UNITS or UNITS[unit].base != base:
            fitting = ", ".join(name for name, each in UNITS.items() if each.base == base and name)
            what = (
                f"{unit!r} is no unit of its metric (column {heading!r})" if unit else f"no unit (column {heading!r})"
            )
            raise SettingsError(
                self.path, what, f"units are {fitting}" if fitting else "leave the unit out", code="wrong_unit"
            )
        return unit

    def _gpu(self, heading: str, device: str, *, by_row: bool) -> int | None:
        index = device.removeprefix("gpu:")
        if device.startswith("gpu:") and index.isascii() and index.isdigit() and int(index) < MOST_GPUS:
            return int(index)
        if device or not by_row:
            what = f"which GPU is column {heading!r} of?"
            raise SettingsError(
                self.path,
                what,
                'say device = "gpu:0", or name the column with its number in [device]',
                code="no_gpu_named",
            )
        return None

    def _format(self, text: str) -> str:
        if text != ISO and text not in EPOCHS and "%" not in text:
            known = ", ".join([ISO, *EPOCHS])
            raise SettingsError(
                self.path,
                f"no format {text!r} of a time",
                f"{known}, or such as %m-%d-%Y %H:%M:%S",
                code="unknown_time_format",
            )
        return text

    def _refuse_repeated_metric(self, columns: tuple[MappedColumn, ...]) -> None:
        filled = [(each.metric, each.gpu) for each in columns]
        twice = next((each for each in columns if filled.count((each.metric, each.gpu)) > 1), None)
        if twice is not None:
            of = "the machine" if BY_NAME[twice.metric].scope is Scope.HOST else f"gpu:{twice.gpu}"
            raise SettingsError(
                self.path, f"two columns hold {twice.metric} of {of}", "map one of them", code="metric_in_two_columns"
            )

    def _table(self, content: AnyMapping[str, Any], name: str) -> AnyMapping[str, Any]:
        found = content.get(name, {})
        if not isinstance(found, dict):
            raise SettingsError(self.path, f"{name} is no table", _EXAMPLE, code="not_a_table")
        return found

    def _text(self, content: AnyMapping[str, Any], name: str) -> str:
        found = content.get(name, "")
        if not isinstance(found, str):
            raise SettingsError(self.path, f"{name} is no text", f'write {name} = "..."', code="not_a_text")
        return found

    def _refuse_unknown_keys(self, where: str, content: AnyMapping[str, Any], names: set[str]) -> None:
        unknown = next((name for name in content if name not in names), None)
        if unknown is not None:
            raise SettingsError(
                self.path,
                f"unknown key {unknown!r} in {where}",
                f"keys are {', '.join(sorted(names))}",
                code="unknown_key",
            )
