"""Tables of DCGM's fields that scripts write become the series of the GPUs."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.importers.logs.dcgm import field_csv
from gpureport.testing import Recording
from tests.importers import other_tools
from tests.importers.accounts import column, kept, rejected


def made(folder: Path, text: str) -> Recording:
    """Return a table as it is read."""
    path = folder / "fields.csv"
    path.write_text(text)
    return Reading(find_runs(path)[0], ReadOptions(), Labels()).recording()


def test_readings_one_a_line_become_rows(tmp_path: Path) -> None:
    """Readings of one GPU and moment are one row; the other lines say more of it."""
    found = made(tmp_path, other_tools.long_csv(3))
    assert (kept(found), found.run.quality.continued, found.run.timezone) == (6, 6, "UTC")
    assert column(found, "gpu_utilization_ratio", "gpu:1") == [0.5, 0.51, 0.52]
    assert column(found, "gpu_power_watts", "gpu:1") == [50, 51, 52]


def test_readings_field_by_field_become_the_same_rows(tmp_path: Path) -> None:
    """The order of the lines says nothing: a table with one field after the other is the same."""
    header, *rows = other_tools.long_csv(4).splitlines()
    by_field = "\n".join([header, *sorted(rows, key=lambda row: row.split(",")[2]), ""])
    assert made(tmp_path, by_field).series.equals(made(tmp_path, other_tools.long_csv(4)).series)


@pytest.mark.parametrize("name", ["203", "GPUTL", "DCGM_FI_DEV_GPU_UTIL", "FI_DEV_GPU_UTIL"])
def test_a_field_goes_by_all_its_names(tmp_path: Path, name: str) -> None:
    """Number, tag and symbol mean one field."""
    text = f"timestamp,gpu,field,value\n{other_tools.stamp(0)},GPU 0,{name},61\n{other_tools.stamp(1)},0,{name},62\n"
    assert column(made(tmp_path, text), "gpu_utilization_ratio") == [0.61, 0.62]


def test_one_gpu_a_line(tmp_path: Path) -> None:
    """Columns by the names of fields; another one is kept as text."""
    found = made(tmp_path, other_tools.wide_csv(2))
    assert column(found, "gpu_power_watts", "gpu:1") == [70.5, 70.5]
    assert found.rows_of("gpu:0").column("extra_DCGM_FI_DEV_PCIE_REPLAY_COUNTER").to_pylist() == ["0", "0"]


def test_several_machines_in_one_table_are_refused(tmp_path: Path) -> None:
    """GPU 0 of one machine is not GPU 0 of another."""
    text = other_tools.wide_csv(2)
    with pytest.raises(SourceError, match=r"GPUs of several machines \(node1, node2, ...\) in one table"):
        made(tmp_path, text + text.splitlines()[1].replace("node1", "node2") + "\n")


def test_a_header_in_the_middle_and_damaged_lines(tmp_path: Path) -> None:
    """Repeated headers are counted, lines of another width rejected."""
    text = other_tools.wide_csv(2)
    found = made(tmp_path, text + text.splitlines()[0] + "\n1,2\n")
    assert (found.run.quality.headers, rejected(found)) == (2, [("wrong number of cells", 1, 7)])


def test_readings_beyond_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with one reading a line is held in memory, up to a number of them that is stated."""
    monkeypatch.setattr(field_csv, "MOST", 10)
    with pytest.raises(SourceError, match="more than 10 readings one a line, which are held in memory; split it"):
        made(tmp_path, other_tools.long_csv(3))


def test_other_tables_of_fields_and_values_are_none(tmp_path: Path) -> None:
    """A table with a GPU, a field and a value that are not DCGM's is not taken for one."""
    with pytest.raises(SourceError, match="not a recognised GPU log"):
        made(tmp_path, "timestamp,gpu,field,value\n2026-01-01 00:00:00,0,colour,5\n")
