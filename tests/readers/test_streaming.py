"""Logs beyond a piece that is read at once, and what may stand at its border; memory, long lines and small files."""

import gzip
import os
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from string import ascii_lowercase

import pyarrow as pa
import pytest

import gpureport
from gpureport.errors import GpureportError
from gpureport.testing import Recording
from tests.readers.pairs import check_account
from tests.support.logs import HEADER, log, read_text

PIECE = 2**20
"""Bytes that are read at once at first; where it is another number, these tests see less and still hold."""
OTHER = "timestamp, index, power.draw [W], utilization.gpu [%]"


def clock(tick: int) -> str:
    second = tick // 10
    return f"2026/03/14 {9 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{tick % 10}00"


def row(tick: int) -> str:
    return f"{clock(tick)}, 0, NVIDIA L4, {tick * 37 % 101} %, 1024 MiB, 250.00 W\n"


def beside_border(change: Callable[[str], str], count: int = 25_000) -> tuple[str, int]:
    """Return a log in which the rows around the border of the first piece are changed, and the number of these."""
    rows = [row(tick) for tick in range(count)]
    at = (PIECE - len(HEADER)) // len(rows[0])
    places = [at - 2, at - 1, at, at + 1, at + 2]
    for place in places:
        rows[place] = change(rows[place])
    return "".join([HEADER, "\n", *rows]), len(places)


def percents(recording: Recording, device: str = "gpu:0") -> list[int]:
    cells = recording.rows_of(device).column("gpu_utilization_ratio").to_numpy()
    return [round(100 * cell) for cell in cells.tolist()]


def reasons(recording: Recording) -> dict[str, int]:
    check_account(recording)
    return {entry.reason: entry.rows for entry in recording.run.quality.rejected}


@pytest.mark.parametrize(
    ("change", "lost", "rejected", "counted"),
    [
        (lambda text: text, 0, {}, (1, 0, 0)),
        (lambda text: "garbage\n" + text, 0, {"wrong number of cells": 1}, (1, 0, 0)),
        (lambda text: f"{HEADER}\n{text}", 0, {}, (6, 0, 0)),
        (lambda text: f"No devices were found\n{text}", 0, {}, (1, 0, 5)),
        (lambda text: f"2026-03-14 09:00:00\n{text}", 0, {}, (1, 5, 0)),
        (lambda text: "\0" * 900 + text, 0, {}, (1, 0, 0)),
        (lambda text: text[:30] + "\0" * 900 + text[30:], 1, {"NUL bytes": 1}, (1, 0, 0)),
        (lambda text: text.replace(", 0, ", ", zero, "), 1, {"malformed index": 1}, (1, 0, 0)),
        (lambda text: text.replace("250.00 W\n", "[N/A]\n"), 0, {}, (1, 0, 0)),
        (lambda text: text.replace("\n", "\r\n"), 0, {}, (1, 0, 0)),
    ],
    ids=["nothing", "words", "headers", "messages", "dates", "NUL runs", "NUL in a row", "cells", "no value", "CRLF"],
)
def test_a_border_between_pieces_does_not_show(
    change: Callable[[str], str], lost: int, rejected: dict[str, int], counted: tuple[int, int, int], tmp_path: Path
) -> None:
    text, changed = beside_border(change)
    recording = read_text(tmp_path, text)
    assert reasons(recording) == {reason: changed * rows for reason, rows in rejected.items()}
    assert len(recording.series) == 25_000 - lost * changed
    quality = recording.run.quality
    assert (quality.headers, quality.noise, quality.events) == counted
    assert percents(recording)[:15_000:7] == [tick * 37 % 101 for tick in range(0, 15_000, 7)]


def test_a_header_in_a_later_piece_changes_the_rows_after_it(tmp_path: Path) -> None:
    later = [f"{clock(tick)}, 0, 20.00 W, {tick % 100} %\n" for tick in range(90_000, 140_000)]
    text = "".join([HEADER, "\n", *map(row, range(90_000)), OTHER, "\n", *later])
    recording = read_text(tmp_path, text)
    assert (reasons(recording), recording.run.quality.headers) == ({}, 2)
    assert recording.series.column("gpu_power_watts").to_pylist()[89_999:90_001] == [250, 20]
    assert percents(recording)[90_000:] == [tick % 100 for tick in range(90_000, 140_000)]


def test_lines_of_a_few_letters_end_in_an_account_or_an_error(tmp_path: Path) -> None:
    chance = random.Random(1)
    for letters, header in product(("x", "1", '"', "ab1,;-#", "\0x"), (HEADER, "utilization.gpu [%]", "x")):
        text = "".join(chance.choice(letters) + "\n" for _ in range(20_000))
        try:
            check_account(read_text(tmp_path, f"{header}\n{text}"))
        except GpureportError:
            continue


@pytest.mark.parametrize(
    "heading", ["a" + "_" * 60_000 + "!", "gpu_" * 20_000 + "?", "a [" * 20_000, "util ," * 20_000]
)
def test_a_long_line_of_words_is_no_header(heading: str, tmp_path: Path) -> None:
    header, *rows = log(9).splitlines()
    lines = [header, *rows[:4], f"{heading},utilization.gpu [%]", *rows[4:], ""]
    recording = read_text(tmp_path, "\n".join(lines))
    check_account(recording)
    assert (len(recording.series), recording.run.quality.headers) == (9, 1)


BOMBS = {
    "cells": b"a,b\n" * 2_500_000,
    "words": b"x\n" * 5_000_000,
    "other words": "\n".join(map("".join, product(ascii_lowercase, repeat=4))).encode(),
    "JSON": b'{"a": 1, "b": 2}\n' * 600_000,
    "line ends": b"\n" * 10_000_000,
    "headings": b"timestamp, name\n" * 700_000,
    "frames": b"|a|b|\n" * 1_700_000,
    "long lines": (b"%" * 300_000 + b"\n") * 30,
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if "words" in name else ()) for name in BOMBS]
)
def test_what_a_small_file_stands_for_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(BOMBS[name]))
    with pytest.raises(GpureportError):
        gpureport.read(path)


def test_hundreds_of_gpus_and_what_unpacks_to_thousands_of_times_its_size(tmp_path: Path) -> None:
    rows = [f"{clock(tick * 10)}, GPU-{gpu:04d}, {gpu % 101} %" for tick in range(4) for gpu in range(700)]
    recording = read_text(tmp_path, "\n".join(["timestamp, uuid, utilization.gpu [%]", *rows, ""]))
    assert (len(recording.run.gpus), len(recording.series)) == (700, 2800)
    for gpu in (0, 101, 699):
        assert percents(recording, f"gpu:{gpu}") == [gpu % 101] * 4
    text = f"{HEADER}\n".encode() + row(0).encode() * 2_000_000
    (tmp_path / "log.zst").write_bytes(pa.compress(text, codec="zstd", asbytes=True))
    with pytest.raises(GpureportError, match="unpacks to more than"):
        gpureport.read(tmp_path / "log.zst")


@pytest.mark.slow
def test_a_log_below_much_else_is_still_recognised(tmp_path: Path) -> None:
    text = b"".join(b"step %d ok\n" % number for number in range(200_000)) + log(20).encode()
    assert len(read_text(tmp_path, text).series) == 20


@pytest.mark.parametrize("letter", ["'\\0'", "'x'", "'\\r'"])
def test_a_file_of_one_letter_takes_little_memory(letter: str, tmp_path: Path) -> None:
    code = (
        "import resource, gpureport\n"
        "from gpureport.errors import GpureportError\n"
        "def read():\n"
        "    try:\n        gpureport.read('log')\n"
        "    except GpureportError:\n        return\n"
        "gpureport.read('clean')\n"
        "idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nread()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - idle)\n"
    )
    (tmp_path / "clean").write_text(log(20), encoding="utf-8")
    (tmp_path / "log").write_bytes(eval(letter).encode() * 50_000_000)  # noqa: S307 - one character of this test
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 64 * 2**20
