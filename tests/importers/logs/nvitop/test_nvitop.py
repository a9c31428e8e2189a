"""CSV files of nvitop's ResourceMetricCollector become the series of the GPUs and of their machine."""

from pathlib import Path

import pytest

from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.testing import Recording
from tests.importers import other_tools
from tests.importers.accounts import absent, column, kept, rejected

CAPTURES = Path(__file__).parent / "captures"
"""Written at once by two collectors of nvitop 1.7.2, asked every 2 s about a stand-in of NVML: `cleared` calls
`clear()` after each row, `kept` never does, as the script in nvitop's README."""


def read(path: Path) -> Recording:
    """Return a CSV as it is read."""
    return Reading(find_runs(path)[0], ReadOptions(), Labels()).recording()


def made(folder: Path, text: str) -> Recording:
    """Return a made-up CSV as it is read."""
    path = folder / "nvitop.csv"
    path.write_text(text)
    return read(path)


def test_gpus_and_machine_come_from_one_file() -> None:
    """Each row is one of the machine and one of every GPU, in UTC."""
    found = read(CAPTURES / "cleared.csv")
    assert [device.id for device in found.run.devices] == ["gpu:0", "gpu:1", "host"]
    assert (kept(found), found.run.timezone, found.run.quality.headers) == (36, "UTC", 1)
    assert set(column(found, "gpu_power_watts", "gpu:1")) == {88}
    assert set(column(found, "gpu_memory_total_bytes", "gpu:1")) == {24 * 2**30}
    assert all(0 <= (cell or 0) <= 1 for cell in column(found, "cpu_utilization_ratio", "host"))
    assert absent(found) == [("fan_speed (%)", "nan", 12)]


def test_means_since_the_start_become_means_of_windows() -> None:
    """A collection that is never cleared gives what the one that is cleared gives, within their sampling."""
    since, windows = (column(read(CAPTURES / name), "gpu_utilization_ratio") for name in ("kept.csv", "cleared.csv"))
    differences = [abs((one or 0) - (other or 0)) for one, other in zip(since, windows, strict=True)]
    assert max(differences) < 0.07
    assert sum(differences) / len(differences) < 0.02
    assert since[5] == pytest.approx(windows[5], abs=0.001)


def test_what_is_made_of_means_is_said() -> None:
    """Only a collection that goes on has its means taken apart."""
    notes = {name: read(CAPTURES / name).run.quality.notes for name in ("kept.csv", "cleared.csv")}
    assert any("since the collection began" in note for note in notes["kept.csv"])
    assert not any("since the collection began" in note for note in notes["cleared.csv"])


def test_a_clearing_whose_windows_grow_is_one() -> None:
    """Windows that take a millisecond longer each are no collection that goes on."""
    assert None not in column(read(CAPTURES / "cleared.csv"), "gpu_utilization_ratio")


def test_a_gpu_of_cuda_has_the_number_nvml_gives_it(tmp_path: Path) -> None:
    """`cuda:0 (gpu:3)` is GPU 3; of memory the last reading is kept, of the rest the mean."""
    found = made(tmp_path, other_tools.nvitop_csv(3))
    assert [device.id for device in found.run.devices] == ["gpu:3", "host"]
    assert column(found, "gpu_utilization_ratio", "gpu:3") == [0.9, 0.91, 0.92]
    assert set(column(found, "gpu_memory_used_bytes", "gpu:3")) == {1025 * 2**20}
    assert column(found, "cpu_utilization_ratio", "host") == [0.125, 0.135, 0.145]


def test_a_time_as_text_serves_where_the_collectors_own_is_left_out(tmp_path: Path) -> None:
    """Pandas' column `time` is local time."""
    text = other_tools.nvitop_csv(2).replace("job/timestamp", "time")
    for row in range(2):
        text = text.replace(str(other_tools.EPOCH + 5 * row), other_tools.stamp(5 * row))
    found = made(tmp_path, text)
    assert (found.run.timezone, found.run.interval) == (None, 5)


def test_what_is_not_kept_is_said(tmp_path: Path) -> None:
    """Other statistics, processes and further collections are named in a note."""
    header, *rows = other_tools.nvitop_csv(2).splitlines()
    more = (
        "job/pid:7/cuda:0 (gpu:3)/gpu_memory (MiB)/mean,job/batch/host/cpu_percent (%)/mean,"
        '"job/gpu:(0, 1)/gpu_utilization (%)/mean"'
    )
    text = "\n".join([f"{header},{more}", *(f"{row},1,99,5" for row in rows)]) + "\n"
    (note,) = made(tmp_path, text).run.quality.notes
    assert note == (
        "Of each window nvitop's mean is kept, and the last reading of memory; not kept: min and max of each window, "
        "what single processes used, MIG instances, other collections than the first."
    )


def test_rows_of_another_width_are_rejected(tmp_path: Path) -> None:
    """Processes that come and go change the columns of pandas' frame, never those of a written file."""
    text = other_tools.nvitop_csv(2) + "1,2,3\n"
    assert rejected(made(tmp_path, text)) == [("wrong number of cells", 1, 4)]
