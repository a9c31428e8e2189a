"""The program, and what it must leave as it is."""

from pathlib import Path

import pytest

from tests.cli.program import Program, program
from tests.importers.trackers.mlflow.real import environment


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    for name, value in environment(MLFLOW_HTTP_REQUEST_MAX_RETRIES="2").items():
        monkeypatch.setenv(name, value)
    return program(capsys, monkeypatch, tmp_path)
