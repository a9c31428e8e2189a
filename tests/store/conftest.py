"""Stores with a run in them, and the process that forks ingests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpureport.store import Store
from tests.store.forking import Forks
from tests.store.runs import Known, known


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """The process that forks ingests."""
    made = Forks(tmp_path_factory.mktemp("forks"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def before(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """A store with one run, which tests copy."""
    return known(tmp_path_factory.mktemp("before"))


@pytest.fixture
def store(before: Known, tmp_path: Path) -> Store:
    """A copy of that store."""
    return before.copy(tmp_path / "store")
