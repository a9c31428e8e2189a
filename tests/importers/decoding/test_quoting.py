"""Rows whose cells stand in quotes."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.importers.decoding.quoting import join_rows, unquoted
from gpureport.importers.decoding.raw_file import Account
from tests.importers.accounts import kept, lines, percents, rejected, seconds
from tests.importers.peak import peak_bytes
from tests.importers.written_logs import HEADER as UNQUOTED
from tests.importers.written_logs import log, read_text, row

QUOTED = [f'"{line}"' for line in (row(second, util=second).replace(", ", '","') for second in range(6))]
HEADER = '"timestamp","index","name","utilization.gpu [%]","memory.used [MiB]","power.draw [W]"'
"""As PowerShell writes them: no blank behind a comma."""


def quoted(content: str, delimiter: str = ",") -> str:
    """Return a log with every cell in quotes."""
    rows = (line.split(", ") for line in content.splitlines())
    return "".join(delimiter.join(f'"{cell}"' for cell in cells) + "\r\n" for cells in rows)


def without(content: bytes, size: int) -> bytes:
    """Return text handed on in blocks of some size without the quotes of its rows."""
    blocks = (content[start : start + size] for start in range(0, len(content), size))
    return b"".join(unquoted(blocks))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_quotes_change_nothing(tmp_path: Path, delimiter: str, encoding: str) -> None:
    """A log that Excel or Export-Csv wrote with quotes is the log without them."""
    (plain, packed) = (tmp_path / name for name in ("plain", "quoted"))
    plain.mkdir()
    packed.mkdir()
    recording = read_text(packed, quoted(log(20, gpus=2), delimiter).encode(encoding))
    assert recording.series.equals(read_text(plain, log(20, gpus=2)).series)
    assert (rejected(recording), recording.run.quality.headers, recording.run.quality.accounted) == ([], 1, True)


@pytest.mark.parametrize("end", ["", '"'])
def test_a_row_of_many_cells_takes_little_memory(end: str) -> None:
    """A line may hold hundreds of thousands, and each took two hundred bytes while they were looked for."""
    content = ('"a"' + ',"b"' * 100_000 + end + "\n").encode()
    assert without(content, len(content)) == (content if end else content.replace(b'"', b""))
    assert peak_bytes(lambda: without(content, len(content))) < 10 * len(content)


def test_what_stands_above_a_quoted_header(tmp_path: Path) -> None:
    """PowerShell names the type of its objects above the header, which is noise."""
    kind = "#TYPE System.Management.Automation.PSCustomObject"
    recording = read_text(tmp_path, lines(kind, HEADER, *QUOTED))
    assert (kept(recording), percents(recording), seconds(recording)) == (6, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5])
    assert (recording.run.quality.noise, rejected(recording)) == (1, [])


def test_only_words_in_quotes(tmp_path: Path) -> None:
    """R puts texts in quotes and numbers not; rows without any quotes may follow."""
    rows = [line.replace('"0"', "0").replace('"NVIDIA L4"', "NA") for line in QUOTED]
    recording = read_text(tmp_path, lines(HEADER, *rows, row(6, util=6)))
    assert percents(recording) == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("cell", ['"9,5 %"', '"9 "" %"', '"9 %'])
def test_a_quoted_cell_that_is_none(tmp_path: Path, cell: str) -> None:
    """A delimiter or a quote inside a quoted cell makes the row one that is rejected, as it stands in the log."""
    odd = QUOTED[2].replace('"2 %"', cell)
    recording = read_text(tmp_path, lines(HEADER, *QUOTED[:2], odd, *QUOTED[3:]))
    assert percents(recording) == [0, 1, 3, 4, 5]
    assert [(rows, line) for _, rows, line in rejected(recording)] == [(1, 4)]


@settings(deadline=None)
@given(
    texts=st.lists(
        st.sampled_from(['"a","b"', '"a, b","c"', "a,b", '"a"', '"', "", '{"a": 1}', '"a";"b";c', "x" * 99])
    ),
    size=st.integers(1, 40),
)
def test_blocks_do_not_show(texts: list[str], size: int) -> None:
    """However text is handed on, the same rows lose their quotes and nothing else does."""
    forms = {'"a","b"': "a,b", '"a";"b";c': "a;b;c"}
    expected = "".join(forms.get(text, text) + "\n" for text in texts).encode()
    content = "".join(text + "\n" for text in texts).encode()
    assert without(content, size) == expected


def test_a_long_quoted_line_is_handed_on() -> None:
    """A quote that is never closed is not held until the end of the log."""
    content = b'"' + b"x" * 300_000
    handed = list(unquoted(content[start : start + 1000] for start in range(0, len(content), 1000)))
    assert b"".join(handed) == content
    assert max(map(len, handed)) < 70_000


def labelled(second: int, label: str) -> str:
    """Return a row with a label behind its cells."""
    return f"{row(second, util=second)}, {label}"


@pytest.mark.parametrize("label", ['"two\nlines"', '"two\r\n\r\nmore lines"', "plain"])
def test_a_newline_in_a_quoted_cell_costs_nothing(tmp_path: Path, label: str) -> None:
    """A row that a label spreads over lines is one row, wherever the label stands, and its neighbours stay."""
    rows = [labelled(second, label if second in {2, 3} else '"a"') for second in range(6)]
    recording = read_text(tmp_path, lines(f"{UNQUOTED}, label", *rows))
    assert (kept(recording), rejected(recording), percents(recording)) == (6, [], [0, 1, 2, 3, 4, 5])
    note = "2 rows on several lines, by newlines in quotes: each counted as one row."
    assert (note in recording.run.quality.notes) == (label != "plain")
    first = read_text(tmp_path, lines(f"label, {UNQUOTED}", *(f"{label}, {row(second)}" for second in range(6))))
    assert (kept(first), rejected(first)) == (6, [])


def test_a_newline_in_a_row_of_quoted_cells(tmp_path: Path) -> None:
    """Where every cell is quoted, the row loses its quotes as its neighbours do."""
    rows = [f'{line},"{label}"' for line, label in zip(QUOTED, ["one\nmore", *"abcde"], strict=True)]
    recording = read_text(tmp_path, lines(f'{HEADER},"label"', *rows, "x"))
    assert (kept(recording), percents(recording)) == (6, [0, 1, 2, 3, 4, 5])
    assert rejected(recording) == [("wrong number of cells", 1, 9)]


@given(st.text(alphabet='a,;"\n \r', max_size=200))
def test_joining_keeps_the_number_of_lines(text: str) -> None:
    """Lines below keep their numbers, and nothing but quotes, blanks and ends of lines changes its place."""
    content = f"{text}\n".encode()
    found = join_rows(content, Account())
    assert found.count(b"\n") == content.count(b"\n")
    assert [letter for letter in found if letter in b"a,;"] == [letter for letter in content if letter in b"a,;"]
