"""A Neptune store's content of a run, and what its hardware series mean.

Names are those of the client's monitor, its recipe, and a person's own. Times are in microseconds.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.protocol.column_map import read_column
from gpureport.importers.tracker_series import Series, make_series
from gpureport.parsing import UNITS
from gpureport.settings.settings_file import Settings
from gpureport.settings.toml_files import read_toml

Scalar = str | int | float | bool
GIB, MIB = 2**30, 2**20
UTILIZATION, MEMORY, POWER = "gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts"
MEMORY_TOTAL = "gpu_memory_total_bytes"


@dataclass(slots=True, kw_only=True, eq=False)
class Stored:
    """A run in a store: series and single values by path; `load` returns it with its series.

    `points` counts those of each series, None if not looked at. Only a log of the client has `highest`, a
    series' stated maximum, and `last`, the time of the last operation. Only a run of an export has `files`.
    """

    key: str
    id: str
    load: "Callable[[], Stored] | None" = None
    series: dict[str, Series] = field(default_factory=dict)
    points: dict[str, int] | None = field(default_factory=dict)
    scalars: dict[str, Scalar] = field(default_factory=dict)
    tags: Sequence[str] = ()
    highest: dict[str, float] = field(default_factory=dict)
    project: str = ""
    started: int | None = None
    last: int | None = None
    rejected: list[Rejected] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    size: int = 0
    files: list[Path] = field(default_factory=list)
    fault: SourceError | None = None

    @property
    def name(self) -> str:
        """What a person calls it."""
        name = str(self.scalars.get("sys/name", ""))
        return name if name not in {"", "Untitled"} else self.id

    def hold(self, points: Mapping[str, Sequence[tuple[int, float, float]]]) -> "Stored":
        """Return the run with series of points of time, value and step, without empty series."""
        self.series |= {path: make_series(found) for path, found in points.items() if found}
        self.points = {path: len(each.times) for path, each in self.series.items()}
        return self


def make_broken_run(run_id: str, path: Path, error: Exception, hint: str, code: str) -> Stored:
    """Return a run that cannot be read, with the reason."""
    what = str(getattr(error, "strerror", None) or error)
    hint, code = getattr(error, "hint", hint), getattr(error, "code", code)
    fault = error if isinstance(error, SourceError) else SourceError(str(path), what, hint, code=code)
    return Stored(key=f"broken {run_id}", id=run_id, fault=fault)


class Meaning(NamedTuple):
    """What a series measures; `counts`: it becomes a rate, `primes`: a first value speaks of before."""

    metric: str
    factor: float
    gpu: int | None = None
    counts: bool = False
    primes: bool = False


_GAUGE = re.compile(r"(?P<space>.*)/(?P<name>cpu|memory|gpu(?:_memory|_power)?(?:_(?P<gpu>\d{1,9}))?)")
"""Series of the client's monitor; those of a GPU end in its number where the process saw several."""
_BELOW = re.compile(r"(?P<space>.+?)/monitoring/(?:gpu/(?P<gpu>\d{1,9})/)?(?P<name>.+)")
_MEANINGS = {
    "cpu": Meaning("cpu_utilization_ratio", 0.01),
    # the client says GB and counts 2**30 bytes
    "memory": Meaning("host_memory_used_bytes", GIB),
    "gpu": Meaning(UTILIZATION, 0.01),
    "gpu_memory": Meaning(MEMORY, GIB),
    "gpu_power": Meaning(POWER, 1.0),
    # those of the recipe
    "cpu/percent": Meaning("cpu_utilization_ratio", 0.01, primes=True),
    "memory/virtual_used_GiB": Meaning("host_memory_used_bytes", GIB),
    "memory/virtual_utilized_percent": Meaning("host_memory_used_ratio", 0.01),
    "disk/read_MiB": Meaning("host_disk_read_bytes_per_second", MIB, counts=True),
    "disk/write_MiB": Meaning("host_disk_write_bytes_per_second", MIB, counts=True),
    "network/recv_MiB": Meaning("host_network_receive_bytes_per_second", MIB, counts=True),
    "network/sent_MiB": Meaning("host_network_transmit_bytes_per_second", MIB, counts=True),
    "gpu/gpu_utilization_percent": Meaning(UTILIZATION, 0.01),
    "gpu/memory_used_MiB": Meaning(MEMORY, MIB),
    "gpu/memory_total_MiB": Meaning(MEMORY_TOTAL, MIB),
    "gpu/power_usage_watts": Meaning(POWER, 1.0),
    "gpu/temperature_celsius": Meaning("gpu_temperature_celsius", 1.0),
}
"""Meaning of a series by its name, without the number of a GPU."""
DERIVED = ("memory_free_MiB", "memory_utilized_percent")
"""What follows from the others; the second is the share that is full, not nvidia-smi's utilization.memory."""
_UNNAMED = re.compile(r"^(?:monitoring|(?:runtime|system)(?:/\d+)?)(?:/|$)")
"""How a namespace begins, or what it is when nobody chose one; the number is that of a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """One process's hardware series: known ones by path, and others; the client's own monitor drops zeros."""

    path: str
    stage: str | None = None
    client: bool = False
    leaves: dict[str, Meaning] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMap:
    """Namespaces of the client's monitor, and series, as a person named them."""

    namespaces: tuple[str, ...] = ()
    series: Mapping[str, Meaning] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return everything that decides what is read, as one line."""
        series = ";".join(f"{path}|{each.metric}|{each.factor}|{each.gpu}" for path, each in self.series.items())
        return f"{','.join(self.namespaces)};{series}" if self.namespaces or self.series else ""


def find_namespaces(series: Iterable[str], scalars: Iterable[str], chosen: NameMap) -> list[Namespace]:
    """Return a run's namespaces by path, from the paths of its series and single values.

    One of the client's begins as its own do, or describes a process; `train/memory` alone makes none.
    """
    own = Namespace(path="--map", leaves={path: chosen.series[path] for path in series if path in chosen.series})
    found = {("--map", False): own}
    for path in sorted({*series}.difference(own.leaves)):
        gauge = _GAUGE.fullmatch(path)
        match = gauge or _BELOW.fullmatch(path)
        if match is None:
            continue
        name, gpu = match["space"], match["gpu"]
        stage = re.sub(r"^(?=[0-9a-f]{8}$)", "process-", _UNNAMED.sub("", name).strip("/"))
        new = Namespace(path=name, client=gauge is not None, stage=stage or None)
        space = found.setdefault((name, new.client), new)
        leaf = match["name"].rstrip("_0123456789") if gauge else f"{'gpu/' if gpu else ''}{match['name']}"
        meaning = _MEANINGS.get(leaf)
        if meaning is not None:
            space.leaves[path] = meaning._replace(gpu=int(gpu or 0)) if "gpu" in meaning.metric else meaning
        else:
            space.others.append(path)
    described = {path.rpartition("/")[0] for path in scalars if path.endswith(("/hostname", "/pid", "/tid"))}
    described |= {*chosen.namespaces}
    return [
        space
        for (name, client), space in sorted(found.items())
        if space.leaves
        and (not client or name in described or name.split("/")[0] in {"monitoring", "runtime"})
        and (not client or not {f"{name}/cpu", f"{name}/memory"}.isdisjoint(space.leaves))
    ]


def read_name_map(path: Path | None) -> NameMap:
    """Read the table `neptune` of a TOML file, an empty map without one; raise a `SettingsError` for a wrong one."""
    if path is None:
        return NameMap()
    file = Settings(file=str(path), content=read_toml(path, "see docs/how-to/neptune.md").content)
    whole, series = file.section("neptune"), file.section("neptune.series")
    whole.only({"namespaces", "series"})
    named = whole.values.get("namespaces", [])
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        hint = 'such as namespaces = ["hw/training"]'
        raise whole.wrong("namespaces", "namespaces is not a list of paths", hint, code="not_a_list")
    found = [read_column(series, name, by_row=False) for name in series.values]
    meanings = {each.heading: Meaning(each.metric, UNITS[each.unit].to_base(1.0), each.gpu) for each in found}
    return NameMap(namespaces=tuple(each.strip("/") for each in named), series=meanings)
