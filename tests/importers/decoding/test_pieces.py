"""A log of any form as the same lines."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.importers.decoding.encoding import utf8
from gpureport.importers.decoding.pieces import Piece, head, pieces
from gpureport.importers.decoding.raw_file import RawFile
from tests.importers.packed import COMPRESSED, PACKED
from tests.importers.written_logs import log

BOUNDED = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
LINES = st.lists(
    st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"'), max_size=30),
    min_size=3,
    max_size=20,
)


def read(folder: Path, content: bytes, size: int = 1000) -> tuple[list[Piece], RawFile]:
    """Return the pieces of a file of this content, and the file."""
    (folder / "log").write_bytes(content)
    file = RawFile(folder / "log")
    return list(pieces(file, size)), file


def text(found: list[Piece]) -> bytes:
    """Return the pieces joined."""
    return b"".join(piece.data for piece in found)


@BOUNDED
@given(
    lines=LINES,
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    form=st.tuples(st.sampled_from(ENCODINGS), st.sampled_from(list(PACKED))),
    size=st.integers(1, 200),
)
def test_form_changes_nothing(tmp_path: Path, lines: list[str], end: str, form: tuple[str, str], size: int) -> None:
    """Line ends, encoding, compression and the size of pieces do not show in the lines."""
    # a header tells UTF-16 without a mark apart from rubbish
    content = "timestamp, index" + end + "".join(line + end for line in lines)
    encoding, packed = form
    found, _ = read(tmp_path, PACKED[packed](content.encode(encoding)), size)
    assert text(found).replace(b"\r\n", b"\n").decode().splitlines() == ["timestamp, index", *lines]


@BOUNDED
@given(
    lines=LINES, ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=20, max_size=20), size=st.integers(1, 99)
)
def test_every_piece_knows_its_first_line(tmp_path: Path, lines: list[str], ends: list[str], size: int) -> None:
    """Pieces hold whole lines and count them, however the lines end; only the last says so."""
    mixed = "".join(line + end for line, end in zip(lines, ends, strict=False))
    found, _ = read(tmp_path, mixed.encode(), size)
    line = 1
    for piece in found:
        assert piece.first_line == line
        assert piece.last or piece.data.endswith(b"\n")
        line += piece.data.count(b"\n")
    assert [piece.last for piece in found] == [False] * (len(found) - 1) + [True]
    # a CR that ends one line and a LF that ends an empty one are one line end
    assert line - 1 == len(mixed.encode().replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")) - 1


@BOUNDED
@given(place=st.integers(0, len(log(6))), length=st.integers(1, 5000), size=st.integers(1, 300))
def test_a_run_of_nul_bytes_is_one(tmp_path: Path, place: int, length: int, size: int) -> None:
    """NUL bytes anywhere, also over the borders of blocks, are one NUL byte, and counted."""
    whole = log(6).encode()
    found, file = read(tmp_path, whole[:place] + b"\0" * length + whole[place:], size)
    assert text(found) == whole[:place] + b"\0" + whole[place:]
    assert (file.account.nul_bytes, file.account.nul_runs) == (length, 1)


def test_nul_bytes_do_not_look_like_utf_16(tmp_path: Path) -> None:
    """A log that is half NUL bytes, one here and there, stays UTF-8."""
    whole = b"".join(line + b"\n" + b"\0" * 79 for line in log(30).encode().splitlines())
    found, file = read(tmp_path, b"\0" * 5000 + whole)
    assert text(found).replace(b"\0", b"") == log(30).encode()
    assert file.account.notes() == (f"{5000 + 31 * 79:,} NUL bytes in 32 runs skipped.",)


def test_a_line_without_end_is_shortened(tmp_path: Path) -> None:
    """Of a line of more than a MiB the beginning is kept, its length is noted, its neighbours stay."""
    found, file = read(tmp_path, b"a\n" + b"x" * 3_000_000 + b"\nb\n", 2**20)
    assert text(found) == b"a\n" + b"x" * 65536 + b"\nb\n"
    assert file.account.notes() == ("1 line shortened, the longest of 3,000,000 bytes.",)
    assert text(read(tmp_path, b"a\n" + b"x" * 2**20 + b"\nb\n")[0]) == b"a\n" + b"x" * 2**20 + b"\nb\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16"])
def test_half_a_character_at_the_end_is_left_out(tmp_path: Path, encoding: str) -> None:
    """UTF-16 cut inside a character gives what is whole."""
    assert text(read(tmp_path, log(3).encode(encoding)[:-1])[0]) == log(3).encode()[:-1]


def test_bytes_that_are_no_utf_8_stay(tmp_path: Path) -> None:
    """What is no text in Latin-1 either is a matter of its line."""
    assert text(read(tmp_path, b"name\nGer\x84t\nGer\xff\n")[0]) == b"name\nGer\x84t\nGer\xff\n"


def test_the_head_is_text(tmp_path: Path) -> None:
    """What an importer is shown is clean, whatever the form; a file of zeros is not searched for ever."""
    for packed in PACKED.values():
        (tmp_path / "log").write_bytes(packed(b"\0" * 250_000 + log(3).encode()))
        assert head(RawFile(tmp_path / "log"), 1000) == b"\0" + log(3).encode()
    with (tmp_path / "zeros").open("wb") as file:
        file.truncate(10**10)
    assert head(RawFile(tmp_path / "zeros"), 65536) == b"\0"


@pytest.mark.parametrize("content", ["'\\0'", "'x'", "'\\r'"])
def test_memory_is_bounded(tmp_path: Path, content: str) -> None:
    """50 MB of zeros, of one line, of line ends need no more memory than one piece and its neighbours."""
    code = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from gpureport.importers.decoding.pieces import pieces\n"
        "from gpureport.importers.decoding.raw_file import RawFile\n"
        "idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "sum(len(piece.data) for piece in pieces(RawFile(Path('log'))))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - idle)\n"
    )
    (tmp_path / "log").write_bytes(eval(content).encode() * 50_000_000)  # noqa: S307 - one character of this test
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 48 * 2**20


@pytest.mark.parametrize("packed", COMPRESSED)
def test_joined_members_are_read_whole(tmp_path: Path, packed: str) -> None:
    """Logs compressed one by one and put together are one log; padding after them is none of it."""
    parts = [PACKED[packed](part.encode()) for part in (log(30), "", log(2))]
    found, file = read(tmp_path, b"".join(parts))
    assert text(found).decode() == log(30) + log(2)
    assert file.account.notes() == ()


ROWS = "".join(f"2026/03/14 09:00:{second:02d}.000, 0, 38 °C\r\n" for second in range(60))


@BOUNDED
@given(at=st.integers(0, 1900), run=st.integers(1, 200), size=st.integers(1, 300))
def test_a_run_of_nul_bytes_is_no_utf_16(tmp_path: Path, at: int, run: int, size: int) -> None:
    """Zeros alone change no encoding."""
    content = ROWS.replace("\r", "").encode()
    found, file = read(tmp_path, content[:at] + b"\0" * run + content[at:], size)
    assert text(found) == content[:at] + b"\0" + content[at:]
    assert file.account.nul_bytes == run


def test_an_empty_block_is_nothing() -> None:
    """A decoder may give nothing at the end of what it holds."""
    assert b"".join(utf8(iter([ROWS.encode() * 9, b"", b"end"]))) == ROWS.encode() * 9 + b"end"
