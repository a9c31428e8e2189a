"""Several logs of one machine as one series: the rows of the finest log, with the values of the others added."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, IntArray
from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import Outcome
from gpureport.recording import HOST
from gpureport.series_table import KEY_FIELDS, sort_by_time

_KEYS = {field.name for field in KEY_FIELDS}
_COVERS = 1.25
"""Intervals before its time stamp that a reading covers at most."""
_LONE = 1_000_000
"""What a single reading covers, in microseconds."""


class ParallelLogs:
    """Series of one machine, joined by time.

    A row gets the reading of another log that covers the middle of the time it covers itself. Where a log is coarser
    its readings so stand in several rows. Readings that cover no row become rows of their own.
    """

    def __init__(self, locators: Sequence[str]) -> None:
        """Prepare to join; `locators` are what a person called the logs."""
        self._locators = locators
        self._base = 0
        self._joined: dict[int, tuple[int, int]] = {}

    def joined(self, logs: Sequence[Sequence["pa.Table"]], outcomes: Sequence[Outcome]) -> Iterator["pa.Table"]:
        """Yield the series of all logs.

        Args:
            logs: batches of each log.
            outcomes: what is known of each.

        Raises:
            SourceError: when two hold the same column.
        """
        tables = [sort_by_time(pa.concat_tables(log, promote_options="default"), HOST) for log in logs]
        self._disjoint(tables)
        every = [round(outcome.intervals.get(HOST, 1.0) * 1e6) or _LONE for outcome in outcomes]
        self._base = min(range(len(tables)), key=lambda place: (every[place], -len(tables[place])))
        whole = tables[self._base]
        for place, table in enumerate(tables):
            if place != self._base:
                whole = self._join_columns(whole, table, place, (every[self._base], every[place]))
        yield sort_by_time(whole)

    def _disjoint(self, tables: Sequence["pa.Table"]) -> None:
        held: dict[str, int] = {}
        for place, table in enumerate(tables):
            twice = [name for name in table.column_names if name in held]
            if twice:
                names = f"{self._locators[held[twice[0]]]}, {self._locators[place]}"
                what = f"several host logs for one run hold {twice[0]}"
                raise SourceError(names, what, "give one, or join them before", code="metric_in_two_logs")
            held |= dict.fromkeys(set(table.column_names) - _KEYS, place)

    def _join_columns(self, whole: "pa.Table", table: "pa.Table", place: int, every: tuple[int, int]) -> "pa.Table":
        """Return rows with what another log says of their time, and its other readings as rows of their own."""
        times, others = (columns.integers(each.column("timestamp")) for each in (whole, table))
        rows, known = _covering(times - every[0] // 2, others, every[1])
        used = np.zeros(len(others), dtype=np.bool_)
        used[rows[known]] = True
        taken = table.take(pa.array([int(row) if there else None for row, there in zip(rows, known, strict=True)]))
        for name in table.column_names:
            if name not in _KEYS:
                whole = whole.append_column(name, taken.column(name))
        own = table.filter(columns.to_arrow(~used, pa.bool_()))
        self._joined[place] = int(used.sum()), len(own)
        return sort_by_time(pa.concat_tables([whole, own], promote_options="default")) if len(own) else whole

    def outcomes(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Return what is known of each log, once they are joined; readings that became part of rows are no rows."""
        return [self._outcome(place, outcome) for place, outcome in enumerate(outcomes)]

    def _outcome(self, place: int, outcome: Outcome) -> Outcome:
        if place not in self._joined:
            return outcome
        used, own = self._joined[place]
        quality = outcome.quality
        gone = quality.rows_kept - own
        note = f"{self._locators[place]}: {used} readings joined by time to rows of {self._locators[self._base]}."
        account = replace(
            quality, rows_kept=own, continued=quality.continued + gone, gaps=(), notes=(*quality.notes, note)
        )
        return replace(outcome, devices=(), quality=account)


def _covering(middles: IntArray, stamps: IntArray, every: int) -> tuple[IntArray, BoolArray]:
    """Return for each time the reading that covers it, and where there is one."""
    rows = np.searchsorted(stamps, middles)
    inside = np.minimum(rows, len(stamps) - 1)
    known: BoolArray = (rows < len(stamps)) & (stamps[inside] - middles <= _COVERS * every)
    return inside, known
