"""Tables with headings of their own become series as a map says."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.importers.protocol.column_map import read_column_map as read_map
from gpureport.testing import Recording
from tests.importers import other_tools
from tests.importers.accounts import absent, column, kept, rejected

TIME = '[time]\ncolumn = "t"\n'


def reading(folder: Path, text: str, mapping: str = other_tools.MAP, **options: object) -> Reading:
    """Return a table about to be read as a map says."""
    path, told = folder / "table.csv", folder / "map.toml"
    path.write_text(text)
    told.write_text(mapping)
    (inputs,) = find_runs(path, kind="mapped")
    return Reading(inputs, ReadOptions(map=read_map(told), **options), Labels())  # type: ignore[arg-type]  # options of several types


def made(folder: Path, text: str, mapping: str = other_tools.MAP, **options: object) -> Recording:
    """Return a table as a map says."""
    return reading(folder, text, mapping, **options).recording()


def of_gpu(metric: str, unit: str, heading: str = "a") -> str:
    """Return a map of one column of GPU 0."""
    return f'{TIME}[columns."{heading}"]\nmetric = "{metric}"\nunit = "{unit}"\ndevice = "gpu:0"\n'


def test_each_column_goes_where_the_map_says(tmp_path: Path) -> None:
    """A row is one of each GPU and one of the machine."""
    found = made(tmp_path, other_tools.wrapper_csv(2))
    assert column(found, "gpu_power_watts", "gpu:1") == [80.5, 81.5]
    assert column(found, "host_memory_used_bytes", "host") == [2117 * 2**20] * 2
    assert (kept(found), found.run.timezone) == (6, "UTC")


@pytest.mark.parametrize(
    ("cell", "metric", "unit", "value"),
    [
        ("+27.0°C", "gpu_temperature_celsius", "C", 27),
        ("38 °C", "gpu_temperature_celsius", "C", 38),
        ("-4", "gpu_temperature_celsius", "C", -4),
        ('"1,024"', "gpu_memory_used_bytes", "MiB", 2**30),
        ('"1,234,567.5 W"', "gpu_power_watts", "mW", 1_234_567.5),
        ("2117MB", "gpu_memory_used_bytes", "B", 2117 * 2**20),
        ("16 GB", "gpu_memory_used_bytes", "MiB", 2**34),
        ("85%", "gpu_utilization_ratio", "1", 0.85),
        ("0.85", "gpu_utilization_ratio", "1", 0.85),
        ("70500", "gpu_power_watts", "mW", 70.5),
        ("12,34", "gpu_power_watts", "W", None),
        ("5 MHz", "gpu_power_watts", "W", None),
        ("150 %", "gpu_utilization_ratio", "%", None),
        ("n/a", "gpu_power_watts", "W", None),
    ],
)
def test_cells_as_scripts_write_them(tmp_path: Path, cell: str, metric: str, unit: str, value: float | None) -> None:
    """Signs, degrees, thousands and units without a blank are read; a unit of another kind is no value."""
    text = f"t,a\n{other_tools.stamp(0)},{cell}\n{other_tools.stamp(1)},0\n"
    if cell == "12,34":
        text = text.replace("12,34", '"12,34"')
    assert column(made(tmp_path, text, of_gpu(metric, unit)), metric) == [value, 0]


def test_cells_without_a_value_are_counted(tmp_path: Path) -> None:
    """A cell that says there is none, and one that cannot be one, are told apart."""
    text = f"t,a\n{other_tools.stamp(0)},n/a\n{other_tools.stamp(1)},\n{other_tools.stamp(2)},fast\n"
    found = made(tmp_path, text, of_gpu("gpu_power_watts", "W"))
    assert absent(found) == [("a", "empty", 1), ("a", "n/a", 1), ("a", "no value it can have", 1)]


def test_a_column_names_the_gpu_of_its_row(tmp_path: Path) -> None:
    """With [device] a row is one GPU's; other cells are kept as text."""
    mapping = f'{TIME}[device]\ncolumn = "card"\n[columns.a]\nmetric = "gpu_power_watts"\n'
    text = "t,card,a,job\n" + "".join(f"{other_tools.stamp(0)},GPU{gpu},{70 + gpu},x\n" for gpu in (3, 1))
    found = made(tmp_path, text + f"{other_tools.stamp(1)},?,5,x\n", mapping)
    assert [device.id for device in found.run.devices] == ["gpu:1", "gpu:3"]
    assert column(found, "gpu_power_watts", "gpu:3") == [73]
    assert found.rows_of("gpu:1").column("extra_job").to_pylist() == ["x"]
    assert rejected(found) == [("GPU not named", 1, 4)]


@pytest.mark.parametrize(
    ("form", "stamps", "zone"),
    [
        ("iso", ("2026-03-14T09:00:00+08:00", "2026-03-14T09:00:05+08:00"), "UTC"),
        ("epoch_ms", ("1773478800000", "1773478805000"), "UTC"),
        ("%m-%d-%Y %H:%M:%S", ("03-14-2026 09:00:00", "03-14-2026 09:00:05"), None),
        ("%d.%m.%Y %H:%M:%S %z", ("14.03.2026 09:00:00 +0100", "14.03.2026 09:00:05 +0100"), "UTC"),
    ],
)
def test_times_in_the_format_the_map_names(
    tmp_path: Path, form: str, stamps: tuple[str, str], zone: str | None
) -> None:
    """Stamps with an offset and counts since 1970 are UTC, others local."""
    mapping = of_gpu("gpu_power_watts", "W").replace('"t"\n', f'"t"\nformat = "{form}"\n', 1)
    found = made(tmp_path, "t,a\n" + "".join(f"{stamp},5\n" for stamp in stamps), mapping)
    assert (found.run.interval, found.run.timezone) == (5, zone)


def test_without_a_time_the_interval_counts(tmp_path: Path) -> None:
    """A map without [time] needs --interval."""
    mapping = of_gpu("gpu_power_watts", "W").replace(TIME, "")
    assert made(tmp_path, "a\n5\n6\n", mapping, interval=2.0).run.quality.synthetic_time
    with pytest.raises(SourceError, match="have no time; say with --interval"):
        made(tmp_path, "a\n5\n6\n", mapping)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_header_tells_the_delimiter(tmp_path: Path, delimiter: str) -> None:
    """Whatever parts the headings of the map parts the cells."""
    text = other_tools.wrapper_csv(2).replace(",", delimiter)
    assert kept(made(tmp_path, text)) == 6


def test_a_trailing_delimiter_is_no_cell(tmp_path: Path) -> None:
    """Rows that end in a delimiter have as many cells as their header has names."""
    text = other_tools.wrapper_csv(2).replace("MB\n", "MB,\n")
    assert kept(made(tmp_path, text)) == 6


@pytest.mark.parametrize("cells", ["1,2,3", "1,2,3,4,5,6"])
def test_a_header_of_another_width_is_refused(tmp_path: Path, cells: str) -> None:
    """Cells are never assigned by their position under a header that does not fit them."""
    count = cells.count(",") + 1
    with pytest.raises(SourceError, match=f"its header names 4 columns, but its rows have {count} cells; nobody"):
        made(tmp_path, f"when,GPU0 power,GPU1 power,RAM\n{cells}\n{cells}\n")


def test_a_table_without_the_columns_of_the_map_is_refused(tmp_path: Path) -> None:
    """What is missing, and how the table begins, is said."""
    with pytest.raises(SourceError, match=r"no line names the columns of the map \(when, RAM\); its first line is 't,"):
        made(tmp_path, "t,GPU0 power,GPU1 power\n1,2,3\n")


def test_lines_above_the_header_and_odd_rows_are_accounted_for(tmp_path: Path) -> None:
    """A preamble is rejected, a repeated header counted, a short row rejected."""
    table = other_tools.wrapper_csv(2)
    found = made(tmp_path, "written by logger 1.0\n" + table + table.splitlines()[0] + "\n1,2\n")
    assert rejected(found) == [("before any header", 1, 1), ("wrong number of cells", 1, 6)]
    assert (kept(found), found.run.quality.headers) == (6, 2)


def test_what_the_map_does_not_name_is_said(tmp_path: Path) -> None:
    """Columns of a table with several devices in a row have no place."""
    text = other_tools.wrapper_csv(1).replace("RAM", "RAM,load").replace("MB\n", "MB,3\n")
    assert made(tmp_path, text).run.quality.notes == ("Columns the map does not name are not kept: load.",)


def test_the_map_is_part_of_the_identity(tmp_path: Path) -> None:
    """The same bytes under another map are another run."""
    text = other_tools.wrapper_csv(2)
    ids = {
        reading(tmp_path, text, mapping).run_id for mapping in (other_tools.MAP, other_tools.MAP.replace("MiB", "B"))
    }
    assert len(ids) == 2


def test_without_a_map_nothing_is_read(tmp_path: Path) -> None:
    """The kind alone tells nothing; a map to start from is given where the headings tell what they are."""
    path = tmp_path / "table.csv"
    path.write_text(other_tools.wrapper_csv(2))
    (inputs,) = find_runs(path, kind="mapped")
    with pytest.raises(SourceError, match=r"no map says what its columns are; save standard output") as refused:
        Reading(inputs, ReadOptions(), Labels()).recording()
    assert 'metric = "gpu_power_watts"' in refused.value.aside
    path.write_text("a,b\n1,2\n")
    with pytest.raises(SourceError, match=r"no map says what its columns are; give --map map\.toml"):
        Reading(find_runs(path, kind="mapped")[0], ReadOptions(), Labels()).recording()


@pytest.mark.parametrize(
    ("cell", "watts"),
    [("199,975", 199.975), ("200,5 W", 200.5), ("1.024,5", 1024.5), ("199.975", 199.975), ("1,024.5", 1024.5)],
)
def test_between_semicolons_a_comma_is_the_decimal_sign(tmp_path: Path, cell: str, watts: float) -> None:
    """Spreadsheets save tables so where the comma is the decimal sign; a time in seconds has it too."""
    text = f"t;a\n1763638585,215;{cell}\n1763638586,215;{cell}\n"
    mapping = of_gpu("gpu_power_watts", "W").replace(TIME, f'{TIME}format = "epoch_s"\n')
    found = made(tmp_path, text, mapping)
    assert column(found, "gpu_power_watts") == pytest.approx([watts] * 2)
    assert found.run.started == 1_763_638_585_215_000
