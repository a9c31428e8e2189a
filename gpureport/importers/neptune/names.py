"""What hardware series of Neptune mean: the names of its client's monitor, of its recipe, and those a person chose."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gpureport.errors import SettingsError
from gpureport.importers.protocol.column_map import check_keys, get_typed, read_column
from gpureport.parsing import UNITS
from gpureport.settings.toml_files import read_toml

GIB, MIB = 2**30, 2**20
UTILIZATION, MEMORY, POWER = "gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts"


class Meaning(NamedTuple):
    """What a series measures: metric, factor to its base unit, GPU (None for the host).

    `counts` says that a value counts since the one before and becomes a rate, `primes` that the first is meaningless.
    """

    metric: str
    factor: float
    gpu: int | None = None
    counts: bool = False
    primes: bool = False


_GAUGES = {
    "cpu": Meaning("cpu_utilization_ratio", 0.01),
    # the client says GB and counts 2**30 bytes
    "memory": Meaning("host_memory_used_bytes", GIB),
    "gpu": Meaning(UTILIZATION, 0.01, gpu=0),
    "gpu_memory": Meaning(MEMORY, GIB, gpu=0),
    "gpu_power": Meaning(POWER, 1.0, gpu=0),
}
"""Series of the client's monitor; those of a GPU end in its number where the process saw several."""
_GAUGE = re.compile(rf"(?P<space>.*)/(?P<name>{'|'.join(_GAUGES)})(?:_(?P<gpu>\d{{1,9}}))?")
_RECIPE = {
    "cpu/percent": Meaning("cpu_utilization_ratio", 0.01, primes=True),
    "memory/virtual_used_GiB": Meaning("host_memory_used_bytes", GIB),
    "memory/virtual_utilized_percent": Meaning("host_memory_used_ratio", 0.01),
    "disk/read_MiB": Meaning("host_disk_read_bytes_per_second", MIB, counts=True),
    "disk/write_MiB": Meaning("host_disk_write_bytes_per_second", MIB, counts=True),
    "network/recv_MiB": Meaning("host_network_receive_bytes_per_second", MIB, counts=True),
    "network/sent_MiB": Meaning("host_network_transmit_bytes_per_second", MIB, counts=True),
    "gpu_utilization_percent": Meaning(UTILIZATION, 0.01, gpu=0),
    "memory_used_MiB": Meaning(MEMORY, MIB, gpu=0),
    "memory_total_MiB": Meaning("gpu_memory_total_bytes", MIB, gpu=0),
    "power_usage_watts": Meaning(POWER, 1.0, gpu=0),
    "temperature_celsius": Meaning("gpu_temperature_celsius", 1.0, gpu=0),
}
"""Series of the recipe below its `monitoring/`, those of a GPU without `gpu/<i>/`.

Its memory_utilized_percent is the share that is full, not nvidia-smi's utilization.memory.
"""
_BELOW = re.compile(r"(?P<space>.+?)/monitoring/(?:gpu/(?P<gpu>\d{1,9})/)?(?P<name>.+)")
_DERIVED = ("memory_free_MiB", "memory_utilized_percent")
_UNNAMED = re.compile(r"(?:runtime|system)(?:/\d+)?")
"""Namespaces the recipe takes when nobody chose one; the number is that of a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """Hardware series of one process: their paths, the meaning of each known one, and others that say more.

    A namespace without a name of its own has no stage. `client` says that the client's own monitor wrote it, which
    drops zeros.
    """

    path: str
    stage: str | None = None
    client: bool = False
    leaves: dict[str, Meaning] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)
    others: list[str] = field(default_factory=list)

    @property
    def gpus(self) -> set[int]:
        """The GPUs it names."""
        return {each.gpu for each in self.leaves.values() if each.gpu is not None}

    @property
    def bare(self) -> bool:
        """Whether its process saw a single GPU, which then has no number."""
        return self.client and any(path.endswith(("/gpu", "/gpu_memory", "/gpu_power")) for path in self.leaves)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMap:
    """Namespaces of the client's monitor, and series, that a person named."""

    namespaces: tuple[str, ...] = ()
    series: Mapping[str, Meaning] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return everything that decides what is read, as one line."""
        series = ";".join(f"{path}|{each.metric}|{each.factor}|{each.gpu}" for path, each in self.series.items())
        return f"{','.join(self.namespaces)};{series}" if self.namespaces or self.series else ""


def find_namespaces(series: Iterable[str], scalars: Iterable[str], chosen: NameMap) -> list[Namespace]:
    """Return the namespaces of a run, by path, from the paths of its series and of its single values.

    One of the client's begins as its own do, or describes a process: `train/memory` alone makes none.
    """
    own = Namespace(path="--map", leaves={path: chosen.series[path] for path in series if path in chosen.series})
    own.paths.update(own.leaves)
    found: dict[tuple[str, bool], Namespace] = {}
    for path in sorted({*series} - own.paths):
        client = (match := _GAUGE.fullmatch(path)) is not None
        if (match := match or _BELOW.fullmatch(path)) is None:
            continue
        name, gpu = match["space"], match["gpu"]
        new = Namespace(path=name, client=client, stage=_name_stage(name, client=client))
        space = found.setdefault((name, client), new)
        space.paths.add(path)
        meaning = (_GAUGES if client else _RECIPE).get(match["name"])
        if meaning is not None and (gpu is None if meaning.gpu is None else client or gpu is not None):
            space.leaves[path] = meaning if gpu is None else meaning._replace(gpu=int(gpu))
        elif client or not path.endswith(_DERIVED):
            space.others.append(path)
    described = {path.rpartition("/")[0] for path in scalars if path.endswith(("/hostname", "/pid", "/tid"))}
    described |= {*chosen.namespaces}
    spaces = [own]
    for (name, client), space in found.items():
        monitors = {f"{name}/cpu", f"{name}/memory"} & {*space.leaves}
        if not client or (monitors and (name.split("/")[0] in {"monitoring", "runtime"} or name in described)):
            spaces.append(space)
    return sorted((space for space in spaces if space.leaves), key=lambda space: space.path)


def _name_stage(namespace: str, *, client: bool) -> str | None:
    """Return the name of the process of a namespace; `process-<hash>` for a generated one."""
    if not client and _UNNAMED.fullmatch(namespace):
        return None
    name = re.sub(r"^(?:monitoring|runtime)(?:/|$)", "", namespace).strip("/")
    return f"process-{name}" if re.fullmatch(r"[0-9a-f]{8}", name) else name or None


def read_name_map(path: Path | None) -> NameMap:
    """Read the table `neptune` of a TOML file; an empty map where no file is given, or it has no such table.

    Raises:
        SettingsError: when the file cannot be read, or says what cannot be.
    """
    if path is None:
        return NameMap()
    content = read_toml(path, "see docs/how-to/neptune.md").content
    table = get_typed(str(path), content, "neptune", dict)
    check_keys(str(path), "[neptune]", table, "namespaces series")
    named, series = table.get("namespaces", []), get_typed(str(path), table, "series", dict)
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        hint = 'such as namespaces = ["hw/training"]'
        raise SettingsError(str(path), "namespaces is no list of paths", hint, code="not_a_list")
    read = [read_column(str(path), name, said, by_row=False) for name, said in series.items()]
    meanings = {each.heading: Meaning(each.metric, UNITS[each.unit].to_base(1.0), each.gpu) for each in read}
    return NameMap(namespaces=tuple(each.strip("/") for each in named), series=meanings)
