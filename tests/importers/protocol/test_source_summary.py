"""What is kept of a source for a person who wants to check how it was read."""

from functools import partial
from pathlib import Path

import pytest

from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.importers.decoding.pieces import pieces
from gpureport.importers.protocol import source_summary
from gpureport.importers.protocol.interpretation import InterpretedColumn
from gpureport.importers.protocol.reject_reasons import DUPLICATE, NOT_SELECTED, NUL_BYTES, WRONG_CELLS
from gpureport.importers.protocol.source_summary import FirstLine, SourceSummary
from tests.importers.written_logs import HEADER, log, row, stamp


def read(path: Path, content: str, options: ReadOptions | None = None) -> SourceSummary:
    """Return the one source of a log of this content."""
    path.write_text(content)
    (inputs,) = find_runs(path)
    reading = Reading(inputs, options or ReadOptions(), Labels())
    reading.recording()
    (source,) = reading.sources_read()
    return source


def column(source: SourceSummary, heading: str) -> InterpretedColumn:
    """Return the column under a heading."""
    (found,) = (each for each in source.outcome.columns if each.heading == heading)
    return found


def test_first_lines_come_from_the_rejects_and_from_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that were no rows were kept; rows left out later are looked up, in whatever piece of the log they stand."""
    monkeypatch.setattr(source_summary, "pieces", partial(pieces, size=100))
    rows = [row(second) for second in range(30)]
    lines = [HEADER, *rows, "short", "shorter", *rows, row(40)[:30] + "\0" * 5, row(41, gpu=1), ""]
    source = read(tmp_path / "gpu.csv", "\n".join(lines), ReadOptions(gpus=(0,)))
    assert set(source.first_lines()) == {
        FirstLine(WRONG_CELLS, 32, "short"),
        FirstLine(DUPLICATE, 34, rows[0]),
        FirstLine(NUL_BYTES, 64, row(40)[:30]),
        FirstLine(NOT_SELECTED, 65, row(41, gpu=1)),
    }


def test_a_clean_log_has_no_first_lines(tmp_path: Path) -> None:
    """Nothing was rejected, so nothing is looked up."""
    assert read(tmp_path / "gpu.csv", log()).first_lines() == ()


def test_an_example_is_the_cell_of_its_column(tmp_path: Path) -> None:
    """Cells that the header does not name stand before the others, so the example is counted from the end."""
    rows = [f"job, step, {stamp(second)}, {second} %" for second in range(5)]
    source = read(tmp_path / "gpu.csv", "\n".join(["timestamp, utilization.gpu [%]", *rows, ""]))
    found = column(source, "utilization.gpu [%]")
    assert (found.cell, found.value) == ("1 %", 0.01)


def test_a_column_that_changes_its_unit_is_named_twice(tmp_path: Path) -> None:
    """A second header with another unit is another column of the log for the same series."""
    other = HEADER.replace("MiB", "GiB")
    lines = [HEADER, row(0), other, row(1).replace("1024 MiB", "2"), HEADER, row(2), ""]
    source = read(tmp_path / "gpu.csv", "\n".join(lines))
    values = [column(source, f"memory.used [{unit}]").value for unit in ("MiB", "GiB")]
    assert values == [2**30, 2**31]
    assert len(source.outcome.columns) == 7


def test_a_value_far_down_the_log_is_no_example(tmp_path: Path) -> None:
    """Only the beginning of a log is searched, so that its length costs nothing."""
    rows = [row(second % 3000, power="[N/A]") for second in range(3000)]
    source = read(tmp_path / "gpu.csv", "\n".join([HEADER, *rows, row(3001), ""]))
    assert column(source, "power.draw [W]").value is None
    assert column(source, "utilization.gpu [%]").cell == "90 %"


def test_the_account_tells_how_lines_end(tmp_path: Path) -> None:
    """Each kind of line end is counted, whatever block it stands in."""
    source = read(tmp_path / "gpu.csv", log(9).replace("\n", "\r\n", 3))
    account = source.file.account
    assert (account.newlines, account.pairs, account.returns, account.compression) == (10, 3, 0, "")
