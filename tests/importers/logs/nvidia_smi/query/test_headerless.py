"""Rows without a header are refused with the line that names their columns."""

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions, find_runs
from gpureport.importers.logs.nvidia_smi.query.headerless import is_headerless, suggest_columns
from tests.importers.accounts import kept, percents
from tests.importers.written_logs import HEADER, log, read, read_text, stamp

UNIT = re.compile(r" (%|MiB|W|MHz)$")
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
    name, columns = shlex.split(refused.value.hint.removeprefix("name its columns: ").partition(", with ")[0])
    asked = ASKED.split(",")
    assert (name, columns.split(",")) == ("--columns", [f"column_{place + 1}" for place in range(len(asked))])
    recording = read(tmp_path / "gpu.csv", ReadOptions(columns=tuple(asked)))
    assert (kept(recording), percents(recording)[:2]) == (60, [40, 41])


def test_numbers_alone_may_be_such_rows(tmp_path: Path) -> None:
    """What may be a query of two fields is refused with its option too; other text is not."""
    path = tmp_path / "gpu.csv"
    path.write_text("40, 1000, 50\n41, 1001, 51\n")
    with pytest.raises(SourceError, match="--columns column_1,column_2,column_3, with the fields of --query-gpu"):
        find_runs(path)
    path.write_text("hello, world\n")
    with pytest.raises(SourceError) as refused:
        find_runs(path)
    assert "--columns" not in str(refused.value)


CELLS = st.sampled_from(
    [
        "",
        "[N/A]",
        "[GPU is lost]",
        "0",
        "1",
        "16",
        "57",
        "100",
        "7001",
        "24564",
        "55.10",
        "0 %",
        "97 %",
        "101 %",
        "4 MiB",
        "9 GiB",
        "24564 MiB",
        "300.00 W",
        "210 MHz",
        "1980 MHz",
        "P0",
        "0x0000000000000004",
        "2026/03/14 09:00:00.000",
    ]
)


@given(st.lists(st.lists(CELLS, max_size=4).map(", ".join), max_size=8))
def test_any_lines_are_looked_at(lines: list[str]) -> None:
    """No text makes the question fail, nor the line to type."""
    assert is_headerless(lines) in {True, False}
    assert "--columns" in suggest_columns(lines)


def test_a_log_without_its_header_is_seen() -> None:
    """Rows with units, without units beside nvidia-smi's stamp, with noise between, and without a stamp."""
    body = log(9).splitlines()[1:]
    assert is_headerless(body)
    assert is_headerless([UNIT.sub("", cell) for cell in body])
    assert is_headerless([line for row in body for line in ("2026-03-14 09:00:00", row, "----")])
    assert is_headerless(["0, 45 %, 1024 MiB", "0, [N/A], 1030 MiB", "0, 4"])
    assert is_headerless(["No devices were found", *body])
    assert is_headerless([f"{row}, 290023292 us" for row in body])


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(log(9).splitlines(), id="with its header"),
        pytest.param([HEADER.replace("utilization.gpu [%]", "gpu_util%"), *log(9).splitlines()[1:]], id="other header"),
        pytest.param(["2026-03-14 09:00:00,12.5,31.0", "2026-03-14 09:00:01,12.5,31.0"], id="host CSV"),
        pytest.param(["epoch,loss,lr", "1,0.5,1e-3", "2,0.4,1e-3"], id="other CSV"),
        pytest.param(["1,0.5,3", "2,0.4,3", "3,0.3,3"], id="bare numbers"),
        pytest.param(["We used 45 %, then 50 %.", "And so on, and on."], id="prose"),
        pytest.param(
            ["# gpu     sm    mem", "# Idx      %      %", "    0     46     26", "    0     45     26"], id="dmon"
        ),
        pytest.param(
            ["| 30%   38C    P8    16W / 350W |    1138MiB / 24564MiB |      0%      Default |"] * 3, id="table"
        ),
        pytest.param(['{"utilization.gpu": 45,', ' "power.draw": 250}'], id="JSON"),
        pytest.param(["2026/03/14 09:00:00.000, 45 %"], id="one row"),
        pytest.param(["45 %", "46 %", "47 %"], id="one column"),
        pytest.param([], id="nothing"),
    ],
)
def test_other_texts_are_not_taken_for_one(lines: list[str]) -> None:
    """What has a header, or is no table nvidia-smi wrote, is left to others."""
    assert not is_headerless(lines)
