"""What a log says of its columns: headings of people, rows above a header, columns a person names."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from gpureport import columns
from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.values.cells import CellReader
from tests.importers.written_logs import HEADER, read_text, row, stamp


def table(heading: str, cells: list[str], delimiter: str = ",") -> str:
    """Return a log of one row a second."""
    return "\n".join([heading, *(f"{stamp(second)}{delimiter}{each}" for second, each in enumerate(cells)), ""])


@pytest.mark.parametrize(
    ("heading", "cells"),
    [
        ("timestamp,gpu_util,mem_used_MB,temp_C", "50,1000,60"),
        ("timestamp,gpu_util%,mem_used_MB,temp_C", "50,1000,60"),
        ("timestamp,utilization.gpu [%],mem_used_MB,temp_C", "50 %,1000,60"),
        ("timestamp,gpu,util_gpu,mem_used_MB,temp_C,loss", "0,50,1000,60,0.3"),
    ],
)
def test_headings_of_people_are_read_one_by_one(tmp_path: Path, heading: str, cells: str) -> None:
    """What a heading means does not hang on the headings beside it, and a note says what it was taken for."""
    recording = read_text(tmp_path, table(heading, [cells] * 9))
    (first, *_) = recording.series.to_pylist()
    assert first["gpu_utilization_ratio"] == 0.5
    assert first["gpu_memory_used_bytes"] == 1000 * 2**20
    assert first["gpu_temperature_celsius"] == 60
    (note,) = recording.run.quality.notes
    assert "mem_used_MB is taken for memory.used [MiB]" in note
    assert "temp_C is taken for temperature.gpu" in note


def test_memory_of_a_process_is_not_that_of_the_gpu(tmp_path: Path) -> None:
    """`used_memory` in a list of processes is no heading of a person."""
    recording = read_text(tmp_path, table("timestamp, gpu_uuid, pid, used_memory [MiB]", ["GPU-1, 7, 100 MiB"] * 3))
    (first, *_) = recording.series.to_pylist()
    assert first["gpu_process_memory_bytes"] == 100 * 2**20
    assert "gpu_memory_used_bytes" not in first


@pytest.mark.parametrize(("cell", "read"), [("0.5", None), ("50.0", 0.5), ("1", 0.01), ("0.5 %", 0.005)])
def test_shares_that_may_be_fractions_stay_unread(tmp_path: Path, cell: str, read: float | None) -> None:
    """0.5 under a heading without a unit may be half of the time or a two-hundredth of it."""
    recording = read_text(tmp_path, table("timestamp,gpu,util_gpu,power_W", [f"0,{cell},60"] * 9))
    first = recording.series.to_pylist()[0]
    assert first.get("gpu_utilization_ratio") == (None if read is None else pytest.approx(read))
    assert first.get("extra_util_gpu") == (cell if read is None else None)
    assert any("util_gpu has no unit" in note for note in recording.run.quality.notes) is (read is None)


def test_one_later_percentage_tells_a_fraction(tmp_path: Path) -> None:
    """An idle hour of a percentage is no fraction, however long it is."""
    cells = ["0.0,60"] * 4000 + ["87.5,200"]
    text = "timestamp,gpu_util,power_W\n" + "".join(
        f"2026/03/14 {9 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000,{each}\n"
        for second, each in enumerate(cells)
    )
    assert columns.floats(read_text(tmp_path, text).series.column("gpu_utilization_ratio")).max() == 0.875


def test_a_fraction_alone_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """Where nothing else is recorded, the hint names the headings that settle it."""
    with pytest.raises(SourceError, match=r"utilization\.gpu \[1\]"):
        read_text(tmp_path, table("timestamp,util_gpu", ["0.5"] * 3))
    recording = read_text(tmp_path, table("timestamp,utilization.gpu [1]", ["0.5"] * 3))
    assert columns.floats(recording.series.column("gpu_utilization_ratio")).tolist() == [0.5] * 3


SEMICOLONS = "timestamp;index;memory.used [MiB];power.draw [W]"


@pytest.mark.parametrize(
    ("cells", "memory", "watts"),
    [
        ("0;1.024 MiB;60,25 W", 1024, 60.25),
        ("0;1.024 MiB;60 W", 1024, 60),
        ("0;1.024;1.060,25", 1024, 1060.25),
        ("0;1024 MiB;60.25 W", 1024, 60.25),
        ("0;1024 MiB;60.125 W", 1024, 60.125),
        ("0;1.024.000 MiB;60,25 W", 1_024_000, 60.25),
    ],
)
def test_dots_between_thousands(tmp_path: Path, cells: str, memory: int, watts: float) -> None:
    """Where the decimal sign is a comma, a dot before three digits parts thousands; else it is the decimal sign."""
    lines = [f"14.03.2026 09:00:{second:02d};{cells}" for second in range(30)]
    recording = read_text(tmp_path, "\n".join([SEMICOLONS, *lines, ""]))
    first = recording.series.to_pylist()[0]
    assert first["gpu_memory_used_bytes"] == memory * 2**20
    assert first["gpu_power_watts"] == pytest.approx(watts)
    assert recording.run.quality.notes == ()


def test_many_texts_do_not_hide_thousands() -> None:
    """A column with too many texts to keep them all is read the same way."""
    plain = fields.parse_query_field("memory.used [MiB]")
    assert plain is not None
    column = replace(plain, decimal=",", thousands=True)
    cells = pa.array([f"{1 + n // 1000}.{n % 1000:03d} MiB" for n in range(6000)])
    found = CellReader().decode(column, cells).values("int64")
    assert found.tolist() == [(1000 + n) * 2**20 for n in range(6000)]


@pytest.mark.parametrize(
    ("dates", "noted"), [(["03/04/2026"], True), (["12/04/2026", "13/04/2026"], False), (["03.04.2026"], False)]
)
def test_dates_that_may_begin_with_the_month(tmp_path: Path, dates: list[str], noted: bool) -> None:  # noqa: FBT001 - a case
    """A note says how dates with slashes are read, unless a day tells."""
    lines = [f"{date} 09:00:{second:02d};0;1 MiB;60,25 W" for date in dates for second in range(9)]
    notes = read_text(tmp_path, "\n".join([SEMICOLONS, *lines, ""])).run.quality.notes
    assert any("03/04/2026 are read as day/month/year" in note for note in notes) is noted


@pytest.mark.parametrize("above", [1, 40, 300, 1900, 3000])
def test_rows_above_the_first_header_are_kept(tmp_path: Path, above: int) -> None:
    """Rows that the header below explains are rows, wherever it stands."""
    rows = [
        f"2026/03/14 09:{n // 60:02d}:{n % 60:02d}.000, 0, NVIDIA L4, {n * 7 % 100} %, 10 MiB, 60.5 W"
        for n in range(3400)
    ]
    quality = read_text(tmp_path, "\n".join([*rows[:above], HEADER, *rows[above:], ""])).run.quality
    assert (quality.rows_kept, quality.headers, quality.rejected) == (3400, 1, ())


def test_rows_nobody_can_tell_are_read_by_a_header_far_below(tmp_path: Path) -> None:
    """Where the content does not tell, the first header does, however far down it stands."""
    rows = [f"2026/03/14 09:{n // 60:02d}:{n % 60:02d}.000, {40 + n % 3}, {41 + n % 2}" for n in range(3500)]
    text = "\n".join([*rows[:3000], "timestamp, utilization.gpu [%], temperature.gpu", *rows[3000:], ""])
    recording = read_text(tmp_path, text)
    assert recording.run.quality.rows_kept == 3500
    assert recording.series.column("gpu_temperature_celsius").null_count == 0


def test_prose_above_a_header_is_no_row(tmp_path: Path) -> None:
    """What stands above a header and is no row is called so."""
    text = "\n".join(["The log of Monday, as it was", "a, b, c, d, e, f", HEADER, row(0), row(1), ""])
    quality = read_text(tmp_path, text).run.quality
    assert [(entry.reason, entry.rows) for entry in quality.rejected] == [("before any header", 2)]
    assert quality.rows_kept == 2


def test_rows_of_another_form_above_a_header_are_rejected(tmp_path: Path) -> None:
    """Rows that the header below does not explain are read with `--columns` alone, which a note says."""
    rows = [f"{stamp(n)}, {n * 7 % 100} %, {60 + n % 7}.50 W" for n in range(59)]
    later = [row(n).replace("09:", "10:") for n in range(9)]
    text = "\n".join([*rows, HEADER, *later, ""])
    quality = read_text(tmp_path, text).run.quality
    assert (quality.rows_kept, quality.rejected[0].rows) == (9, 59)
    assert any("--columns column_1,column_2,column_3, with the fields" in note for note in quality.notes)
    names = ("timestamp", "utilization.gpu", "power.draw")
    assert read_text(tmp_path, text, ReadOptions(columns=names)).run.quality.rows_kept == 59 + 9


def test_columns_beside_a_header_are_not_used(tmp_path: Path) -> None:
    """A header wins over `--columns`, and a note says so."""
    names = ("timestamp", "index", "name", "utilization.memory", "memory.used", "power.draw")
    recording = read_text(tmp_path, "\n".join([HEADER, row(0), row(1), ""]), ReadOptions(columns=names))
    assert recording.run.quality.notes == ("The log has a header: --columns was not used.",)
    assert columns.floats(recording.series.column("gpu_utilization_ratio")).tolist() == pytest.approx([0.9, 0.9])


def test_columns_win_over_a_header_of_another_width(tmp_path: Path) -> None:
    """Where the header cannot be that of its rows, `--columns` is used and the header is no row."""
    header = "timestamp, utilization.gpu [%], temperature.gpu"
    text = table(header, ["5, 40, 41, 42"] * 5, ", ") + table(header, ["5, 40, 41, 42"] * 5, ", ")
    with pytest.raises(SourceError, match=r"name the columns of its rows with --columns$"):
        read_text(tmp_path, text)
    names = ("timestamp", "utilization.gpu", "temperature.gpu", "temperature.memory", "power.draw")
    recording = read_text(tmp_path, text.replace("2026/03/14 09", "2026/03/14 10", 5), ReadOptions(columns=names))
    assert recording.run.quality.headers == 2
    assert columns.floats(recording.series.column("gpu_power_watts")).tolist()[:5] == [42] * 5
    assert "--columns was used instead" in recording.run.quality.notes[0]


def test_columns_may_be_named_in_a_persons_words(tmp_path: Path) -> None:
    """`--columns` takes the headings that a header may have."""
    names = ("timestamp", "gpu_util", "mem_used_MB", "temp_C")
    recording = read_text(tmp_path, table("timestamp,utilization.gpu", ["50,1000,60"] * 5), ReadOptions(columns=names))
    assert columns.floats(recording.series.column("gpu_memory_used_bytes")).tolist() == [1000 * 2**20] * 5


def test_a_text_column_holds_each_text_once(tmp_path: Path) -> None:
    """Cells that hold nothing in two ways, and texts that differ in blanks, are one category each."""
    cells = [f"0, {n} %, {('[N/A]', 'a', '[Unknown Error]', ' a ')[n % 4]}" for n in range(60)]
    recording = read_text(tmp_path, table("timestamp, index, utilization.gpu [%], foo.bar", cells, ", "))
    frame = recording.to_pandas()
    assert frame["extra_foo_bar"].notna().sum() == 30
    assert set(frame["extra_foo_bar"].dropna()) == {"a"}
