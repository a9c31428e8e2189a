"""Reads series and training metrics: every file is hashed before it is read, and its pages are checked as well."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import file_digest, sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from gpureport import columns
from gpureport.series_table import TRAINING_SCHEMA, arrange_series, empty_training


def hash_file(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def read_series(path: Path, names: Sequence[str], devices: Iterable[str], expected: str | None = None) -> "pa.Table":
    """Return the series of a run, checksums verified.

    Args:
        path: the Parquet file.
        names: columns wanted.
        devices: device ids in the order wanted.
        expected: sha256 of the file, None where it is not known.

    Raises:
        OSError: when a page does not match its checksum or the file is cut.
        ValueError: when the file is another than expected, or lacks a column.
    """
    file = parquet.ParquetFile(pa.BufferReader(_read_verified(path, expected)), page_checksum_verification=True)
    if missing := {*names} - {*file.schema_arrow.names}:
        msg = f"{path} lacks {', '.join(sorted(missing))}"
        raise ValueError(msg)
    if not (rows := [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]):
        return arrange_series([])
    named = file.read(columns=["device"]).column("device")
    order = {device: place for place, device in enumerate(devices)}
    places = [order[named[begin].as_py()] for begin in accumulate(rows[:-1], initial=0)]
    groups = sorted(range(len(rows)), key=places.__getitem__)
    # at once: put one below the other afterwards, all of it would be copied
    return arrange_series([file.read_row_groups(groups, columns=list(names))])


def read_training(path: Path, expected: str | None) -> "pa.Table":
    """Return training metrics, checksums verified; none where none are expected.

    Raises:
        OSError: when the file is missing or damaged.
        ValueError: when it is another than expected.
    """
    if expected is None:
        return empty_training()
    file = parquet.ParquetFile(pa.BufferReader(_read_verified(path, expected)), page_checksum_verification=True)
    return file.read().cast(TRAINING_SCHEMA)


def _read_verified(path: Path, expected: str | None) -> bytes:
    """Return the content of a file: hashed and read from memory, so that what was verified is what is read.

    Raises:
        OSError: when it cannot be read.
        ValueError: when it is another than expected.
    """
    content = path.read_bytes()
    if expected is not None and sha256(content).hexdigest() != expected:
        msg = f"{path} does not have the sha256 {expected}"
        raise ValueError(msg)
    return content


def split_by_device(series: "pa.Table") -> Iterator["pa.Table"]:
    """Yield the rows of a series table device by device."""
    codes: Any = series.column("device").unify_dictionaries().combine_chunks()
    indices = columns.integers(codes.indices)
    starts = np.flatnonzero(np.diff(indices, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(indices)], strict=True):
        yield series.slice(int(start), int(end - start))
