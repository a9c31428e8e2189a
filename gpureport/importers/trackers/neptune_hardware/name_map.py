"""What a person says about hardware series they named themselves: the table `neptune` of a TOML file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpureport.errors import SettingsError
from gpureport.importers.trackers.neptune_hardware.series_meanings import SeriesMeaning
from gpureport.metrics import BY_NAME
from gpureport.settings.toml_files import read_toml
from gpureport.units import UNITS

TABLE = "neptune"
_EXAMPLE = 'such as [neptune.series."hw/gpu0"] with metric = "gpu_utilization_ratio", unit = "%", device = "gpu:0"'
_DEVICE = re.compile(r"host|gpu:(\d{1,4})")
_DEFAULT_UNITS = {"": "", "1": "1", "W": "W", "Cel": "C"}
"""Unit a series is taken to be in where none is said, by base unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMap:
    """Names a person chose.

    Attributes:
        namespaces: namespaces of the client's monitor that do not begin as its own do.
        series: what single series mean, by path.
    """

    namespaces: tuple[str, ...] = ()
    series: Mapping[str, SeriesMeaning] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return everything that decides what is read, as one line."""
        series = ";".join(f"{path}|{each.metric}|{each.factor}|{each.gpu}" for path, each in self.series.items())
        return f"{','.join(self.namespaces)};{series}" if self.namespaces or self.series else ""


def read_name_map(path: Path | None) -> NameMap:
    """Read the table of a file; an empty map where no file is given, or it has no such table.

    Raises:
        SettingsError: when the file cannot be read, or says what cannot be.
    """
    if path is None:
        return NameMap()
    content = read_toml(path, "see docs/how-to/neptune.md").content
    table = _read_table(path, content.get(TABLE, {}), f"[{TABLE}]", {"namespaces", "series"})
    chosen = table.get("namespaces", [])
    if not isinstance(chosen, list) or not all(isinstance(each, str) and each for each in chosen):
        raise SettingsError(
            str(path), "namespaces is no list of paths", 'such as namespaces = ["hw/training"]', code="not_a_list"
        )
    series = table.get("series", {})
    if not isinstance(series, dict):
        raise SettingsError(str(path), "series is no table", _EXAMPLE, code="not_a_table")
    return NameMap(
        namespaces=tuple(each.strip("/") for each in chosen),
        series={name: _read_meaning(path, name, said) for name, said in series.items()},
    )


def _read_table(path: Path, said: object, what: str, known: set[str]) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise SettingsError(str(path), f"{what} is no table", _EXAMPLE, code="not_a_table")
    unknown = sorted(set(said) - known)
    if unknown:
        raise SettingsError(
            str(path), f"{what} knows no {unknown[0]!r}", f"it takes {', '.join(sorted(known))}", code="unknown_key"
        )
    return said


def _read_meaning(path: Path, name: str, said: object) -> SeriesMeaning:
    what = f"[{TABLE}.series.{name!r}]"
    table = _read_table(path, said, what, {"metric", "unit", "device"})
    metric = BY_NAME.get(str(table.get("metric", "")))
    if metric is None or metric.unit not in {each.base for each in UNITS.values()}:
        raise SettingsError(
            str(path), f"{what} names no metric", "docs/reference/metrics.md lists them", code="unknown_metric"
        )
    device = _DEVICE.fullmatch(str(table.get("device", "")))
    if device is None:
        raise SettingsError(
            str(path), f"{what} names no device", "give device as gpu:0, gpu:1, ... or host", code="no_device_named"
        )
    unit = UNITS.get(str(table.get("unit", _DEFAULT_UNITS.get(metric.unit, "?"))))
    if unit is None or unit.base != metric.unit:
        fitting = ", ".join(name for name, each in UNITS.items() if each.base == metric.unit)
        raise SettingsError(str(path), f"{what} needs a unit", f"give one of {fitting}", code="wrong_unit")
    return SeriesMeaning(metric=metric.name, factor=unit.to_base(1.0), gpu=int(device[1]) if device[1] else None)
