"""Several GPUs in a log in which no column names them: told by the place of their row in a tick."""

import random
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gpureport.testing import Recording
from tests.readers.conftest import Hold
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


def test_stamps_tell_how_many_gpus_there_are(tmp_path: Path, hold: Hold) -> None:
    chance = np.random.default_rng(3)
    lengths = chance.choice([2, 3, 4], 300, p=[0.2, 0.6, 0.2])
    bursts = np.cumsum(np.concatenate([np.append([500], np.full(length - 1, 4)) for length in lengths]))
    cases: dict[str, Numbers] = {
        "the last one lacks": stamps(98, 4)[:-1],
        "one lacks now and then": np.delete(stamps(1000, 3, inside=5, every=104), [301, 1001, 2002]),
        **{f"{inside} ms apart": stamps(100, 4, inside=inside, every=100 + 3 * inside) for inside in (3, 12, 17, 22)},
        "one": stamps(500, 1),
        "one each 7 ms": stamps(500, 1, every=7),
        "one, some rows twice": np.sort(np.concatenate([stamps(500, 1), stamps(500, 1)[::9]])),
        "one, in whole seconds": stamps(500, 1, every=250) // 1000 * 1000,
        "one at 0.1 s, with pauses": stamps(100, 5, inside=100, every=10_000),
        # several GPUs that nothing distinguishes
        "bursts of any length": bursts.astype(np.int64),
    }
    for name, times in cases.items():
        hold(name, partial(read, tmp_path, times))


def test_columns_that_repeat_tell_gpus_from_loads(tmp_path: Path, hold: Hold) -> None:
    lacking = np.flatnonzero(np.random.default_rng(2).random(300) < 0.1) * 4 + 1
    chance = np.random.default_rng(4)
    inside = np.where(chance.random((200, 7)) < 0.3, chance.integers(100, 290, (200, 7)), 1)
    gaps = np.concatenate([np.full((200, 1), 1000), inside], axis=1)
    sizes = [3] * 30 + [7] + [3] * 30 + [5, 3, 9] + [3] * 30
    long = np.array([1000 * tick + row for tick, size in enumerate(sizes) for row in range(size)])
    back = np.concatenate([stamps(40, 3) + 200_000, stamps(40, 3) + 180_000])
    twice, slow = stamps(100, 2, inside=0), np.repeat(np.arange(100) // 3, 2)
    cases: dict[str, tuple[Numbers, ...]] = {
        "ticks that lack a row": (
            np.delete(stamps(300, 4, inside=3, every=200), lacking),
            np.delete(memory(300, 4), lacking),
        ),
        "rows far apart in a tick": (np.cumsum(gaps.reshape(-1)).astype(np.int64), memory(200, 8)),
        "what both share": (twice, slow),
        "what each has": (twice, slow, np.arange(200) % 2),
        "a load": (stamps(500, 1), np.arange(500) % 5 * 100),
        "a clock set back": (back, np.tile([1000, 2000, 3000], 80)),
        "ticks too long": (long, np.array([1000 * (row + 1) for size in sizes for row in range(size)])),
        "rows written twice": (stamps(60, 2, inside=3), np.repeat(memory(60, 1), 2)),
        **{
            f"killed within a tick of {inside} ms": (stamps(60, 4, inside=inside)[:-2], memory(60, 4)[:-2])
            for inside in (3, 120)
        },
    }
    for name, columns in cases.items():
        hold(name, partial(read, tmp_path, *columns))


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


def test_rows_that_fill_no_ticks_are_counted_off_when_their_number_is_said(tmp_path: Path, hold: Hold) -> None:
    rows = [f"{stamp(row / 2)}, {row % 2}0 %" for row in range(41)]
    for name, damaged in {
        "whole": rows[11],
        "a damaged year": "\xfe026/03/14 09:00:05.000, 10 %",
        "a part of it": "6/03/14 09:00:05.000, 10",
        "none of it": "/03/14 09:00:05.000, 10 %",
    }.items():
        # a counter of another program is no row
        lines = ["timestamp, utilization.gpu [%]", *rows[:11], damaged, *rows[12:21], "3/100 done", *rows[21:], ""]
        hold(name, partial(read_text, tmp_path, "\n".join(lines).encode("latin-1"), gpus_per_tick=2))
