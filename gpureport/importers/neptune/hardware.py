"""Hardware series as Neptune's client and its monitoring recipe name them, as rows of GPUs and machines.

The client reports a value only when it is not 0, so an idle GPU is a missing point. All values of one tick share one
time, and the memory of host and GPU is never 0: where a tick has the memory of a GPU and not its utilization, the
utilization was 0. Anything else that is missing stays unknown. Runs that neptune-exporter loaded into MLflow keep
these names there. `Stored` is what a store holds of a run, whatever its form; all times are in microseconds.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import Rejected, gap_seconds
from gpureport.errors import SourceError
from gpureport.importers.neptune.names import MEMORY, UTILIZATION, Namespace
from gpureport.importers.tracker_series import build_device_table
from gpureport.parsing import MOST
from gpureport.recording import HOST, Stage

if TYPE_CHECKING:
    import pyarrow as pa

Scalar = str | int | float | bool
_FORKED = 1_000_000
"""Ticks closer together than this, in microseconds, are not of one monitor, which waits 10 s: a process that is forked
starts it again, which records a tick at once, so a loader with 14 workers makes 14 within a second (measured)."""
_UNNUMBERED = ("/gpu", "/gpu_memory", "/gpu_power")
_EDGE = 1.5
"""Rows of another process are copies up to so many intervals around those of a process (pragmatic)."""


class Series(NamedTuple):
    """Points of one series in the order they were logged: microseconds, values, and steps, NaN where not recorded."""

    times: IntArray
    values: FloatArray
    steps: "FloatArray | IntArray"

    def taken(self, rows: "IntArray | BoolArray") -> "Series":
        """Return some of the points."""
        return Series(self.times[rows], self.values[rows], self.steps[rows])


@dataclass(slots=True, kw_only=True, eq=False)
class Stored:
    """A run in a store: its series and single values by their paths; `load` returns it with its series.

    `points` counts those of each series, None where nobody has looked. Only a log of the client has `highest`, the
    stated maximum of a series, and `last`, the time of the last operation. Only a run of an export has `files`.
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
        """Return the run with series of points of time, value and step, those without points left out."""
        for path, found in points.items():
            if found:
                times, values, steps = zip(*found, strict=True)
                self.series[path] = Series(np.array(times, np.int64), np.array(values, float), np.array(steps, float))
        self.points = {path: len(each.times) for path, each in self.series.items()}
        return self


def make_broken_run(run_id: str, path: Path, error: Exception, hint: str, code: str) -> Stored:
    """Return a run that cannot be read, with the reason."""
    what = str(getattr(error, "strerror", None) or error)
    hint, code = getattr(error, "hint", hint), getattr(error, "code", code)
    fault = error if isinstance(error, SourceError) else SourceError(str(path), what, hint, code=code)
    return Stored(key=f"broken {run_id}", id=run_id, fault=fault)


@dataclass(slots=True, kw_only=True)
class DeviceRows:
    """Rows of one device as one process recorded them, in base units by metric, NaN where not recorded.

    `gpu` is None for the host, `imputed` marks a zero that was put back, `points` counts those that a row is made of.
    """

    space: Namespace
    node: str
    gpu: int | None
    times: IntArray
    values: Mapping[str, FloatArray]
    imputed: BoolArray
    points: IntArray

    def taken(self, rows: BoolArray) -> "DeviceRows":
        """Return some of the rows."""
        values = {name: each[rows] for name, each in self.values.items()}
        times, imputed, points = self.times[rows], self.imputed[rows], self.points[rows]
        return replace(self, values=values, times=times, imputed=imputed, points=points)


class ProcessSamples(NamedTuple):
    """The samples of one process on a node; empty if its name is unknown.

    `repeated` counts points at a time that their series already has, `crowded` those of extra ticks after a fork,
    `nan` values that are not numbers, by metric. Of the GPUs in `never` the utilization was never reported although
    their memory was; of those in `unrestored` the memory was not, so their zeros cannot be put back.
    """

    space: Namespace
    node: str
    blocks: list[DeviceRows]
    repeated: int
    crowded: int
    nan: Counter[str]
    never: list[int]
    unrestored: list[int]


def sample_process(space: Namespace, series: Mapping[str, Series], node: str) -> ProcessSamples:
    """Return what one process recorded: the series of its namespace, among those of the run, on common ticks."""
    meanings = {path: meaning for path, meaning in space.leaves.items() if path in series and len(series[path].times)}
    ticks = np.unique(np.concatenate([np.zeros(0, np.int64), *(series[path].times for path in meanings)]))
    values, nan = np.full((len(meanings), len(ticks)), np.nan), Counter[str]()
    for cells, (path, meaning) in zip(values, meanings.items(), strict=True):
        # no measurement reaches MOST; of two points at one tick the last counts
        read = np.where(np.abs(series[path].values) < MOST, series[path].values, np.nan)
        cells[np.searchsorted(ticks, series[path].times)] = read
        nan[meaning.metric] += int(np.isnan(read).sum())
    known = ~np.isnan(values)
    repeated = sum(len(series[path].times) for path in meanings) - nan.total() - int(known.sum())
    dropped, kept = np.zeros_like(known), np.ones(len(ticks), dtype=np.bool_)
    if space.client:
        kept = np.diff(ticks, prepend=-_FORKED) >= _FORKED
        for row, path in enumerate(meanings):
            dropped[row] = _find_dropped_zeros(path, dict(zip(meanings, known, strict=True)), ticks)
    values[dropped] = 0.0
    crowded = int(known[:, ~kept].sum())
    ticks, values, known, dropped = ticks[kept], values[:, kept], known[:, kept], dropped[:, kept]
    seconds, starts = np.diff(ticks, prepend=ticks[:1] + 1) / 1e6, _mark_starts(ticks)
    blocks = []
    for gpu in dict.fromkeys(each.gpu for each in meanings.values()):
        rows, base = [], {}
        for row, meaning in enumerate(meanings.values()):
            if meaning.gpu == gpu:
                rows.append(row)
                one = values[row] * meaning.factor / (seconds if meaning.counts else 1.0)
                base[meaning.metric] = np.where(starts, np.nan, one) if meaning.counts or meaning.primes else one
        points, imputed = known[rows].sum(axis=0), dropped[rows].any(axis=0)
        block = DeviceRows(space=space, node=node, gpu=gpu, times=ticks, values=base, imputed=imputed, points=points)
        blocks.append(block.taken((points > 0) | imputed))
    used, held = (
        {each.gpu or 0 for each in meanings.values() if each.metric == name} for name in (UTILIZATION, MEMORY)
    )
    never, unrestored = (sorted(held - used), sorted(used - held)) if space.client else ([], [])
    return ProcessSamples(space, node, blocks, repeated, crowded, +nan, never, unrestored)


def _find_dropped_zeros(path: str, known: Mapping[str, BoolArray], ticks: IntArray) -> BoolArray:
    """Return where a value was 0 and not reported for it, from the ticks at which each series of a process has one."""
    space, _, leaf = path.rpartition("/")
    memory = f"{space}/{'memory' if leaf == 'cpu' else leaf.replace('gpu', 'gpu_memory', 1)}"
    if memory not in known or memory == path:
        return np.zeros(len(ticks), dtype=np.bool_)
    if known[path].any() and known[memory].any() and not (known[path] & known[memory]).any():
        what = f"{path} and {memory} share no time, so zeros cannot be told"
        raise SourceError(space, what, "leave the run out", code="times_not_shared")
    # the first reading of the CPU in a process covers no time and is not reported
    return ~known[path] & known[memory] & ~(_mark_starts(ticks) & (leaf == "cpu"))


def _pace(times: IntArray) -> float:
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.0


def _mark_starts(times: IntArray) -> BoolArray:
    """Return the first sample, and those after a gap, in which no process recorded."""
    starts: BoolArray = np.diff(times, prepend=times[:1]) > gap_seconds(_pace(times) / 1e6) * 1e6
    starts[:1] = True
    return starts


DeviceKey = tuple[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByDevice:
    """Rows of a run by node and GPU (None for the host); those of one device do not overlap.

    `copies` counts points that another process recorded as well.
    """

    blocks: dict[DeviceKey, list[DeviceRows]]
    copies: int = 0

    @property
    def several(self) -> bool:
        """Whether the run had several nodes."""
        return len({node for node, _ in self.blocks}) > 1

    def id(self, key: DeviceKey) -> str:
        """Return the id of a device: with its node where the run has several."""
        own = HOST if key[1] is None else f"gpu:{key[1]}"
        return f"{key[0]}/{own}" if self.several and key[0] else own


def count_points(blocks: Iterable[DeviceRows]) -> int:
    """Return the number of points that rows were made of."""
    return sum(int(block.points.sum()) for block in blocks)


def arrange_by_device(blocks: Iterable[DeviceRows]) -> RowsByDevice:
    """Return the rows of each device; if several processes recorded it at the same time, those of one.

    Processes that each saw a single GPU, which then has no number, have a GPU of their own if they ran at the same
    time: it is numbered as they began. If they ran one after the other they may share it, and share number 0.
    """
    held = sorted((each for each in blocks if len(each.times)), key=lambda each: (int(each.times[0]), each.space.path))
    own = [block for block in held if block.space.client and block.gpu is not None]
    bare = [block for block in own if any(path.endswith(_UNNUMBERED) for path in block.space.leaves)]
    for place, block in enumerate(bare):
        block.gpu = sum(each.node == block.node and each.times[-1] >= block.times[0] for each in bare[:place])
    by_key: dict[DeviceKey, list[DeviceRows]] = {}
    for block in sorted(held, key=lambda each: (each.gpu is None, each.node, each.gpu or 0)):
        by_key.setdefault((block.node, block.gpu), []).append(block)
    kept = {key: _drop_copies(found) for key, found in by_key.items()}
    return RowsByDevice(blocks=kept, copies=count_points(held) - sum(map(count_points, kept.values())))


def _drop_copies(blocks: Sequence[DeviceRows]) -> list[DeviceRows]:
    """Return the rows of one device; while several processes recorded it, those of the shortest process.

    A process that does one step of a job names that step; one that spans the whole job does not. If most rows of a
    process are copies, so are those right before and after.
    """
    kept: list[DeviceRows] = []
    for block in sorted(blocks, key=lambda each: (int(each.times[-1] - each.times[0]), each.space.path)):
        copies = np.zeros(len(block.times), dtype=np.bool_)
        for edge in (0, round(_pace(block.times) * _EDGE)):
            if edge == 0 or 2 * int(copies.sum()) > len(copies):
                for each in kept:
                    copies |= (block.times >= each.times[0] - edge) & (block.times <= each.times[-1] + edge)
        if not copies.all():
            kept.append(block.taken(~copies))
    return sorted(kept, key=lambda each: int(each.times[0]))


def select_gpus(whole: RowsByDevice, gpus: Sequence[int] | None) -> tuple[RowsByDevice, int]:
    """Return the rows of the selected GPUs and of the hosts, and the number of other points; all GPUs when None."""
    kept = {key: found for key, found in whole.blocks.items() if gpus is None or key[1] is None or key[1] in gpus}
    left = sum(count_points(found) for key, found in whole.blocks.items() if key not in kept)
    return replace(whole, blocks=kept), left


def build_tables(rows: RowsByDevice) -> dict[str, "pa.Table"]:
    """Return the rows of each device as a series table, by device id."""
    tables = {}
    for key, blocks in rows.blocks.items():
        values = {
            name: np.concatenate([block.values.get(name, np.full(len(block.times), np.nan)) for block in blocks])
            for name in dict.fromkeys(name for block in blocks for name in block.values)
        }
        own = np.repeat([block.space.stage or "" for block in blocks], [len(block.times) for block in blocks])
        named = dict.fromkeys(block.space.stage for block in blocks if block.space.stage is not None)
        times, imputed = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("times", "imputed"))
        stages = [(name, own == name) for name in named]
        tables[rows.id(key)] = build_device_table(rows.id(key), times, values, imputed, stages)
    return tables


def list_stages(rows: RowsByDevice) -> tuple[Stage, ...]:
    """Return the named processes of a run, in the order they began; one that resumed has one stage."""
    found: dict[tuple[str, str | None], list[int]] = {}
    for (node, _), blocks in rows.blocks.items():
        for block in (block for block in blocks if block.space.stage is not None):
            key = str(block.space.stage), node if rows.several else None
            found.setdefault(key, []).extend(block.times[[0, -1]].tolist())
    stages = [Stage(name=name, start=min(at), end=max(at), node=node) for (name, node), at in found.items()]
    return tuple(sorted(stages, key=lambda each: (each.start, each.end, each.name, each.node or "")))
