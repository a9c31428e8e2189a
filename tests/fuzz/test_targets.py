"""Every reader that is fuzzed takes hostile texts; `python -m tests.fuzz` gives it as many as one likes."""

import random
from pathlib import Path

import pytest

from gpureport.errors import SettingsError
from tests.fuzz.batches import batches
from tests.fuzz.execution import Offence, execute, prepare
from tests.fuzz.targets import TARGETS
from tests.fuzz.targets.target import Target
from tests.fuzz.worker import mutate

BATCH = 4


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_reads_what_it_begins_with(tmp_path: Path, name: str) -> None:
    """What is changed from there on comes far into the reader."""
    target = TARGETS[name]
    path = prepare(target, tmp_path)
    for seed in target.seeds:
        path.write_bytes(seed)
        target.read(path)


@pytest.mark.parametrize("first", batches(64, BATCH))
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_texts_end_in_words(tmp_path: Path, name: str, first: int) -> None:
    """A text ends in a result or in an error of the project before one loses patience."""
    target = TARGETS[name]
    path = prepare(target, tmp_path)
    for number in range(first, first + BATCH):
        chance = random.Random(f"{name} {number}")
        data = chance.choice(target.seeds)
        for _ in range(chance.randint(1, 6)):
            data = mutate(data, chance, target.seeds)
        assert execute(target, path, data) is None, data


def _raise(error: BaseException) -> Target:
    def read(_: Path) -> None:
        raise error

    return Target(name="a reader", make_seeds=list, read=read)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SettingsError("a", "b", "c"), None),
        (KeyError("x"), "KeyError in "),
        (RecursionError(), "RecursionError in "),
    ],
)
def test_what_is_an_offence(tmp_path: Path, error: BaseException, said: str | None) -> None:
    """An error of the project is none."""
    offence = execute(_raise(error), tmp_path / "input", b"")
    assert offence is None if said is None else isinstance(offence, Offence) and offence.where.startswith(said)
