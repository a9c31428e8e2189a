"""Lines of damaged logs: what is kept, what is rejected, and why."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.parsing import Parser
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from gpureport.testing import Quality
from tests.importers.written_logs import HEADER, log, read_text, row


def quality(folder: Path, *lines: str | bytes) -> Quality:
    """Return the account of a log of these lines."""
    raw = [line if isinstance(line, bytes) else line.encode() for line in (HEADER, *lines, "")]
    found = read_text(folder, b"\n".join(raw)).run.quality
    assert found.accounted
    return found


def reasons(account: Quality) -> dict[str, int]:
    """Return the rejected rows by reason."""
    return {entry.reason: entry.rows for entry in account.rejected}


def test_nul_bytes_inside_a_row_cost_that_row(tmp_path: Path) -> None:
    """Both halves of a row that a NUL run broke are rejected; its neighbours stay."""
    broken = row(1).encode().replace(b"NVIDIA", b"\0" * 5000 + b"NVIDIA")
    account = quality(tmp_path, row(0), broken, row(2))
    assert (account.rows_kept, reasons(account)) == (2, {"NUL bytes": 2})


def test_a_line_of_nul_bytes_throughout_is_one_that_is_rejected(tmp_path: Path) -> None:
    """Text of four bytes a letter without a mark costs a line of it each, not one for every letter."""
    wide = "".join(f"\0\0\0{letter}" for letter in row(9))
    account = read_text(tmp_path, f"{log(3)}{wide}\n").run.quality
    assert account.accounted
    assert (account.rows_kept, reasons(account)) == (3, {"NUL bytes": 1})


def test_a_whole_row_after_nul_bytes_is_kept(tmp_path: Path) -> None:
    """A row glued to a NUL run is whole when it begins with a whole stamp."""
    account = quality(tmp_path, row(0), b"\0" * 79 + row(1).encode(), row(2))
    assert (account.rows_kept, reasons(account)) == (3, {})


def test_a_number_before_nul_bytes_is_not_believed(tmp_path: Path) -> None:
    """The last cell before a NUL run may be the beginning of a longer one: it is null, its row stays."""
    account = quality(tmp_path, row(0), row(1, power="58").encode() + b"\0\0", row(2))
    assert account.rows_kept == 3
    assert [(entry.column, entry.reason) for entry in account.absent_cells] == [("power.draw", "cut")]


def test_an_index_after_nul_bytes_is_not_believed(tmp_path: Path) -> None:
    """`0` at the start of what a NUL run left may be the end of `10`: the row has no GPU of its own."""
    header = "index, timestamp, utilization.gpu [%]\n"
    lines = [f"{gpu}, 2026/03/14 09:00:0{second}.000, 5 %\n" for second in range(4) for gpu in (0, 1)]
    lines[4] = "\0\0" + lines[4]
    found = read_text(tmp_path, header + "".join(lines)).run.quality
    assert reasons(found) == {"GPU not named": 1}


def test_a_row_torn_onto_another_is_kept(tmp_path: Path) -> None:
    """Of a line that begins with a part of another one, the whole row at its end is kept, and counted once."""
    for part in (row(1)[:40], row(1)[:12], "1", "NVIDIA L4, 9"):
        account = quality(tmp_path, row(0), part + row(2), row(3))
        assert (account.rows_kept, reasons(account), account.lines) == (3, {}, 4)
        assert account.notes == (
            "Line 3 is torn and ends in a whole row: the row is kept, what stands before it is left out.",
        )


def test_a_message_before_a_row_is_an_event(tmp_path: Path) -> None:
    """A driver's message onto whose line a row was torn is counted besides the row."""
    account = quality(tmp_path, row(0), "No devices were found" + row(2), row(3))
    assert (account.rows_kept, account.events, account.lines) == (3, 1, 5)


def test_a_last_cell_without_its_unit_is_torn(tmp_path: Path) -> None:
    """Where every power reading has its unit, a single one without was torn inside it."""
    rows = [row(second) for second in range(30)]
    rows[12] = row(12, power="28")
    assert reasons(quality(tmp_path, *rows)) == {"torn line": 1}


def test_cells_before_the_stamp_are_left_out(tmp_path: Path) -> None:
    """Rows that grew by cells a wrapper puts in front are read from their stamp on."""
    account = quality(tmp_path, row(0), "eurlex4k,distilbert," + row(1), row(2))
    assert (account.rows_kept, reasons(account)) == (3, {})
    note = "1 row holds cells before the time stamp that have no heading (eurlex4k,distilbert): they are left out."
    assert account.notes == (note,)


def test_cells_after_the_last_column_are_not_guessed(tmp_path: Path) -> None:
    """A row with more cells than the header names, its stamp in place, is rejected."""
    account = quality(tmp_path, row(0), row(1) + ", 77", row(2))
    assert reasons(account) == {"wrong number of cells": 1}


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_any_line_end_ends_a_line(tmp_path: Path, end: str) -> None:
    """Carriage returns alone end lines too."""
    plain = read_text(tmp_path, log(9))
    other = read_text(tmp_path, log(9).replace("\n", end))
    assert plain.series.equals(other.series)


def test_a_spreadsheet_of_another_country_is_read(tmp_path: Path) -> None:
    """Semicolons, decimal commas and a date that begins with the day give the same series."""
    plain = read_text(tmp_path, log(9))
    lines = [line.replace(", ", ";").replace(".", ",") for line in log(9).splitlines()]
    lines = [lines[0].replace(",", "."), *(line.replace("2026/03/14", "14.03.2026") for line in lines[1:])]
    other = read_text(tmp_path, "\r\n".join([*lines, ""]))
    assert plain.series.equals(other.series)


def test_tabulators_separate_cells(tmp_path: Path) -> None:
    """A log saved with tabulators gives the same series."""
    plain = read_text(tmp_path, log(9))
    assert plain.series.equals(read_text(tmp_path, log(9).replace(", ", "\t")).series)


def test_a_dirty_piece_equals_a_clean_one() -> None:
    """The rows around an other_lines line are read as they are without it."""
    text = log(50, gpus=2)
    clean = Parser(QueryGpuDialect()).parse(Piece(text.encode(), 1, last=True, lines=text.count("\n")), None)
    lines = text.splitlines()
    lines[30:30] = ["no row", HEADER, "------"]
    dirty = Parser(QueryGpuDialect()).parse(
        Piece("\n".join([*lines, ""]).encode(), 1, last=True, lines=len(lines)), None
    )
    (one,), (other,) = clean.sections, dirty.sections
    assert one.times.tolist() == other.times.tolist()
    for position, column in one.columns.items():
        assert (
            column.values(one.layout.columns[position].dtype).tolist()
            == other.columns[position].values(one.layout.columns[position].dtype).tolist()
        )
    assert [line.number for line in dirty.other_lines] == [1, 31, 32, 33]


@pytest.mark.parametrize("word", ["gpu", "name", "index", "uuid", "pstate", "gpu_util"])
def test_a_word_that_is_a_heading_is_no_header(tmp_path: Path, word: str) -> None:
    """A line of one word between rows does not change their columns."""
    account = quality(tmp_path, row(0), word, row(1), row(2))
    assert (account.rows_kept, account.headers) == (3, 1)


def test_a_damaged_header_is_no_header(tmp_path: Path) -> None:
    """A repeated header that is broken, cut or torn does not change the columns of what follows."""
    broken = HEADER[:30] + "\0" + HEADER[30:]
    account = quality(tmp_path, row(0), broken, row(1), HEADER[:30] + HEADER, row(2), HEADER[25:], row(3))
    assert (account.rows_kept, account.headers) == (4, 2)


def test_a_header_at_the_end_of_a_row_is_taken_off(tmp_path: Path) -> None:
    """Where a log without a final newline was appended to, the row before the header stays."""
    account = quality(tmp_path, row(0), row(1) + HEADER, row(2))
    assert (account.rows_kept, account.headers, account.rejected) == (3, 2, ())


def test_one_odd_reading_in_a_log_without_units_is_a_reading(tmp_path: Path) -> None:
    """A shorter number in a long log without units is no torn cell."""
    header = "timestamp, power.draw [W]\n"
    stamps = [
        f"2026/03/14 {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000" for second in range(9000)
    ]
    watts = [f"{300 + second * 7 % 10000 / 100:.2f}" for second in range(9000)]
    watts[8000] = "99.05"
    text = header + "".join(f"{stamp}, {power}\n" for stamp, power in zip(stamps, watts, strict=True))
    assert read_text(tmp_path, text).run.quality.rows_kept == 9000


@pytest.mark.parametrize("header", [HEADER, HEADER + ","])
def test_a_delimiter_at_the_end_is_no_cell(tmp_path: Path, header: str) -> None:
    """Rows that end with a comma are read, whether their header ends with one or not."""
    plain = read_text(tmp_path, log(9))
    text = "\n".join([header, *(f"{line}," for line in log(9).splitlines()[1:]), ""])
    found = read_text(tmp_path, text)
    assert found.series.select(plain.series.column_names).equals(plain.series)
    assert found.run.quality.accounted


@pytest.mark.parametrize("letters", ["x", "1", '"', "ab1,;-#", "\0x"])
@pytest.mark.parametrize("header", [HEADER, "utilization.gpu [%]", "x"])
def test_a_log_of_one_letter_a_line(tmp_path: Path, header: str, letters: str) -> None:
    """100 kB of lines that are no rows are refused, or counted line by line."""
    chance = Random(1)
    text = "".join(chance.choice(letters) + "\n" for _ in range(50_000))
    with suppress(SourceError):
        assert read_text(tmp_path, f"{header}\n{text}").run.quality.accounted


def test_what_is_no_row_twice_is_counted_twice(tmp_path: Path) -> None:
    """Lines that say the same are known again, each under its own number, until a header gives them another meaning."""
    wide = "timestamp, index, utilization.gpu [%]"
    other_lines = ["x", "No devices were found", "----", "a, b, c", "\xff", "x"]
    found = read_text(
        tmp_path,
        "\n".join([HEADER, *other_lines, row(0), *other_lines, wide, *other_lines, *other_lines, ""]).encode("latin-1"),
    )
    account = found.run.quality
    assert account.accounted
    assert (account.lines, account.headers, account.noise, account.events) == (27, 2, 4, 4)
    assert [(entry.reason, entry.rows, entry.first_line) for entry in account.rejected] == [
        ("malformed index", 2, 19),
        ("not UTF-8 text", 4, 6),
        ("wrong number of cells", 10, 2),
    ]


def test_a_piece_of_very_many_lines_is_parsed_in_parts() -> None:
    """Lines keep their numbers, and a header in one part holds in the next; what is no row fills no memory."""
    other = "timestamp, utilization.gpu [%]"
    rows = [f"2026/03/14 09:00:00.000, {util % 90} %" for util in range(4_000)]
    lines = [HEADER, *["x"] * 200_000, other, *["y"] * 200_000, *rows, "z"]
    data = "\n".join(lines).encode()
    parts = list(Parser(QueryGpuDialect()).sections([Piece(data, 1, last=True, lines=len(lines) - 1)]))
    assert max(len(part.other_lines) for part in parts) < 150_000
    assert sum(part.lines for part in parts) == len(lines)
    assert [line.number for part in parts for line in part.other_lines] == [*range(1, 400_003), len(lines)]
    numbers = [number for part in parts for section in part.sections for number in section.numbers.tolist()]
    assert numbers == list(range(400_003, 404_003))
    assert [part.cut for part in parts] == [False] * (len(parts) - 1) + [True]


@pytest.mark.parametrize(
    ("header", "cell"),
    [
        (f"{HEADER}, label", "Größe"),
        (f"{HEADER}, temperature.gpu", "50 °C"),
        (f"{HEADER}, temp (°C)", "50"),
        (f"{HEADER}, label", "a"),
    ],
    ids=["word", "degrees", "heading", "none"],
)
def test_letters_of_latin_1_are_read(tmp_path: Path, header: str, cell: str) -> None:
    """A log of an older encoding is the log that it would be in UTF-8; a note says so."""
    text = "\n".join([header, *(f"{row(second)}, {cell}" for second in range(20)), ""])
    plain, other = read_text(tmp_path, text), read_text(tmp_path, text.encode("latin-1"))
    assert other.series.equals(plain.series)
    assert other.run.quality.rejected == ()
    noted = [note for note in other.run.quality.notes if note.endswith("in Latin-1, not UTF-8: read as Latin-1.")]
    assert len(noted) == (not text.isascii())


def test_latin_1_among_utf_8(tmp_path: Path) -> None:
    """A line of each encoding keeps its letters; damage stays what it is."""
    rows = [f"{row(second)}, Größe".encode("latin-1" if second % 2 else "utf-8") for second in range(8)]
    rows[5] = rows[5].replace(b"Gr", b"G\x01")
    account = read_text(tmp_path, b"\n".join([f"{HEADER}, label".encode(), *rows, b""])).run.quality
    assert (account.rows_kept, reasons(account)) == (7, {"not UTF-8 text": 1})
