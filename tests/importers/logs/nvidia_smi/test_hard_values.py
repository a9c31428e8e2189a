"""Cells with other units, other names, and values at the edge of what can be."""

from pathlib import Path

import pytest

from tests.importers.accounts import absent, column, kept, lines, percents, rejected
from tests.importers.written_logs import HEADER, read_text, row, stamp


def one(folder: Path, heading: str, *cells: str) -> tuple[list[tuple[str, int, int | None]], list[float | None]]:
    """Return why rows were rejected and the values of a column with these cells, beside a utilisation."""
    rows = [f"{stamp(second)}, 5 %, {cell}" for second, cell in enumerate(cells)]
    recording = read_text(folder, lines(f"timestamp, utilization.gpu [%], {heading}", *rows))
    kept(recording)
    names = [name for name in recording.series.column_names if name.startswith(("gpu_", "clock_"))]
    (metric,) = [name for name in names if name != "gpu_utilization_ratio"]
    return rejected(recording), column(recording, metric)


@pytest.mark.parametrize(
    ("heading", "cells", "values"),
    [
        ("power.draw [W]", ("250.00 W", "250", "250000 mW", "0.25 kW"), [250.0] * 4),
        ("memory.used [MiB]", ("2048 MiB", "2048", "2 GiB", "2097152 KiB", "2048MiB"), [2.0**31] * 5),
        ("memory.used [MB]", ("2048 MB", "2048", "2048MB", "2117MB"), [2.0**31] * 3 + [2117.0 * 2**20]),
        ("clocks.sm [MHz]", ("1980 MHz", "1980", "1.98 GHz"), [1.98e9] * 3),
        ("temperature.gpu", ("+27.0 °C", "+27.0°C", "38 °C", "38C", "038", "-5"), [27, 27, 38, 38, 38, -5]),
        ("fan.speed [%]", ("30 %", "030", "120 %"), [0.3, 0.3, 1.2]),
        ("encoder.stats.averageLatency", ("4271133", "0", "250 us"), [4.271133, 0, 0.00025]),
    ],
)
def test_a_unit_belongs_to_its_cell(tmp_path: Path, heading: str, cells: tuple[str, ...], values: list[float]) -> None:
    """With a unit, without, glued, of another size, zero-padded or signed, a cell means what it says."""
    assert one(tmp_path, heading, *cells) == ([], values)


@pytest.mark.parametrize(
    ("heading", "cell"),
    [
        ("power.draw [W]", "-3.00 W"),
        ("power.draw [W]", "250.00 MiB"),
        ("power.draw [W]", "2.5e2 W"),
        ("power.draw [W]", "1.024.00 W"),
        ("memory.used [MiB]", "1_024 MiB"),
        ("memory.used [MiB]", "-1 MiB"),
        ("memory.used [MiB]", "1024 MHz"),
        ("temperature.gpu", "27 °F"),
    ],
)
def test_a_cell_of_another_kind_costs_its_row(tmp_path: Path, heading: str, cell: str) -> None:
    """A unit of something else, a number that cannot be or is not written so: no value is made of it."""
    why, values = one(tmp_path, heading, "7", cell, "7")
    assert ([(rows, line) for _, rows, line in why], len(values)) == ([(1, 3)], 2)


def test_a_utilisation_of_101_percent(tmp_path: Path) -> None:
    """100 % is the most there is; one more is two cells run together."""
    recording = read_text(tmp_path, lines(HEADER, row(0, util=100), row(1, util=101), row(2, util=0)))
    assert (kept(recording), percents(recording)) == (2, [100, 0])
    assert rejected(recording) == [("malformed utilization.gpu", 1, 3)]


def test_power_above_its_limit_is_legal(tmp_path: Path) -> None:
    """The power of an instant may be 774 W at a limit of 700 W."""
    header = "timestamp, power.draw.instant [W], enforced.power.limit [W], clocks_event_reasons.active"
    masks = (0x1, 0x0, 0x4)
    rows = [f"{stamp(at)}, {774 - at}.50 W, 700.00 W, 0x{mask:016x}" for at, mask in enumerate(masks)]
    recording = read_text(tmp_path, lines(header, *rows))
    assert (kept(recording), column(recording, "gpu_power_instant_watts")) == (3, [774.5, 773.5, 772.5])
    assert column(recording, "clock_event_gpu_idle") == [1, 0, 0]
    assert column(recording, "clock_event_sw_power_cap") == [0, 0, 1]
    assert recording.run.devices[0].power_limit_watts == 700


def test_counters_that_fall_after_the_driver_was_reloaded(tmp_path: Path) -> None:
    """A counter is kept as written, large before and small after: a fall is no damage and no step of the clock."""
    header = "timestamp, clocks_event_reasons_counters.sw_power_cap [us], encoder.stats.averageLatency"
    before = [f"{stamp(second)}, {15_820_333_506 + 500_000 * second} us, 4271133" for second in range(3)]
    after = [f"{stamp(30 + second)}, {1000 * second} us, 0" for second in range(3)]
    recording = read_text(tmp_path, lines(header, *before, *after))
    counted = [15820.333506, 15820.833506, 15821.333506, 0, 0.001, 0.002]
    assert (kept(recording), column(recording, "clock_event_sw_power_cap_seconds_total")) == (6, counted)
    assert column(recording, "gpu_encoder_latency_seconds") == [4.271133] * 3 + [0] * 3
    assert recording.run.quality.clock_steps == ()


def test_energy_under_its_nvml_name(tmp_path: Path) -> None:
    """Scripts that write NVML's total energy beside nvidia-smi's fields count it in mJ."""
    header = "timestamp, utilization.gpu [%], total_energy_consumption [mJ]"
    rows = [f"{stamp(second)}, 98 %, {1_234_567_890_123 + 300_000 * second} mJ" for second in range(3)]
    recording = read_text(tmp_path, lines(header, *rows))
    counted = [1_234_567_890.123, 1_234_568_190.123, 1_234_568_490.123]
    assert column(recording, "gpu_energy_joules_total") == pytest.approx(counted, abs=1e-3)


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("clocks_throttle_reasons.active", "clocks_event_reasons.active", "0x0000000000000004"),
        ("clocks.sm [MHz]", "clocks.current.sm [MHz]", "300"),
        ("clocks.mem [MHz]", "clocks.current.memory [MHz]", "300"),
        ("clocks.max.gr [MHz]", "clocks.max.graphics [MHz]", "300"),
        ("gpu.power.draw.instant [W]", "power.draw.instant [W]", "300"),
        ("gpu.power.current_limit [W]", "enforced.power.limit [W]", "300"),
        ("gpu.power.requested_limit [W]", "power.limit [W]", "300"),
        ("pcie.link.gen.current", "pcie.link.gen.gpucurrent", "4"),
        ("clocks_throttle_reasons.sw_power_cap", "clocks_event_reasons.sw_power_cap", "Active"),
    ],
)
def test_an_older_name_fills_the_same_column(tmp_path: Path, old: str, new: str, value: str) -> None:
    """Logs of two drivers, one below the other, are one series."""
    parts = [(f"timestamp, {name}", f"{stamp(second)}, {value}") for second, name in enumerate((old, new))]
    recording = read_text(tmp_path, lines(*(line for part in parts for line in part)))
    assert kept(recording) == 2
    names = [name for name in recording.series.column_names if name not in {"device", "timestamp", "imputed"}]
    assert all(recording.series.column(name).null_count == 0 for name in names)
    assert not any(name.startswith("extra_") for name in names)


def test_one_absent_cell_in_a_long_log(tmp_path: Path) -> None:
    """A single `[N/A]` at line 25,089 is one null, counted, with all cells around it as written."""
    rows = [f"{stamp(tick / 10)}, {tick % 100} %" for tick in range(30_000)]
    rows[25_087] = f"{stamp(2508.7)}, [N/A]"
    recording = read_text(tmp_path, lines("timestamp, utilization.gpu [%]", *rows))
    found = percents(recording)
    assert (kept(recording), absent(recording)) == (30_000, [("utilization.gpu", "N/A", 1)])
    assert found[25_086:25_089] == [86, None, 88]


def test_numbers_of_twelve_digits(tmp_path: Path) -> None:
    """Memory and counters of twelve digits are read exactly."""
    why, values = one(
        tmp_path, "clocks_event_reasons_counters.sync_boost [us]", *["123456789012 us"] * 20, "999999999999 us"
    )
    assert (why, set(values)) == ([], {123456.789012, 999999.999999})
