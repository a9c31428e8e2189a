"""Several logs of one machine become one series."""

from pathlib import Path

import numpy as np
import pytest

from gpureport.errors import SourceError
from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_runs
from gpureport.store import Store
from gpureport.testing import HOST, Recording
from tests.importers.accounts import kept, seconds
from tests.importers.written_logs import log, stamp


def host(path: Path, column: str, times: list[float], values: list[float]) -> Path:
    """Return a host log of one column, times in seconds of the log's hour."""
    rows = (f"{stamp(time)},{value}\n" for time, value in zip(times, values, strict=True))
    path.write_text(f"timestamp,{column}\n" + "".join(rows))
    return path


def reading(folder: Path, *hosts: Path) -> Reading:
    """Return a log of twenty seconds with what lies beside it, not yet read."""
    (folder / "gpu.csv").write_text(log(20))
    (inputs,) = find_runs(folder / "gpu.csv", hosts)
    return Reading(inputs, ReadOptions(), Labels())


def column(recording: Recording, name: str) -> list[float | None]:
    """Return a metric of the machine, rounded."""
    cells = recording.rows_of(HOST).column(name).to_pylist()
    return [None if cell is None else round(cell, 3) for cell in cells]


def test_readings_stand_beside_the_rows_they_cover(tmp_path: Path) -> None:
    """Each row gets the reading that covers the middle of its time, whatever the phase; nothing is lost."""
    one = host(tmp_path / "cpu.csv", "cpu_percent", [1, 2, 3, 4], [10, 20, 30, 40])
    other = host(tmp_path / "io.csv", "iowait_percent", [1.4, 2.4, 3.4, 4.4], [1, 2, 3, 4])
    recording = reading(tmp_path, one, other).recording()
    assert column(recording, "cpu_utilization_ratio") == [0.1, 0.2, 0.3, 0.4]
    assert column(recording, "cpu_iowait_ratio") == [0.01, 0.02, 0.03, 0.04]
    assert kept(recording) == 24
    assert recording.run.quality.continued == 4
    assert [device.id for device in recording.run.devices] == ["gpu:0", HOST]
    assert any("4 readings joined by time to rows of" in note for note in recording.run.quality.notes)


def test_the_reading_that_covers_more_of_a_row_is_taken(tmp_path: Path) -> None:
    """Of one that ends a fifth of a second before the row and one that ends four fifths after it, the first."""
    one = host(tmp_path / "cpu.csv", "cpu_percent", [2, 3, 4], [20, 30, 40])
    other = host(tmp_path / "io.csv", "iowait_percent", [1.8, 2.8, 3.8], [2, 3, 4])
    assert column(reading(tmp_path, one, other).recording(), "cpu_iowait_ratio") == [0.02, 0.03, 0.04]


def test_a_coarser_log_speaks_for_several_rows(tmp_path: Path) -> None:
    """A reading of four seconds holds for the four rows it covers; before and after it there is none."""
    one = host(tmp_path / "cpu.csv", "cpu_percent", [float(second) for second in range(1, 13)], list(range(12)))
    other = host(tmp_path / "io.csv", "iowait_percent", [4, 8], [4, 8])
    recording = reading(tmp_path, one, other).recording()
    assert column(recording, "cpu_iowait_ratio") == [0.04] * 4 + [0.08] * 4 + [None] * 4
    assert kept(recording) == 32


def test_readings_beside_no_row_are_rows_of_their_own(tmp_path: Path) -> None:
    """Before and after the finer log, and in its gap."""
    one = host(tmp_path / "cpu.csv", "cpu_percent", [5, 6, 7, 14, 15], [1, 2, 3, 4, 5])
    other = host(tmp_path / "io.csv", "iowait_percent", [2, 5, 8, 11, 14, 17], [1, 2, 3, 4, 5, 6])
    recording = reading(tmp_path, one, other).recording()
    assert seconds(recording, HOST) == [2, 5, 6, 7, 11, 14, 15]
    assert column(recording, "cpu_iowait_ratio") == [0.01, 0.02, 0.03, 0.03, 0.04, 0.05, 0.06]
    assert column(recording, "cpu_utilization_ratio") == [None, 0.01, 0.02, 0.03, None, 0.04, 0.05]
    assert kept(recording) == 27


def test_the_same_metric_twice_is_refused(tmp_path: Path) -> None:
    """Which of the two is right, nobody can say."""
    paths = [host(tmp_path / name, "cpu_percent", [1, 2], [3, 4]) for name in ("a.csv", "b.csv")]
    with pytest.raises(
        SourceError, match=r"a\.csv, .*b\.csv: several host logs .* hold cpu_utilization_ratio; give one"
    ):
        reading(tmp_path, *paths).recording()


def test_the_store_holds_what_was_read(tmp_path: Path) -> None:
    """Written as it is read, the series is the same, and the order in which the files are named does not matter."""
    chance = np.random.default_rng(3)
    cores = np.sort(chance.uniform(0, 19, 40)).round(3).tolist()
    one = host(tmp_path / "cpu.csv", "cpu_percent", cores, chance.uniform(0, 100, 40).round(1).tolist())
    two = host(tmp_path / "io.csv", "iowait_percent", [float(s) for s in range(19)], [1.0] * 19)
    recording = reading(tmp_path, one, two).recording()
    entry = Store(tmp_path / "store").write(reading(tmp_path, one, two), IMPORTER_VERSION)
    assert Store(tmp_path / "store").read(entry).series.equals(recording.series)
    assert reading(tmp_path, two, one).recording().rows_of(HOST).equals(recording.rows_of(HOST))
