"""Several boards that rows of one log give one index: the GPUs of two machines, or one put in place of another."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gpureport import gpus
from gpureport.columns import BoolArray, IntArray, present
from gpureport.importers.devices.column_values import Values

_MODEL, _TOTAL = "model", "gpu_memory_total_bytes"
_DIFFERENT_MEMORY = 1.1
"""Ratio from which the memory of two GPUs differs (pragmatic: drivers and ECC take up to a sixteenth of one)."""
_FEWEST = 8
"""Rows that show a further board (pragmatic: fewer are damaged cells)."""


@dataclass(frozen=True, slots=True)
class _Board:
    """What tells a board: the model of the table that its name fits, and its memory; None where it does not say."""

    model: str | None
    total: float | None

    def is_other(self, board: "_Board") -> bool:
        """Return whether two cannot be one GPU."""
        if self.model and board.model and self.model != board.model:
            return True
        if self.total is None or board.total is None:
            return False
        return max(self.total, board.total) > _DIFFERENT_MEMORY * min(self.total, board.total)


@dataclass(slots=True)
class BoardsByIndex:
    """The boards seen at each index, in the order in which they were."""

    _known: dict[str, list[_Board]] = field(default_factory=dict)

    def rows_by_board(self, index: str, rows: IntArray, data: dict[str, Values]) -> Iterator[tuple[str, IntArray]]:
        """Yield the rows of each board at an index with a name for it: the index, and a number from the second on."""
        known = self._known.setdefault(index, [])
        places = np.zeros(len(rows), dtype=np.int64)
        for board, where in sorted(_boards(rows, data), key=lambda part: int(np.argmax(part[1]))):
            places[where] = self._board_number(known, board, int(where.sum()))
        for place in present(places):
            yield f"{index}/{place}" if place else index, rows[places == place]

    @staticmethod
    def _board_number(known: list[_Board], board: _Board, rows: int) -> int:
        """Return which of the boards known it is, after adding it where it is a further one."""
        found = next((place for place, each in enumerate(known) if not each.is_other(board)), None)
        if found is not None:
            known[found] = _Board(known[found].model or board.model, known[found].total or board.total)
            return found
        if known and rows < _FEWEST:
            return 0
        known.append(board)
        return len(known) - 1

    def notes(self) -> tuple[str, ...]:
        """Return which indices several boards have."""
        return tuple(
            f"Index {index} stands for {len(boards)} different GPUs, by name or memory, as where two machines write "
            "one log: each counts as a GPU of its own. Record the uuid to be sure."
            for index, boards in self._known.items()
            if len(boards) > 1
        )


def _boards(rows: IntArray, data: dict[str, Values]) -> Iterator[tuple[_Board, BoolArray]]:
    """Yield each board that some rows name, with the rows."""
    names, totals = data.get(_MODEL), data.get(_TOTAL)
    models = _codes(names, rows)
    sizes = np.zeros(len(rows)) if totals is None else np.where(totals.valid[rows], totals.data[rows], 0)
    for code in present(models):
        named = models == code
        text = (names.texts or [])[code - 1] if names is not None and code else None
        model = gpus.find_gpu(text)
        own = sizes[named]
        for size in np.unique(own).tolist() if own.min() != own.max() else [float(own[0])]:
            yield _Board(model.model if model else None, float(size) or None), named & (sizes == size)


def _codes(values: Values | None, rows: IntArray) -> IntArray:
    """Return the text of each row as a number from 1, 0 where it holds none."""
    if values is None:
        return np.zeros(len(rows), dtype=np.int64)
    return np.where(values.valid[rows], values.data[rows].astype(np.int64) + 1, 0)
