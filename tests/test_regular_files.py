"""What is opened of someone else's folder: regular files, of bounded size, inside it."""

import os
import socket
import threading
from pathlib import Path

import pytest

from gpureport import regular_files
from gpureport.errors import SourceError
from gpureport.importers.reading.folders import find_logs_in_folder
from gpureport.limits import DEEPEST_FOLDER, LIMITS, MOST_SETTINGS_BYTES
from gpureport.regular_files import UnsafeFileError, read_regular_file, read_small_text, walk_folder


def _make(path: Path, what: str) -> None:
    if what == "a named pipe":
        os.mkfifo(path)
    elif what == "a socket":
        # the path of a socket holds 107 bytes at most
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        finally:
            os.chdir(here)
    elif what == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


@pytest.mark.parametrize("what", ["a named pipe", "a socket", "a device", "a folder"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, what: str) -> None:
    """Opening a pipe would block, and a device would never end."""
    _make(tmp_path / "x", what)
    with pytest.raises(UnsafeFileError, match=f"{what}, not a regular file"):
        read_regular_file(tmp_path / "x")


def test_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    """One that stays in the folder is followed, one that leads out is not."""
    root = tmp_path / "store"
    (root / "run").mkdir(parents=True)
    (root / "a").write_text("mine")
    (tmp_path / "secret").write_text("not mine")
    for name, target in (("in", "../a"), ("out", "../../secret"), ("passwd", "/etc/passwd")):
        (root / "run" / name).symlink_to(target)
    assert read_regular_file(root / "run" / "in", root=root) == b"mine"
    for name in ("out", "passwd"):
        with pytest.raises(UnsafeFileError, match=f"a link out of {root}"):
            read_regular_file(root / "run" / name, root=root)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    """However little of it is on disk."""
    (tmp_path / "x").touch()
    os.truncate(tmp_path / "x", 20_000_000_000)
    with pytest.raises(UnsafeFileError, match=f"at most {MOST_SETTINGS_BYTES:,} are read"):
        read_regular_file(tmp_path / "x")


def test_a_pipe_must_have_a_writer_that_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one it is given up, with one that does not stop it is too large, else it is read."""
    monkeypatch.setattr(regular_files, "PIPE_PATIENCE", 0.1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UnsafeFileError, match="nobody wrote to the pipe within"):
        read_small_text(pipe)
    monkeypatch.setattr(regular_files, "PIPE_PATIENCE", 5.0)
    monkeypatch.setattr(regular_files, "MOST_SETTINGS_BYTES", 1000)
    assert _read_from(pipe, b"a = 1\n") == "a = 1\n"
    with pytest.raises(UnsafeFileError, match="too large: at most 1,000 bytes"):
        _read_from(pipe, b"y\n" * 1000)


def _read_from(pipe: Path, content: bytes) -> str:
    def write() -> None:
        try:
            pipe.write_bytes(content)
        except BrokenPipeError:
            return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return read_small_text(pipe)
    finally:
        writer.join()


def test_folders_are_entered_only_so_deep(tmp_path: Path) -> None:
    """A thousand of them would exhaust Python's stack."""
    deep = tmp_path.joinpath(*["d"] * (DEEPEST_FOLDER + 1))
    deep.mkdir(parents=True)
    assert len(list(walk_folder(tmp_path / "d"))) == DEEPEST_FOLDER + 1
    with pytest.raises(UnsafeFileError, match=f"nested more than {DEEPEST_FOLDER} deep"):
        list(walk_folder(tmp_path))


def test_each_limit_says_what_to_expect() -> None:
    """No row of the table is empty, none is there twice."""
    assert len({each.what for each in LIMITS}) == len(LIMITS)
    assert all(each.most and each.beyond for each in LIMITS)


def test_folders_of_logs_are_searched_only_so_deep(tmp_path: Path) -> None:
    """The error names where, and what to do."""
    tmp_path.joinpath(*["d"] * (DEEPEST_FOLDER + 1)).mkdir(parents=True)
    with pytest.raises(SourceError, match=f"nested more than {DEEPEST_FOLDER} deep; give the folder in it"):
        find_logs_in_folder(tmp_path)
