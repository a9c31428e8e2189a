"""Names of `tests.support.logs`, with a reading below the API, for the rooms that still take them from here."""

from pathlib import Path

from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.testing import Recording
from tests.support.logs import HEADER, log, row, series, stamp, write_recording

__all__ = ["HEADER", "log", "read", "read_text", "row", "series", "stamp", "write_recording"]


def read(path: Path, options: ReadOptions | None = None, labels: Labels | None = None) -> Recording:
    """Return the one run a path holds."""
    (inputs,) = find_runs(path)
    return Reading(inputs, options or ReadOptions(), labels or Labels()).recording()


def read_text(folder: Path, content: str | bytes, options: ReadOptions | None = None) -> Recording:
    """Return the run a log of this content holds."""
    path = folder / "gpu.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(path, options)
