"""Where the series of a recording are: in memory as one table, or in a file from which a device is read when wanted."""

from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from gpureport import columns


class DeviceRows(Protocol):
    """The rows of one device in the order of time, of which columns are read one by one; an Arrow table is one."""

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""
        ...

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        ...

    def column(self, i: str, /) -> "pa.ChunkedArray[Any]":
        """Return a column."""
        ...

    def __len__(self) -> int: ...


class SeriesRows(Protocol):
    """The rows of all devices of a run."""

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""
        ...

    def table(self) -> "pa.Table":
        """Return all rows, in the order that `Recording.series` has."""
        ...

    def list_devices(self) -> list[str]:
        """Return the ids of the devices that have rows, in their order."""
        ...

    def rows_of(self, device: str) -> DeviceRows:
        """Return the rows of one device, none where it has none."""
        ...

    def table_of(self, device: str) -> "pa.Table":
        """Return the same with all columns."""
        ...

    def __len__(self) -> int: ...


class RowsInMemory:
    """The rows of all devices in one table, sorted by device, then by time."""

    def __init__(self, table: "pa.Table") -> None:
        """Take a table in the form of `Recording.series`."""
        self._table = table

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""
        return self._table.schema

    def table(self) -> "pa.Table":
        """Return all rows."""
        return self._table

    def list_devices(self) -> list[str]:
        """Return the ids of the devices that have rows, in their order."""
        return list(self._tables)

    def rows_of(self, device: str) -> "pa.Table":
        """Return the rows of one device, none where it has none."""
        return self._tables[device] if device in self._tables else self._table.slice(0, 0)

    table_of = rows_of

    def __len__(self) -> int:
        return len(self._table)

    def __eq__(self, other: object) -> bool:
        """Return whether the rows are the same."""
        return isinstance(other, RowsInMemory) and bool(self._table.equals(other._table))

    __hash__ = None  # type: ignore[assignment]  # a table has none

    @cached_property
    def _tables(self) -> "dict[str, pa.Table]":
        if not len(self._table):
            return {}
        chunks: list[Any] = self._table.column("device").unify_dictionaries().chunks
        names = chunks[0].dictionary.to_pylist()
        codes = np.concatenate([columns.read_codes(chunk.indices) for chunk in chunks])
        starts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
        return {names[codes[start]]: self._table.slice(start, stop - start) for start, stop in pairwise(starts)}


class SelectedRows:
    """Some rows of a device."""

    def __init__(self, rows: DeviceRows, selected: columns.BoolArray) -> None:
        self._rows = rows
        self._selected = columns.to_arrow(selected, pa.bool_())
        self._length = int(np.count_nonzero(selected))

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""
        return self._rows.schema

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return self._rows.column_names

    def column(self, i: str, /) -> "pa.ChunkedArray[Any]":
        """Return a column."""
        return self._rows.column(i).filter(self._selected)

    def __len__(self) -> int:
        return self._length
