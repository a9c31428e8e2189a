"""A flipped bit is an error or does no harm; it is never another value."""

import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyarrow import parquet

from gpureport.cli import main
from gpureport.errors import StoreError
from gpureport.store import Entry, Store, run_index
from tests.store.forking import Forks, Order
from tests.store.runs import SCALE, Known

pytestmark = pytest.mark.stress

TRIALS = 150 * SCALE
_MAGIC = 8


def pages(path: Path, columns: Sequence[str]) -> list[int]:
    """Return where the pages of some columns lie in a Parquet file."""
    metadata = parquet.ParquetFile(path).metadata
    places: list[int] = []
    for group in (metadata.row_group(index) for index in range(metadata.num_row_groups)):
        for column in (group.column(index) for index in range(group.num_columns)):
            if column.path_in_schema in columns:
                start = column.dictionary_page_offset or column.data_page_offset
                places += range(start, start + column.total_compressed_size)
    return places


def footer(path: Path) -> list[int]:
    """Return where the metadata of a Parquet file lie, with their length and the magic number."""
    content = path.read_bytes()
    length = int.from_bytes(content[-_MAGIC : -_MAGIC + 4], "little") + _MAGIC
    return list(range(len(content) - length, len(content)))


def flipped(path: Path, places: Sequence[int], trials: int) -> Iterator[None]:
    """Flip one bit of a file after another, each time anywhere in some places."""
    chance = random.Random(20261121)
    whole = path.read_bytes()
    for _ in range(trials):
        place = chance.choice(places)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << chance.randrange(8))]) + whole[place + 1 :])
        yield
    path.write_bytes(whole)


def only(store: Store) -> Entry:
    """Return the one run of a store."""
    (entry,) = store.entries()
    return entry


def without_checksum(entry: Entry) -> None:
    """Make a run what it was before runs had a checksum."""
    content = json.loads((entry.folder / "run.json").read_text())
    del content["sha256"], content["series_sha256"]
    (entry.folder / "run.json").write_text(json.dumps(content))


@pytest.mark.parametrize("places", [pages, footer])
def test_in_the_series(store: Store, *, places: object) -> None:
    """A flip in the pages, in their headers or in the footer is found, always."""
    entry = only(store)
    path = entry.folder / "hardware.parquet"
    for _ in flipped(path, pages(path, entry.stored.columns) if places is pages else footer(path), TRIALS):
        assert not store.intact(entry)
        with pytest.raises(StoreError, match=r"hardware\.parquet: damaged or missing"):
            store.read(entry)


def test_in_the_series_of_an_old_run(before: Known, store: Store) -> None:
    """Without a checksum of the file, those of the pages turn nearly all flips into errors; none is a wrong value."""
    without_checksum(only(store))
    entry = only(store)
    path = entry.folder / "hardware.parquet"
    found = 0
    for _ in flipped(path, pages(path, entry.stored.columns), TRIALS):
        try:
            assert store.read(entry).series.equals(before.old_recording.series)
        except StoreError:
            found += 1
    assert found > 0.9 * TRIALS
    for _ in flipped(path, footer(path), TRIALS):
        try:
            store.read(entry)
        except StoreError:
            found += 1


def test_in_run_json(store: Store) -> None:
    """A flip in run.json makes the run damaged, or leaves what it says."""
    entry = only(store)
    path = entry.folder / "run.json"
    for _ in flipped(path, range(path.stat().st_size), 4 * TRIALS):
        assert store.damaged() == [entry.folder] or only(store).stored == entry.stored


def test_in_the_index(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flip in the index, in its pages or its footer, changes nothing that is listed."""
    monkeypatch.setattr(run_index, "FEWEST_RUNS", 1)
    run_json = only(store).folder / "run.json"
    os.utime(run_json, (1, 1))
    expected = store.index()
    path = store.folder / run_index.INDEX
    whole = path.read_bytes()
    for _ in flipped(path, range(len(whole)), TRIALS):
        assert store.index() == expected
    assert path.read_bytes() == whole


@pytest.mark.smoke
def test_in_store_json(store: Store) -> None:
    """A flip in the mark of a store refuses it, or does not matter."""
    expected = only(store).stored
    path = store.folder / "store.json"
    for _ in flipped(path, range(path.stat().st_size), TRIALS):
        try:
            assert only(Store(store.folder)).stored == expected
        except StoreError:
            continue


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["run.json", "hardware.parquet"])
def test_reading_the_log_again_mends_it(before: Known, store: Store, forks: Forks, name: str) -> None:
    """An ingest of the log of a damaged run replaces it, without being told to."""
    path = only(store).folder / name
    path.write_bytes(path.read_bytes()[:-30])
    ended = forks.run(Order(arguments=["ingest", str(before.old), "--store", str(store.folder)]))
    assert (ended.code, "again, since it was damaged: " in ended.out) == (0, True)
    assert store.read(only(store)).series.equals(before.old_recording.series)


@pytest.mark.smoke
def test_old_runs_are_read_and_labelled(before: Known, store: Store) -> None:
    """A run stored before there were checksums is read as ever, and has one once it is labelled."""
    without_checksum(only(store))
    assert store.read(only(store)).series.equals(before.old_recording.series)
    with pytest.raises(SystemExit, match="0"):
        main(["runs", "step", "old", "b", "--store", str(store.folder)])
    assert only(store).run.step == "b"
    assert "sha256" in json.loads((only(store).folder / "run.json").read_text())
    assert store.read(only(store)).run.step == "b"


@pytest.mark.smoke
def test_damaged_series_are_not_exported(store: Store, tmp_path: Path) -> None:
    """An export of damaged series is refused, and makes no file."""
    entry = only(store)
    for _ in flipped(entry.folder / "hardware.parquet", range(100), 1):
        with pytest.raises(StoreError, match="damaged"):
            store.export(entry, tmp_path / "run.parquet")
    assert not (tmp_path / "run.parquet").exists()
