"""Damaged recordings of tools other than nvidia-smi are read or refused in the project's own words."""

from pathlib import Path

import pytest

from tests.fuzz.batches import batches
from tests.fuzz.other_tools import FORMS, ending, mutated

BATCH = 50


@pytest.mark.parametrize("first", batches(300, BATCH))
@pytest.mark.parametrize("form", FORMS)
def test_damaged_recordings_end_in_words(tmp_path: Path, form: str, first: int) -> None:
    """A case is read with every line accounted for, or ends in an error of the project."""
    path = tmp_path / "log"
    for number in range(first, first + BATCH):
        path.write_bytes(mutated(form, number))
        assert ending(path, form, number) in {"read", "SourceError"}
