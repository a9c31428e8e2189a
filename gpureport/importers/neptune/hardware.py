"""A Neptune store's content of a run, what its hardware series mean, and the rows of GPUs and machines they make.

Names of series are those of the client's monitor, its recipe, and a person's own; runs that neptune-exporter loaded
into MLflow keep them. Times are in microseconds. The client only reports values other than 0, so an idle GPU is a
missing point. All values of a tick share one time, and host and GPU memory are never 0: where a tick has a GPU's memory
and not its utilization, the utilization was 0. Anything else missing stays unknown.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.importers import tracker_series
from gpureport.importers.neptune.stored import Stored
from gpureport.importers.protocol.reject_reasons import FORKED, NOT_SELECTED, OTHER_PROCESS, TWICE_AT_ONCE
from gpureport.importers.tools.mapped import read_column
from gpureport.importers.tracker_series import Meaning
from gpureport.parsing import UNITS
from gpureport.recording import Stage
from gpureport.settings.settings_file import Settings
from gpureport.settings.toml_files import read_toml

GIB, MIB = 2**30, 2**20
UTILIZATION, MEMORY, POWER = "gpu_utilization_ratio", "gpu_memory_used_bytes", "gpu_power_watts"
MEMORY_TOTAL = "gpu_memory_total_bytes"


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
class Process:
    """A namespace of a run: known series of hardware by path, and others; the client's own monitor drops zeros.

    `node` is what it ran on, empty if its name is unknown.
    """

    run: Stored
    path: str
    node: str
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


def find_processes(run: Stored, chosen: NameMap) -> list[Process]:
    """Return a run's namespaces by path.

    One of the client's begins as its own do, or describes a process; `train/memory` alone makes none.
    """

    def begin(path: str, **more: Any) -> Process:
        hosts = (f"{path}/hostname", f"{path}/details/hostname", "sys/hostname")
        node = next((str(run.scalars[name]) for name in hosts if run.scalars.get(name)), "")
        return Process(run=run, path=path, node=node, **more)

    series = run.paths or set()
    own = begin("--map", leaves={path: chosen.series[path] for path in series if path in chosen.series})
    found = {("--map", False): own}
    for path in sorted(series.difference(own.leaves)):
        gauge = _GAUGE.fullmatch(path)
        if (match := gauge or _BELOW.fullmatch(path)) is None:
            continue
        name, gpu, leaf = match.group("space", "gpu", "name")
        stage = re.sub(r"^(?=[0-9a-f]{8}$)", "process-", _UNNAMED.sub("", name).strip("/"))
        space = found.setdefault((name, bool(gauge)), begin(name, client=bool(gauge), stage=stage or None))
        meaning = _MEANINGS.get(leaf.rstrip("_0123456789") if gauge else f"{'gpu/' if gpu else ''}{leaf}")
        if meaning is None:
            space.others.append(path)
        else:
            space.leaves[path] = meaning._replace(gpu=int(gpu or 0)) if "gpu" in meaning.metric else meaning
    described = {path.rpartition("/")[0] for path in run.scalars if path.endswith(("/hostname", "/pid", "/tid"))}
    described |= {*chosen.namespaces}

    def is_own(space: Process) -> bool:
        is_named = space.path in described or space.path.split("/")[0] in {"monitoring", "runtime"}
        return is_named and not {f"{space.path}/cpu", f"{space.path}/memory"}.isdisjoint(space.leaves)

    return [space for _, space in sorted(found.items()) if space.leaves and (not space.client or is_own(space))]


def read_name_map(path: Path | None) -> NameMap:
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


# rows of devices

_FORKED = 1_000_000
"""Ticks closer together than this, in microseconds, are not of one monitor, which waits 10 s: a process that is forked
starts it again, which records a tick at once, so a loader with 14 workers makes 14 within a second (measured)."""
_UNNUMBERED = ("/gpu", "/gpu_memory", "/gpu_power")


DeviceKey = tuple[str, int | None]
"""A node and a GPU of it, None for the machine."""


class DeviceRows(NamedTuple):
    """Rows of one device from one process, in base units by metric, NaN where not recorded.

    `imputed` marks restored zeros, `points` counts the points of each row.
    """

    process: Process
    gpu: int | None
    times: IntArray
    values: Mapping[str, FloatArray]
    imputed: BoolArray
    points: IntArray

    def taken(self, rows: BoolArray) -> "DeviceRows":
        process, gpu, times, values, imputed, points = self
        held = {name: each[rows] for name, each in values.items()}
        return DeviceRows(process, gpu, times[rows], held, imputed[rows], points[rows])


@dataclass(slots=True)
class Hardware:
    """Rows of processes by device, without overlaps within a device, and what became of their points.

    `rejected` counts points by reason, `nan` non-numbers by metric, `gpus` are those recorded. GPUs in `never` reported
    memory but never utilization; GPUs in `unrestored` reported no memory, so their zeros cannot be put back.
    """

    processes: list[Process]
    blocks: dict[DeviceKey, list[DeviceRows]] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    nan: Counter[str] = field(default_factory=Counter)
    gpus: set[int] = field(default_factory=set)
    never: set[int] = field(default_factory=set)
    unrestored: set[int] = field(default_factory=set)

    def name_node(self, node: str) -> str | None:
        """Return a node by which devices are called, None where the run has only one."""
        return node if node and len({node for node, _ in self.blocks}) > 1 else None

    def count(self, part: str) -> int:
        return sum(int(getattr(block, part).sum()) for blocks in self.blocks.values() for block in blocks)

    def list_stages(self) -> tuple[Stage, ...]:
        """Return a run's named processes in the order they began; a resumed one has one stage."""
        found: dict[tuple[str, str | None], list[int]] = defaultdict(list)
        for (node, _), blocks in self.blocks.items():
            for block in (block for block in blocks if block.process.stage is not None):
                found[str(block.process.stage), self.name_node(node)] += block.times[[0, -1]].tolist()
        stages = [Stage(name=name, start=min(at), end=max(at), node=node) for (name, node), at in found.items()]
        return tuple(sorted(stages, key=lambda each: (each.start, each.end, each.name, each.node or "")))


def read_hardware(processes: Iterable[Process], gpus: Sequence[int] | None) -> Hardware:
    """Return what processes recorded of machines and of the selected GPUs, all for None.

    Of a device that several processes recorded at once, one process's rows are kept. Processes that each saw a
    single GPU, which then has no number, have their own GPU if they ran at the same time, numbered as they
    began. If they ran in succession they may share it, and share number 0.
    """
    found, bare = Hardware([*processes]), list[DeviceRows]()
    held = [block for process in found.processes for block in _sample(found, process) if len(block.times)]
    for block in sorted(held, key=lambda each: (int(each.times[0]), each.process.path)):
        process, gpu, node = block.process, block.gpu, block.process.node
        if process.client and gpu is not None and any(path.endswith(_UNNUMBERED) for path in process.leaves):
            gpu = sum(each.process.node == node and each.times[-1] >= block.times[0] for each in bare)
            bare.append(block)
        found.blocks.setdefault((node, gpu), []).append(block)
    order = sorted(found.blocks, key=lambda key: (key[1] is None, key[0], key[1] or 0))
    every = found.count("points")
    found.blocks = {key: _drop_copies(found.blocks[key]) for key in order}
    once, found.gpus = found.count("points"), {gpu for _, gpu in found.blocks if gpu is not None}
    found.blocks = {key: each for key, each in found.blocks.items() if gpus is None or key[1] in {None, *gpus}}
    found.rejected += Counter({OTHER_PROCESS: every - once, NOT_SELECTED: once - found.count("points")})
    return found


def _sample(found: Hardware, process: Process) -> Iterator[DeviceRows]:
    series = process.run.series
    meanings = {path: meaning for path, meaning in process.leaves.items() if path in series and len(series[path].times)}
    ticks, values = tracker_series.place_on_ticks([series[path] for path in meanings])
    known = ~np.isnan(values)
    for path, meaning in meanings.items():
        lost = int((~tracker_series.is_measured(series[path].values)).sum())
        found.nan[meaning.metric] += lost
        found.rejected[TWICE_AT_ONCE] += len(series[path].times) - lost
    found.rejected[TWICE_AT_ONCE] -= int(known.sum())
    dropped, kept = np.zeros_like(known), np.ones(len(ticks), dtype=np.bool_)
    if process.client:
        kept = np.diff(ticks, prepend=-_FORKED) >= _FORKED
        for row, path in enumerate(meanings):
            dropped[row] = _find_dropped_zeros(path, dict(zip(meanings, known, strict=True)), ticks)
        used, held = (
            {each.gpu or 0 for each in meanings.values() if each.metric == name} for name in (UTILIZATION, MEMORY)
        )
        found.never |= held - used
        found.unrestored |= used - held
    values[dropped] = 0.0
    found.rejected[FORKED] += int(known[:, ~kept].sum())
    ticks, values, known, dropped = ticks[kept], values[:, kept], known[:, kept], dropped[:, kept]
    seconds, starts = np.diff(ticks, prepend=ticks[:1] + 1) / 1e6, _mark_starts(ticks)
    for gpu in dict.fromkeys(each.gpu for each in meanings.values()):
        rows, base = [], {}
        for row, meaning in enumerate(meanings.values()):
            if meaning.gpu == gpu:
                rows.append(row)
                one = values[row] * meaning.factor / (seconds if meaning.counts else 1.0)
                base[meaning.metric] = np.where(starts, np.nan, one) if meaning.counts or meaning.primes else one
        made, imputed = known[rows].sum(axis=0), np.asarray(dropped[rows].any(axis=0))
        yield DeviceRows(process, gpu, ticks, base, imputed, made).taken((made > 0) | imputed)


def _find_dropped_zeros(path: str, known: Mapping[str, BoolArray], ticks: IntArray) -> BoolArray:
    """Return where a value was 0 and so not reported, from the ticks at which each series of a process has one."""
    space, _, leaf = path.rpartition("/")
    memory = f"{space}/{'memory' if leaf == 'cpu' else leaf.replace('gpu', 'gpu_memory', 1)}"
    none = np.zeros(len(ticks), dtype=np.bool_)
    # series that share no time say nothing of each other
    shared = known[path] & known.get(memory, none)
    if memory == path or memory not in known or (known[path].any() and not shared.any()):
        return none
    # a process's first CPU reading covers no time and is not reported
    return ~known[path] & known[memory] & ~(_mark_starts(ticks) & (leaf == "cpu"))


def _find_pace(times: IntArray) -> float:
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.0


def _mark_starts(times: IntArray) -> BoolArray:
    """Return the first sample, and those after a gap without recording processes."""
    starts: BoolArray = np.diff(times, prepend=times[:1]) > gap_seconds(_find_pace(times) / 1e6) * 1e6
    starts[:1] = True
    return starts


def _drop_copies(blocks: Sequence[DeviceRows]) -> list[DeviceRows]:
    """Return one device's rows; while several processes recorded it, those of the shortest process.

    A process for one step of a job names that step; one that spans the job does not. If most rows of a process are
    copies, so are those next to them, up to 1.5 intervals away (pragmatic).
    """
    kept: list[DeviceRows] = []
    for block in sorted(blocks, key=lambda each: (int(each.times[-1] - each.times[0]), each.process.path)):
        copies = np.zeros(len(block.times), dtype=np.bool_)
        for edge in (0, round(_find_pace(block.times) * 1.5)):
            if edge == 0 or 2 * int(copies.sum()) > len(copies):
                for each in kept:
                    copies |= (block.times >= each.times[0] - edge) & (block.times <= each.times[-1] + edge)
        if not copies.all():
            kept.append(block.taken(~copies))
    return sorted(kept, key=lambda each: int(each.times[0]))
