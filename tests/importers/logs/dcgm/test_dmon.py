"""What `dcgmi dmon` prints becomes the series of the GPUs, its columns by their heading."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.testing import Recording
from tests.importers import other_tools
from tests.importers.accounts import absent, column, kept, rejected


def made(folder: Path, text: str, interval: float | None = 1.0) -> Recording:
    """Return a log as it is read."""
    path = folder / "dmon.log"
    path.write_text(text)
    return Reading(find_runs(path)[0], ReadOptions(interval=interval), Labels()).recording()


def test_columns_follow_the_heading(tmp_path: Path) -> None:
    """A field is what its tag says, wherever it stands; a heading in the middle may change the order."""
    text = (
        "#Entity   GPUTL   POWER\nID                W\nGPU 0     61      200.5\n"
        "#Entity   POWER   TMPTR   GPUTL\nID        W       C\nGPU 0     100.25  60      7\n"
    )
    found = made(tmp_path, text)
    assert column(found, "gpu_utilization_ratio") == [0.61, 0.07]
    assert column(found, "gpu_power_watts") == [200.5, 100.25]
    assert column(found, "gpu_temperature_celsius") == [None, 60]
    assert (kept(found), found.run.quality.headers) == (2, 4)


def test_every_field_has_its_unit(tmp_path: Path) -> None:
    """Ratios of the profiling module are parts of 1, energy is in mJ, memory in MiB, the mask is taken apart."""
    found = made(tmp_path, other_tools.dmon_log(2))
    row = found.rows_of("gpu:1").to_pylist()[1]
    assert row["gpu_sm_active_ratio"] == pytest.approx(0.367)
    assert row["gpu_energy_joules_total"] == 2.07e8
    assert row["gpu_memory_used_bytes"] == 2**30
    assert (row["clock_event_sw_power_cap"], row["clock_event_gpu_idle"]) == (True, False)
    assert row["clock_event_unknown_bits"] == 0


def test_the_older_heading_is_read_as_well(tmp_path: Path) -> None:
    """DCGM 2 wrote the sign apart, and the entities flush right."""
    found = made(tmp_path, "# Entity  SMACT  TENSO\n      Id\n    GPU 0  0.995  0.25\n    GPU 1  0.5  0\n")
    assert column(found, "gpu_tensor_active_ratio", "gpu:0") == [0.25]
    assert column(found, "gpu_sm_active_ratio", "gpu:1") == [0.5]


def test_without_time_an_interval_is_needed(tmp_path: Path) -> None:
    """Dmon writes no time: it is counted from --interval, and flagged."""
    with pytest.raises(SourceError, match=r"its rows \(dcgmi dmon\) have no time; say with --interval"):
        made(tmp_path, other_tools.dmon_log(2), None)
    found = made(tmp_path, other_tools.dmon_log(3), 0.5)
    assert (found.run.quality.synthetic_time, found.run.interval) == (True, 0.5)


@pytest.mark.parametrize(
    ("mark", "zone"),
    [
        ("2026-03-14 09:00:0{} ", None),
        ("2026-03-14T09:00:0{}.5 ", None),
        ("[2026-03-14 09:00:0{},500] ", None),
        ("2026-03-14T09:00:0{}+01:00 ", "UTC"),
        ("2026-03-14T09:00:0{}Z, ", "UTC"),
        ("177347880{}.25 ", "UTC"),
    ],
)
def test_stamps_before_each_line_are_times(tmp_path: Path, mark: str, zone: str | None) -> None:
    """A log that went through something that stamps its lines has times."""
    ticks = [other_tools.dmon_log(1).splitlines() for _ in range(4)]
    text = "".join(f"{mark.format(second)}{line}\n" for second, tick in enumerate(ticks) for line in tick)
    found = made(tmp_path, text, None)
    assert (kept(found), found.run.timezone, found.run.interval) == (8, zone, 1)


def test_instances_and_switches_are_no_gpus(tmp_path: Path) -> None:
    """Rows of MIG instances and switches are rejected, kept aside, and noted."""
    text = other_tools.dmon_log(1) + "".join(
        f"{entity}   1   70.5   1   0.3   4   7\n" for entity in ("GPU-I 0", "GPU-CI 0", "Switch 0")
    )
    found = made(tmp_path, text)
    assert [device.id for device in found.run.devices] == ["gpu:0", "gpu:1"]
    assert rejected(found) == [("row of no GPU", 3, 5)]
    assert any("MIG" in note for note in found.run.quality.notes)


def test_no_value_is_null_with_its_reason(tmp_path: Path) -> None:
    """`N/A` and the numbers DCGM writes for no value are null, never 0."""
    text = (
        "#Entity   GPUTL   POWER   MMTMP   FBUSD\nID\n"
        "GPU 0     N/A     140737488355328.0   9223372036854775794   2147483632\n"
    )
    found = made(tmp_path, text + "GPU 0     5   1   1   1\n")
    assert absent(found) == [("FBUSD", "blank", 1), ("GPUTL", "N/A", 1), ("MMTMP", "blank", 1), ("POWER", "blank", 1)]
    assert column(found, "gpu_utilization_ratio") == [None, 0.05]


def test_tags_that_are_not_known_are_kept_as_text(tmp_path: Path) -> None:
    """Violation times, of whose unit the sources disagree, are kept as they are."""
    found = made(tmp_path, "#Entity   GPUTL   PVIOL\nID\nGPU 0     5   123456\n")
    assert found.rows_of("gpu:0").column("extra_PVIOL").to_pylist() == ["123456"]


def test_a_unit_below_the_heading_wins(tmp_path: Path) -> None:
    """Energy in J below its tag is not taken for mJ; a unit of another kind is not believed."""
    found = made(tmp_path, "#Entity   TOTEC   POWER\nID        J       MHz\nGPU 0     5000    70\n")
    assert column(found, "gpu_energy_joules_total") == [5000]
    assert column(found, "gpu_power_watts") == [70]
