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
from tests.fuzz.targets import OPTIONS, Target, make_targets
from tests.patience import patience

TEXTS = int(os.environ.get("GPUREPORT_FUZZ", "3"))
FIRST = int(os.environ.get("GPUREPORT_FUZZ_FIRST", "0"))
PATIENCE = 5.0
"""Seconds of the processor after which a reader is held to be endless."""
LONGEST = 15_000
"""Characters of an error at most."""
NAMES = (
    *(f"log of {kind}" for kind in ("nvidia_smi", "gpustat", "nvitop", "dcgm", "wandb", "prometheus", "monitors")),
    *(f"option {words}" for words in OPTIONS),
    *("host log", "training log", "log with a map", "map", "file of labels", "table of labels", "settings", "policy"),
    *("run.json of a recording", "steps", "run.json of a store", "store.json", "series of a store", "comparison"),
    *("night of a history", "meta.yaml of MLflow", "metric of MLflow", "database of MLflow", "database of Trackio"),
    *("export of Neptune", "operations of Neptune", "description of Neptune", "database of Neptune Scale"),
)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_texts_end_in_results_or_words(tmp_path: Path, name: str) -> None:
    target = make_targets()[name]
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


def test_no_target_is_left_out() -> None:
    assert {*NAMES} == {*make_targets()}
