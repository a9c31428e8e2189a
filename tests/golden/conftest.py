"""A copy of what 0.2.0 wrote, and the program in it."""

import shutil
from pathlib import Path

import pytest

from tests.cli.program import Program, program
from tests.golden.write_0_2_0 import HERE, add_samples


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of what 0.2.0 wrote, with the samples that its commands read."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1780000000")
    monkeypatch.setenv("COLUMNS", "80")
    copy = tmp_path / "place"
    shutil.copytree(HERE / "place", copy)
    add_samples(copy)
    return copy


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, place: Path) -> Program:
    """Return the program, run in that copy."""
    return program(capsys, monkeypatch, place)
