"""Rows without a header are refused with the line that names their columns."""

import shlex
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import Placement, find
from tests.importers.accounts import kept, percents
from tests.importers.logs import read, read_text, stamp

ASKED = "timestamp,index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,pstate"


def rows(*, units: bool) -> str:
    """Return rows of every column of ASKED."""
    cells = (
        f"{stamp(second)}, 0, NVIDIA L4, {40 + second % 20} %, {1000 + second} MiB, 24564 MiB, 50, "
        f"{200 + second % 7}.00 W, P0"
        for second in range(60)
    )
    text = "".join(f"{row}\n" for row in cells)
    return text if units else text.replace(" %", "").replace(" MiB", "").replace(" W", "")


@pytest.mark.parametrize("units", [True, False])
def test_the_refusal_holds_the_line_to_type(tmp_path: Path, *, units: bool) -> None:
    """Typed with the fields that were asked for in place of those that are open, it reads the log."""
    with pytest.raises(SourceError) as refused:
        read_text(tmp_path, rows(units=units))
    option, _, rest = refused.value.hint.removeprefix("name its columns: ").partition(", with ")
    name, columns = shlex.split(option)
    suggested, asked = columns.split(","), ASKED.split(",")
    unknown = [column for column in suggested if column.startswith("column_")]
    assert (name, len(suggested), "column_2" in unknown) == ("--columns", len(asked), True)
    assert rest == f"the fields of --query-gpu in place of {', '.join(unknown)}"
    filled = [asked[place] if column in unknown else column for place, column in enumerate(suggested)]
    assert [column.partition(" [")[0] for column in filled] == asked
    recording = read(tmp_path / "gpu.csv", Placement(columns=tuple(filled)))
    assert (kept(recording), percents(recording)[:2]) == (60, [40, 41])


def test_numbers_alone_may_be_such_rows(tmp_path: Path) -> None:
    """What may be a query of two fields is refused with its option too; other text is not."""
    path = tmp_path / "gpu.csv"
    path.write_text("40, 1000, 50\n41, 1001, 51\n")
    with pytest.raises(SourceError, match="--columns column_1,column_2,column_3, with the fields of --query-gpu"):
        find(path)
    path.write_text("hello, world\n")
    with pytest.raises(SourceError) as refused:
        find(path)
    assert "--columns" not in str(refused.value)
