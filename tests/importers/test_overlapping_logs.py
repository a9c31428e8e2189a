"""Logs of one run that share time: copies, rotated logs, second recorders, and other machines."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpureport.testing import LogGap, Recording
from tests.cli.program import Program
from tests.importers.accounts import START, kept, seconds
from tests.support import logs

HEADER = "timestamp, index, utilization.gpu [%], power.draw [W]"


def rows(ticks: Iterable[float], *, seed: int = 1, told: str = "", gpus: int = 2) -> str:
    """Return a log of two GPUs of one machine, each reading told by its time; `seed` tells machines apart."""
    found = [HEADER + (f", {told}" if told else "")]
    for tick in ticks:
        for gpu in range(gpus):
            util, watts = int(tick * (7 + seed) + 13 * gpu) % 101, 200 + (tick * seed + gpu) % 97
            own = f", GPU-{seed}{gpu}" if told else ""
            found.append(f"{logs.stamp(tick)}, {gpu}, {util} %, {watts:.2f} W{own}")
    return "\n".join(found) + "\n"


def one(folder: Path, **texts: str) -> Recording:
    for left in (folder / "run").glob("*"):
        left.unlink()
    logs.write(folder / "run", **texts)
    return logs.read(folder / "run", as_one_run=True)


def ids(recording: Recording) -> list[str]:
    return [device.id for device in recording.run.devices]


@pytest.mark.parametrize(("told", "shared"), [("", 3), ("", 60), ("uuid", 10), ("serial", 60)])
def test_rows_that_stand_in_both_are_taken_once(tmp_path: Path, told: str, shared: int) -> None:
    recording = one(tmp_path, a=rows(range(100), told=told), b=rows(range(100 - shared, 200), told=told))
    assert (ids(recording), seconds(recording, "gpu:1")) == (["gpu:0", "gpu:1"], list(range(200)))
    quality = recording.run.quality
    assert [(entry.rows, entry.first_line) for entry in quality.rejected] == [(2 * shared, None)]
    assert (quality.accounted, quality.gaps, quality.coverage_ratio) == (True, (), 1)


def test_a_copy_of_a_part_adds_nothing(tmp_path: Path) -> None:
    whole = rows(range(200))
    recording = one(tmp_path, a=whole[: len(rows(range(50))) - 4], b=whole)
    assert (ids(recording), kept(recording), recording.run.quality.coverage_ratio) == (["gpu:0", "gpu:1"], 401, 1)
    assert seconds(recording, "gpu:1") == [*range(50), 49, *range(50, 200)]


def test_a_recorder_beside_adds_samples(tmp_path: Path) -> None:
    other = rows([tick + 0.4 for tick in range(50, 150)], told="uuid")
    recording = one(tmp_path, a=rows(range(100), told="uuid"), b=other)
    assert ids(recording) == ["gpu:0", "gpu:1"]
    assert seconds(recording) == sorted([*range(100), *(tick + 0.4 for tick in range(50, 150))])
    assert (recording.run.quality.rejected, recording.run.quality.gaps) == ((), ())
    changed = rows(range(50, 150), told="uuid").replace(" W", "1 W", 2)
    recording = one(tmp_path, a=rows(range(100), told="uuid"), b=changed)
    assert [entry.rows for entry in recording.run.quality.rejected] == [98]
    assert kept(recording) == 302


def test_a_recorder_that_starts_before_the_other_ends(tmp_path: Path, gpureport: Program) -> None:
    recording = one(tmp_path, a=rows(range(30)), b=rows([27.4 + tick for tick in range(30)], seed=2))
    assert seconds(recording) == sorted([*range(30), *(27.4 + tick for tick in range(30))])
    assert (recording.run.quality.rejected, recording.run.quality.accounted) == ((), True)
    assert gpureport("ingest", "run", "--as-one-run").code == 0
    assert gpureport("runs", "export", "run", "-o", "run.parquet").code == 0
    stored = parquet.read_table("run.parquet").select(recording.series.column_names)
    assert stored.to_pylist() == recording.series.to_pylist()


def test_a_row_of_the_log_before_with_other_values_is_another(tmp_path: Path) -> None:
    recording = one(tmp_path, a=rows(range(30)), b=rows(range(27, 60)).replace("%, 2", "%, 1", 2))
    assert (kept(recording), [entry.rows for entry in recording.run.quality.rejected]) == (122, [4])


@pytest.mark.parametrize("offset", [0, 0.3])
def test_logs_that_contradict_each_other_are_two_machines(tmp_path: Path, offset: float) -> None:
    recording = one(tmp_path, a=rows(range(120)), b=rows([tick + offset for tick in range(60, 200)], seed=2))
    assert ids(recording) == ["a/gpu:0", "a/gpu:1", "b/gpu:0", "b/gpu:1"]
    assert (kept(recording), recording.run.quality.rejected) == (520, ())


def test_idle_machines_that_agree_for_a_while_are_two(tmp_path: Path) -> None:
    idle = "".join(f"{logs.stamp(tick)}, 0, 0 %, 40.00 W\n" for tick in range(60))
    texts = {
        name: f"{HEADER}\n{idle}" + rows(range(60, 160), seed=seed, gpus=1)[len(HEADER) + 1 :]
        for name, seed in (("a", 1), ("b", 2))
    }
    recording = one(tmp_path, **texts)
    assert (ids(recording), kept(recording)) == (["a/gpu:0", "b/gpu:0"], 320)


def test_long_logs_are_compared_by_some_of_their_rows(tmp_path: Path) -> None:
    ticks = [tick / 20 for tick in range(30_000)]
    for seed, devices, held in ((1, 2, 60_000), (2, 4, 109_000)):
        recording = one(tmp_path, a=rows(ticks[:25_000]), b=rows(ticks[500:], seed=seed))
        assert (len(ids(recording)), recording.run.quality.rows_kept) == (devices, held)


def test_a_gap_that_another_log_fills_is_none(tmp_path: Path) -> None:
    torn = rows([*range(30), *range(90, 100), *range(130, 140)], told="uuid")
    recording = one(tmp_path, a=torn, b=rows(range(20, 100), told="uuid"))
    assert seconds(recording) == [*range(100), *range(130, 140)]
    missed = [LogGap(device=f"gpu:{gpu}", start=START + 99_000_000, end=START + 130_000_000) for gpu in (0, 1)]
    assert recording.run.quality.gaps == tuple(missed)
    assert recording.run.quality.coverage_ratio == pytest.approx(108 / 139)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@example(cuts=[(0, 8), (7, 8)])
@given(cuts=st.lists(st.tuples(st.integers(0, 80), st.integers(8, 100)), min_size=1, max_size=4))
def test_any_parts_of_a_log_are_that_log(tmp_path: Path, cuts: list[tuple[int, int]]) -> None:
    parts = {f"p{place}": rows(range(start, start + length)) for place, (start, length) in enumerate(cuts)}
    recording = one(tmp_path, **parts)
    held = sorted({tick for start, length in cuts for tick in range(start, start + length)})
    assert (ids(recording), seconds(recording)) == (["gpu:0", "gpu:1"], held)
    assert kept(recording) == 2 * len(held)
