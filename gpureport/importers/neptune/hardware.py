"""Hardware series as Neptune's client and its monitoring recipe name them, as rows of GPUs and machines.

The client reports a value only when it is not 0, so an idle GPU is a missing point. All values of one tick share one
time, and the memory of host and GPU is never 0: where a tick has the memory of a GPU and not its utilization, the
utilization was 0. Anything else that is missing stays unknown. Runs that neptune-exporter loaded into MLflow keep
these names there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.importers.neptune.names import MEMORY, UTILIZATION, Meaning, Namespace
from gpureport.importers.tracker_series import build_device_table
from gpureport.recording import HOST, Stage
from gpureport.units import MOST

if TYPE_CHECKING:
    import pyarrow as pa

STEP_NOT_RECORDED = int(np.iinfo(np.int64).min)
STEP_UNITS = 1_000_000
"""Steps are counted in millionths, as Neptune stores them."""
_SAME_TICK = 1_000
"""Points closer together than this, in microseconds, belong to one tick."""
_APART = 0.01
"""Share of ticks at which series that are never dropped may miss each other and still share their times (pragmatic)."""
_SHARE, _WIDEST = 0.25, 1_000_000
"""How far apart points of one tick may lie where times are not shared: a quarter of the interval, at most 1 s."""
_FORKED = 1_000_000
"""Ticks closer together than this are not of one monitor, which waits 10 s (pragmatic)."""
_EDGE = 1.5
"""Rows of another process are copies up to so many intervals around those of a process (pragmatic)."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one series in the order they were logged: microseconds, values, and steps in millionths."""

    times: IntArray
    values: FloatArray
    steps: IntArray

    def taken(self, rows: "IntArray | BoolArray") -> "Series":
        """Return some of the points."""
        return Series(self.times[rows], self.values[rows], self.steps[rows])


def make_series(points: Sequence[tuple[int, float, int]]) -> Series:
    """Return points of time, value and step as a series."""
    times, values, steps = zip(*points, strict=True)
    return Series(np.array(times, dtype=np.int64), np.array(values, dtype=np.float64), np.array(steps, dtype=np.int64))


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
        return replace(
            self, times=self.times[rows], values=values, imputed=self.imputed[rows], points=self.points[rows]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSamples:
    """The samples of one process.

    Attributes:
        node: name of its machine; empty if unknown.
        repeated: points at a time that their series already has.
        crowded: points of extra ticks after a fork.
        nan: values that are not numbers, by metric.
        zeros: zeros that were put back, of so many `restorable` values.
        never: GPUs whose utilization was never reported although their memory was.
        unrestored: GPUs whose zeros cannot be put back, since their memory was not recorded.
        spread: largest distance of points of one tick, in microseconds; 0 where they share their times.
    """

    space: Namespace
    node: str
    blocks: tuple[DeviceRows, ...]
    repeated: int
    crowded: int
    nan: Counter[str]
    zeros: int
    restorable: int
    never: tuple[int, ...]
    unrestored: tuple[int, ...]
    spread: int


def sample_process(space: Namespace, series: Mapping[str, Series], node: str) -> ProcessSamples:
    """Return what one process recorded: the series of its namespace, among those of the run, on common ticks."""
    paths = [path for path in space.leaves if path in series and len(series[path].times)]
    meanings = [space.leaves[path] for path in paths]
    ticks, spread = _find_ticks([series[path].times for path in paths], [each.metric for each in meanings])
    values, logged, nan = np.full((len(paths), len(ticks)), np.nan), 0, Counter[str]()
    for row, meaning, path in zip(values, meanings, paths, strict=True):
        order = np.argsort(series[path].times, kind="stable")
        read = series[path].values[order]
        # no measurement reaches MOST; of two points at one tick the last counts
        read = np.where(np.abs(read) < MOST, read, np.nan)
        row[np.searchsorted(ticks, series[path].times[order], side="right") - 1] = read
        nan[meaning.metric] += int(np.isnan(read).sum())
        logged += len(read)
    known = ~np.isnan(values)
    repeated = logged - nan.total() - int(known.sum())
    dropped, kept = np.zeros_like(known), np.ones(len(ticks), dtype=np.bool_)
    if space.client:
        dropped, kept = _find_dropped_zeros(paths, known, ticks), _mark_monitored(ticks)
    values[dropped] = 0.0
    crowded = int(known[:, ~kept].sum())
    ticks, values, known, dropped = ticks[kept], values[:, kept], known[:, kept], dropped[:, kept]
    blocks = []
    for gpu in sorted({each.gpu for each in meanings}, key=lambda each: (each is None, each or 0)):
        own = [row for row, each in enumerate(meanings) if each.gpu == gpu]
        block = DeviceRows(
            space=space,
            node=node,
            gpu=gpu,
            times=ticks,
            values={meanings[row].metric: _to_base(meanings[row], ticks, values[row]) for row in own},
            imputed=dropped[own].any(axis=0),
            points=known[own].sum(axis=0),
        )
        blocks.append(block.taken((known | dropped)[own].any(axis=0)))
    used, held = ({each.gpu or 0 for each in meanings if each.metric == metric} for metric in (UTILIZATION, MEMORY))
    return ProcessSamples(
        space=space,
        node=node,
        blocks=tuple(blocks),
        repeated=repeated,
        crowded=crowded,
        nan=+nan,
        zeros=int(dropped.sum()),
        restorable=int((known | dropped)[dropped.any(axis=1)].sum()),
        never=tuple(sorted(held - used)) if space.client else (),
        unrestored=tuple(sorted(used - held)) if space.client else (),
        spread=spread,
    )


def _find_ticks(found: Sequence[IntArray], metrics: Sequence[str]) -> tuple[IntArray, int]:
    """Return the ticks of a process, and the largest distance of points of one tick where they do not share times."""
    if not found:
        return np.zeros(0, dtype=np.int64), 0
    times = np.unique(np.concatenate(found))
    memory = {MEMORY, "host_memory_used_bytes"}
    steady = [each for each, metric in zip(found, metrics, strict=True) if metric in memory] or found
    whole, most = np.unique(np.concatenate(steady)), max(map(len, steady)) * (1 + _APART)
    width, shared = _SAME_TICK, len(whole) <= most or int((np.diff(whole) > _SAME_TICK).sum()) + 1 <= most
    if not shared:
        width = max(round(min(_pace(np.sort(max(steady, key=len))) * _SHARE, _WIDEST)), _SAME_TICK)
    ticks = times[np.diff(times, prepend=times[0] - width - 1) > width]
    return ticks, 0 if shared else int((times - ticks[np.searchsorted(ticks, times, side="right") - 1]).max())


def _pace(times: IntArray) -> float:
    """Return the microseconds from one sample to the next; 0 for a single one."""
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.0


def _find_dropped_zeros(paths: Sequence[str], known: BoolArray, ticks: IntArray) -> BoolArray:
    """Return the values, a row for each series and a column for each tick, that were 0 and not reported for it."""
    dropped = np.zeros_like(known)
    for row, path in enumerate(paths):
        namespace, _, leaf = path.rpartition("/")
        # the first reading of the CPU in a process covers no time and is not reported
        memory = f"{namespace}/{leaf.replace('gpu', 'gpu_memory', 1)}"
        if leaf == "cpu":
            dropped[row] = ~known[row] & ~_mark_starts(ticks)
        elif leaf.startswith("gpu") and memory in paths:
            dropped[row] = ~known[row] & known[paths.index(memory)]
    return dropped


def _mark_starts(times: IntArray) -> BoolArray:
    """Return the first tick, and those after a gap, in which no process recorded."""
    starts: BoolArray = np.diff(times, prepend=times[:1]) > gap_seconds(_pace(times) / 1e6) * 1e6
    starts[:1] = True
    return starts


def _mark_monitored(ticks: IntArray) -> BoolArray:
    """Return the ticks without the extra ones after a fork.

    In a forked process, the client starts its monitor again, which records a tick at once: a loader with 14 workers
    makes 14 of them within a second. Other ticks are 10 s apart (client 1.14.0, measured).
    """
    kept, last = np.ones(len(ticks), dtype=np.bool_), -_FORKED
    for place, time in enumerate(ticks.tolist()):
        kept[place] = time - last >= _FORKED
        last = time if kept[place] else last
    return kept


def _to_base(meaning: Meaning, times: IntArray, values: FloatArray) -> FloatArray:
    """Return values in the base unit; counts since the tick before become rates."""
    converted = values * meaning.factor
    if meaning.counts:
        seconds = np.diff(times, prepend=times[:1]) / 1e6
        converted = np.divide(converted, seconds, out=np.full(len(times), np.nan), where=seconds > 0)
    return np.where(_mark_starts(times), np.nan, converted) if meaning.counts or meaning.primes else converted


DeviceKey = tuple[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByDevice:
    """Rows of a run by node and GPU (None for the host); those of one device do not overlap.

    `copies` counts points that another process recorded as well, `copied` are namespaces of which nothing else is left.
    """

    blocks: dict[DeviceKey, list[DeviceRows]]
    copies: int = 0
    copied: tuple[str, ...] = ()

    @property
    def several(self) -> bool:
        """Whether the run had several nodes."""
        return len({node for node, _ in self.blocks}) > 1

    def id(self, key: DeviceKey) -> str:
        """Return the id of a device: with its node where the run has several."""
        own = HOST if key[1] is None else f"gpu:{key[1]}"
        return f"{key[0]}/{own}" if self.several and key[0] else own


def arrange_by_device(blocks: Iterable[DeviceRows]) -> RowsByDevice:
    """Return the rows of each device; if several processes recorded it at the same time, those of one."""
    held = [block for block in blocks if len(block.times)]
    _number_bare_gpus(held)
    by_key: dict[DeviceKey, list[DeviceRows]] = {}
    for block in sorted(held, key=lambda each: (each.gpu is None, each.node, each.gpu or 0)):
        by_key.setdefault((block.node, block.gpu), []).append(block)
    kept = {key: _drop_copies(found) for key, found in by_key.items()}
    left = [block for found in kept.values() for block in found]
    return RowsByDevice(
        blocks=kept,
        copies=count_points(held) - count_points(left),
        copied=tuple(sorted({each.space.path for each in held} - {each.space.path for each in left})),
    )


def count_points(blocks: Iterable[DeviceRows]) -> int:
    """Return the number of points that rows were made of."""
    return sum(int(block.points.sum()) for block in blocks)


def _number_bare_gpus(blocks: Sequence[DeviceRows]) -> None:
    """Number the GPUs of processes that each saw a single GPU, which has number 0 so far.

    Processes that run at the same time each have a GPU of their own. Processes that run one after the other may share
    one, and share number 0.
    """
    gpus = [block for block in blocks if block.gpu is not None]
    for node in {block.node for block in gpus}:
        bare = [block for block in gpus if block.node == node and block.space.bare]
        named = [block for block in gpus if block.node == node and not block.space.bare]
        if any(_overlap(one, other) for one in bare for other in named):
            continue
        taken: list[DeviceRows] = []
        for block in sorted(bare, key=lambda each: (int(each.times[0]), each.space.path)):
            busy = {other.gpu for other in taken if _overlap(block, other)}
            block.gpu = next(number for number in range(len(bare)) if number not in busy)
            taken.append(block)


def _overlap(one: DeviceRows, other: DeviceRows) -> bool:
    return bool(one.times[0] <= other.times[-1] and other.times[0] <= one.times[-1])


def _drop_copies(blocks: Sequence[DeviceRows]) -> list[DeviceRows]:
    """Return the rows of one device; while several processes recorded it, those of the shortest process.

    A process that does one step of a job names that step; one that spans the whole job does not. If most rows of a
    process are copies, so are those right before and after.
    """
    kept: list[DeviceRows] = []
    spans: list[tuple[int, int]] = []
    for block in sorted(blocks, key=lambda each: (int(each.times[-1] - each.times[0]), each.space.path)):
        copies = _mark_within(block.times, spans, 0)
        if 2 * int(copies.sum()) > len(copies):
            copies = _mark_within(block.times, spans, round(_pace(block.times) * _EDGE))
        own = block.taken(~copies)
        if len(own.times):
            kept.append(own)
            holes = np.flatnonzero(np.diff(own.times) > gap_seconds(_pace(own.times) / 1e6) * 1e6)
            starts, ends = own.times[[0, *(holes + 1)]], own.times[[*holes, -1]]
            spans += zip(starts.tolist(), ends.tolist(), strict=True)
    return sorted(kept, key=lambda each: int(each.times[0]))


def _mark_within(times: IntArray, spans: Iterable[tuple[int, int]], edge: int) -> BoolArray:
    rows = np.zeros(len(times), dtype=np.bool_)
    for start, end in spans:
        rows |= (times >= start - edge) & (times <= end + edge)
    return rows


def select_gpus(whole: RowsByDevice, gpus: Sequence[int] | None) -> tuple[RowsByDevice, int]:
    """Return the rows of the selected GPUs and of the hosts, and the number of other points; all GPUs when None."""
    kept = {key: found for key, found in whole.blocks.items() if gpus is None or key[1] is None or key[1] in gpus}
    left = sum(count_points(found) for key, found in whole.blocks.items() if key not in kept)
    return replace(whole, blocks=kept), left


def build_tables(rows: RowsByDevice) -> dict[str, "pa.Table"]:
    """Return the rows of each device as a series table, by device id."""
    return {rows.id(key): _build_table(blocks, rows.id(key)) for key, blocks in rows.blocks.items()}


def _build_table(blocks: Sequence[DeviceRows], device: str) -> "pa.Table":
    lengths = [len(block.times) for block in blocks]
    names = dict.fromkeys(name for block in blocks for name in block.values)
    values = {
        name: np.concatenate([block.values.get(name, np.full(len(block.times), np.nan)) for block in blocks])
        for name in names
    }
    named = dict.fromkeys(block.space.stage for block in blocks if block.space.stage is not None)
    stages = [(name, np.repeat([block.space.stage == name for block in blocks], lengths)) for name in named]
    times, imputed = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("times", "imputed"))
    return build_device_table(device, times, values, imputed, stages)


def list_stages(rows: RowsByDevice) -> tuple[Stage, ...]:
    """Return the named processes of a run, in the order they began; one that resumed has one stage."""
    spans: dict[tuple[str, str | None], tuple[int, int]] = {}
    for (node, _), blocks in rows.blocks.items():
        for block in blocks:
            if block.space.stage is not None:
                key = block.space.stage, node if rows.several else None
                start, end = spans.get(key, (int(block.times[0]), int(block.times[-1])))
                spans[key] = min(start, int(block.times[0])), max(end, int(block.times[-1]))
    found = [Stage(name=name, start=start, end=end, node=node) for (name, node), (start, end) in spans.items()]
    return tuple(sorted(found, key=lambda each: (each.start, each.end, each.name, each.node or "")))
