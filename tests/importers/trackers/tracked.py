"""Runs of trackers as the API reads them, and what it says of those that it cannot read."""

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gpureport
from gpureport.errors import GpureportError
from gpureport.testing import Recording


def recordings(source: str | Path, **options: Any) -> list[Recording]:  # noqa: ANN401 - any option of a read or of a selection
    """Return the runs of a store that are meant; every point of each is accounted for."""
    own = {name: options.pop(name) for name in ("tz", "gpus", "mlflow_raw_times") if name in options}
    found = gpureport.read(source, tracker=options, **own)
    assert all(each.run.quality.accounted for each in found)
    return found


def recording(source: str | Path, **options: Any) -> Recording:  # noqa: ANN401 - as above
    """Return the only run of a store that is meant."""
    (found,) = recordings(source, **options)
    return found


def readable(source: str | Path, **options: Any) -> tuple[list[Recording], list[str]]:  # noqa: ANN401 - as above
    """Return the runs that can be read, and why others cannot."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = recordings(source, **options)
    return found, [str(each.message) for each in caught]


def ids(source: str | Path, **options: Any) -> list[str]:  # noqa: ANN401 - as above
    """Return the ids in their tracker of the runs that are meant."""
    return [each.run.sources[0].locator.rpartition("#")[2] for each in recordings(source, **options)]


def refused(source: str | Path, **options: Any) -> GpureportError:  # noqa: ANN401 - as above
    """Return why nothing of a store can be read, which is said in one line."""
    with pytest.raises(GpureportError) as caught:
        readable(source, **options)
    assert "\n" not in str(caught.value)
    return caught.value


def codes(found: Recording) -> set[str]:
    """Return the codes of the notes on a run."""
    return set(found.run.quality.note_codes)


def rejected(found: Recording) -> list[tuple[str, int]]:
    """Return codes of rejected points or lines, and how many there are."""
    return [(each.code, each.rows) for each in found.run.quality.rejected]


def column(found: Recording, device: str, name: str) -> list[Any]:
    """Return the values of a column of a device, rounded as 32 bits are."""
    values = found.rows_of(device).column(name).to_pylist()
    return [round(value, 4) if isinstance(value, float) else value for value in values]


def times(found: Recording, device: str) -> list[int]:
    """Return the times of a device, in microseconds."""
    return [int(at) for at in found.rows_of(device).column("timestamp").cast(pa.int64()).to_pylist()]


def trained(found: Recording) -> list[int]:
    """Return the times of the training metrics, in microseconds."""
    return [int(at) for at in found.training.column("timestamp").cast(pa.int64()).to_pylist()]
