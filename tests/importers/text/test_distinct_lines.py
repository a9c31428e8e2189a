"""Little of a long text is enough to recognise it by."""

import gzip
from itertools import product
from pathlib import Path
from string import ascii_lowercase

import pytest

import gpureport
from gpureport.errors import SourceError
from gpureport.importers.text.distinct_lines import MOST_LINES, thinned
from tests.importers.written_logs import log

_WORDS = "\n".join("".join(word) for word in product(ascii_lowercase, repeat=4)).encode()
_BOMBS = {
    "cells": b"a,b\n" * 2_500_000,
    "words": b"x\n" * 5_000_000,
    "other words": _WORDS,
    "JSON": b'{"a": 1, "b": 2}\n' * 600_000,
    "line ends": b"\n" * 10_000_000,
    "headings": b"timestamp, name\n" * 700_000,
    "frames": b"|a|b|\n" * 1_700_000,
    "long lines": (b"%" * 300_000 + b"\n") * 30,
}


def test_a_text_of_few_lines_is_left_alone() -> None:
    """Twenty thousand lines are looked through as they are."""
    data = b"the same\n" * 20_000
    assert thinned(data) is data


def test_the_first_lines_of_each_kind_are_kept_in_their_order() -> None:
    """Lines that differ in digits alone are of one kind; a line that comes once is never left out."""
    steps = [b"step %d" % number for number in range(25_000)]
    lines = [*steps, b"timestamp, index", *steps, b"end"]
    assert thinned(b"\n".join(lines)).split(b"\n") == [
        *(b"step %d" % number for number in range(10)),
        *(b"step %d" % number for number in range(10, 100)),
        *(b"step %d" % number for number in range(100, 200)),
        *(b"step %d" % number for number in range(1000, 1100)),
        *(b"step %d" % number for number in range(10_000, 10_100)),
        b"timestamp, index",
        # of one digit there were ten so far, in each half
        *(b"step %d" % number for number in range(10)),
        *(b"step %d" % number for number in range(10, 20)),
        b"end",
    ]


def test_more_lines_than_a_log_has_are_not_searched() -> None:
    """What follows hundreds of thousands of line ends is out of sight."""
    assert b"late" not in thinned(b"\n" * (MOST_LINES + 5) + b"late")


@pytest.mark.parametrize("name", _BOMBS)
def test_what_a_small_file_stands_for_is_refused(tmp_path: Path, name: str) -> None:
    """A few kilobytes that stand for megabytes of lines of no log are refused like others."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(_BOMBS[name]))
    with pytest.raises(SourceError):
        gpureport.read(path)


@pytest.mark.slow
def test_a_log_below_much_else_is_still_recognised(tmp_path: Path) -> None:
    """A job that prints two hundred thousand lines hides no log that begins within 4 MiB."""
    path = tmp_path / "job.log"
    path.write_bytes(b"".join(b"step %d ok\n" % number for number in range(200_000)) + log(20).encode())
    (recording,) = gpureport.read(path)
    assert len(recording.series) == 20
