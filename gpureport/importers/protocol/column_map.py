"""A person's map of the columns of an unknown table, read from TOML."""

from pathlib import Path
from typing import NamedTuple

from gpureport.errors import SettingsError
from gpureport.limits import MOST_GPUS
from gpureport.metrics import BY_NAME, Scope
from gpureport.parsing import UNITS
from gpureport.settings.settings_file import Section, Settings
from gpureport.settings.toml_files import read_toml

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
    """Read a map; a `SettingsError` says that it is missing, no TOML, or invalid."""
    file = Settings(file=str(path), content=read_toml(path, "see docs/how-to/read-logs.md").content)
    whole = Section(file=file.file, name="map", values=file.content)
    whole.only({"columns", "delimiter", "device", "time"})
    columns, time, device = map(file.section, ("columns", "time", "device"))
    time.only({"column", "format", "zone"})
    device.only({"column"})
    pattern = time.text("format") or ISO
    if pattern != ISO and pattern not in EPOCHS and "%" not in pattern:
        hint = f"{', '.join([ISO, *EPOCHS])}, or such as %m-%d-%Y %H:%M:%S"
        raise time.wrong("format", f"no format {pattern!r} of a time", hint, code="unknown_time_format")
    found = [read_column(columns, heading, by_row=bool(device.text("column"))) for heading in columns.values]
    if len({(each.metric, each.gpu) for each in found}) < max(len(found), 1):
        what = "two columns hold one metric of one device" if found else "it maps no column"
        raise SettingsError(file.file, what, _EXAMPLE, code="metric_in_two_columns" if found else "nothing_mapped")
    delimiter = "\t" if file.content.get("delimiter") == "\t" else whole.text("delimiter")
    return Mapping(
        tuple(found), time.text("column"), pattern, time.text("zone") or None, device.text("column"), delimiter
    )


def read_column(columns: Section, heading: str, *, by_row: bool) -> MappedColumn:
    """Return a map's entry for a column; `by_row`: another column names the GPU."""
    column, values = f"column {heading!r}", columns.values[heading]
    if not isinstance(values, dict):
        raise columns.wrong(heading, f"{column} must be a table", _EXAMPLE, code="not_a_table")
    said = Section(file=columns.file, name=f"columns.{heading}", values=values)
    said.only({"device", "metric", "unit"})
    name, stated, device = map(said.text, ("metric", "unit", "device"))
    metric = BY_NAME.get(name)
    if metric is None:
        what, hint = f"no metric {name!r} ({column})", "gpureport explain lists what there is"
        raise said.wrong("metric", what, hint, code="unknown_metric")
    unit = stated or CLEAR.get(metric.unit, "")
    if unit not in UNITS or UNITS[unit].base != metric.unit:
        fitting = [each for each, known in UNITS.items() if known.base == metric.unit and each]
        what, hint = f"no unit {stated!r} of {name} ({column})", f"units are {', '.join(fitting) or 'none'}"
        raise said.wrong("unit", what, hint, code="wrong_unit")
    index = device.removeprefix("gpu:")
    numbered = index != device and index.isascii() and index.isdigit() and int(index) < MOST_GPUS
    of_host = metric.scope is Scope.HOST
    if not of_host and not numbered and (device or not by_row):
        hint = 'say device = "gpu:0", or name the column with its number in [device]'
        raise said.wrong("device", f"which GPU is {column} of?", hint, code="no_gpu_named")
    return MappedColumn(heading, name, unit, int(index) if numbered and not of_host else None)
