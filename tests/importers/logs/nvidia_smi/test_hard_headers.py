"""Headers that come again, change, are glued to other lines, or say less than the rows."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from tests.importers.accounts import column, kept, lines, percents, rejected, seconds
from tests.importers.written_logs import HEADER, read_text, row, stamp

LAST = "timestamp, utilization.memory [%], utilization.gpu [%]"
FIRST = "timestamp, utilization.gpu [%], utilization.memory [%]"


def test_one_row_a_header(tmp_path: Path) -> None:
    """A script that calls nvidia-smi once a second writes a header each time: 224 of 447 lines."""
    recording = read_text(
        tmp_path, lines(*(line for s in range(223) for line in (HEADER, row(s, util=s % 100))), HEADER)
    )
    assert (kept(recording), recording.run.quality.headers, recording.run.quality.lines) == (223, 224, 447)
    assert percents(recording) == [second % 100 for second in range(223)]
    assert rejected(recording) == []


@pytest.mark.parametrize("front", ["eurlex4k,distilbert,", "eurlex4k, distilbert, "])
def test_rows_that_grow_in_front_from_8_to_10_cells(tmp_path: Path, front: str) -> None:
    """A wrapper that later puts two names before each row loses none of them."""
    header = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], pstate, temperature.gpu"
    rows = [f"{stamp(second)}, 0, L4, {second} %, 7 MiB, 40.25 W, P0, {50 + second}" for second in range(6)]
    recording = read_text(tmp_path, lines(header, *rows[:3], *(front + line for line in rows[3:])))
    assert (kept(recording), percents(recording)) == (6, [0, 1, 2, 3, 4, 5])
    assert column(recording, "gpu_temperature_celsius") == [50, 51, 52, 53, 54, 55]
    assert seconds(recording) == [0, 1, 2, 3, 4, 5]


def test_a_header_of_more_columns_begins_a_new_mapping(tmp_path: Path) -> None:
    """From 8 to 10 columns, the new ones in the middle: every cell goes where its own header says."""
    wide = HEADER.replace("name, ", "name, temperature.gpu, fan.speed [%], ")
    later = [row(second, util=second).replace("NVIDIA L4, ", f"NVIDIA L4, {40 + second}, 30 %, ") for second in (3, 4)]
    recording = read_text(tmp_path, lines(HEADER, *(row(s, util=s) for s in range(3)), wide, *later))
    assert (kept(recording), recording.run.quality.headers, rejected(recording)) == (5, 2, [])
    assert percents(recording) == [0, 1, 2, 3, 4]
    assert column(recording, "gpu_temperature_celsius") == [None, None, None, 43, 44]


def test_two_headers_that_alternate(tmp_path: Path) -> None:
    """Two scripts that write one row each under a header of their own keep their columns apart."""
    pairs = [(LAST if s % 2 else FIRST, f"{stamp(s)}, {s} %, {50 + s} %") for s in range(6)]
    recording = read_text(tmp_path, lines(*(line for pair in pairs for line in pair)))
    assert (kept(recording), recording.run.quality.headers) == (6, 6)
    assert percents(recording) == [0, 51, 2, 53, 4, 55]


@pytest.mark.parametrize("cut", [1, 12, 25, 30, 44])
def test_a_header_glued_to_a_cut_line(tmp_path: Path, cut: int) -> None:
    """A logger that was killed inside a line and started anew with other columns costs that line, not the new rows."""
    other = "timestamp, index, name, power.draw [W], memory.used [MiB], utilization.gpu [%]"
    later = [f"{stamp(second)}, 0, NVIDIA L4, 9.50 W, 7 MiB, {second} %" for second in (2, 3)]
    recording = read_text(tmp_path, lines(HEADER, row(0, util=50), row(1)[:cut] + other, *later))
    assert (kept(recording), rejected(recording)) == (3, [("torn line", 1, 3)])
    assert (percents(recording), recording.run.quality.headers) == ([50, 2, 3], 2)
    assert column(recording, "gpu_power_watts") == [250, 9.5, 9.5]


@pytest.mark.parametrize("words", ["gpu", "name", "finished, name", "index, loss, lr", "timestamps, loss"])
def test_words_of_another_program_are_no_header(tmp_path: Path, words: str) -> None:
    """A line of job output that happens to name a field does not make the rows after it unreadable."""
    recording = read_text(tmp_path, lines(HEADER, row(0), words, row(1), row(2)))
    assert (kept(recording), rejected(recording)) == (3, [("wrong number of cells", 1, 3)])


def test_rows_before_the_header(tmp_path: Path) -> None:
    """Rows of a log whose beginning was rotated away are read by the next header, which they fit."""
    recording = read_text(tmp_path, lines(row(0), row(1), HEADER, row(2, util=7)))
    assert (kept(recording), percents(recording), rejected(recording)) == (3, [90, 90, 7], [])
    assert recording.run.quality.notes == ("Rows before the first header are read with its columns.",)


def test_a_header_that_was_cut_is_noted(tmp_path: Path) -> None:
    """A log that ends inside a header keeps its rows and says where it ends."""
    recording = read_text(tmp_path, lines(HEADER, row(0)) + HEADER[:40])
    assert (kept(recording), recording.run.quality.headers) == (1, 2)
    assert recording.run.quality.notes == ("The log has no newline at its end, so its last line may be cut.",)


@pytest.mark.parametrize("times", [1, 3])
def test_a_header_alone_is_no_recording(tmp_path: Path, times: int) -> None:
    """A logger killed before its first block was written is told apart from a log of another kind."""
    with pytest.raises(SourceError, match="it holds a header and no row; gpureport record -- COMMAND records one"):
        read_text(tmp_path, lines(*[HEADER] * times))


def test_a_stray_line_is_not_taken_for_all_rows(tmp_path: Path) -> None:
    """Why nothing could be read is what happened to most lines, not to the first odd one."""
    rows = [row(second).replace(", 0, ", ", zero, ") for second in range(5)]
    with pytest.raises(SourceError, match=r"none of its 7 lines .* \(1 wrong number of cells, 5 malformed index\)"):
        read_text(tmp_path, lines(HEADER, "hello", *rows))


def test_rows_of_two_more_cells_than_a_hand_written_header(tmp_path: Path) -> None:
    """Ten names over twelve values, temperatures of CPU and GPU shifted: nothing is assigned by position."""
    names = ", ".join(["timestamp", "utilization.gpu [%]", *(f"temp_{number}" for number in range(8))])
    values = ", ".join([stamp(0), "5 %", *("+27.0°C" for _ in range(10))])
    with pytest.raises(SourceError, match="names 10 columns and its rows hold 12 cells, so which is which cannot be"):
        read_text(tmp_path, lines(names, values, values))


def test_thousands_separators_break_a_row_not_the_log(tmp_path: Path) -> None:
    """`1,024 MiB` is two cells: such rows are rejected, their neighbours stay; where all are so, none is guessed."""
    broken = row(1).replace("1024", "1,024")
    recording = read_text(tmp_path, lines(HEADER, row(0), broken, row(2)))
    assert (kept(recording), rejected(recording)) == (2, [("wrong number of cells", 1, 3)])
    with pytest.raises(SourceError, match="names 6 columns and its rows hold 7 cells"):
        read_text(tmp_path, lines(HEADER, broken, broken))


def test_a_comma_at_the_end_of_each_row(tmp_path: Path) -> None:
    """A last column that is always empty is absent, and the others keep their place."""
    rows = [f"2024-05-26 18:51:{23 + second}.769030,0,{18 - second % 2}," for second in range(4)]
    recording = read_text(tmp_path, lines("timestamp,gpu,power.draw,power.limit", *rows))
    assert (kept(recording), column(recording, "gpu_power_watts")) == (4, [18, 17, 18, 17])
    assert recording.rows_of("gpu:0").column("gpu_power_limit_requested_watts").null_count == 4


def test_mixed_spaces_around_commas(tmp_path: Path) -> None:
    """With a space, without and with several, a cell is the same cell."""
    rows = [row(0, util=1).replace(", ", ","), row(1, util=2), row(2, util=3).replace(", ", " ,  ")]
    recording = read_text(tmp_path, lines(HEADER.replace(", ", ","), *rows))
    assert (kept(recording), percents(recording)) == (3, [1, 2, 3])


def test_rows_with_other_delimiters_are_not_guessed(tmp_path: Path) -> None:
    """Rows with semicolons or tabulators under a header with commas are rejected."""
    recording = read_text(
        tmp_path, lines(HEADER, row(0), row(1).replace(", ", ";"), row(2).replace(", ", "\t"), row(3))
    )
    assert (kept(recording), rejected(recording)) == (2, [("wrong number of cells", 2, 3)])


def test_a_glued_header_of_as_many_columns_is_seen(tmp_path: Path) -> None:
    """Where bare numbers fit both orders of the columns, rows after a header glued to a stamp are read by it."""
    first, second = (
        "timestamp, utilization.gpu [%], temperature.gpu",
        "timestamp, temperature.gpu, utilization.gpu [%]",
    )
    text = lines(first, f"{stamp(0)}, 10, 40", stamp(1)[:12] + second, f"{stamp(2)}, 41, 11", f"{stamp(3)}, 42, 12")
    recording = read_text(tmp_path, text)
    assert (kept(recording), rejected(recording)) == (3, [("torn line", 1, 3)])
    assert (percents(recording), column(recording, "gpu_temperature_celsius")) == ([10, 11, 12], [40, 41, 42])


@pytest.mark.parametrize(
    "heading", ["a" + "_" * 60_000 + "!", "gpu_" * 20_000 + "?", "a [" * 20_000, "util ," * 20_000]
)
def test_what_looks_like_a_heading_for_long(heading: str) -> None:
    """A line of tens of thousands of letters that is nearly a header is none."""
    assert QueryGpuDialect().header(f"{heading},utilization.gpu [%]") is None
