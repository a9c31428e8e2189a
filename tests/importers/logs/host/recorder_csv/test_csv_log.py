"""Host CSVs joined to a log."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.testing import HOST, Recording
from tests.importers.written_logs import log


def joined(folder: Path, host: str) -> Recording:
    """Return a log of ten seconds with a host CSV of this content."""
    (folder / "gpu.csv").write_text(log(10))
    (folder / "cpu.csv").write_text(host)
    (inputs,) = find_runs(folder / "gpu.csv", [folder / "cpu.csv"])
    return Reading(inputs, ReadOptions(), Labels()).recording()


def test_percent_and_mebibytes_become_base_units(tmp_path: Path) -> None:
    """Every column the generator of host logs writes has its place; times are the CSV's own."""
    text = (
        "timestamp,cpu_percent,cpu_max_core_percent,ram_used_mib,ram_total_mib,iowait_percent\n"
        "2026-03-14T09:00:00.500,93.5,100.0,2048,4096,1.5\n"
    )
    recording = joined(tmp_path, text)
    (row,) = recording.rows_of(HOST).to_pylist()
    assert row["cpu_utilization_ratio"] == pytest.approx(0.935)
    assert row["cpu_busiest_core_ratio"] == 1.0
    assert row["cpu_iowait_ratio"] == pytest.approx(0.015)
    assert (row["host_memory_used_bytes"], row["host_memory_total_bytes"]) == (2**31, 2**32)
    assert row["timestamp"].isoformat() == "2026-03-14T09:00:00.500000"
    assert row["gpu_utilization_ratio"] is None


def test_the_account_covers_both_files(tmp_path: Path) -> None:
    """Lines of the log and of the host CSV are accounted for together."""
    quality = joined(tmp_path, "timestamp,cpu_percent\n2026-03-14T09:00:00,5\nrubbish\n").run.quality
    assert (quality.lines, quality.rows_kept, quality.headers) == (14, 11, 2)
    assert quality.accounted


def test_a_host_log_without_rows_is_refused(tmp_path: Path) -> None:
    """A header alone is no CPU series."""
    with pytest.raises(SourceError, match="no row of host metrics"):
        joined(tmp_path, "timestamp,cpu_percent\n")
