"""Several GPUs in a log in which no column names them: told by the place of their row in a tick."""

import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import gpureport
from gpureport.testing import Recording
from tests.readers.pairs import check_account
from tests.support.logs import read_text, stamp

Numbers = npt.NDArray[np.int64]


def read(folder: Path, millis: Numbers, *columns: Numbers) -> Recording:
    """Return a log of rows at these moments, with the memory of each GPU, if given, and its temperature."""
    names = ("memory.used [MiB]", "temperature.gpu", "fan.speed [%]")[: len(columns)] or ("pstate",)
    cells = zip(*columns, strict=True) if columns else (("P0",) for _ in millis)
    rows = [
        f"{stamp(moment / 1000)}, 5 %, {', '.join(map(str, more))}"
        for moment, more in zip(millis.tolist(), cells, strict=True)
    ]
    recording = read_text(folder, "\n".join([f"timestamp, utilization.gpu [%], {', '.join(names)}", *rows, ""]))
    check_account(recording)
    return recording


def stamps(ticks: int, size: int, *, inside: int = 1, every: int = 1000) -> Numbers:
    return (np.arange(ticks)[:, None] * every + np.arange(size) * inside).reshape(-1).astype(np.int64)


def memory(ticks: int, size: int) -> Numbers:
    """Return a column that differs from GPU to GPU and changes seldom."""
    return (1000 * (1 + np.arange(size)) + np.arange(ticks)[:, None] // 50 * 7).reshape(-1).astype(np.int64)


def count(recording: Recording) -> int:
    return len(recording.run.gpus)


def test_stamps_tell_how_many_gpus_there_are(tmp_path: Path) -> None:
    cases: list[tuple[Numbers, int]] = [
        (stamps(98, 4)[:-1], 4),
        (np.delete(stamps(1000, 3, inside=5, every=104), [301, 1001, 2002]), 3),
        *((stamps(100, 4, inside=inside, every=100 + 3 * inside), 4) for inside in (3, 12, 17, 22)),
        (stamps(500, 1), 1),
        (stamps(500, 1, every=7), 1),
        (np.sort(np.concatenate([stamps(500, 1), stamps(500, 1)[::9]])), 1),
        (stamps(500, 1, every=250) // 1000 * 1000, 1),
        (stamps(100, 5, inside=100, every=10_000), 1),
    ]
    for times, gpus in cases:
        assert count(read(tmp_path, times)) == gpus, (times, gpus)


def test_ticks_that_lack_a_row_name_no_gpu(tmp_path: Path) -> None:
    lacking = np.flatnonzero(np.random.default_rng(2).random(300) < 0.1) * 4 + 1
    times, used = (np.delete(each, lacking) for each in (stamps(300, 4, inside=3, every=200), memory(300, 4)))
    recording = read(tmp_path, times, used)
    assert count(recording) == 4
    assert {entry.reason: entry.rows for entry in recording.run.quality.rejected} == {
        "tick with another number of rows": 3 * len(lacking)
    }
    for gpu in range(4):
        held = recording.rows_of(f"gpu:{gpu}").column("gpu_memory_used_bytes").to_numpy()
        assert set((held // 2**20 // 1000).tolist()) == {gpu + 1}


def test_bursts_of_any_length_are_several_gpus_that_nothing_distinguishes(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    lengths = chance.choice([2, 3, 4], 300, p=[0.2, 0.6, 0.2])
    gaps = np.concatenate([np.append([500], np.full(length - 1, 4)) for length in lengths])
    assert [gpu.mixed for gpu in read(tmp_path, np.cumsum(gaps).astype(np.int64)).run.gpus] == [True]


def test_columns_that_repeat_tell_gpus_from_loads(tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    inside = np.where(chance.random((200, 7)) < 0.3, chance.integers(100, 290, (200, 7)), 1)
    gaps = np.concatenate([np.full((200, 1), 1000), inside], axis=1)
    times = np.cumsum(gaps.reshape(-1)).astype(np.int64)
    assert count(read(tmp_path, times, memory(200, 8))) == 8
    times, slow = stamps(100, 2, inside=0), np.repeat(np.arange(100) // 3, 2)
    assert count(read(tmp_path, times, slow)) == 1
    assert count(read(tmp_path, times, slow, np.arange(200) % 2)) == 2
    assert count(read(tmp_path, stamps(500, 1), np.arange(500) % 5 * 100)) == 1


@pytest.mark.parametrize(("every", "lacking"), [(0.1, 0.0), (0.1, 0.12), (0.25, 0.03), (1.0, 0.0), (1.0, 0.12)])
def test_four_gpus_with_jitter_dates_and_lacking_rows(every: float, lacking: float, tmp_path: Path) -> None:
    chance, rows, second = random.Random(7), ["timestamp, utilization.gpu [%], memory.used [MiB]"], 0.0
    for tick in range(300):
        second += every * chance.uniform(0.95, 1.3)
        gone = chance.randrange(4) if chance.random() < lacking else None
        rows += ["Mon Apr 20 03:14:15 PM UTC 2026"] if tick % 40 == 0 else []
        for gpu in range(4):
            second += chance.uniform(0.001, 0.006)
            rows += [f"{stamp(second)}, {chance.randint(80, 99)} %, {gpu + 1}000 MiB"] if gpu != gone else []
    recording = read_text(tmp_path, "\n".join([*rows, ""]))
    check_account(recording)
    for gpu in range(4):
        used = recording.rows_of(f"gpu:{gpu}").column("gpu_memory_used_bytes").to_pylist()
        assert set(used) == {(gpu + 1) * 1000 * 2**20}


def test_a_clock_set_back_ends_a_tick(tmp_path: Path) -> None:
    times = np.concatenate([stamps(40, 3) + 200_000, stamps(40, 3) + 180_000])
    recording = read(tmp_path, times, np.tile([1000, 2000, 3000], 80))
    assert count(recording) == 3
    for gpu in range(3):
        used = recording.rows_of(f"gpu:{gpu}").column("gpu_memory_used_bytes").to_pylist()
        assert set(used) == {(gpu + 1) * 1000 * 2**20}


def test_rows_of_ticks_too_long_are_left_out(tmp_path: Path) -> None:
    sizes = [3] * 30 + [7] + [3] * 30 + [5, 3, 9] + [3] * 30
    times = np.array([1000 * tick + row for tick, size in enumerate(sizes) for row in range(size)])
    marks = np.array([1000 * (row + 1) for size in sizes for row in range(size)])
    recording = read(tmp_path, times, marks)
    assert {entry.reason: entry.rows for entry in recording.run.quality.rejected} == {
        "tick with another number of rows": 7 + 5 + 9
    }
    assert [len(recording.rows_of(f"gpu:{gpu}")) for gpu in range(3)] == [91, 91, 91]


def test_rows_that_fill_no_ticks_are_counted_off_when_their_number_is_said(tmp_path: Path) -> None:
    rows = [f"{stamp(row / 2)}, {row % 2}0 %" for row in range(41)]
    recording = read_text(tmp_path, "\n".join(["timestamp, utilization.gpu [%]", *rows, ""]), gpus_per_tick=2)
    check_account(recording)
    assert [len(recording.rows_of(f"gpu:{gpu}")) for gpu in range(2)] == [21, 20]
    assert set(recording.rows_of("gpu:1").column("gpu_utilization_ratio").to_pylist()) == {np.float32(0.1)}


@pytest.mark.parametrize(
    "damaged", ["\xfe026/03/14 09:00:05.000, 10 %", "6/03/14 09:00:05.000, 10", "/03/14 09:00:05.000, 10 %"]
)
def test_rows_with_damaged_stamps_keep_their_places(damaged: str, tmp_path: Path) -> None:
    rows = [f"{stamp(row / 2)}, {row % 2}0 %" for row in range(41)]
    rows[11] = damaged
    # a counter of another program is no row
    rows.insert(21, "3/100 done")
    path = tmp_path / "gpu.csv"
    path.write_bytes("\n".join(["timestamp, utilization.gpu [%]", *rows, ""]).encode("latin-1"))
    (recording,) = gpureport.read(path, gpus_per_tick=2)
    assert set(recording.rows_of("gpu:1").column("gpu_utilization_ratio").to_pylist()) == {np.float32(0.1)}


def test_rows_that_are_written_twice_are_of_one_gpu(tmp_path: Path) -> None:
    times, used = stamps(60, 2, inside=3), np.repeat(memory(60, 1), 2)
    assert count(read(tmp_path, times, used)) == 1


@pytest.mark.parametrize("inside", [3, 120])
def test_a_log_killed_within_a_tick_keeps_its_gpus(inside: int, tmp_path: Path) -> None:
    times, used = stamps(60, 4, inside=inside), memory(60, 4)
    assert count(read(tmp_path, times[:-2], used[:-2])) == 4
