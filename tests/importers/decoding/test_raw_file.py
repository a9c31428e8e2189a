"""Bytes and their hash, whatever happens to the file meanwhile."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers.source_text import RawFile

CONTENT = bytes(range(250)) * 4


def hashed(content: bytes) -> str:
    return sha256(content).hexdigest()


def read_while(folder: Path, change: Callable[[Path], object], *, early: bool) -> tuple[RawFile, bytes]:
    """Return a file that was changed after its first block, hashed before that or not, and what was read of it."""
    (folder / "log").write_bytes(CONTENT)
    file = RawFile(folder / "log")
    blocks = file.blocks(300)
    got = next(blocks)
    if early:
        file.sha256()
    change(folder / "log")
    return file, got + b"".join(blocks)


def append(path: Path) -> None:
    with path.open("ab") as log:
        log.write(b"more")


@pytest.mark.parametrize("asked", [0, 1, 5, 99])
def test_the_hash_is_that_of_the_bytes(tmp_path: Path, asked: int) -> None:
    (tmp_path / "log").write_bytes(CONTENT)
    file, got = RawFile(tmp_path / "log"), list[bytes]()
    if asked == 0:
        assert file.sha256() == hashed(CONTENT)
    for number, block in enumerate(file.blocks(300), 1):
        got.append(block)
        if number == asked:
            assert file.sha256() == hashed(CONTENT)
    file.settle()
    assert (b"".join(got), file.sha256(), file.hashed) == (CONTENT, hashed(CONTENT), 1000)
    assert [len(block) for block in got] == [300, 300, 300, 100]


def test_a_log_that_changes_is_read_as_it_was_or_refused(tmp_path: Path) -> None:
    for early in (False, True):
        file, got = read_while(tmp_path, append, early=early)
        file.settle()
        assert (got, file.sha256()) == (CONTENT, hashed(CONTENT))
    file, got = read_while(tmp_path, lambda path: os.truncate(path, 400), early=False)
    assert (len(got), file.sha256(), file.hashed) == (400, hashed(got), 400)
    file, _ = read_while(tmp_path, lambda path: path.write_bytes(b"x" * 1000), early=True)
    with pytest.raises(SourceError, match="it changed while being read; copy it and read the copy"):
        file.settle()
