"""Damaged host logs are read or refused in the project's own words."""

from pathlib import Path

import pytest

from tests.fuzz.batches import batches
from tests.fuzz.host_mutations import FORMS, ending, mutated

BATCH = 50


@pytest.mark.parametrize("first", batches(150, BATCH))
@pytest.mark.parametrize("form", FORMS)
def test_nothing_but_own_errors_comes_out(tmp_path: Path, form: str, first: int) -> None:
    """Whatever happened to a log, every line is accounted for, or one line says why it cannot be read."""
    path = tmp_path / "host.log"
    endings = set()
    for number in range(first, first + BATCH):
        path.write_bytes(mutated(form, number))
        endings.add(ending(path, number))
    assert "read" in endings
