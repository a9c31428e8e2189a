"""Runs of Neptune read as the program reads them."""

from pathlib import Path
from typing import Any

from gpureport import columns
from gpureport.importers import Labels, ReadOptions, Selection, TrackedReading, find_tracker, join_attached_logs
from gpureport.testing import Recording


def readings(
    source: str | Path,
    *,
    tz: str | None = None,
    gpus: tuple[int, ...] | None = None,
    **wanted: Any,  # noqa: ANN401 - any field of a selection
) -> list[TrackedReading]:
    """Return the runs a source holds, not read yet."""
    found = find_tracker(str(source))
    assert found is not None
    options = ReadOptions(tz=tz, gpus=gpus)
    runs = found.runs(str(source), Selection(**wanted)).runs
    return [TrackedReading(found.kind, run, options, Labels(), strict=False, join=join_attached_logs) for run in runs]


def recordings(source: str | Path, **wanted: Any) -> list[Recording]:  # noqa: ANN401 - as above
    """Return the runs a source holds; every point of each is accounted for."""
    found = [reading.recording() for reading in readings(source, **wanted)]
    assert all(each.run.quality.accounted for each in found)
    return found


def recording(source: str | Path, **wanted: Any) -> Recording:  # noqa: ANN401 - as above
    """Return the only run a source holds."""
    (found,) = recordings(source, **wanted)
    return found


def column(found: Recording, device: str, name: str) -> list[Any]:
    """Return the values of a column of a device."""
    return list(found.rows_of(device).column(name).to_pylist())


def times(found: Recording, device: str) -> list[int]:
    """Return the times of a device, in microseconds."""
    return [int(at) for at in columns.integers(found.rows_of(device).column("timestamp"))]


def trained(found: Recording) -> list[int]:
    """Return the times of the training metrics, in microseconds."""
    return [int(at) for at in columns.integers(found.training.column("timestamp"))]
