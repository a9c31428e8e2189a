"""Host logs as series, for tests of what reads them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import FloatArray
from gpureport.importers.decoding.pieces import head
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.host import HostLog
from gpureport.importers.protocol.importer import HEAD_BYTES, Outcome, ReadOptions

CAPTURES = Path(__file__).parent / "captures"
"""What the tools printed side by side for half a minute, on a machine in Berlin with two cores."""
CAPTURED = sorted(path.name for path in CAPTURES.iterdir())
BEGAN = 1_795_276_759
"""When they began, in UTC."""
LOCAL = 3_600_000_000
"""How far local time was ahead of it, in microseconds."""
AROUND = ((BEGAN * 1_000_000) + LOCAL, (BEGAN + 30) * 1_000_000 + LOCAL)


@dataclass(frozen=True, slots=True)
class Read:
    """A host log that was read."""

    outcome: Outcome
    table: "pa.Table"

    def rows(self) -> list[dict[str, Any]]:
        """Return its rows, times in microseconds; keys and what is null left out."""
        times = columns.integers(self.table.column("timestamp")).tolist()
        return [
            {"time": time}
            | {name: value for name, value in row.items() if value is not None and name not in {"device", "imputed"}}
            | {"timestamp": None}
            for time, row in zip(times, self.table.to_pylist(), strict=True)
        ]

    def column(self, name: str) -> FloatArray:
        """Return a metric, NaN where it is null."""
        return columns.floats(self.table.column(name))

    def mean(self, name: str, start: int, end: int) -> float:
        """Return the mean of a metric between two times in UTC."""
        times = columns.integers(self.table.column("timestamp")) - (0 if self.outcome.timezone else LOCAL)
        return float(np.nanmean(self.column(name)[(times >= start) & (times <= end)]))

    def over(self, name: str, start: int, end: int) -> float:
        """Return the mean of a metric over exactly the time between two moments in UTC; a row covers what is before."""
        times = columns.integers(self.table.column("timestamp")) - (0 if self.outcome.timezone else LOCAL)
        known = ~np.isnan(self.column(name))
        at, value = times[known].astype(np.float64), self.column(name)[known]
        whole = np.concatenate([[0.0], np.cumsum(value[1:] * np.diff(at))])
        first, last = np.interp([start, end], at, whole)
        return float(last - first) / (end - start)


def is_identified(path: Path) -> bool:
    """Whether a file is taken for a host log."""
    return HostLog().identify(head(RawFile(path), HEAD_BYTES))


def read(path: Path, options: ReadOptions | None = None) -> Read:
    """Return a host log, after checking that it is taken for one and every line is accounted for."""
    assert is_identified(path)
    return extract(path, options)


def extract(path: Path, options: ReadOptions | None = None) -> Read:
    """Return a host log, after checking that every line is accounted for."""
    extraction = HostLog().extract(RawFile(path), options or ReadOptions(around=AROUND))
    table = pa.concat_tables(list(extraction.batches()), promote_options="default")
    quality = extraction.outcome().quality
    assert quality.accounted
    assert quality.rows_kept == len(table)
    return Read(extraction.outcome(), table)


def text(folder: Path, content: str, options: ReadOptions | None = None) -> Read:
    """Return the host log of this content."""
    path = folder / "host.log"
    path.write_bytes(content.encode())
    return read(path, options)


def values(found: Read, name: str) -> list[float | None]:
    """Return a metric, rounded."""
    return [None if value is None else round(float(value), 4) for value in found.table.column(name).to_pylist()]


def clock(found: Read) -> list[str]:
    """Return the times as a person reads them."""
    return [str(np.datetime64(time, "us"))[5:19] for time in columns.integers(found.table.column("timestamp")).tolist()]


def rejected(found: Read) -> list[tuple[str, int]]:
    """Return why lines were rejected, and how many."""
    return [(entry.reason, entry.rows) for entry in found.outcome.quality.rejected]
