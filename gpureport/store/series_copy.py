"""A copy of the series of a run outside the store, whole or not at all."""

from gpureport.errors import StoreError
from gpureport.places import Place
from gpureport.store import atomic_writes


def copy_series(series: Place, target: Place) -> None:
    """Copy a file of series.

    Args:
        series: the file in the store.
        target: the file to write, which ends in `.parquet`.

    Raises:
        StoreError: when it has another ending, or cannot be written.
    """
    if target.suffix != ".parquet":
        raise StoreError(str(target), "the series are exported as Parquet", "name a file that ends in .parquet")
    try:
        atomic_writes.write_bytes(target, series.read_bytes(), target.parent)
    except OSError as error:
        raise StoreError(str(target), error.strerror or "cannot be written", "choose another file") from error
