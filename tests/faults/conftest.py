"""The library of faults and a process that forks commands with it."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.fault import build_library
from tests.faults.trials import write_logs
from tests.store.forking import Forks


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of logs, in which commands run that are only to import things."""
    place = tmp_path_factory.mktemp("warm") / "logs"
    write_logs(place)
    return place


@pytest.fixture(scope="session")
def faulty(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    if not sys.platform.startswith("linux") or shutil.which("cc") is None:
        pytest.skip("the library of faults needs Linux and a C compiler")
    folder = tmp_path_factory.mktemp("faulty")
    forks = Forks(folder, build_library(folder))
    forks.warm_up(logs, ("ingest", "old.csv"), ("runs", "list"))
    yield forks
    forks.close()


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a stage is set: a short path, as names of sockets in it may have a hundred bytes at most."""
    return tmp_path_factory.mktemp("s") / "w"
