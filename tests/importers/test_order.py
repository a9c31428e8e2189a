"""Logs whose rows are not in the order of time, from file to recording and through the store."""

import random
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpureport import columns
from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_runs
from gpureport.store import Store
from gpureport.testing import Recording, Rejected
from tests.importers.two_writers import Line, interleaved, raced
from tests.importers.written_logs import HEADER, log, read_text, row
from tests.local_place import local

UUIDS = [f"GPU-00000000-0000-0000-0000-00000000000{gpu}" for gpu in range(8)]
BOUNDED = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def text(second: float) -> str:
    """Return the stamp of a second of the test's day."""
    moment = datetime(2026, 3, 14, 9) + timedelta(milliseconds=round(second * 1000))  # noqa: DTZ001 - a log has no zone
    return f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03d}"


def writer(  # noqa: PLR0913, PLR0917 - each argument is something a test varies
    mark: int, start: float, ticks: int, every: float = 1.0, gpus: int = 1, name: str = "index", celsius: int = 0
) -> list[Line]:
    """Return what one process writes: `mark` is the memory used on its GPUs, in thousands of MiB.

    Args:
        mark: tells its rows from others'.
        start: first tick, in seconds.
        ticks: number of ticks.
        every: seconds between them.
        gpus: rows a tick.
        name: column that names GPUs, `index`, `uuid` or `name`.
        celsius: what is added to a temperature that follows the time.
    """
    noise = random.Random(mark)
    lines = [(start, f"timestamp, {name}, utilization.gpu [%], memory.used [MiB], temperature.gpu, power.draw [W]")]
    for tick in range(ticks):
        for gpu in range(gpus):
            second = start + tick * every + gpu * 0.002
            who = {"index": str(gpu), "uuid": UUIDS[gpu], "name": "NVIDIA A100-SXM4-80GB"}[name]
            values = f"{noise.randint(0, 100)} %, {mark * 1000} MiB, {30 + int(second / 60) % 30 + celsius}"
            lines.append((second, f"{text(second)}, {who}, {values}, {noise.uniform(50, 300):.2f} W"))
    return lines


def marks(recording: Recording, device: str) -> set[float]:
    """Return who wrote the rows of a device."""
    return set((columns.floats(recording.rows_of(device).column("gpu_memory_used_bytes")) / 2**20 / 1000).tolist())


def rises(recording: Recording) -> bool:
    """Return whether time rises within each device."""
    times = [columns.integers(recording.rows_of(device.id).column("timestamp")) for device in recording.run.devices]
    return all(bool((np.diff(own) >= 0).all()) for own in times)


@pytest.mark.parametrize("gpus", [1, 4, 8])
@pytest.mark.parametrize("every", [1.0, 2.0003])
def test_writers_of_gpus_without_a_name_of_their_own_are_kept_apart(tmp_path: Path, gpus: int, every: float) -> None:
    """Blocks of two processes come apart row by row; torn lines are rejected, each writer's GPUs are devices."""
    content = interleaved([writer(1, 0, 400, every, gpus), writer(2, 20.37, 400, every, gpus, celsius=5)])
    recording = read_text(tmp_path, content)
    run = recording.run
    assert [device.id for device in run.devices] == [
        f"writer_{number}/gpu:{gpu}" for number in (1, 2) for gpu in range(gpus)
    ]
    assert {device.node for device in run.devices} == {"writer_1", "writer_2"}
    for gpu in range(gpus):
        assert marks(recording, f"writer_1/gpu:{gpu}") == {1}
        assert marks(recording, f"writer_2/gpu:{gpu}") == {2}
    assert run.quality.accounted
    assert rises(recording)
    assert run.quality.clock_steps == ()
    assert run.quality.rows_kept == len(recording.series) > 0.95 * 800 * gpus
    assert any(note.startswith("2 writers wrote to the log at once") for note in run.quality.notes)


def test_writers_that_overwrite_each_other(tmp_path: Path) -> None:
    """On a network drive blocks are lost as well; what is left comes apart, with the gaps it has."""
    content = raced([writer(1, 0, 3000, 2.0003, name="name"), writer(2, 900.77, 3000, 2.0003, name="name")], lost=1400)
    recording = read_text(tmp_path, content)
    assert [marks(recording, device.id) for device in recording.run.devices] == [{1}, {2}]
    assert recording.run.quality.accounted
    assert len(recording.run.quality.gaps) > 30


def test_three_writers(tmp_path: Path) -> None:
    """As many writers as there are come apart."""
    content = interleaved([writer(mark, 20.37 * mark, 900, celsius=5 * mark) for mark in (1, 2, 3)])
    recording = read_text(tmp_path, content)
    assert [marks(recording, device.id) for device in recording.run.devices] == [{1}, {2}, {3}]


def test_writers_of_gpus_told_by_uuid_are_merged(tmp_path: Path) -> None:
    """Two processes that read the same GPU give one series, in the order of time."""
    logs = [writer(1, 0, 600, gpus=2, name="uuid"), writer(2, 20.37, 600, gpus=2, name="uuid")]
    recording = read_text(tmp_path, interleaved(logs))
    assert [device.id for device in recording.run.devices] == ["gpu:0", "gpu:1"]
    assert marks(recording, "gpu:0") == marks(recording, "gpu:1") == {1, 2}
    assert rises(recording)
    assert recording.run.quality.accounted


def test_writers_that_read_the_same_values_watch_the_same_gpu(tmp_path: Path) -> None:
    """Temperatures that match to the degree all the time, memory too, are those of one GPU."""
    logs = [writer(1, 0, 1200), [(second, line) for second, line in writer(1, 20.37, 1200)]]
    recording = read_text(tmp_path, interleaved(logs))
    assert [device.id for device in recording.run.devices] == ["gpu:0"]
    assert any("same GPUs" in note for note in recording.run.quality.notes)


def test_a_second_writer_met_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows handed on before the second writer was met get its name in the end, in memory and in the store."""
    content = interleaved([writer(1, 0, 900), writer(2, 500.37, 400, celsius=9)])
    whole = read_text(tmp_path, content)
    monkeypatch.setattr("gpureport.importers.decoding.pieces.pieces.__defaults__", (3000,))
    monkeypatch.setattr("gpureport.store.series_file.ROW_GROUP", 50)
    pieced = read_text(tmp_path, content)
    assert [device.id for device in pieced.run.devices] == ["writer_1/gpu:0", "writer_2/gpu:0"]
    assert pieced.series.equals(whole.series)
    assert pieced.run == whole.run
    through_the_store(tmp_path, pieced)


def through_the_store(folder: Path, direct: Recording) -> None:
    """Check that the log in a folder is the same when it comes from the store, in order in the file already."""
    (inputs,) = find_runs(folder / "gpu.csv")
    store = Store(folder / "store")
    entry = store.write(Reading(inputs, ReadOptions(), Labels()), IMPORTER_VERSION)
    back = store.read(entry)
    assert back.run == direct.run
    assert back.series.equals(direct.series)
    file = parquet.read_table(local(entry.folder) / "hardware.parquet")
    assert file.column("timestamp").to_pylist() == direct.series.column("timestamp").to_pylist()
    assert file.column("device").to_pylist() == direct.series.column("device").to_pylist()
    assert sorted(path.name for path in entry.folder.iterdir() if path.suffix != ".zst") == [
        "hardware.parquet",
        "run.json",
    ]


def test_an_earlier_recording_below_a_later_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both keep their stamps and stand in the order of time, also where the store writes in small groups."""
    monkeypatch.setattr("gpureport.store.series_file.ROW_GROUP", 50)
    later = "\n".join([HEADER, *(row(second, gpu) for second in range(2000, 2300) for gpu in range(2)), ""])
    recording = read_text(tmp_path, later + log(300, gpus=2))
    quality = recording.run.quality
    assert {step.cause for step in quality.clock_steps} == {"log restarted"}
    assert {step.shift_seconds for step in quality.clock_steps} == {0.0}
    assert any("put in order" in note for note in quality.notes)
    assert recording.run.ended - recording.run.started == 2299 * 1_000_000
    assert rises(recording)
    assert {(gap.end - gap.start) / 1e6 for gap in quality.gaps} == {1701.0}
    through_the_store(tmp_path, recording)


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("copies", [1, 3])
def test_a_log_appended_to_itself(tmp_path: Path, end: str, copies: int) -> None:
    """Every copied row is rejected as such; without a final newline the line at the seam is lost too."""
    plain = "\n".join(line for _, line in writer(1, 0, 200, gpus=2))
    recording = read_text(tmp_path, (plain + end) * (copies + 1) + ("" if end else "\n"))
    quality = recording.run.quality
    assert quality.accounted
    assert quality.clock_steps == ()
    (dropped,) = [entry for entry in quality.rejected if entry.reason == "duplicate segment"]
    assert dropped.rows >= copies * (400 - 1)
    assert len(recording.series) == 400
    assert any("appended to itself" in note for note in quality.notes)
    assert rises(recording)


def test_a_copy_whose_columns_stand_in_another_order(tmp_path: Path) -> None:
    """Rows that say the same are the same, in whatever order and beside whatever column that holds nothing."""
    lines = [[cell.strip() for cell in line.split(",")] for _, line in writer(1, 0, 200, gpus=2)]
    cells = [*lines, *([*line[:2], "fan.speed [%]" if line is lines[0] else "[N/A]", *line[:1:-1]] for line in lines)]
    recording = read_text(tmp_path, "".join(", ".join(line) + "\n" for line in cells))
    assert [(entry.reason, entry.rows) for entry in recording.run.quality.rejected] == [("duplicate segment", 400)]


def test_two_recordings_appended_again_and_again(tmp_path: Path) -> None:
    """Copies are found where no stamp falls between one and the next as well."""
    early, late = ("\n".join([*(line for _, line in writer(1, start, 300)), ""]) for start in (0, 4000))
    quality = read_text(tmp_path, (late + early) * 3).run.quality
    assert [(entry.reason, entry.rows) for entry in quality.rejected] == [("duplicate segment", 1200)]
    assert [step.cause for step in quality.clock_steps] == ["log restarted"]
    assert quality.accounted


@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_writers_and_copies_with_and_without_a_zone(tmp_path: Path, zone: str | None) -> None:
    """A known zone moves the times of everything that was found, and changes nothing else."""
    content = interleaved([writer(1, 0, 300), writer(2, 20.37, 300, celsius=5)])
    plain, placed = read_text(tmp_path, content), read_text(tmp_path, content, ReadOptions(tz=zone))
    assert placed.run.devices == plain.run.devices
    assert plain.run.started - placed.run.started == (3600 * 1_000_000 if zone else 0)
    assert placed.run.quality.accounted


@BOUNDED
@given(first=st.integers(0, 398), last=st.integers(1, 400))
def test_any_part_of_a_log_appended_to_it(tmp_path: Path, first: int, last: int) -> None:
    """A part of a log that comes again is left out, wherever it was taken from."""
    lines = [line for _, line in writer(1, 0, 400)][1:]
    part = lines[first : max(last, first + 2)]
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], temperature.gpu, power.draw [W]"
    content = "\n".join([head, *lines, *part, ""])
    cut = read_text(tmp_path, content[:-4]).run.quality
    assert (cut.rows_kept, cut.clock_steps) == (400, ())
    quality = read_text(tmp_path, content).run.quality
    assert quality.rejected == (Rejected(reason="duplicate segment", rows=len(part), first_line=402),)
    assert (quality.rows_kept, quality.clock_steps) == (400, ())


def test_a_fold_in_an_unknown_zone(tmp_path: Path) -> None:
    """The hour that is written twice comes twice, for every GPU, and is no restart and no copy."""
    local = [datetime(2026, 10, 25, 2) + timedelta(seconds=30 * tick) for tick in range(120)]  # noqa: DTZ001 - local stamps
    rows = [f"{tick:%Y/%m/%d %H:%M:%S}.{gpu:03d}, {gpu}, 90 %" for tick in [*local, *local] for gpu in range(3)]
    recording = read_text(tmp_path, "\n".join(["timestamp, index, utilization.gpu [%]", *rows, ""]))
    quality = recording.run.quality
    assert [(step.cause, step.shift_seconds) for step in quality.clock_steps] == [("daylight saving", 3600.0)] * 3
    assert len(recording.series) == 720
    assert quality.gaps == ()


def test_a_clock_set_back_moves_all_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One fall, seen alike in large and small pieces, shifts the rows after it by the same for every GPU."""
    rows = [row(second - (33 if second >= 250 else 0), gpu) for second in range(500) for gpu in range(2)]
    content = "\n".join([HEADER, *rows, ""])
    whole = read_text(tmp_path, content)
    monkeypatch.setattr("gpureport.importers.decoding.pieces.pieces.__defaults__", (3000,))
    pieced = read_text(tmp_path, content)
    assert pieced.run == whole.run
    assert pieced.series.equals(whole.series)
    assert [(step.cause, step.shift_seconds) for step in whole.run.quality.clock_steps] == [("clock set back", 33)] * 2
    assert whole.run.ended - whole.run.started == 499 * 1_000_000


def test_a_clean_log_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stamps rise, nothing is surveyed."""
    monkeypatch.setattr("gpureport.importers.ordering.backward_survey.survey_log", None)
    assert read_text(tmp_path, log(300, gpus=4)).run.quality.rows_kept == 1200


def test_selected_gpus_of_each_writer(tmp_path: Path) -> None:
    """`--gpus` keeps the GPU of that index of every writer."""
    content = interleaved([writer(1, 0, 300, gpus=3), writer(2, 20.37, 300, gpus=3, celsius=5)])
    recording = read_text(tmp_path, content, ReadOptions(gpus=(1,)))
    assert [device.id for device in recording.run.devices] == ["writer_1/gpu:1", "writer_2/gpu:1"]
    assert recording.run.quality.accounted


@BOUNDED
@given(
    offset=st.floats(3, 60), every=st.floats(0.5, 5), gpus=st.integers(1, 4), block=st.sampled_from([1024, 4096, 8192])
)
def test_whoever_writes_every_line_is_accounted_for(
    tmp_path: Path, offset: float, every: float, gpus: int, block: int
) -> None:
    """Whatever two processes do to a log, every line is accounted for and time rises for every device."""
    logs = [writer(1, 0, 300, 1.0, gpus), writer(2, offset, 200, every, gpus, celsius=7)]
    recording = read_text(tmp_path, interleaved(logs, block))
    assert recording.run.quality.accounted
    assert recording.run.quality.rows_kept == len(recording.series)
    assert rises(recording)


def test_a_zone_set_while_the_log_goes_on_is_no_restart(tmp_path: Path) -> None:
    """A clock that goes back by a whole hour on any day, without a row missing, was set back."""
    rows = [row(second) for second in range(1800, 3000)] + [row(second) for second in range(3000, 3060)]
    later = [line.replace("2026/03/14 09:", "2026/03/14 08:") for line in rows[600:]]
    run = read_text(tmp_path, "\n".join([HEADER, *rows[:600], *later, ""])).run
    assert [step.cause for step in run.quality.clock_steps] == ["clock set back"]
    assert run.quality.gaps == ()


def test_a_copy_of_a_part_that_goes_on_is_left_out(tmp_path: Path) -> None:
    """Of a log followed by one that begins in its middle and goes on, the rows both have are taken once."""
    rows = [row(second + second % 7 / 100, gpu, util=second % 90) for second in range(300) for gpu in (0, 1)]
    run = read_text(tmp_path, "\n".join([HEADER, *rows[:400], *rows[200:], ""])).run
    assert [(entry.reason, entry.rows) for entry in run.quality.rejected] == [("duplicate segment", 200)]
    assert (run.quality.rows_kept, run.quality.clock_steps, run.quality.gaps) == (600, (), ())
