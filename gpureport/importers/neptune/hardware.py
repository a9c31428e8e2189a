"""Turns Neptune's hardware series into rows about GPUs and machines.

The client does not report zeros, so an idle GPU has no points. All values in a tick have the
same time, and memory is never 0. If a tick has a GPU's memory but no utilisation, the
utilisation was 0. Any other missing value is unknown.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.importers import tracker_series
from gpureport.importers.account import FORKED, NOT_SELECTED, OTHER_PROCESS, TWICE_AT_ONCE
from gpureport.importers.neptune.stored import Stored
from gpureport.importers.tools.mapped import read_column
from gpureport.importers.tracker_series import Meaning
from gpureport.parsing import UNITS
from gpureport.recording import Stage
from gpureport.settings import Settings
from gpureport.settings.toml_files import read_toml

GIB, MIB = 2**30, 2**20
UTILIZATION, MEMORY, POWER = "gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts"
MEMORY_TOTAL = "gpu_memory_total_bytes"
_MEMORY_OF = {UTILIZATION: MEMORY, "cpu_utilization_ratio": "host_memory_used_bytes"}
_GAUGE = re.compile(r"(?P<space>.*)/(?P<name>cpu|memory|gpu(?:_memory|_power)?(?:_(?P<gpu>\d{1,9}))?)")
_BELOW = re.compile(r"(?P<space>.+?)/monitoring/(?:gpu/(?P<gpu>\d{1,9})/)?(?P<name>.+)")
_MEANINGS = {
    "cpu": Meaning("cpu_utilization_ratio", 0.01),
    # the client's GB has 2**30 bytes
    "memory": Meaning("host_memory_used_bytes", GIB),
    "gpu": Meaning(UTILIZATION, 0.01),
    "gpu_memory": Meaning(MEMORY, GIB),
    "gpu_power": Meaning(POWER, 1.0),
    # names in Neptune's monitoring recipe
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
DERIVED = ("memory_free_MiB", "memory_utilized_percent")
"""Series that can be derived from others; the second is not the load of the memory controller."""
_UNNAMED = re.compile(r"^(?:monitoring|(?:runtime|system)(?:/\d+)?)(?:/|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A namespace in a run; zeros are missing if Neptune's `client` recorded it."""

    run: Stored
    path: str
    node: str
    stage: str | None = None
    client: bool = False
    leaves: dict[str, Meaning] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


class NameMap(NamedTuple):
    """The user's map: namespaces of the client's monitor, and the meanings of series."""

    namespaces: tuple[str, ...] = ()
    series: Mapping[str, Meaning] = {}

    def __str__(self) -> str:
        series = ";".join(f"{path}|{each.metric}|{each.factor}|{each.gpu}" for path, each in self.series.items())
        return f"{','.join(self.namespaces)};{series}" if self.namespaces or self.series else ""


def find_processes(run: Stored, chosen: NameMap) -> list[Process]:
    """Return a run's namespaces; a series such as `train/memory` defines no namespace."""
    found: dict[tuple[str, bool], Process] = {}
    named = {path.rpartition("/")[0] for path in run.scalars if path.endswith(("/hostname", "/pid", "/tid"))}
    named |= {*chosen.namespaces}
    unmapped = {*(run.paths or ())} - chosen.series.keys()
    for path in sorted(run.paths or ()):
        name, stage, meaning, gauge = "--map", "", chosen.series.get(path), _GAUGE.fullmatch(path)
        client = gauge is not None and meaning is None
        if meaning is None:
            if (match := gauge or _BELOW.fullmatch(path)) is None:
                continue
            name, gpu, leaf = match.group("space", "gpu", "name")
            is_named = name in named or name.split("/")[0] in {"monitoring", "runtime"}
            if client and (not is_named or unmapped.isdisjoint([f"{name}/cpu", f"{name}/memory"])):
                continue
            stage = re.sub(r"^(?=[0-9a-f]{8}$)", "process-", _UNNAMED.sub("", name).strip("/"))
            meaning = _MEANINGS.get(leaf.rstrip("_0123456789") if gauge else f"{'gpu/' if gpu else ''}{leaf}")
            if meaning and "gpu" in meaning.metric:
                meaning = meaning._replace(gpu=int(gpu or 0))
        hosts = (f"{name}/hostname", f"{name}/details/hostname", "sys/hostname")
        node = next((str(run.scalars[host]) for host in hosts if run.scalars.get(host)), "")
        new = Process(run=run, path=name, node=node, stage=stage or None, client=client)
        space = found.setdefault((name, client), new)
        if meaning is None:
            space.others.append(path)
        else:
            space.leaves[path] = meaning
    return [space for _, space in sorted(found.items()) if space.leaves]


def read_name_map(path: Path | None) -> NameMap:
    if path is None:
        return NameMap()
    file = Settings(file=str(path), content=read_toml(path, "see docs/how-to/neptune.md").content)
    whole, series = file.section("neptune"), file.section("neptune.series")
    whole.only({"namespaces", "series"})
    named = whole.values.get("namespaces", [])
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        hint = 'for example, namespaces = ["hw/training"]'
        raise whole.wrong("namespaces", "namespaces must be a list of paths", hint, code="not_a_list")
    found = [read_column(series, name, by_row=False) for name in series.values]
    meanings = {each.heading: Meaning(each.metric, UNITS[each.unit].to_base(1.0), each.gpu) for each in found}
    return NameMap(namespaces=tuple(each.strip("/") for each in named), series=meanings)


# rows of devices

_FORKED = 1_000_000
"""Minimum time between a monitor's ticks, in microseconds; a forked monitor records immediately."""
_UNNUMBERED = ("/gpu", "/gpu_memory", "/gpu_power")


class DeviceRows(NamedTuple):
    """A device's rows from one process; `points` counts each row's points, and `imputed` marks restored zeros."""

    process: Process
    gpu: int | None
    times: IntArray
    columns: dict[str, Any]

    def taken(self, rows: BoolArray) -> "DeviceRows":
        return self._replace(times=self.times[rows], columns={name: each[rows] for name, each in self.columns.items()})


@dataclass(slots=True)
class Hardware:
    """Rows by node and GPU (None for the machine), and counts of how points were handled.

    GPUs in `never` reported no utilisation, and those in `unrestored` no memory.
    """

    processes: list[Process]
    blocks: dict[tuple[str, int | None], list[DeviceRows]] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    nan: Counter[str] = field(default_factory=Counter)
    gpus: set[int] = field(default_factory=set)
    never: set[int] = field(default_factory=set)
    unrestored: set[int] = field(default_factory=set)

    def name_node(self, node: str) -> str | None:
        return node if node and len({node for node, _ in self.blocks}) > 1 else None

    def count(self, part: str) -> int:
        return sum(int(block.columns[part].sum()) for blocks in self.blocks.values() for block in blocks)

    def list_stages(self) -> tuple[Stage, ...]:
        found: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        for (node, _), blocks in self.blocks.items():
            for block in blocks:
                found[block.process.stage or "", self.name_node(node)] += block.times[[0, -1]].tolist()
        stages = [Stage(name=name, start=min(at), end=max(at), node=node) for (name, node), at in found.items() if name]
        return tuple(sorted(stages, key=lambda each: (each.start, each.end, each.name, each.node or "")))


def read_hardware(processes: Iterable[Process], gpus: Sequence[int] | None) -> Hardware:
    """Return the rows that processes recorded about machines and the selected GPUs (None selects all).

    GPUs without a number are numbered in order of process start; successive processes reuse numbers.
    """
    found, bare = Hardware([*processes]), list[DeviceRows]()
    held = [block for process in found.processes for block in _sample(found, process) if len(block.times)]
    for block in sorted(held, key=lambda each: (int(each.times[0]), each.process.path)):
        process, gpu, node = block.process, block.gpu, block.process.node
        if process.client and gpu is not None and any(path.endswith(_UNNUMBERED) for path in process.leaves):
            gpu = sum(each.process.node == node and each.times[-1] >= block.times[0] for each in bare)
            bare.append(block)
        found.blocks.setdefault((node, gpu), []).append(block)
    every = found.count("points")
    found.blocks = {key: _drop_copies(each) for key, each in found.blocks.items()}
    once, found.gpus = found.count("points"), {gpu for _, gpu in found.blocks if gpu is not None}
    found.blocks = {key: each for key, each in found.blocks.items() if gpus is None or key[1] in {None, *gpus}}
    found.rejected += Counter({OTHER_PROCESS: every - once, NOT_SELECTED: once - found.count("points")})
    return found


def _sample(found: Hardware, process: Process) -> Iterator[DeviceRows]:
    held = process.run.series
    meanings = {path: meaning for path, meaning in process.leaves.items() if path in held and len(held[path].times)}
    ticks, values = tracker_series.place_on_ticks([held[path] for path in meanings])
    known, dropped = ~np.isnan(values), np.zeros_like(values, dtype=np.bool_)
    for path, meaning in meanings.items():
        lost = int((~tracker_series.is_measured(held[path].values)).sum())
        found.nan[meaning.metric] += lost
        found.rejected[TWICE_AT_ONCE] += len(held[path].times) - lost
    found.rejected[TWICE_AT_ONCE] -= int(known.sum())
    if process.client:
        rows = {(each.metric, each.gpu): row for row, each in enumerate(meanings.values())}
        for (metric, gpu), row in rows.items():
            memory = rows.get((_MEMORY_OF.get(metric, ""), gpu))
            # series without common times cannot explain each other's gaps
            if memory is not None and (not known[row].any() or (known[row] & known[memory]).any()):
                # a process does not report its first CPU reading, which covers no time
                dropped[row] = ~known[row] & known[memory] & ~(_mark_starts(ticks) & (gpu is None))
        used, sized = (
            {gpu for metric, gpu in rows if metric == name and gpu is not None} for name in (UTILIZATION, MEMORY)
        )
        found.never |= sized - used
        found.unrestored |= used - sized
        kept = np.diff(ticks, prepend=-_FORKED) >= _FORKED
        found.rejected[FORKED] += int(known[:, ~kept].sum())
        ticks, values, known, dropped = ticks[kept], values[:, kept], known[:, kept], dropped[:, kept]
    seconds, starts = np.diff(ticks, prepend=ticks[:1] + 1) / 1e6, _mark_starts(ticks)
    values[dropped] = 0.0
    for gpu in dict.fromkeys(each.gpu for each in meanings.values()):
        own = {row: meaning for row, meaning in enumerate(meanings.values()) if meaning.gpu == gpu}
        columns = {"points": known[[*own]].sum(axis=0), "imputed": dropped[[*own]].any(axis=0)}
        measured = (columns["points"] > 0) | columns["imputed"]
        for row, meaning in own.items():
            one = values[row] * meaning.factor / (seconds if meaning.counts else 1.0)
            columns[meaning.metric] = np.where(starts, np.nan, one) if meaning.counts or meaning.primes else one
        yield DeviceRows(process, gpu, ticks, columns).taken(measured)


def _find_pace(times: IntArray) -> float:
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.0


def _mark_starts(times: IntArray) -> BoolArray:
    starts: BoolArray = np.diff(times, prepend=times[:1]) > gap_seconds(_find_pace(times) / 1e6) * 1e6
    starts[:1] = True
    return starts


def _drop_copies(blocks: Sequence[DeviceRows]) -> list[DeviceRows]:
    """Return a device's rows, keeping only those of the shortest process where processes overlap."""
    kept: list[DeviceRows] = []
    for block in sorted(blocks, key=lambda each: (int(each.times[-1] - each.times[0]), each.process.path)):
        copies = np.zeros(len(block.times), dtype=np.bool_)
        for edge in (0, round(_find_pace(block.times) * 1.5)):
            # if most rows are copies, rows next to them are treated as copies too
            if edge == 0 or 2 * int(copies.sum()) > len(copies):
                for each in kept:
                    copies |= (block.times >= each.times[0] - edge) & (block.times <= each.times[-1] + edge)
        if not copies.all():
            kept.append(block.taken(~copies))
    return sorted(kept, key=lambda each: int(each.times[0]))
