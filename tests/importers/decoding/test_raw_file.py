"""Bytes and their hash, whatever happens to the file meanwhile."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers.source_text import RawFile


def hashed(content: bytes) -> str:
    return sha256(content).hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.write_bytes(bytes(range(250)) * 4)
    return path


def test_the_hash_is_that_of_the_bytes(path: Path) -> None:
    whole = path.read_bytes()
    for asked in (0, 1, 5, 99):
        file, got = RawFile(path), b""
        if asked == 0:
            assert file.sha256() == hashed(whole)
        for number, block in enumerate(file.blocks(300), 1):
            got += block
            if number == asked:
                assert file.sha256() == hashed(whole)
        file.settle()
        assert (got, file.sha256(), file.hashed) == (whole, hashed(whole), 1000)


def test_a_log_that_grows_is_read_as_it_was(path: Path) -> None:
    before = path.read_bytes()
    for early in (False, True):
        file = RawFile(path)
        blocks = file.blocks(300)
        got = next(blocks)
        if early:
            file.sha256()
        with path.open("ab") as log:
            log.write(b"more")
        got += b"".join(blocks)
        file.settle()
        assert (got, file.sha256()) == (before, hashed(before))
        path.write_bytes(before)


def test_a_log_that_changes_after_it_was_hashed_is_refused(path: Path) -> None:
    file = RawFile(path)
    blocks = file.blocks(300)
    next(blocks)
    file.sha256()
    path.write_bytes(b"x" * 1000)
    list(blocks)
    with pytest.raises(SourceError, match="it changed while it was read; copy it and read the copy"):
        file.settle()


def test_a_log_that_shrinks_is_hashed_as_read(path: Path) -> None:
    file = RawFile(path)
    assert [len(block) for block in file.blocks(300)] == [300, 300, 300, 100]
    file = RawFile(path)
    blocks = file.blocks(300)
    got = next(blocks)
    os.truncate(path, 400)
    got += b"".join(blocks)
    assert (len(got), file.sha256(), file.hashed) == (400, hashed(got), 400)
