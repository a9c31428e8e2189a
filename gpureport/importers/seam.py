"""The seconds that two logs of one device share where one was rotated into the other."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray
from gpureport.importers.together import SLACK
from gpureport.recording import in_time_order


@dataclass(slots=True)
class Seam:
    """The last rows of a device before the log that is being read, and of that log so far.

    Rows that both logs hold are told by stamp and values. Others at the same time are samples of the same GPU between
    those of the log before, as a second recorder takes them.
    """

    _before: "pa.Table | None" = None
    _latest: "pa.Table | None" = None
    _log: int | None = None

    def again(self, batch: "pa.Table", log: int) -> BoolArray:
        """Return which rows of the next batch the logs before held as well.

        Args:
            batch: rows in the order of time.
            log: number of their log.
        """
        if log != self._log:
            self._before, self._log = self._latest, log
        again = np.zeros(len(batch), dtype=np.bool_)
        if self._before is not None:
            again = _again(batch, self._before)
        self._latest = _last(batch.slice(0, 0) if self._latest is None else self._latest, batch)
        return again


def _again(batch: "pa.Table", before: "pa.Table") -> BoolArray:
    """Return which rows stand in another table; none where only its last moment does, in which both may have a row."""
    times, known = (columns.integers(table.column("timestamp")) for table in (batch, before))
    again = np.zeros(len(batch), dtype=np.bool_)
    shared = int(np.searchsorted(times, known[-1], side="right"))
    if shared:
        names = [name for name in batch.column_names if name in before.column_names]
        held = set(_rows(before, names))
        again[:shared] = [row in held for row in _rows(batch.slice(0, shared), names)]
    earlier: BoolArray = again & (times < known[-1])
    return again if earlier.any() else earlier


def _rows(table: "pa.Table", names: list[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def _last(one: "pa.Table", other: "pa.Table") -> "pa.Table":
    """Return the last rows of two tables, as many as a rotation may leave in both logs, in the order of time."""
    end = max(int(columns.integers(table.column("timestamp"))[-1]) for table in (one, other) if len(table))
    one, other = (_from(table, end - SLACK) for table in (one, other))
    if not len(one):
        return other
    return in_time_order(pa.concat_tables([one, other], promote_options="default"))


def _from(table: "pa.Table", start: int) -> "pa.Table":
    """Return the rows from a time on."""
    return table.slice(int(np.searchsorted(columns.integers(table.column("timestamp")), start)))
