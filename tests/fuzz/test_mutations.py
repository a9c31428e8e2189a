"""Damaged logs are read or refused in the project's own words."""

from pathlib import Path

import pytest

from tests.fuzz.batches import batches
from tests.fuzz.mutations import FORMS, QUERY, ending, mutated

BATCH = 50


@pytest.mark.parametrize("first", batches(2_000, BATCH))
def test_nothing_but_own_errors_comes_out(tmp_path: Path, first: int) -> None:
    """Whatever happened to a log, every line is accounted for, or one line says why it cannot be read."""
    path = tmp_path / "gpu.csv"
    endings = set()
    for number in range(first, first + BATCH):
        path.write_bytes(mutated(QUERY, number))
        endings.add(ending(path, number))
    assert "read" in endings


@pytest.mark.parametrize("first", batches(200, BATCH))
@pytest.mark.parametrize("form", [form for form in FORMS if form != QUERY])
def test_forms_let_nothing_but_own_errors_out(tmp_path: Path, form: str, first: int) -> None:
    """What the monitors and lists of nvidia-smi write is read as carefully."""
    path = tmp_path / "gpu.log"
    endings = set()
    for number in range(first, first + BATCH):
        path.write_bytes(mutated(form, number))
        endings.add(ending(path, number))
    assert "read" in endings
