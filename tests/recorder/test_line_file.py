"""A log holds whole lines only, whatever ends it."""

import resource
from pathlib import Path

import pytest

from gpureport.recorder.line_file import LineFile


def test_half_lines_wait_for_their_end(tmp_path: Path) -> None:
    """A line comes into the file when it is whole."""
    log = LineFile(tmp_path / "log")
    log.write(b"one\ntw")
    assert (tmp_path / "log").read_bytes() == b"one\n"
    log.write(b"o\n")
    log.write(b"thr")
    log.end_line()
    log.write(b"four\n")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\nfour\n"
    assert (log.lines, log.failure) == (3, "")


def test_file_that_takes_no_more_ends_with_a_whole_line(tmp_path: Path) -> None:
    """What the system took of the last line is removed, and the failure says why."""
    log = LineFile(tmp_path / "log")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        log.write(b"first\nsecond\nthird\n")
        log.write(b"4\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    log.write(b"5\n")
    assert (tmp_path / "log").read_bytes() == b"first\n"
    assert (log.lines, log.failure) == (1, "log ends early: File too large.")


def test_file_that_exists_is_kept(tmp_path: Path) -> None:
    """No log is written over."""
    (tmp_path / "log").write_text("mine")
    with pytest.raises(FileExistsError):
        LineFile(tmp_path / "log")
    assert (tmp_path / "log").read_text() == "mine"
