"""Files appear whole or not at all, and what a killed writer left goes with the next file of that name."""

import os
from pathlib import Path

import pytest

from gpureport.places.part_files import write_part


def write_half(target: Path) -> None:
    """Write half a file, and fail."""
    with write_part(target) as part:
        part.write_text("ne")
        raise ValueError("half")


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """A writer that fails leaves the old file, and nothing beside it."""
    target = tmp_path / "r.html"
    target.write_text("old")
    with pytest.raises(ValueError, match="half"):
        write_half(target)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("r.html", "old")]
    with write_part(target) as part:
        part.write_text("new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("r.html", "new")]


def test_own_leftovers_are_swept(tmp_path: Path) -> None:
    """They are files of exactly that name a day old; what another writer or a person has stays."""
    swept = (".r.html.abcd_123.part",)
    kept = (".r.html.mine.part", ".r.html.abcd_123.part.txt", ".rxhtml.abcd_123.part", ".s.html.abcd_123.part")
    for name in (*swept, *kept, ".r.html.fresh___.part"):
        (tmp_path / name).write_text("half")
        if "fresh" not in name:
            os.utime(tmp_path / name, (1, 1))
    (tmp_path / ".r.html.a_link__.part").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".r.html.a_folder.part").mkdir()
    before = {path.name for path in tmp_path.iterdir()}
    with write_part(tmp_path / "r.html") as part:
        part.write_text("new")
    assert {path.name for path in tmp_path.iterdir()} == before - set(swept) | {"r.html"}
