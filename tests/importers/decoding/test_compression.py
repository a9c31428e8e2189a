"""Compressed logs that are whole, cut, or damaged."""

import random
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.importers.decoding.compression import archive_kind, decompressed_blocks
from gpureport.importers.decoding.raw_file import RawFile
from tests.importers.packed import COMPRESSED, PACKED
from tests.importers.written_logs import row

BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
CHANCE = random.Random(5)
LOG = "".join(row(second, util=CHANCE.randrange(100)) + "\n" for second in range(2000)).encode()
CUT = "The compressed log is cut: read up to there."


def read(folder: Path, content: bytes, size: int = 4096) -> tuple[bytes, tuple[str, ...]]:
    """Return what a file of this content holds, and what is noted about it."""
    (folder / "log").write_bytes(content)
    file = RawFile(folder / "log")
    blocks = list(decompressed_blocks(file, size))
    assert all(len(block) <= max(size, 65536) for block in blocks)
    return b"".join(blocks), file.account.notes()


@pytest.mark.parametrize("packed", COMPRESSED)
def test_what_was_compressed_comes_back(tmp_path: Path, packed: str) -> None:
    """Every method is recognised by content, in blocks of bounded size, also of bytes that expand a thousandfold."""
    assert read(tmp_path, PACKED[packed](LOG)) == (LOG, ())
    zeros = b"0" * 10_000_000
    assert read(tmp_path, PACKED[packed](zeros)) == (zeros, ())
    assert read(tmp_path, PACKED[packed](b"")) == (b"", ())


@BOUNDED
@given(packed=st.sampled_from(COMPRESSED), share=st.floats(0, 1, exclude_max=True), size=st.integers(1, 9000))
def test_a_cut_file_gives_its_beginning(tmp_path: Path, packed: str, share: float, size: int) -> None:
    """Cut at any byte, a file gives a prefix and says so; nothing is raised."""
    content = PACKED[packed](LOG)
    at = int(share * len(content))
    found, notes = read(tmp_path, content[:at], size)
    if at > 8:
        assert LOG.startswith(found)
        assert notes == (CUT,)


@pytest.mark.parametrize("at", range(18, 220))
def test_a_gzip_cut_at_every_byte(tmp_path: Path, at: int) -> None:
    """A small file, byte by byte: a prefix that grows."""
    content = PACKED["gzip"](LOG[:2000])
    assert LOG.startswith(read(tmp_path, content[:at])[0])


@pytest.mark.parametrize("packed", COMPRESSED)
def test_most_of_a_cut_file_is_read(tmp_path: Path, packed: str) -> None:
    """What stands before the cut is not lost to the size of a step."""
    whole = b"".join(b"%08d\n" % CHANCE.randrange(10**8) for _ in range(300_000))
    content = PACKED[packed](whole)
    found, _ = read(tmp_path, content[: len(content) * 3 // 4], 2**20)
    assert whole.startswith(found)
    # bzip2 packs 900 kB at a time
    assert len(found) > len(whole) * 0.75 - (900_000 if packed == "bzip2" else 140_000)


@BOUNDED
@given(packed=st.sampled_from(COMPRESSED), share=st.floats(0.01, 0.99), junk=st.binary(min_size=1, max_size=9))
def test_damage_raises_nothing(tmp_path: Path, packed: str, share: float, junk: bytes) -> None:
    """Damage inside gives what stands before it, and what is wrong, or passes where no checksum sees it."""
    content = bytearray(PACKED[packed](LOG))
    at = int(share * len(content))
    content[at : at + len(junk)] = junk
    found, notes = read(tmp_path, bytes(content))
    if found != LOG:
        assert found[:1000] == LOG[:1000] or share < 0.2 or packed in {"bzip2", "zstd"}
        assert notes == () or notes[0].startswith("The compressed log is ")


def test_rubbish_after_the_end_is_told(tmp_path: Path) -> None:
    """What follows a compressed log and is none is not dropped without a word."""
    found, notes = read(tmp_path, PACKED["gzip"](LOG) + b"rubbish")
    assert found == LOG
    assert notes == ("The compressed log is followed by other bytes: they are ignored.",)


def test_a_damaged_second_member_is_damage(tmp_path: Path) -> None:
    """A member that begins as one and is none is no rubbish: something of the log is lost."""
    packed = PACKED["gzip"](LOG)
    found, notes = read(tmp_path, packed + packed[:40] + b"rubbish" * 9)
    assert found[: len(LOG)] == LOG
    assert notes[0].startswith("The compressed log is damaged")


def test_archives_are_told_apart(tmp_path: Path) -> None:
    """An archive of files is no compressed file."""
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as packed:
        packed.writestr("gpu.csv", LOG)
    assert archive_kind(RawFile(tmp_path / "log.zip")) == "a zip archive"
    (tmp_path / "log").write_bytes(LOG)
    assert archive_kind(RawFile(tmp_path / "log")) is None
