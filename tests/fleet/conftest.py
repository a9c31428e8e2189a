"""The program, which analyses in this process: starting others takes longer than a few runs."""

from pathlib import Path

import psutil
import pytest

from tests.support.program import Program, program


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: [0])
    return program(capsys, monkeypatch, tmp_path)
