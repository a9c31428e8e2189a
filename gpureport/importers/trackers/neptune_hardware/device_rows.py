"""Rows of each device of a run: each GPU once, however many processes recorded it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import BoolArray
from gpureport.data_quality import gap_seconds
from gpureport.importers.trackers.device_tables import build_device_table
from gpureport.importers.trackers.neptune_hardware.process_samples import DeviceRows
from gpureport.recording import HOST, Stage

if TYPE_CHECKING:
    import pyarrow as pa

_EDGE = 1.5
"""Rows of another process are copies up to so many intervals around those of a process (pragmatic)."""

DeviceKey = tuple[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByDevice:
    """Rows of a run by device.

    Attributes:
        blocks: rows by node and GPU (None for the host); those of one device do not overlap.
        copies: number of points that another process recorded as well.
        copied: namespaces whose rows were all left out as copies.
        numbered: number of GPUs without a number that were numbered by their processes.
    """

    blocks: dict[DeviceKey, list[DeviceRows]]
    copies: int = 0
    copied: tuple[str, ...] = ()
    numbered: int = 0

    @property
    def several(self) -> bool:
        """Whether the run had several nodes."""
        return len({node for node, _ in self.blocks}) > 1

    def id(self, place: DeviceKey) -> str:
        """Return the id of a device: with its node where the run has several."""
        own = HOST if place[1] is None else f"gpu:{place[1]}"
        return f"{place[0]}/{own}" if self.several and place[0] else own


def arrange_by_device(blocks: Iterable[DeviceRows]) -> RowsByDevice:
    """Return the rows of each device; if several processes recorded it at the same time, those of one."""
    by_place: dict[DeviceKey, list[DeviceRows]] = {}
    blocks, numbered = _number_bare_gpus(list(blocks))
    for block in blocks:
        if len(block.times):
            by_place.setdefault((block.node, block.gpu), []).append(block)
    kept = {place: _drop_copies(found) for place, found in by_place.items()}
    copies = sum(_count_points(found) for found in by_place.values()) - sum(
        _count_points(found) for found in kept.values()
    )
    left = {each.namespace for found in by_place.values() for each in found}
    whole = {each.namespace for found in kept.values() for each in found}
    order = sorted(kept, key=lambda place: (place[1] is None, place[0], place[1] or 0))
    return RowsByDevice(
        blocks={place: kept[place] for place in order},
        copies=copies,
        copied=tuple(sorted(left - whole)),
        numbered=numbered,
    )


def _count_points(blocks: Iterable[DeviceRows]) -> int:
    return sum(int(block.points.sum()) for block in blocks)


def _number_bare_gpus(blocks: list[DeviceRows]) -> tuple[list[DeviceRows], int]:
    """Number the GPUs of processes that each saw a single GPU.

    A process that sees one GPU names it without a number. Processes that run at the same time each have a GPU of their
    own. Processes that run one after the other may share one, and share number 0.
    """
    numbered = 0
    for node in {block.node for block in blocks}:
        bare = [block for block in blocks if block.node == node and block.bare and len(block.times)]
        named = [block for block in blocks if block.node == node and block.gpu is not None and not block.bare]
        if any(_overlap(one, other) for one in bare for other in named):
            continue
        taken: list[DeviceRows] = []
        for block in sorted(bare, key=lambda each: (int(each.times[0]), each.namespace)):
            busy = {other.gpu for other in taken if _overlap(block, other)}
            block.gpu = next(number for number in range(len(bare) + 1) if number not in busy)
            numbered = max(numbered, block.gpu + 1 if block.gpu else 0)
            taken.append(block)
    return blocks, numbered


def _overlap(one: DeviceRows, other: DeviceRows) -> bool:
    if not len(one.times) or not len(other.times):
        return False
    return bool(one.times[0] <= other.times[-1] and other.times[0] <= one.times[-1])


def _drop_copies(blocks: Sequence[DeviceRows]) -> list[DeviceRows]:
    """Return the rows of one device; while several processes recorded it, those of the shortest process.

    A process that does one step of a job names that step; one that spans the whole job does not.
    """
    kept: list[DeviceRows] = []
    for block in sorted(blocks, key=lambda each: (int(each.times[-1] - each.times[0]), each.namespace)):
        own = block.taken(_rows_not_copied(block, kept))
        if len(own.times):
            kept.append(own)
    return sorted(kept, key=lambda each: int(each.times[0]))


def _rows_not_copied(block: DeviceRows, kept: Sequence[DeviceRows]) -> BoolArray:
    """Return the rows at times when no other process recorded.

    If most rows of a process are copies, so are those right before and after.
    """
    spans = [span for other in kept for span in _watched_spans(other)]
    inside = _rows_within(block, spans, 0)
    edge = round(_sampling_interval(block) * _EDGE) if 2 * int(inside.sum()) > len(inside) else 0
    return ~_rows_within(block, spans, edge)


def _rows_within(block: DeviceRows, spans: Sequence[tuple[int, int]], edge: int) -> BoolArray:
    rows = np.zeros(len(block.times), dtype=np.bool_)
    for start, end in spans:
        rows |= (block.times >= start - edge) & (block.times <= end + edge)
    return rows


def _sampling_interval(block: DeviceRows) -> float:
    """Return the time from one sample to the next, in microseconds; 0 for a single one."""
    steps = np.diff(block.times)
    return float(np.median(steps)) if len(steps) else 0.0


def _watched_spans(block: DeviceRows) -> list[tuple[int, int]]:
    """Return the spans in which a process recorded, in microseconds; a gap ends a span."""
    holes = np.flatnonzero(np.diff(block.times) > gap_seconds(_sampling_interval(block) / 1e6) * 1e6)
    starts = block.times[np.concatenate([[0], holes + 1])]
    ends = block.times[np.concatenate([holes, [len(block.times) - 1]])]
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def select_gpus(whole: RowsByDevice, gpus: Sequence[int] | None) -> tuple[RowsByDevice, int]:
    """Return the rows of the selected GPUs and of the hosts, and the number of other points; all GPUs when None."""
    if gpus is None:
        return whole, 0
    kept = {place: found for place, found in whole.blocks.items() if place[1] is None or place[1] in gpus}
    left = sum(_count_points(found) for place, found in whole.blocks.items() if place not in kept)
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
    owners = np.repeat(np.arange(len(blocks)), lengths)
    stages = [
        (stage, np.isin(owners, [place for place, block in enumerate(blocks) if block.stage == stage]))
        for stage in dict.fromkeys(block.stage for block in blocks)
        if stage is not None
    ]
    times, imputed = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("times", "imputed"))
    return build_device_table(device, times, values, imputed, stages)


def list_stages(rows: RowsByDevice) -> tuple[Stage, ...]:
    """Return the named processes of a run, in the order they began; one that resumed has one stage."""
    spans: dict[tuple[str, str | None], tuple[int, int]] = {}
    for (node, _), blocks in rows.blocks.items():
        for block in blocks:
            if block.stage is None:
                continue
            key = block.stage, node if rows.several else None
            start, end = spans.get(key, (int(block.times[0]), int(block.times[-1])))
            spans[key] = min(start, int(block.times[0])), max(end, int(block.times[-1]))
    found = [Stage(name=name, start=start, end=end, node=node) for (name, node), (start, end) in spans.items()]
    return tuple(sorted(found, key=lambda each: (each.start, each.end, each.name, each.node or "")))
