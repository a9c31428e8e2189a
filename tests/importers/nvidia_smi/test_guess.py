"""The columns of a log without a header."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.importers.nvidia_smi import fields
from gpureport.importers.nvidia_smi.guess import guess, headerless
from tests.importers.logs import HEADER, SERIES, log, series

UNIT = re.compile(r" (%|MiB|W|MHz)$")


def rows(*headings: str, units: bool = True, length: int = 400) -> list[list[str]]:
    """Return rows with these columns of `series`."""
    columns = series(length)
    cells = [[columns[heading][row] for heading in headings] for row in range(length)]
    return cells if units else [[UNIT.sub("", cell) for cell in row] for row in cells]


def constant(cells: list[str], *more: str) -> list[list[str]]:
    """Return rows of a stamp, cells of their own, and others that are the same in each."""
    return [["2026/03/14 09:00:00.000", cell, *more] for cell in cells]


def test_every_column_of_a_log_with_units_is_named() -> None:
    """Units, relations between columns and nvidia-smi's usual order name all of a common log."""
    found = guess(rows(*SERIES))
    assert found.headings == SERIES
    assert found.ambiguous == ()
    assert found.confidence == "medium"
    sure = {heading for heading, said in zip(found.headings, found.confidences, strict=True) if said == "high"}
    assert sure == {"timestamp", "pstate", "memory.total [MiB]", "memory.used [MiB]", "memory.free [MiB]"}
    assert all(found.reasons)


def test_a_few_columns_can_leave_no_choice() -> None:
    """Memory that begins as on a GPU nobody uses can be nothing else; the order of columns does not matter."""
    headings = ("memory.used [MiB]", "timestamp", "pstate", "memory.total [MiB]")
    found = guess(rows(*headings))
    assert (found.headings, found.confidence) == (headings, "high")


@pytest.mark.parametrize("heading", ["utilization.gpu [%]", "power.draw [W]", "temperature.gpu"])
def test_the_only_column_of_its_unit_is_the_usual_one(heading: str) -> None:
    """A lone percentage, power or temperature may be that of the memory or of the moment, rarely logged alone."""
    found = guess(rows("timestamp", heading, "memory.used [MiB]"))
    assert found.headings == ("timestamp", heading, "memory.used [MiB]")
    assert found.confidences == ("high", "medium", "high")


def test_memory_alone_that_begins_high_may_be_free() -> None:
    """Free memory falls from its start, used memory rises."""
    assert guess(rows("timestamp", "memory.free [MiB]")).ambiguous == (
        "column 2: memory used, free or in all; it does not begin low",
    )


def test_headings_are_ones_the_importer_reads() -> None:
    """Each is a query field with its column, or a text column of its own."""
    found = guess([[*row, "Enabled", "7", "[N/A]"] for row in rows(*SERIES)])
    read = [fields.column(heading) for heading in found.headings]
    assert [column.target for column in read[-3:] if column] == [f"extra_column_{n}" for n in (14, 15, 16)]
    assert all(column is not None and fields.known(column) for column in read[1:-3])


def test_without_units_what_can_be_two_things_is_said() -> None:
    """A utilization that stays between 60 and 64 and a temperature cannot be told apart without units."""
    steady = [str(60 + (number * 7) % 5) for number in range(200)]
    found = guess(constant(steady))
    assert found.confidence == "low"
    assert found.ambiguous == ("column 2: a utilization, a temperature or a clock; without units nothing tells which",)


def test_without_units_behaviour_names_columns() -> None:
    """Jumps from 0, creeping degrees, watts with decimals, memory that adds up are told, and never quite sure."""
    headings = ("timestamp", "utilization.gpu [%]", "temperature.gpu", "power.draw [W]")
    memory = ("memory.used [MiB]", "memory.free [MiB]", "memory.total [MiB]")
    found = guess(rows(*headings, *memory, units=False))
    assert found.headings == tuple(heading.partition(" ")[0] for heading in (*headings, *memory))
    assert found.confidence == "medium"
    assert found.confidences == ("high", *["medium"] * 6)


def test_without_units_a_column_that_never_changes_may_be_the_better_known() -> None:
    """Beside a column at 100 throughout, percentages that move may be the memory controller's."""
    found = guess([[*row, "100"] for row in rows("timestamp", "utilization.memory [%]", units=False)])
    assert found.confidence == "low"
    assert found.ambiguous


def test_percentages_against_the_usual_order_are_not_named() -> None:
    """A memory controller is not busier than its GPU, so the first column is not certain to be the GPU's."""
    found = guess(rows("timestamp", "utilization.memory [%]", "utilization.gpu [%]"))
    assert found.confidence == "low"
    assert "columns 2 and 3" in found.ambiguous[0]


def test_a_fan_is_no_utilization() -> None:
    """Percentages that creep, never reaching 0, may be a fan's."""
    assert guess(constant([f"{30 + row // 20} %" for row in range(200)])).ambiguous


def test_used_and_free_are_told_by_an_unused_gpu_only() -> None:
    """They add up either way: without idle rows and without utilization nothing shows which is which."""
    headings = ("timestamp", "memory.free [MiB]", "memory.used [MiB]", "memory.total [MiB]")
    whole = rows(*headings)
    assert guess(whole).headings == headings
    assert guess(whole[60:]).ambiguous == (
        "columns 2 and 3: which memory is used, free or in all; they add up, and nothing shows which is in use",
    )


def test_memory_that_grows_with_work_is_used() -> None:
    """With a display on the GPU it never is unused; that it grows as the GPU works tells it as well."""
    headings = ("timestamp", "memory.used [MiB]", "memory.total [MiB]", "utilization.gpu [%]")
    cells = [
        [row[0], row[1].replace("4 MiB", "754 MiB") if row[1] == "4 MiB" else row[1], *row[2:]]
        for row in rows(*headings)
    ]
    found = guess(cells)
    assert (found.headings, found.confidences[1]) == (headings, "medium")


def test_the_smoother_watts_are_the_average() -> None:
    """An average over a second changes less than the power of the moment."""
    draw = [float(cell.removesuffix(" W")) for cell in series()["power.draw [W]"]]
    smooth = [sum(draw[max(0, at - 4) : at + 1]) / len(draw[max(0, at - 4) : at + 1]) for at in range(len(draw))]
    cells = [["2026/03/14 09:00:00.000", f"{a:.2f} W", f"{b:.2f} W"] for a, b in zip(smooth, draw, strict=True)]
    assert guess(cells).headings[1:] == ("power.draw [W]", "power.draw.instant [W]")
    assert guess([[row[0], row[2], row[1]] for row in cells]).ambiguous


def test_identity_is_told_by_its_form() -> None:
    """Ids, names, versions, states and bit masks have forms of their own."""
    uuid = "GPU-deb3f1bc-44cc-a622-e825-35a2cfa67c22"
    more = ("NVIDIA H800", uuid, "00000000:0A:00.0", "535.161.07", "96.00.61.00.0B", "P0")
    masks = ("0x0000000000000004", "0x00000000000001FF")
    assert guess(constant(["5 %", "6 %"], *more, *masks)).headings == (
        *("timestamp", "utilization.gpu [%]", "name", "uuid", "pci.bus_id", "driver_version", "vbios_version"),
        *("pstate", "clocks_event_reasons.active", "clocks_event_reasons.supported"),
    )


def test_an_index_counts_over_and_over() -> None:
    """GPUs 0 to 3, row by row, are an index; steps are then those of one GPU."""
    cells = [[row[0], str(gpu), *row[1:]] for row in rows("timestamp", "temperature.gpu") for gpu in range(4)]
    cells = [
        [*row[:2], str(int(row[2]) + 9 * int(row[1])), f"{50 + int(row[1])}.{number % 100:02d} W"]
        for number, row in enumerate(cells)
    ]
    assert guess(cells).headings == ("timestamp", "index", "temperature.gpu", "power.draw [W]")


def test_a_log_of_which_no_metric_is_named_is_not_guessed() -> None:
    """A time stamp alone is nothing to read."""
    assert guess(constant(["Enabled"] * 30)).confidence == "low"
    assert guess([]).headings == ()


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


@given(st.integers(1, 6).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=40)))
def test_any_rows_are_guessed_or_not_but_read(cells: list[list[str]]) -> None:
    """Whatever cells hold, every column gets a heading of its own that the importer can read, and a reason."""
    found = guess(cells)
    width = len(cells[0]) if cells else 0
    assert len(set(found.headings)) == len(found.reasons) == len(found.confidences) == width
    assert all(fields.column(heading) is not None for heading in found.headings)
    assert found.confidence == "low" or not found.ambiguous


@given(st.lists(st.lists(CELLS, max_size=4).map(", ".join), max_size=8))
def test_any_lines_are_looked_at(lines: list[str]) -> None:
    """No text makes the question fail."""
    assert headerless(lines) in {True, False}


def test_a_log_without_its_header_is_seen() -> None:
    """Rows with units, without units beside nvidia-smi's stamp, with noise between, and without a stamp."""
    body = log(9).splitlines()[1:]
    assert headerless(body)
    assert headerless([UNIT.sub("", cell) for cell in body])
    assert headerless([line for row in body for line in ("2026-03-14 09:00:00", row, "----")])
    assert headerless(["0, 45 %, 1024 MiB", "0, [N/A], 1030 MiB", "0, 4"])
    assert headerless(["No devices were found", *body])
    assert headerless([f"{row}, 290023292 us" for row in body])


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
    assert not headerless(lines)
