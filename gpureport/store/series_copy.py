"""A copy of the series of a run outside the store, whole or not at all."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from gpureport.errors import StoreError


def copy_series(series: Path, target: Path) -> None:
    """Copy a file of series.

    Args:
        series: the file in the store.
        target: the file to write, which ends in `.parquet`.

    Raises:
        StoreError: when it has another ending, or cannot be written.
    """
    if target.suffix != ".parquet":
        raise StoreError(str(target), "the series are exported as Parquet", "name a file that ends in .parquet")
    part = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        shutil.copyfile(series, part)
        part.replace(target)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise StoreError(str(target), error.strerror or "cannot be written", "choose another file") from error
