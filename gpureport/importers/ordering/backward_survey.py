"""The second look at a log whose stamps run backwards: all of it, before its rows are placed."""

from collections.abc import Callable, Iterable
from typing import Any
from zlib import crc32
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from gpureport.importers.note_text import format_count
from gpureport.importers.ordering.backward_clocks import RESTARTED, RowTimes, place_rows
from gpureport.importers.ordering.placement_plan import PlacementPlan
from gpureport.importers.ordering.row_keys import Keys, hash_texts, mix_bits
from gpureport.importers.ordering.row_placement import AssignedRows
from gpureport.importers.timebase.row_order import RowOrder

_COLUMNS = 4
_WRITERS = {
    True: "They watched the same GPUs, so their rows were put in the order of time.",
    False: (
        "The rows were put in the order of time; the log does not show whether they are of the same GPUs, so checks "
        "that depend on that are skipped. Give every process a file of its own."
    ),
}
"""What a reader must know of several writers, by whether rows of one device are one GPU's."""


def survey_log(parts: Iterable[AssignedRows], zone: ZoneInfo | None, sure: Callable[[], bool]) -> PlacementPlan:
    """Return where the rows of a log belong; holds some tens of bytes a row.

    Args:
        parts: all rows of the log, as they will be read again.
        zone: zone of the stamps, None when unknown.
        sure: whether, after the last part, rows of one device are one GPU's, whoever wrote them.
    """
    ids: list[str] = []
    kept: list[list[npt.NDArray[Any]]] = [[] for _ in range(_COLUMNS)]
    for part in parts:
        ids = part.ids
        rows = part.devices >= 0
        columns = (part.lines[rows], part.stamps[rows], part.devices[rows], _keys(part)[rows])
        for held, column in zip(kept, columns, strict=True):
            held.append(column)
    lines, stamps, devices, keys = (_joined(held) for held in kept)
    if (lines[1:] < lines[:-1]).any():
        order = np.argsort(lines, kind="stable")
        lines, stamps, devices, keys = (column[order] for column in (lines, stamps, devices, keys))
    track = RowOrder(lines, stamps, devices, keys)
    verdict = place_rows(track, zone)
    mixed = verdict.several and not sure()
    return PlacementPlan(track, verdict, ids, mixed, tuple(_notes(verdict, mixed=mixed)))


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the parts of a column as one, and hold them no longer."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _keys(part: AssignedRows) -> Keys:
    """Return a hash of each row: its device and every value it holds, in whatever order its columns stand."""
    keys = mix_bits(np.zeros(len(part.devices), dtype=np.uint64), part.devices.astype(np.uint64))
    for name, values in sorted(part.data.items()):
        if values.texts is not None:
            bits = hash_texts(values.texts)[values.data]
        else:
            # 0.0 and -0.0 are one value
            bits = (values.data.astype(np.float64) + 0.0).view(np.uint64)
        keys = np.where(values.valid, mix_bits(keys, bits + np.uint64(crc32(name.encode()))), keys)
    return keys


def _notes(verdict: RowTimes, *, mixed: bool) -> Iterable[str]:
    """Yield what a reader must know of the order of a log."""
    copies = int(verdict.copies.sum())
    if copies:
        yield (
            f"{format_count(copies, 'row')} {'says' if copies == 1 else 'say'} again what earlier ones say, the same "
            "GPU, stamp and values, as where a log was appended to itself; they were left out."
        )
    if any(step.cause == RESTARTED for step in verdict.steps):
        yield "The log holds recordings out of the order of time: rows keep their stamps and were put in order."
    if verdict.shuffled:
        yield f"Stamps run backwards {verdict.shuffled:,} times, too often for a clock: rows were put in order by them."
    if verdict.several:
        yield f"Several writers wrote to the log at once. {_WRITERS[not mixed]}"
