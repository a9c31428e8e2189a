"""The rows of a long stored run, read by device and column when they are wanted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpureport.store.series_reader import SeriesFile

if TYPE_CHECKING:
    import pyarrow as pa


class StoredRows:
    """The rows of all devices of a run, whose file is held as it was written; nothing read from it is kept."""

    def __init__(self, file: SeriesFile, devices: Sequence[str]) -> None:
        self._file = file
        self._devices = devices

    @property
    def schema(self) -> "pa.Schema":
        """Names and types of the columns."""
        return self._file.schema

    def table(self) -> "pa.Table":
        """Return all rows."""
        return self._file.read(self._devices)

    def list_devices(self) -> list[str]:
        """Return the ids of the devices that have rows, in their order."""
        return [device for device in self._devices if self._file.count_rows(device)]

    def rows_of(self, device: str) -> "_DeviceInFile":
        """Return the rows of one device, none where it has none."""
        return _DeviceInFile(self._file, device)

    def table_of(self, device: str) -> "pa.Table":
        """Return the same with all columns."""
        return self._file.read((device,))

    def __len__(self) -> int:
        return sum(map(self._file.count_rows, self._devices))


class _DeviceInFile:
    """The rows of one device."""

    def __init__(self, file: SeriesFile, device: str) -> None:
        self._file = file
        self._device = device
        self.schema = file.schema
        self.column_names = file.schema.names

    def column(self, i: str, /) -> "pa.ChunkedArray[Any]":
        """Return a column."""
        return self._file.read((self._device,), (i,)).column(i)

    def __len__(self) -> int:
        return self._file.count_rows(self._device)
