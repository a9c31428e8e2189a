"""Runs of trackers as the API reads them, and what it says of those that it cannot read."""

import warnings
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gpureport
from gpureport.errors import GpureportError
from gpureport.testing import Recording, find_note_code, find_reject_code
from tests.readers import pairs

EXPECTED = Path(__file__).with_name("expected")


def state(root: Path) -> dict[str, tuple[str, int]]:
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path): (sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


def recordings(source: str | Path, **options: Any) -> list[Recording]:
    own = {name: options.pop(name) for name in ("tz", "gpus", "mlflow_raw_times") if name in options}
    found = gpureport.read(source, tracker=options, **own)
    assert all(each.run.quality.accounted for each in found)
    return found


def recording(source: str | Path, **options: Any) -> Recording:
    (found,) = recordings(source, **options)
    return found


def readable(source: str | Path, **options: Any) -> tuple[list[Recording], list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = recordings(source, **options)
    return found, [str(each.message) for each in caught]


def ids(source: str | Path, **options: Any) -> list[str]:
    return [each.run.sources[0].locator.rpartition("#")[2] for each in recordings(source, **options)]


def refused(source: str | Path, **options: Any) -> GpureportError:
    with pytest.raises(GpureportError) as caught:
        readable(source, **options)
    assert "\n" not in str(caught.value)
    return caught.value


def describe(source: str | Path, **options: Any) -> list[dict[str, Any]] | str:
    """Return what is read of the runs of a source, as in a pair of files; the code where nothing is."""
    try:
        found, warned = readable(source, **options)
    except GpureportError as error:
        return error.code
    assert "hunter2" not in str([each.run for each in found])
    assert not warned
    lengths = (f"{(each.run.ended - each.run.started) / 1e6:g} s" for each in found)
    heads = [{"name": each.run.name, "length": length} for each, length in zip(found, lengths, strict=True)]
    return [head | pairs.describe_recording(each) for head, each in zip(heads, found, strict=True)]


def hold(name: str, described: object, *, update: bool) -> None:
    pairs.hold(EXPECTED / f"{name}.json", described, update=update)


def codes(found: Recording) -> set[str]:
    return set(map(find_note_code, found.run.quality.notes))


def rejected(found: Recording) -> list[tuple[str, int]]:
    return [(find_reject_code(each.reason), each.rows) for each in found.run.quality.rejected]


def column(found: Recording, device: str, name: str) -> list[Any]:
    values = found.rows_of(device).column(name).to_pylist()
    return [round(value, 4) if isinstance(value, float) else value for value in values]


def times(found: Recording, device: str) -> list[int]:
    return _whole(found.rows_of(device))


def trained(found: Recording) -> list[int]:
    return _whole(found.training)


def _whole(table: pa.Table) -> list[int]:
    return [at for at in table.column("timestamp").cast(pa.int64()).to_pylist() if at is not None]
