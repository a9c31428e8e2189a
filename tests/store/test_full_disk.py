"""A disk that is full, at any point of an ingest, is one line of error and a store as it was."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpureport.store import Store
from tests.local_place import local
from tests.store.forking import Ended, Forks, Order
from tests.store.runs import Known, leftovers

pytestmark = pytest.mark.stress

LONG = ("--param", f"note={'x' * 60_000}")
"""Makes run.json larger than the series, so that it is what does not fit."""


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(ended: Ended, store: Store, held: dict[str, bytes]) -> bool:
    """Check that an ingest succeeded, or failed as it should; return whether it failed."""
    assert leftovers(store) == []
    if ended.code == 0:
        assert store.damaged() == []
        return False
    assert ended.code == 3
    assert ended.err.startswith(f"gpureport: {store.folder}: ")
    assert ended.err.endswith("; free some space, or choose another store with --store\n")
    assert ended.err.count("\n") == 1
    assert contents(local(store.folder)) == held
    return True


@pytest.mark.parametrize("limit", [1, 300, 4_096, 10_000, 25_000, 50_000])
@pytest.mark.parametrize("again", [False, True])
def test_a_file_that_may_not_grow(before: Known, store: Store, forks: Forks, *, limit: int, again: bool) -> None:
    """Where no file may exceed a size, the series or run.json fail; the store stays as it was."""
    log = ["--force", str(before.old)] if again else [str(before.new)]
    held = contents(local(store.folder))
    arguments = ["ingest", *log, *LONG, "--store", str(store.folder)]
    assert check(forks.run(Order(arguments=arguments, file_size=limit)), store, held)


@pytest.mark.smoke
def test_labels_that_do_not_fit(before: Known, store: Store, forks: Forks) -> None:
    """Labels for which there is no room leave those there were."""
    held = contents(local(store.folder))
    arguments = ["ingest", str(before.old), *LONG, "--store", str(store.folder)]
    assert check(forks.run(Order(arguments=arguments, file_size=10_000)), store, held)


@pytest.mark.smoke
def test_no_room_for_the_store_itself(before: Known, forks: Forks, tmp_path: Path) -> None:
    """A new store that cannot even be marked holds no run, and can be used later."""
    arguments = ["ingest", str(before.new), "--store", str(tmp_path / "store")]
    ended = forks.run(Order(arguments=arguments, file_size=1))
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert leftovers(Store(tmp_path / "store")) == []
    assert forks.run(Order(arguments=arguments)).code == 0


@contextmanager
def disk(folder: Path, options: str) -> Iterator[None]:
    """Mount a small file system."""
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],  # noqa: S607 - wherever it is
        capture_output=True,
        text=True,
        check=False,
    )
    if mount.returncode:
        pytest.skip(f"cannot mount a small disk here: {mount.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607 - as above


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("options", ["size={kib}k", "size=4m,nr_inodes={inodes}"])
def test_a_small_disk(before: Known, forks: Forks, tmp_path: Path, options: str, *, again: bool) -> None:
    """On disks of many sizes, by bytes and by files, an ingest fails until there is room, each time cleanly."""
    log = ["--force", str(before.old)] if again else [str(before.new)]
    used = sum(-(-len(content) // 4096) * 4 for content in contents(before.folder).values())
    failed = []
    for more in range(12):
        place = tmp_path / str(more)
        with disk(place, options.format(kib=used + 4 + more * 12, inodes=7 + more)):
            store = before.copy(place / "store")
            held = contents(local(store.folder))
            arguments = ["ingest", *log, *LONG, "--store", str(store.folder)]
            failed.append(check(forks.run(Order(arguments=arguments)), store, held))
    assert failed == sorted(failed, reverse=True)
    assert failed[0]
    assert not failed[-1]
