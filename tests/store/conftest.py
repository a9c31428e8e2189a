"""Stores with a run in them, the program, and the process that forks ingests."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.forking import Forks, Order
from tests.store.runs import Known, noisy, read_store


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    made = Forks(tmp_path_factory.mktemp("forks"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def before(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Known:
    """A store with one run, which tests copy; and the other run, from a store of its own."""
    folder = tmp_path_factory.mktemp("before")
    known = Known(folder=folder / "store", runs={}, old_id="")
    for seed, log in enumerate(("old", "new")):
        (folder / f"{log}.csv").write_text(noisy(seed))
    for words in (
        known.ingest("old", known.folder, "--name", "old", "--step", "a", "--tag", "by=hand"),
        known.ingest("new", folder / "other"),
    ):
        assert forks.run(Order(arguments=words)).code == 0
    (old_id,) = old = read_store(known.folder)
    return replace(known, runs=old | read_store(folder / "other"), old_id=old_id)


@pytest.fixture
def store(before: Known, tmp_path: Path) -> Path:
    return before.copy(tmp_path / "store")
