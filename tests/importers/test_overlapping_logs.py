"""Logs of one run that share time: copies, rotated logs, second recorders, and other machines."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_run_logs
from gpureport.importers.merging.device_gaps import find_device_gaps
from gpureport.importers.protocol.reject_reasons import TWICE
from gpureport.store import Store
from gpureport.testing import LogGap, Recording, Rejected
from tests.importers.written_logs import stamp

STARTED = 1_773_478_800_000_000
HEADER = "timestamp, index, utilization.gpu [%], power.draw [W]"
ONE_MACHINE = "say the same of the time they share, so they are taken for logs of one machine."
MACHINES = "with other readings, so they are taken for logs of several machines: a and b."


def rows(ticks: Iterable[float], *, seed: int = 1, told: str = "", gpus: int = 2) -> str:
    """Return a log of two GPUs of one machine, each reading told by its time; `seed` tells machines apart."""
    found = [HEADER + (f", {told}" if told else "")]
    for tick in ticks:
        for gpu in range(gpus):
            util, watts = int(tick * (7 + seed) + 13 * gpu) % 101, 200 + (tick * seed + gpu) % 97
            found.append(f"{stamp(tick)}, {gpu}, {util} %, {watts:.2f} W" + (f", GPU-{seed}{gpu}" if told else ""))
    return "\n".join(found) + "\n"


def one(folder: Path, **logs: str) -> Reading:
    """Return several logs as one run, being read."""
    paths = [folder / f"{name}.csv" for name in logs]
    for path, content in zip(paths, logs.values(), strict=True):
        path.write_text(content)
    return Reading(find_run_logs(paths), ReadOptions(), Labels(), as_one_run=True)


def ids(recording: Recording) -> list[str]:
    """Return the ids of the devices."""
    return [device.id for device in recording.run.devices]


def seconds(recording: Recording, device: str = "gpu:0") -> list[float]:
    """Return the times of one device, in seconds of the log's hour."""
    return [(value.value - STARTED) / 1e6 for value in recording.rows_of(device).column("timestamp")]


@pytest.mark.parametrize("told", ["", "uuid", "serial"])
@pytest.mark.parametrize("shared", [3, 10, 60])
def test_rows_that_stand_in_both_are_taken_once(tmp_path: Path, told: str, shared: int) -> None:
    """However much two logs of the same GPUs share, the later one's rows are counted, not kept."""
    reading = one(tmp_path, a=rows(range(100), told=told), b=rows(range(100 - shared, 200), told=told))
    recording = reading.recording()
    assert (ids(recording), seconds(recording, "gpu:1")) == (["gpu:0", "gpu:1"], list(range(200)))
    quality = recording.run.quality
    assert quality.rejected == (Rejected(reason=TWICE, rows=2 * shared, first_line=None),)
    assert (quality.accounted, quality.gaps, quality.coverage_ratio) == (True, (), 1)
    assert any(note.endswith(ONE_MACHINE) for note in quality.notes) == (not told and shared > 5)


def test_a_copy_of_a_part_adds_nothing(tmp_path: Path) -> None:
    """A log copied while it was written, its last line cut, is a part of the whole one."""
    whole = rows(range(200))
    cut = whole[: len(rows(range(50))) - 4]
    recording = one(tmp_path, a=cut, b=whole).recording()
    assert (ids(recording), recording.run.quality.rows_kept) == (["gpu:0", "gpu:1"], 401)
    assert seconds(recording, "gpu:1") == [*range(50), 49, *range(50, 200)]
    assert recording.run.quality.coverage_ratio == 1


def test_a_recorder_beside_adds_samples(tmp_path: Path) -> None:
    """Where the uuid says that it is one GPU, rows at other times or with other values are kept, in order."""
    other = rows([tick + 0.4 for tick in range(50, 150)], told="uuid")
    recording = one(tmp_path, a=rows(range(100), told="uuid"), b=other).recording()
    assert ids(recording) == ["gpu:0", "gpu:1"]
    assert seconds(recording) == sorted([*range(100), *(tick + 0.4 for tick in range(50, 150))])
    assert (recording.run.quality.rejected, recording.run.quality.gaps) == ((), ())
    changed = rows(range(50, 150), told="uuid").replace(" W", "1 W", 2)
    recording = one(tmp_path, a=rows(range(100), told="uuid"), b=changed).recording()
    assert recording.run.quality.rejected == (Rejected(reason=TWICE, rows=98, first_line=None),)
    assert recording.run.quality.accounted


def test_a_recorder_that_starts_before_the_other_ends(tmp_path: Path) -> None:
    """Up to five seconds of other rows are those of the same GPUs, and a store gives back what was read."""
    logs = {"a": rows(range(30)), "b": rows([27.4 + tick for tick in range(30)], seed=2)}
    recording = one(tmp_path, **logs).recording()
    assert seconds(recording) == sorted([*range(30), *(27.4 + tick for tick in range(30))])
    assert (recording.run.quality.rejected, recording.run.quality.accounted) == ((), True)
    entry = Store(tmp_path / "store").write(one(tmp_path, **logs), IMPORTER_VERSION)
    assert Store(tmp_path / "store").read(entry).series.equals(recording.series)


def test_a_row_of_the_log_before_with_other_values_is_another(tmp_path: Path) -> None:
    """Only what the log before says too, stamp and values, is left out."""
    recording = one(tmp_path, a=rows(range(30)), b=rows(range(27, 60)).replace("%, 2", "%, 1", 2)).recording()
    quality = recording.run.quality
    assert (quality.rows_kept, [entry.rows for entry in quality.rejected]) == (122, [4])


@pytest.mark.parametrize("offset", [0, 0.3])
def test_logs_that_contradict_each_other_are_two_machines(tmp_path: Path, offset: float) -> None:
    """Other readings of the same numbers at the same time are those of nodes, and a note says so."""
    other = rows([tick + offset for tick in range(60, 200)], seed=2)
    recording = one(tmp_path, a=rows(range(120)), b=other).recording()
    assert ids(recording) == ["a/gpu:0", "a/gpu:1", "b/gpu:0", "b/gpu:1"]
    assert (recording.run.quality.rows_kept, recording.run.quality.rejected) == (520, ())
    assert [note for note in recording.run.quality.notes if MACHINES in note]


def test_idle_machines_that_agree_for_a_while_are_two(tmp_path: Path) -> None:
    """Rows that happen to be equal while two nodes with synchronous clocks do nothing do not make them one."""
    idle = "".join(f"{stamp(tick)}, 0, 0 %, 40.00 W\n" for tick in range(60))
    logs = {
        name: f"{HEADER}\n{idle}" + rows(range(60, 160), seed=seed, gpus=1)[len(HEADER) + 1 :]
        for name, seed in (("a", 1), ("b", 2))
    }
    recording = one(tmp_path, **logs).recording()
    assert ids(recording) == ["a/gpu:0", "b/gpu:0"]
    assert recording.run.quality.rows_kept == 320


def test_long_logs_are_compared_by_some_of_their_rows(tmp_path: Path) -> None:
    """Where there are more rows than are compared, both logs pick the same ones."""
    ticks = [tick / 20 for tick in range(30_000)]
    recording = one(tmp_path, a=rows(ticks[:25_000]), b=rows(ticks[500:])).recording()
    assert (ids(recording), recording.run.quality.rows_kept) == (["gpu:0", "gpu:1"], 60_000)
    recording = one(tmp_path, a=rows(ticks[:25_000]), b=rows(ticks[500:], seed=2)).recording()
    assert (len(ids(recording)), recording.run.quality.rows_kept) == (4, 109_000)


def test_a_gap_that_another_log_fills_is_none(tmp_path: Path) -> None:
    """What one log missed another one holds; what none holds is a gap once."""
    torn = rows([*range(30), *range(90, 100), *range(130, 140)], told="uuid")
    recording = one(tmp_path, a=torn, b=rows(range(20, 100), told="uuid")).recording()
    assert seconds(recording) == [*range(100), *range(130, 140)]
    missed = [LogGap(device=f"gpu:{gpu}", start=STARTED + 99_000_000, end=STARTED + 130_000_000) for gpu in (0, 1)]
    assert recording.run.quality.gaps == tuple(missed)
    assert recording.run.quality.coverage_ratio == pytest.approx(108 / 139)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@example(cuts=[(0, 8), (7, 8)])
@given(cuts=st.lists(st.tuples(st.integers(0, 80), st.integers(8, 100)), min_size=1, max_size=4))
def test_any_parts_of_a_log_are_that_log(tmp_path: Path, cuts: list[tuple[int, int]]) -> None:
    """Cut a log into stretches that overlap as they like: every row is there once, and no GPU is invented."""
    parts = {f"p{place}": rows(range(start, start + length)) for place, (start, length) in enumerate(cuts)}
    recording = one(tmp_path, **parts).recording()
    held = sorted({tick for start, length in cuts for tick in range(start, start + length)})
    assert (ids(recording), seconds(recording)) == (["gpu:0", "gpu:1"], held)
    assert recording.run.quality.accounted


def test_gaps_of_logs_that_overlap() -> None:
    """Gaps are what no log holds; a short pause between two logs is none, and one inside a log stays what it is."""
    assert list(find_device_gaps([((0, 10), [(3, 4)]), ((20, 30), [])], limit=5)) == [(3, 4), (10, 20)]
    assert list(find_device_gaps([((0, 50), []), ((10, 20), []), ((52, 60), [])], limit=5)) == []
    assert list(find_device_gaps([((0, 9), [(0, 5), (5, 9)])], limit=1)) == [(0, 5), (5, 9)]
