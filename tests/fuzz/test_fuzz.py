"""Whatever a reader is given, it ends in a result or in an error of the project, within five seconds.

`GPUREPORT_FUZZ=1000` gives each target so many texts, beginning with the number in `GPUREPORT_FUZZ_FIRST`.
"""

import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

from gpureport.errors import GpureportError
from tests.fuzz.mutation import damage
from tests.fuzz.targets import TARGETS, Target
from tests.patience import patience

TEXTS = int(os.environ.get("GPUREPORT_FUZZ", "3"))
FIRST = int(os.environ.get("GPUREPORT_FUZZ_FIRST", "0"))
PATIENCE = 5.0
"""Seconds of the processor after which a reader is held to be endless."""
LONGEST = 15_000
"""Characters of an error at most."""


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_texts_end_in_results_or_words(tmp_path: Path, name: str) -> None:
    target = TARGETS[name]()
    target.prepare(tmp_path)
    path = tmp_path / "input"
    assert sum(_is_read(target, path, seed) for seed in target.seeds) >= len(target.seeds) / 2
    for number in range(FIRST, FIRST + TEXTS):
        data = damage(target.seeds, random.Random(f"{name} {number}"))
        path.write_bytes(data)
        try:
            with patience(PATIENCE):
                target.read(path)
        except BaseException as error:
            if isinstance(error, GpureportError) and len(str(error)) <= LONGEST and error.code != "internal_error":
                continue
            error.add_note(f"text {number} of {name}: {data[:2000]!r}")
            raise


def _is_read(target: Target, path: Path, seed: bytes) -> bool:
    path.write_bytes(seed)
    with suppress(GpureportError):
        target.read(path)
        return True
    return False
