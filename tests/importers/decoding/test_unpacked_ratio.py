"""A compressed file that unpacks to far more than any recording: its end is not waited for."""

import bz2
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import source_text as compression
from gpureport.importers.source_text import RawFile
from gpureport.limits import MOST_UNPACKED_RATIO


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bzip2 packs a repeated letter many thousandfold; nothing is read beyond the limit."""
    monkeypatch.setattr(compression, "UNPACKED_FREELY", 2**17)
    (tmp_path / "log.bz2").write_bytes(bz2.compress(b"0" * 2**22))
    file = RawFile(tmp_path / "log.bz2")
    read: list[int] = []
    with pytest.raises(SourceError, match=f"unpacks to more than {MOST_UNPACKED_RATIO} times its size"):
        read.extend(map(len, compression.decompressed_blocks(file, 65536)))
    assert sum(read) <= max(2**17, MOST_UNPACKED_RATIO * file.size)
