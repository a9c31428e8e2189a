"""A compressed file that unpacks to far more than any recording: its end is not waited for."""

import zlib
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers.decoding import compression
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.limits import MOST_UNPACKED_RATIO


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gzip packs zeros a thousandfold; nothing is read beyond the limit."""
    monkeypatch.setattr(compression, "UNPACKED_FREELY", 2**20)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    (tmp_path / "log.gz").write_bytes(packer.compress(b"0" * 2**24) + packer.flush())
    file, read = RawFile(tmp_path / "log.gz"), 0
    with pytest.raises(SourceError, match=f"unpacks to more than {MOST_UNPACKED_RATIO} times its size"):
        for block in compression.decompressed_blocks(file, 65536):
            read += len(block)
    assert read <= MOST_UNPACKED_RATIO * file.size
