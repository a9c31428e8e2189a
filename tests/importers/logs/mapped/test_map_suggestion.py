"""A table that no importer knows is refused with a map to start from."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.errors import SettingsError, SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.importers.logs.mapped.column_guesses import guess_column, time_formats
from gpureport.importers.logs.mapped.map_suggestion import suggest_map
from gpureport.importers.protocol.column_map import read_column_map as read_map
from gpureport.metrics import BY_NAME, Scope
from gpureport.units import UNITS
from tests.genuine import CORPUS, needs_corpus
from tests.importers import other_tools


def suggested(folder: Path, text: str) -> str:
    """Return the map a table is refused with."""
    path = folder / "table.csv"
    path.write_text(text)
    with pytest.raises(SourceError) as refused:
        find_runs(path)
    return refused.value.aside


@pytest.mark.parametrize(
    ("heading", "cells", "metric", "unit", "gpu"),
    [
        ("GPU0_Temperature", ["29°C", "30°C"], "gpu_temperature_celsius", "°C", 0),
        ("gpu 3 util (%)", ["61"], "gpu_utilization_ratio", "%", 3),
        ("util", ["0.61", "1.0"], "gpu_utilization_ratio", "", None),
        ("util ratio", ["0.61", "1.0"], "gpu_utilization_ratio", "1", None),
        ("util", ["0", "0"], "gpu_utilization_ratio", "", None),
        ("mem %", ["45", "46"], "", "", None),
        ("memory_percent", ["45.1"], "", "", None),
        ("GPU1 vram pct", ["45"], "", "", 1),
        ("GPU1 memory", ["45 %"], "", "", 1),
        ("pct_ram", ["45"], "", "", None),
        ("RAM", ["45%"], "", "", None),
        ("vram_used", ["45", "300"], "gpu_memory_used_bytes", "", None),
        ("vram_used", ["45", "40960"], "gpu_memory_used_bytes", "MiB", None),
        ("vram_used", ["12.5"], "gpu_memory_used_bytes", "", None),
        ("vram_total", ["80"], "gpu_memory_total_bytes", "GiB", None),
        ("vram_total", ["81920"], "gpu_memory_total_bytes", "MiB", None),
        ("power %", ["81"], "", "", None),
        ("power_kwh", ["1.2"], "", "", None),
        ("gpu_power", ["0"], "gpu_power_watts", "", None),
        ("gpu_clock", ["1.98"], "gpu_sm_clock_hertz", "GHz", None),
        ("fan_rpm", ["1500"], "", "", None),
        ("temp_f", ["120"], "", "", None),
        ("gpu temp", ["310.5"], "", "", None),
        ("GPU1 Memory Used", ["10240"], "gpu_memory_used_bytes", "MiB", 1),
        ("GPU1 Memory Used", ["10737418240"], "gpu_memory_used_bytes", "B", 1),
        ("vram_gb", ["12.5"], "gpu_memory_used_bytes", "GiB", None),
        ("memory_utilization", ["40"], "gpu_memory_controller_ratio", "%", None),
        ("power_mW", ["70500"], "gpu_power_watts", "mW", None),
        ("power", ["70500"], "gpu_power_watts", "mW", None),
        ("power_cap", ["300"], "gpu_power_limit_requested_watts", "W", None),
        ("sm_clock", ["1980000000"], "gpu_sm_clock_hertz", "Hz", None),
        ("fan", ["33%"], "gpu_fan_ratio", "%", None),
        ("GPU0", ["199.975", "256.5"], "gpu_power_watts", "W", 0),
        ("GPU0", ["61", "62"], "", "", 0),
        ("cpu_usage", ["12.5"], "cpu_utilization_ratio", "%", None),
        ("MEM_USED_MB", ["3180MB"], "host_memory_used_bytes", "MB", None),
        ("CPU0_Tctl", ["+27.0°C"], "", "", None),
        ("NVMe_Temperature", ["27°C"], "", "", None),
        ("job", ["x"], "", "", None),
    ],
)
def test_a_column_is_told_by_heading_and_cells(
    heading: str, cells: list[str], metric: str, unit: str, gpu: int | None
) -> None:
    """The unit is that of the cells, of the heading, or of the size of the numbers."""
    found = guess_column(heading, cells)
    assert (found.metric, found.unit, found.gpu) == (metric, unit, gpu)


_MEMORY = ("mem", "memory", "vram", "GPU0 memory", "gpu_mem_used", "fb", "ram", "host memory", "Memory Usage")
_SHARE = ("{} %", "{}_pct", "{}_percent", "percent {}", "{}%", "{} (%)", "{}Percentage", "{}_ratio")


@pytest.mark.parametrize("heading", [share.format(memory) for memory in _MEMORY for share in _SHARE])
@pytest.mark.parametrize("cells", [["45", "99.5"], ["0.4", "0.9"], ["45 %", "46 %"], ["40960", "81920"]])
def test_a_percentage_is_no_memory(heading: str, cells: list[str]) -> None:
    """A share of memory that a heading or a cell states is never taken for bytes."""
    assert not guess_column(heading, cells).metric.endswith("_bytes")


@given(
    st.sampled_from([*_MEMORY, "power", "gpu_power", "util", "GPU1 load", "clock", "sm clk", "temp", "fan", "cpu"]),
    st.lists(st.floats(0, 1e12).map("{:.6g}".format), min_size=1, max_size=5),
    st.integers(-12, 12),
)
def test_a_unit_is_drafted_where_no_other_can_be_meant(heading: str, cells: list[str], power: int) -> None:
    """Of numbers without a unit, one unit alone makes a quantity that a GPU or a machine can have."""
    numbers = [f"{float(cell) * 10.0**power:.6g}" for cell in cells]
    found = guess_column(heading, numbers)
    if found.metric and found.unit:
        others = {"By": {"B", "MiB", "GiB"}, "W": {"W", "mW"}, "Hz": {"Hz", "kHz", "MHz", "GHz"}, "1": {"1", "%"}}
        metric = BY_NAME[found.metric]
        low, high = _POSSIBLE["host" if metric.scope is Scope.HOST and metric.unit == "By" else metric.unit]
        most = max(map(float, numbers))
        assert low <= UNITS[found.unit].to_base(most) <= high
        for unit in others.get(metric.unit, set()) - {found.unit}:
            assert metric.unit == "1" or not low <= UNITS[unit].to_base(most) <= high


_POSSIBLE = {
    "By": (2.0**20, 300 * 2.0**30),
    "host": (2.0**28, 2.0**43),
    "W": (3.0, 2_500.0),
    "Hz": (1e8, 2e10),
    "1": (0.01, 2.0),
    "Cel": (0.0, 130.0),
}


def test_an_open_unit_is_to_be_filled_in(tmp_path: Path) -> None:
    """The line says between which units to choose, and a map in which it is left so is refused with them."""
    text = "time,GPU0 mem,GPU0 mem %\n" + "".join(f"{other_tools.stamp(second)},45,12\n" for second in range(3))
    told = tmp_path / "map.toml"
    told.write_text(suggested(tmp_path, text))
    assert (
        'unit = "?"  # fill in MiB or GiB, as neither heading nor cells say which; if it is a share in %, '
        "delete the column\n" in told.read_text()
    )
    assert '# [columns."GPU0 mem %"]  # 12' in told.read_text()
    with pytest.raises(SettingsError, match=r"'\?' is no unit of its metric \(column 'GPU0 mem'\); units are B, "):
        read_map(told)


def test_the_map_that_is_suggested_reads_the_table(tmp_path: Path) -> None:
    """Saved as it is printed, it is a map, and the table is read with it."""
    text = "when,GPU0 power,GPU1 power,RAM MB,note\n" + "".join(
        f"{other_tools.stamp(second)},7{second}.5 W,80,2117,x\n" for second in range(3)
    )
    told = tmp_path / "map.toml"
    told.write_text(suggested(tmp_path, text.replace("when", "time")))
    (inputs,) = find_runs(tmp_path / "table.csv", kind="mapped")
    found = Reading(inputs, ReadOptions(map=read_map(told)), Labels()).recording()
    assert [device.id for device in found.run.devices] == ["gpu:0", "gpu:1", "host"]


def test_doubt_is_said_where_it_is(tmp_path: Path) -> None:
    """Columns that nothing is known of are comments; a guess from the cells alone is marked; none is assigned twice."""
    text = "timestamp,GPU0,GPU1,job,power GPU0\n1763638585.215,199.975,5,x,7\n1763638585.4,196.3,6,x,7\n"
    told = suggested(tmp_path, text)
    assert 'format = "epoch_s"' in told
    assert '[columns."GPU0"]  # 199.975, 196.3\nmetric = "gpu_power_watts"  # told by the cells alone\n' in told
    assert '# [columns."GPU1"]  # 5, 6' in told
    assert '# [columns."job"]  # x' in told
    assert '# [columns."power GPU0"]  # 7' in told


def test_a_column_with_the_number_of_the_gpu(tmp_path: Path) -> None:
    """Rows of one GPU each get [device]."""
    told = suggested(tmp_path, "zeit,index,leistung power\n2026-03-14 09:00:00,0,71\n2026-03-14 09:00:00,1,72\n")
    assert '[device]\ncolumn = "index"' in told
    assert "# No time was found" in told


@pytest.mark.parametrize("cells", ["1,2", "1,2,3,4,5"])
def test_a_header_of_another_width_gets_no_map(tmp_path: Path, cells: str) -> None:
    """Where no row has as many cells as the header has names, nobody can say which is which."""
    path = tmp_path / "table.csv"
    path.write_text(f"Timestamp, GPU0_Temperature, GPU1_Temperature\n{cells}\n{cells}\n")
    with pytest.raises(SourceError, match=r"its header names 3 columns, but its rows have \d cells: nobody"):
        find_runs(path)


@pytest.mark.parametrize(
    "text", ["region,sales\nnorth,3\n", "hello\n", "a,b\n", "1,2\n3,4\n", "\x1b[31m,GPU0 power\n1,2\n"]
)
def test_other_texts_get_no_map(tmp_path: Path, text: str) -> None:
    """A table that speaks of no GPU is no known log, and nothing more."""
    assert suggested(tmp_path, text) == ""


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_no_text_breaks_the_suggestion(text: str) -> None:
    """Nothing is raised, whatever a file begins with."""
    found = suggest_map(f"time,GPU0 power,{text}\n2026-03-14 09:00:00,5,{text}\n")
    assert not (found.text and found.problem)


@pytest.mark.corpus
@needs_corpus
@pytest.mark.parametrize(
    ("name", "gpus", "rows"),
    [
        ("DEEPGadget-GPU_CPU_temp_logger__temperature_log.txt", 8, 90),
        ("seongjunpark17-GPU-power-log__power_log.csv", 2, 246),
    ],
)
def test_wrappers_of_the_wild_are_read_with_the_map_they_get(tmp_path: Path, name: str, gpus: int, rows: int) -> None:
    """The map that genuine wrapper logs are refused with reads them as it is."""
    path = CORPUS / "corpus" / name
    with pytest.raises(SourceError) as refused:
        find_runs(path)
    told = tmp_path / "map.toml"
    told.write_text(refused.value.aside)
    (inputs,) = find_runs(path, kind="mapped")
    found = Reading(inputs, ReadOptions(map=read_map(told)), Labels()).recording()
    assert (len(found.run.gpus), len(found.series)) == (gpus, rows)
    assert found.run.quality.rejected == ()


def test_a_spreadsheet_with_decimal_commas_is_told_as_the_table_it_was_made_of(tmp_path: Path) -> None:
    """Numbers and times in seconds are the same whatever their decimal sign."""
    table = "timestamp,GPU0,GPU1\n1763638585.215,199.975,256.513\n1763638585.415,196.311,261.444\n"
    saved = table.replace(",", ";").replace(".", ",")
    assert _without_cells(suggested(tmp_path, saved)) == _without_cells(suggested(tmp_path, table))


def _without_cells(mapping: str) -> list[str]:
    """Return the lines of a map without what they show of the cells."""
    return [line.partition("  # ")[0] for line in mapping.splitlines()]


@pytest.mark.parametrize(
    ("cells", "formats"),
    [
        (["2026-03-14T09:26:53Z"], ["iso"]),
        (["1773478800.123", "1773478801.123"], ["epoch_s"]),
        (["14.03.2026 09:26:53", "1.4.2026 09:26:53"], ["%d.%m.%Y %H:%M:%S"]),
        (["3/4/2026 9:26:53", "3/14/2026 9:26:53"], ["%m/%d/%Y %H:%M:%S"]),
        (["03/04/2026 12:26:53 PM"], ["%m/%d/%Y %I:%M:%S %p", "%d/%m/%Y %I:%M:%S %p"]),
        (["Sat Mar 14 09:26:53 2026"], ["%a %b %d %H:%M:%S %Y"]),
        (["3/14/2026 9:26", "3/14/2026 9:26"], []),
        (["soon"], []),
        ([], []),
    ],
)
def test_formats_of_a_time_are_told_by_all_its_cells(cells: list[str], formats: list[str]) -> None:
    """Both where the order of day and month is open; none where rows of a minute could not be told apart."""
    assert time_formats("timestamp", cells) == formats


def test_the_order_of_day_and_month_is_left_to_the_reader(tmp_path: Path) -> None:
    """The other one stands beside it."""
    found = suggested(tmp_path, "when_time,gpu0 util %\n03/04/2026 09:26:53,50\n03/04/2026 09:26:54,51\n")
    assert 'format = "%m/%d/%Y %H:%M:%S"  # or "%d/%m/%Y %H:%M:%S"' in found
