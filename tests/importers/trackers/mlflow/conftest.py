"""Stores that MLflow itself made, once a session."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.importers.trackers.mlflow import real

_SECONDS = 42


@dataclass(frozen=True)
class Recorded:
    """A database and a file store with the same kinds of runs, recorded by MLflow."""

    database: Path
    folder: Path


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    if find_spec("mlflow") is None or find_spec("pynvml") is None or shutil.which("cc") is None:
        pytest.skip("needs mlflow, nvidia-ml-py and a C compiler")
    folder = tmp_path_factory.mktemp("recorded")
    libraries = real.nvml(tmp_path_factory.mktemp("libraries"))
    real.recorded(f"sqlite:///{folder}/mlflow.db", libraries, _SECONDS)
    real.recorded(f"file://{folder}/mlruns", libraries, 3)
    return Recorded(folder / "mlflow.db", folder / "mlruns")


@pytest.fixture(scope="session")
def server(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    with real.served(real.copied(recorded.database, folder), folder / "artifacts") as url:
        yield url
