"""Rows of a query log in which no column names a GPU: each position in a tick is one GPU."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, takewhile

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers.delimited.layout import STAMP, Layout
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine, Section
from gpureport.importers.devices.column_values import columns_by_target
from gpureport.importers.devices.gpu_identity import names_gpus
from gpureport.importers.logs.nvidia_smi.query.unnamed_gpus.tick_positions import TickPositions, assign_positions
from gpureport.importers.logs.nvidia_smi.query.unnamed_gpus.tick_size import Ticks, infer_ticks
from gpureport.importers.values import stamps
from gpureport.importers.values.cells import Column

_HEAD = 50_000
"""Rows that are looked at for ticks."""
MIXED_GPUS_NOTE = (
    "Several rows come at a time, so several GPUs were logged, and neither a column nor their order tells them apart: "
    "they are kept as one device of which nothing is judged. --gpus-per-tick says how many there are."
)
_ONE_GPU_NOTE = (
    "No column names a GPU and there are no time stamps to tell by: one GPU is assumed; --gpus-per-tick says otherwise."
)


DAMAGED_KINDS = {LineKind.REJECTED, LineKind.TORN_OFF}
"""Lines that may be what is left of a row."""


@dataclass(slots=True)
class TickAssignment:
    """Gives each row its position in its tick, where nothing else names the GPU.

    Attributes:
        rows_per_tick: rows of a tick as a person gave them, or None.
        whole: whether the first section is all of the log.
        mixed: whether later rows come several at a time although the first ones did not.
        assumed: whether one GPU was assumed because nothing shows how many there are.
    """

    rows_per_tick: int | None
    whole: bool
    mixed: bool = False
    assumed: bool = False
    _seen: list[tuple[Ticks, TickPositions]] = field(default_factory=list)
    _damaged: "array[int]" = field(default_factory=lambda: array("q"))
    """Numbers of the lines that were rows, and are rejected."""

    def add_damaged(self, other_lines: Iterable[NonDataLine], layout: Layout | None) -> None:
        """Note the lines that are left of a row: they count in the tick, other text does not."""
        if layout is not None:
            rejected = (line for line in other_lines if line.kind in DAMAGED_KINDS)
            self._damaged.extend(line.number for line in rejected if _was_row(line.text, layout))

    def assign(self, sections: Iterator[Section]) -> Iterator[tuple[Section, IntArray | None]]:
        """Yield each section with the positions of its rows, None where columns name GPUs or only one is logged.

        Rows up to the next section in which a column names GPUs have ticks of one size.
        """
        for first in sections:
            if names_gpus(first):
                yield first, None
                continue
            after: list[Section] = []
            unnamed = chain([first], takewhile(partial(_lacks_gpu_names, after=after), sections))
            yield from self._unnamed(first, unnamed)
            yield from ((section, None) for section in after)

    def _unnamed(self, first: Section, sections: Iterator[Section]) -> Iterator[tuple[Section, IntArray | None]]:
        """Yield sections in which no column names a GPU."""
        ticks = self._ticks(first)
        if ticks is None:
            for section in sections:
                later = section is not first and self.rows_per_tick is None and section.layout.stamp is not None
                self.mixed |= later and infer_ticks(section.times[:_HEAD], whole=False) is not None
                yield section, None
            return
        positions = TickPositions(ticks)
        self._seen.append((ticks, positions))
        if ticks.gap is None:
            yield from self._counted(ticks, sections)
        else:
            yield from assign_positions(positions, sections, lambda section: section.times)

    def _counted(self, ticks: Ticks, sections: Iterator[Section]) -> Iterator[tuple[Section, IntArray]]:
        """Yield sections whose rows are counted through, damaged ones among them."""
        rows = 0
        for section in sections:
            damaged = np.unique(np.frombuffer(self._damaged.tobytes(), dtype=np.int64))
            # what was torn off stands before the row that was kept of its line
            before = np.searchsorted(damaged, section.numbers, side="right")
            yield section, (rows + np.arange(len(section.numbers)) + before) % ticks.size
            rows += len(section.numbers)

    def _ticks(self, section: Section) -> Ticks | None:
        """Return the ticks of a log by its first section."""
        if self.rows_per_tick == 1:
            return None
        found = None
        if section.layout.stamp is not None:
            shown = [values.data[:_HEAD] for values in columns_by_target(section).values()]
            found = infer_ticks(section.times[:_HEAD], shown, whole=self.whole and len(section.times) <= _HEAD)
        elif self.rows_per_tick is None:
            self.assumed = True
        if self.rows_per_tick is None:
            return found
        if found is not None and found.size == self.rows_per_tick and found.gap is not None:
            return replace(
                found, confidence="high", evidence=f"--gpus-per-tick {self.rows_per_tick}, and {found.evidence}"
            )
        said = f"--gpus-per-tick {self.rows_per_tick}, rows counted through"
        if found is not None:
            said = f"--gpus-per-tick {self.rows_per_tick}, although {found.evidence}"
        return Ticks(size=self.rows_per_tick, confidence="low", evidence=said)

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know about how rows were assigned to GPUs."""
        found = [
            f"No column tells the GPUs apart: each is a place in the tick ({ticks.evidence}; "
            f"{ticks.confidence} confidence)."
            for ticks, _ in self._seen
        ]
        return (*dict.fromkeys(found), *((_ONE_GPU_NOTE,) if self.assumed else ()))


def _was_row(text: str, layout: Layout) -> bool:
    """Return whether a number or a time stamp stands in a line where the columns have one, beside other cells."""
    cells = text.split(layout.delimiter)
    if len(cells) == 1:
        return False
    return any(_matches_column(cell.strip(), column) for cell, column in zip(cells, layout.columns, strict=False))


def _matches_column(cell: str, column: Column) -> bool:
    """Return whether a cell is what its column holds, where that is not any text."""
    if column.target == STAMP:
        return stamps.STAMP.fullmatch(cell) is not None
    return column.number is not None and column.read(cell.replace(column.decimal, ".")) is not None


def _lacks_gpu_names(section: Section, *, after: list[Section]) -> bool:
    """Return whether no column of a section names GPUs; one that does is kept for what comes after."""
    if names_gpus(section):
        after.append(section)
        return False
    return True
