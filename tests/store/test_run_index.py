"""The index is a copy: whatever becomes of it, and of the runs, a store says what its `run.json` files say."""

import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpureport.errors import StoreError
from gpureport.redaction.own_secrets import OwnSecrets, use_own_secrets
from gpureport.store import Store, run_index, run_json
from gpureport.store.indexed_run import summarise_stored_run
from gpureport.store.run_files import read_stored_run
from gpureport.store.run_index import INDEX, RunIndex, read_index
from gpureport.store.run_json import StoredRun
from tests.store.runs import Known, leftovers

OLD = 1_700_000_000


@pytest.fixture(autouse=True)
def keep_an_index_of_few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep an index of any store."""
    monkeypatch.setattr(run_index, "FEWEST_RUNS", 1)


@pytest.fixture(scope="module")
def template(before: Known) -> StoredRun:
    """A stored run."""
    (entry,) = Store(before.folder).entries()
    return entry.stored


def put(store: Path, template: StoredRun, number: int, label: str, modified: float | None = None) -> Path:
    """Write the `run.json` of a run, at some time in seconds since 1970; return the file."""
    tags = (("user", label), ("pair", "a=b"))
    run = replace(
        template.run, id=f"{number:016x}", name=f"run {number}", step=label, tags=tags, started=number * 10**9
    )
    path = store / "runs" / run.id / "run.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name("part")
    part.write_text(run_json.dump_run(replace(template, run=run)))
    if modified is not None:
        os.utime(part, (modified, modified))
    part.replace(path)
    return path


@pytest.fixture
def shelf(tmp_path: Path, template: StoredRun) -> Path:
    """A store of five old runs, with its index."""
    for number in range(5):
        put(tmp_path, template, number, "ann", OLD)
    read_index(tmp_path)
    assert (tmp_path / INDEX).is_file()
    return tmp_path


def scan(store: Path) -> RunIndex:
    """Return what every `run.json` says."""
    runs, damaged = [], []
    for path in store.glob("runs/*/run.json"):
        try:
            runs.append(summarise_stored_run(run_json.load_run(path.read_text())))
        except ValueError:
            damaged.append(path.parent.name)
    return RunIndex(runs=tuple(sorted(runs, key=lambda run: (run.started, run.id))), damaged=tuple(sorted(damaged)))


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the folder of every `run.json` that is read."""
    read = list[str]()

    def read_and_note(folder: Path) -> StoredRun:
        read.append(folder.name)
        return read_stored_run(folder)

    monkeypatch.setattr(run_index, "read_stored_run", read_and_note)
    return read


def test_unchanged_runs_are_not_read(shelf: Path, monkeypatch: pytest.MonkeyPatch, template: StoredRun) -> None:
    """Of runs that lie there as before, the index says all; a run that is new or changed is read alone."""
    read = count_reads(monkeypatch)
    assert read_index(shelf) == scan(shelf)
    assert read == []
    put(shelf, template, 2, "bob")
    put(shelf, template, 9, "cid")
    shutil.rmtree(shelf / "runs" / f"{0:016x}")
    assert read_index(shelf) == scan(shelf)
    assert sorted(read) == [f"{2:016x}", f"{9:016x}"]


def test_a_run_replaced_within_a_tick_is_seen(tmp_path: Path, template: StoredRun) -> None:
    """A file of the same size and time as before is read again, where it was just written when the index was."""
    now = time.time()
    for label in ("ann", "bob", "cid"):
        path = put(tmp_path, template, 1, label, now)
        assert [run.step for run in read_index(tmp_path).runs] == [label]
    assert path.stat().st_mtime == pytest.approx(now, abs=1e-3)


def cut(path: Path) -> None:
    """Leave half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def put_folder(path: Path) -> None:
    """Put a folder in place of a file."""
    path.unlink()
    path.mkdir()


def put_other_table(path: Path) -> None:
    """Put the table of another program in place of the index."""
    parquet.write_table(pa.Table.from_pylist([{"id": "0" * 16}]), path)


def put_other_version(path: Path) -> None:
    """Put the index of another version in place, which names runs otherwise."""
    table = parquet.read_table(path)
    renamed = table.set_column(1, "name", pa.array(["x"] * len(table))).replace_schema_metadata(
        {"gpureport_index": "0"}
    )
    parquet.write_table(renamed, path)


@pytest.mark.parametrize(
    "spoil",
    [Path.unlink, cut, put_folder, put_other_table, put_other_version, lambda path: path.write_bytes(b"")],
    ids=["missing", "cut", "folder", "other table", "other version", "empty"],
)
def test_a_spoilt_index_does_not_matter(shelf: Path, spoil: Callable[[Path], object]) -> None:
    """Without a readable index all is found, and it is made anew where that can be done."""
    spoil(shelf / INDEX)
    assert read_index(shelf) == scan(shelf)
    assert len(run_index._load_rows(shelf / INDEX)) == (5 if (shelf / INDEX).is_file() else 0)  # noqa: SLF001 - what it holds


def test_foreign_files_are_no_runs(shelf: Path) -> None:
    """Files, empty folders, what writers have begun and a copied run make no difference, or are listed as before."""
    (shelf / "runs" / "notes.txt").write_text("x")
    (shelf / "runs" / "empty").mkdir()
    (shelf / "runs" / "odd" / "run.json").mkdir(parents=True)
    (shelf / "runs" / "bad").mkdir()
    (shelf / "runs" / "bad" / "run.json").write_text("{")
    shutil.copytree(shelf / "runs" / f"{1:016x}", shelf / "runs" / ".tmp-run-1")
    shutil.copytree(shelf / "runs" / f"{1:016x}", shelf / "runs" / "copy")
    for _ in range(2):
        index = read_index(shelf)
        assert ([run.name for run in index.runs], index.damaged) == (
            ["run 0", "run 1", "run 1", "run 2", "run 3", "run 4"],
            ("bad",),
        )


@pytest.mark.parametrize("changed", [0, 2, 5])
def test_secrets_of_one_reader_stay_for_the_next(shelf: Path, template: StoredRun, changed: int) -> None:
    """What is no secret without the settings of a reader is not hidden in what he writes."""
    for number in range(changed):
        put(shelf, template, number, f"corp-{number}", OLD + 1)
    try:
        use_own_secrets(OwnSecrets(patterns=("run", "corp-")))
        assert all("***" in run.name for run in read_index(shelf).runs)
        assert not any("corp-" in (run.step or "") for run in read_index(shelf).runs)
    finally:
        use_own_secrets(OwnSecrets())
    index = read_index(shelf)
    assert [run.name for run in index.runs] == [f"run {number}" for number in range(5)]
    assert index == scan(shelf)


def test_a_store_that_cannot_be_written_is_read(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk or a store of somebody else costs time and nothing else."""

    def refuse(*_: object) -> None:
        raise PermissionError

    (shelf / INDEX).unlink()
    monkeypatch.setattr("gpureport.store.atomic_writes.write_bytes", refuse)
    assert read_index(shelf) == scan(shelf)
    assert not (shelf / INDEX).exists()


def test_a_name_that_is_no_unicode_does_not_matter(shelf: Path, template: StoredRun) -> None:
    """A label made of a file name of other bytes has no place in Parquet; the runs are read without an index."""
    put(shelf, template, 7, "\udcff")
    assert read_index(shelf) == scan(shelf)


def test_few_changes_do_not_write_it_again(shelf: Path, monkeypatch: pytest.MonkeyPatch, template: StoredRun) -> None:
    """While runs come in one by one, the index is written again for every so many of them."""
    monkeypatch.setattr(run_index, "_SHARE", 3)
    for number, is_written in ((5, False), (6, False), (7, True)):
        before = (shelf / INDEX).read_bytes()
        put(shelf, template, number, "bob", OLD)
        assert read_index(shelf) == scan(shelf)
        assert ((shelf / INDEX).read_bytes() != before) is is_written


def test_many_readers_and_writers_at_once(shelf: Path, template: StoredRun) -> None:
    """While runs come, change and go, every reader finds runs that were there, whoever writes the index."""

    def change(number: int) -> None:
        for turn in range(12):
            put(shelf, template, number, f"turn {turn}")
        shutil.rmtree(shelf / "runs" / f"{number:016x}")

    def read(_: int) -> None:
        for _ in range(12):
            index = read_index(shelf)
            assert {run.name for run in index.runs} >= {f"run {number}" for number in range(5)}
            assert index.damaged == ()

    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(change, number) for number in (10, 11, 12)] + [
            pool.submit(read, number) for number in range(5)
        ]
        for each in done:
            each.result()
    assert read_index(shelf) == scan(shelf)
    assert leftovers(Store(shelf)) == []


@settings(deadline=None, max_examples=12)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["put", "put old", "damage", "remove", "spoil", "age"]),
            st.integers(0, 3),
            st.sampled_from(["ann", "bob"]),
        ),
        max_size=8,
    )
)
def test_the_index_says_what_the_runs_say(
    tmp_path_factory: pytest.TempPathFactory, template: StoredRun, steps: list[tuple[str, int, str]]
) -> None:
    """After any changes, with a look at the store after each, the index and a scan agree."""
    store = tmp_path_factory.mktemp("store")
    for place, (what, number, label) in enumerate(steps):
        path = store / "runs" / f"{number:016x}" / "run.json"
        if what.startswith("put"):
            put(store, template, number, label, OLD + place if what == "put old" else None)
        elif what == "spoil":
            (store / INDEX).write_bytes(label.encode())
        elif path.exists():
            if what == "damage":
                path.write_text(label)
            elif what == "age":
                os.utime(path, (OLD - place, OLD - place))
            else:
                shutil.rmtree(path.parent)
        assert read_index(store) == scan(store)


def test_names_and_ids_find_runs(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole id is read without the index; a name or the beginning of an id by one look at the store."""
    lookup = Store(shelf).lookup()
    monkeypatch.setattr(run_index, "read_index", lambda _: pytest.fail("the store was searched"))
    assert lookup.find(f"{3:016x}").run.name == "run 3"
    monkeypatch.setattr(run_index, "read_index", read_index)
    assert lookup.find("run 2").run.id == f"{2:016x}"
    monkeypatch.setattr(run_index, "read_index", lambda _: pytest.fail("the store was searched twice"))
    assert lookup.find(f"{4:016x}"[:16]).run.name == "run 4"
    assert lookup.find("run 1").run.id == f"{1:016x}"
    with pytest.raises(StoreError, match='5 runs are named "0000"; name one by its id: '):
        lookup.find("0000")
    with pytest.raises(StoreError, match="did you mean 'run 1'"):
        lookup.find("rum 1")
    (shelf / "runs" / f"{1:016x}" / "run.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        lookup.find("run 1")
