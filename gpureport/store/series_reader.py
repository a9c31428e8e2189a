"""Reads series and training metrics: every file is hashed before it is read, and its pages are checked as well."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import file_digest, sha256
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from gpureport import columns
from gpureport.limits import MOST_SERIES_BYTES
from gpureport.places import Place
from gpureport.regular_files import check_regular_file
from gpureport.series_table import TRAINING_SCHEMA, arrange_series, empty_training
from gpureport.store.run_records import read_stored_file

_Part: TypeAlias = tuple[int, int, int]
"""Rows of one device in a row group: the group, its first row, and the one after its last."""


class SeriesFile:
    """The rows of all devices of a run (`SeriesRows`), of which the file is held in memory and any are read at a time.

    A file of 40 million rows takes about 160 MB, and as one table of ten columns 2 GB and more.
    """

    def __init__(self, path: Place, names: Sequence[str], devices: Sequence[str], expected: str | None) -> None:
        """Read and verify the file, of which some columns and devices are wanted in an order, by its sha256 if known.

        Raises:
            OSError: when a page does not match its checksum or the file is cut.
            ValueError: when the file is another than expected, lacks a column, or holds a row of no device.
        """
        self._file = _open_verified(path, expected)
        self._names = tuple(names)
        self._devices = devices
        if missing := {*names} - {*self._file.schema_arrow.names}:
            msg = f"{path} lacks {', '.join(sorted(missing))}"
            raise ValueError(msg)
        self.schema: pa.Schema = arrange_series([self._file.schema_arrow.empty_table().select([*names])]).schema
        self._last: dict[tuple[tuple[int, ...], tuple[str, ...]], pa.Table] = {}
        self._parts: dict[str, list[_Part]] = {}
        for group in range(self._file.num_row_groups):
            for device, start, end in _find_devices(self._file.read_row_group(group, columns=["device"])):
                self._parts.setdefault(device, []).append((group, start, end))
        if unknown := self._parts.keys() - {*devices}:
            msg = f"{path} holds {', '.join(sorted(unknown))} besides"
            raise ValueError(msg)

    def table(self) -> "pa.Table":
        """Return all rows."""
        return self.read(self._devices, self._names)

    def list_devices(self) -> list[str]:
        """Return the ids of the devices that have rows, in their order."""
        return [device for device in self._devices if self.count_rows(device)]

    def rows_of(self, device: str) -> "_DeviceInFile":
        """Return the rows of one device, none where it has none."""
        return _DeviceInFile(self, device)

    def table_of(self, device: str) -> "pa.Table":
        """Return the same with all columns."""
        return self.read((device,), self._names)

    def __len__(self) -> int:
        return sum(map(self.count_rows, self._devices))

    def count_rows(self, device: str) -> int:
        """Return how many rows a device has."""
        return sum(end - start for _, start, end in self._parts.get(device, ()))

    def read(self, devices: Iterable[str], names: tuple[str, ...]) -> "pa.Table":
        """Return columns of the rows of some devices, one after another, each in the order of time.

        Raises:
            OSError: when a page does not match its checksum.
        """
        parts = [part for device in devices for part in self._parts.get(device, ())]
        groups = {group: self._file.metadata.row_group(group).num_rows for group, _, _ in parts}
        if not self._parts:
            return arrange_series([])
        if not groups:
            return self.schema.empty_table().select([name for name in self.schema.names if name in names])
        table = self._read_groups((*groups,), names)
        begins = dict(zip(groups, accumulate(groups.values(), initial=0), strict=False))
        ranges = [(begins[group] + start, end - start) for group, start, end in parts]
        if [begin for begin, _ in ranges] == [*accumulate((rows for _, rows in ranges[:-1]), initial=0)]:
            # what lies in order is not copied piece by piece
            return arrange_series([table.slice(0, sum(rows for _, rows in ranges))])
        return arrange_series([table.slice(begin, rows) for begin, rows in ranges])

    def _read_groups(self, groups: tuple[int, ...], names: tuple[str, ...]) -> "pa.Table":
        """Return row groups one below the other; the last one is kept, since short devices share a group."""
        if (groups, names) in self._last:
            return self._last[groups, names]
        # what is no longer wanted goes before more is read
        self._last.clear()
        table = self._file.read_row_groups([*groups], columns=list(names))
        if len(groups) == 1:
            self._last[groups, names] = table
        return table


@dataclass(frozen=True, slots=True)
class _DeviceInFile:
    """The rows of one device (`DeviceRows`); nothing read of them is kept."""

    file: SeriesFile
    device: str

    @property
    def schema(self) -> "pa.Schema":
        return self.file.schema

    @property
    def column_names(self) -> list[str]:
        return self.schema.names

    def column(self, i: str, /) -> "pa.ChunkedArray[Any]":
        return self.file.read((self.device,), (i,)).column(i)

    def __len__(self) -> int:
        return self.file.count_rows(self.device)


def _find_devices(group: "pa.Table") -> Iterator[tuple[str, int, int]]:
    """Yield each device of a row group with its first row and the one after its last.

    Raises:
        ValueError: when a row has none of the names of the file.
    """
    codes: Any = group.column("device").unify_dictionaries().combine_chunks()
    indices = columns.read_codes(codes.indices)
    if len(indices) and not 0 <= indices.min() <= indices.max() < len(codes.dictionary):
        msg = "a row has none of the devices of the file"
        raise ValueError(msg)
    starts = [*np.flatnonzero(np.diff(indices, prepend=-1)).tolist(), len(indices)]
    for start, end in pairwise(starts):
        yield codes.dictionary[int(indices[start])].as_py(), start, end


def read_training(path: Place, expected: str | None) -> "pa.Table":
    """Return training metrics, checksums verified as for `SeriesFile`; none where none are expected."""
    return empty_training() if expected is None else _open_verified(path, expected).read().cast(TRAINING_SCHEMA)


def _open_verified(path: Place, expected: str | None) -> "parquet.ParquetFile":
    """Return a file, hashed and held in memory, so that what was verified is what is read."""
    content = read_stored_file(path, MOST_SERIES_BYTES)
    if expected is not None and sha256(content).hexdigest() != expected:
        msg = f"{path} does not have the sha256 {expected}"
        raise ValueError(msg)
    return parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)


def hash_file(path: Place) -> str:
    """Return the sha256 of a file."""
    if isinstance(path, Path):
        check_regular_file(path, most=MOST_SERIES_BYTES)
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
