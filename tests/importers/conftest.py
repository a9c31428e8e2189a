"""The program as a fixture."""

from pathlib import Path

import pytest

from tests.cli.program import Program, program


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    return program(capsys, monkeypatch, tmp_path)
