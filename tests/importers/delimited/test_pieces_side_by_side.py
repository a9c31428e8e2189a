"""Pieces that are parsed at a time say what one after the other says, wherever the columns become known."""

from itertools import count

import pytest

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.parsing import Parser
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from tests.importers.written_logs import HEADER, row

ROWS = [row(second) for second in range(400)]
OTHER = "timestamp, index, utilization.gpu [%]"
OTHERS = [f"2026/03/14 10:{second // 60:02d}:{second % 60:02d}.000, 0, {second % 100} %" for second in range(400)]
LOGS = {
    "header first": [HEADER, *ROWS],
    "header below": ["starting", "a job", HEADER, *ROWS],
    "header far below": [*(f"step {number}" for number in range(300)), HEADER, *ROWS],
    "other columns in the first piece": [HEADER, *ROWS[:5], OTHER, *OTHERS],
    "other columns later": [HEADER, *ROWS, OTHER, *OTHERS],
    "no header": ROWS,
}


def cut(lines: list[str], size: int) -> list[Piece]:
    """Return lines as pieces of so many."""
    found = []
    for first in range(0, len(lines), size):
        part = lines[first : first + size]
        data = "".join(f"{line}\n" for line in part).encode()
        found.append(Piece(data, first + 1, last=first + size >= len(lines), lines=len(part)))
    return found


@pytest.mark.parametrize("lines", LOGS.values(), ids=LOGS)
@pytest.mark.parametrize("size", [3, 40, 1000])
def test_the_order_of_work_does_not_show(lines: list[str], size: int) -> None:
    """Rows, their times and columns, and every other line are those of a parser that waits for each piece."""
    beside = list(Parser(QueryGpuDialect()).sections(cut(lines, size)))
    layout = None
    for piece, found, number in zip(cut(lines, size), beside, count(), strict=False):
        waited = Parser(QueryGpuDialect()).parse(piece, layout)
        layout = waited.layout
        assert found.layout == layout, number
        assert (found.lines, found.other_lines) == (waited.lines, waited.other_lines)
        for one, other in zip(found.sections, waited.sections, strict=True):
            assert one.times.tolist() == other.times.tolist()
            assert one.layout == other.layout
            assert {place: column.values("str").tolist() for place, column in one.columns.items()} == {
                place: column.values("str").tolist() for place, column in other.columns.items()
            }
    assert len(beside) == len(cut(lines, size))
