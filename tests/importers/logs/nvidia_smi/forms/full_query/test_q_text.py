"""The text of `nvidia-smi -q` is read by the whole path of each value."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from gpureport.importers.logs.nvidia_smi.forms.full_query.q_text import QueryText
from gpureport.importers.logs.nvidia_smi.forms.full_query.sections import INSTANT, KEPT, NUMBERED
from tests.importers.accounts import absent, column, percents, rejected, seconds
from tests.importers.logs.nvidia_smi.forms.outputs import asctime, gpu, query, query_loop
from tests.importers.logs.nvidia_smi.forms.snapshot_logs import read, read_cut_log
from tests.importers.written_logs import read_text

EXPECTED = {
    "gpu_performance_state": 0,
    "gpu_fan_ratio": 0.3,
    "gpu_utilization_ratio": 0.97,
    "gpu_memory_controller_ratio": 0.12,
    "gpu_encoder_ratio": 0,
    "gpu_memory_total_bytes": 23034 * 2**20,
    "gpu_memory_reserved_bytes": 479 * 2**20,
    "gpu_memory_used_bytes": 2**30,
    "gpu_memory_free_bytes": 20000 * 2**20,
    "gpu_bar1_used_bytes": 2**20,
    "gpu_temperature_celsius": 41,
    "gpu_temperature_margin_celsius": 46,
    "gpu_memory_temperature_celsius": 48,
    "gpu_power_watts": 61.849998,
    "gpu_power_instant_watts": 61.619999,
    "gpu_power_limit_watts": 72,
    "gpu_power_limit_requested_watts": 72,
    "gpu_power_limit_max_watts": 72,
    "gpu_graphics_clock_hertz": 1980e6,
    "gpu_sm_clock_hertz": 1965e6,
    "gpu_memory_clock_hertz": 6251e6,
    "gpu_video_clock_hertz": 1545e6,
    "gpu_graphics_clock_max_hertz": 2040e6,
    "gpu_sm_clock_max_hertz": 2040e6,
    "gpu_memory_clock_max_hertz": 6251e6,
    "pcie_link_generation": 4,
    "pcie_link_generation_max": 4,
    "pcie_link_width": 8,
    "pcie_link_width_max": 16,
    "pcie_transmit_bytes_per_second": 439e3,
    "pcie_receive_bytes_per_second": 292e3,
    "gpu_ecc_corrected_total": 4,
    "gpu_ecc_uncorrected_total": 2,
    "clock_event_gpu_idle": False,
    "clock_event_sw_power_cap": True,
    "clock_event_hw_slowdown": False,
    "clock_event_hw_thermal_slowdown": False,
    "clock_event_display_clock_setting": False,
    "clock_event_sw_power_cap_seconds_total": 7,
    "clock_event_hw_thermal_slowdown_seconds_total": 0,
}


def test_every_value(tmp_path: Path) -> None:
    """Each value is the one under its own section, though other sections name theirs alike."""
    recording = read(tmp_path, query([gpu(0), gpu(1)]))
    assert {name: column(recording, name) for name in EXPECTED} == {name: [value] for name, value in EXPECTED.items()}
    assert seconds(recording, "gpu:1") == [0]
    one, other = recording.run.devices
    assert (one.uuid, one.bus_id, one.model, one.driver, one.power_window) == (
        *("GPU-00000000-0000-0000-0000-000000000000", "00000000:31:00.0", "NVIDIA L4", "590.48.01", "1 s"),
    )
    assert (other.id, other.bus_id) == ("gpu:1", "00000000:32:00.0")
    assert recording.run.quality.notes == (KEPT,)


def test_former_labels(tmp_path: Path) -> None:
    """What drivers before R530 called otherwise goes to the same metrics."""
    text = query().replace("Clocks Event", "Clocks Throttle").replace("        GPU    ", "        Gpu    ")
    text = text.replace("GPU Power Readings", "Power Readings").replace("Average Power Draw", "Power Draw")
    text = text.replace("Current Power Limit", "Enforced Power Limit").replace("Requested Power", "Power")
    recording = read(tmp_path, text)
    assert {name: column(recording, name) for name in EXPECTED} == {name: [value] for name, value in EXPECTED.items()}


def test_a_loop_is_a_series(tmp_path: Path) -> None:
    """Every document is a row a GPU at its time; what it says besides is more of the same rows."""
    recording = read(tmp_path, query_loop(6, gpus=3, every=2))
    assert (len(recording.series), seconds(recording, "gpu:2")) == (18, [0, 2, 4, 6, 8, 10])
    assert percents(recording, "gpu:1") == [1, 8, 15, 22, 29, 36]
    assert (recording.run.quality.headers, recording.run.quality.noise) == (6, 0)


def test_errors_in_place_of_values(tmp_path: Path) -> None:
    """A word where a number should stand is the reason why there is none."""
    text = (
        query().replace(": 97 %", ": GPU is lost").replace(": 1965 MHz", ": Unknown Error").replace(": 3\n", ": N/A\n")
    )
    recording = read(tmp_path, text)
    assert (percents(recording), column(recording, "gpu_sm_clock_hertz")) == ([None], [None])
    assert column(recording, "gpu_ecc_corrected_total") == [None]
    assert absent(recording) == [
        ("clocks.current.sm", "Unknown Error", 1),
        ("ecc.errors.corrected.volatile.total", "N/A", 1),
        ("mig.mode.current", "N/A", 1),
        ("utilization.gpu", "GPU is lost", 1),
    ]


def test_parts_of_the_query(tmp_path: Path) -> None:
    """With `-d` sections are missing, and statistics over samples are none of the readings."""
    text = query().partition("    Product Name")[0] + (
        "    Utilization\n        Gpu                               : 55 %\n        Memory        : 7 %\n"
        "    GPU Utilization Samples\n        Duration  : 14.06 sec\n        Max  : 99 %\n        Avg  : 12 %\n"
        "    Power Samples\n        Max : 300.00 W\n\n"
    )
    recording = read(tmp_path, text)
    assert (percents(recording), recording.run.quality.lines) == ([55], 15)
    assert "gpu_power_watts" not in recording.series.column_names or column(recording, "gpu_power_watts") == [None]


def test_a_section_that_measures_nothing(tmp_path: Path) -> None:
    """A section of settings alone is no row."""
    text = query().partition("    Fan Speed")[0].partition("    PCI\n")[0]
    with pytest.raises(SourceError, match="1 no reading of a GPU"):
        read(tmp_path, text)


def test_a_damaged_section_costs_itself_alone(tmp_path: Path) -> None:
    """Two readings of one value, or a cell that is none, reject the GPU at that time."""
    first, second = query_loop(2).split("GPU 00000000:32:00.0", 1)
    text = (
        first
        + "    Temperature\n        GPU Current Temp : 3 C\nGPU 00000000:32:00.0"
        + second.replace("1024 MiB", "10x24 MiB", 1)
    )
    line = text[: text.index("GPU 00000000:31")].count("\n") + 1
    assert rejected(read(tmp_path, text)) == [("malformed memory.used", 1, 96), ("torn line", 1, line)]
    text = first.replace("    Fan Speed", "    Fan Speed   : 31 %\n    Fan Speed") + "GPU 00000000:32:00.0" + second
    assert rejected(read(tmp_path, text)) == [("torn line", 1, line)]


def test_gpus_are_numbered_by_place_or_by_minor_number(tmp_path: Path) -> None:
    """Where all GPUs are listed their place is their index; else the minor number stands for it, and a note says so."""
    text = query([gpu(5), gpu(2)], attached=2)
    assert [(each.id, each.bus_id) for each in read(tmp_path, text).run.devices] == [
        ("gpu:0", "00000000:36:00.0"),
        ("gpu:1", "00000000:33:00.0"),
    ]
    recording = read(tmp_path, query([gpu(5)], attached=8) * 2)
    assert [each.id for each in recording.run.devices] == ["gpu:5"]
    assert NUMBERED in recording.run.quality.notes


def test_power_of_older_gpus(tmp_path: Path) -> None:
    """Where no average exists the instant reading is what --query-gpu calls power.draw, and a note says so."""
    text = query([gpu(0, name="Tesla T4")]).replace(": 61.85 W", ": N/A")
    recording = read(tmp_path, text)
    assert column(recording, "gpu_power_watts") == column(recording, "gpu_power_instant_watts") == [61.619999]
    assert INSTANT in recording.run.quality.notes
    assert recording.run.devices[0].power_window == "instant"


def test_without_a_time(tmp_path: Path) -> None:
    """Documents without a time are counted with --interval."""
    text = query(time=None) * 2
    with pytest.raises(SourceError, match="have no time"):
        read(tmp_path, text)
    assert seconds(read(tmp_path, text, ReadOptions(interval=3.0)), start=0) == [0, 3]


def test_between_prose(tmp_path: Path) -> None:
    """Text around documents is noise, a message of the driver an event, and what follows a section is none of it."""
    text = f"loading\n{query()}step 1\n    Fan Speed : 99 %\nNo devices were found\n{query(time=asctime(9))}"
    recording = read(tmp_path, text)
    assert (seconds(recording), column(recording, "gpu_fan_ratio")) == ([0, 9], [0.3, 0.3])
    assert (recording.run.quality.noise, recording.run.quality.events) == (3, 1)


def test_voltage_is_kept(tmp_path: Path) -> None:
    """What has no metric of its own but is measured is kept as it is written."""
    text = query().replace("    Processes", "    Voltage\n        Graphics : 668.750 mV\n    Processes")
    assert read(tmp_path, text).series.column("extra_voltage_graphics").to_pylist() == ["668.750 mV"]


def test_a_reason_without_a_name_is_kept(tmp_path: Path) -> None:
    """A clock event that the table of metrics does not know is kept under its own name."""
    text = query().replace("        Sync Boost", "        Moon Phase : Active\n        Sync Boost", 1)
    series = read(tmp_path, text).series
    assert series.column("extra_clocks_event_reasons_moon_phase").to_pylist() == ["Active"]


LOOP = query_loop(3).encode()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, len(LOOP)))
def test_a_cut_costs_one_document_at_most(tmp_path: Path, cut: int) -> None:
    """A log that ends at any byte keeps every document that is whole, and invents nothing."""
    rows, all_rows = read_cut_log(tmp_path, LOOP, cut, QueryText)
    whole = LOOP[:cut].count(b"NVSMI LOG")
    if rows is None:
        assert whole <= 1
        return
    assert 2 * (whole - 1) <= len(rows) <= 2 * whole
    expected = {(row["device"], row["timestamp"]): row for row in all_rows}
    for row in rows:
        other = expected[row["device"], row["timestamp"]]
        assert all(value is None or value == other[name] for name, value in row.items())


def test_line_ends_that_were_made_twice(tmp_path: Path) -> None:
    """A transfer that put a carriage return before those of a log changes no value."""
    text = query_loop(4)
    plain, again = read_text(tmp_path, text), read_text(tmp_path, text.replace("\n", "\r\r\n"))
    assert again.series.equals(plain.series)
    assert again.run.quality.continued == plain.run.quality.continued


def test_a_log_appended_to_itself_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy is told by its values, whatever else stands in the pieces of the log that it comes in."""
    documents = [
        query([gpu(0, fan="N/A" if 20 < n < 23 else "30%", watts=f"{50 + n}W")], asctime(n)) for n in range(30)
    ]
    monkeypatch.setattr("gpureport.importers.decoding.pieces.pieces.__defaults__", (8000,))
    text = "".join(documents)
    recording = read_text(tmp_path, text * 2)
    first = (text + text[: text.index("GPU 0")]).count("\n") + 1
    assert rejected(recording) == [("duplicate segment", 30, first)]
    assert len(recording.series) == 30
