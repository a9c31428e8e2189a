"""Logs whose rows are not in the order of time, from file to recording and through the store."""

import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpureport.testing import Recording, Rejected, analyze
from tests.cli.program import Program
from tests.importers.accounts import kept
from tests.support.logs import HEADER, Line, interleaved, log, read_text, row

UUIDS = [f"GPU-00000000-0000-0000-0000-00000000000{gpu}" for gpu in range(8)]
BOUNDED = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def text(second: float) -> str:
    moment = datetime(2026, 3, 14, 9) + timedelta(milliseconds=round(second * 1000))
    return f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03d}"


def writer(  # noqa: PLR0913, PLR0917 - each argument is something a test varies
    mark: int, start: float, ticks: int, every: float = 1.0, gpus: int = 1, name: str = "index", celsius: int = 0
) -> list[Line]:
    """Return what one process writes: `mark` is the memory used on its GPUs, in thousands of MiB.

    `name` is the column that names GPUs, `celsius` is added to a temperature that follows the time.
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


def marks(recording: Recording) -> list[set[float]]:
    cells = (recording.rows_of(device.id).column("gpu_memory_used_bytes") for device in recording.run.devices)
    return [set((own.to_numpy() / 2**20 / 1000).tolist()) for own in cells]


def ids(recording: Recording) -> list[str]:
    return [device.id for device in recording.run.devices]


def steps(recording: Recording) -> list[tuple[str, float]]:
    """Return why the clock stepped, and by how many seconds rows were shifted."""
    return [(step.cause, step.shift_seconds) for step in recording.run.quality.clock_steps]


def copies(recording: Recording) -> int:
    """Return how many rows were left out as copies, and make sure that none was for another reason."""
    assert {entry.reason for entry in recording.run.quality.rejected} <= {"duplicate segment"}
    return sum(entry.rows for entry in recording.run.quality.rejected)


@pytest.mark.parametrize(("gpus", "every"), [(1, 2.0003), (4, 1.0), (8, 2.0003)])
def test_rows_of_several_writers_are_put_in_order_and_not_judged(tmp_path: Path, gpus: int, every: float) -> None:
    content = interleaved([writer(1, 0, 400, every, gpus), writer(2, 20.37, 400, every, gpus, celsius=5)])
    recording = read_text(tmp_path, content)
    assert ids(recording) == [f"gpu:{gpu}" for gpu in range(gpus)]
    assert all(device.mixed for device in recording.run.devices)
    assert all({1, 2} <= own for own in marks(recording))
    assert steps(recording) == []
    assert kept(recording) > 0.95 * 800 * gpus
    analysis = analyze(recording)
    assert (analysis.findings, analysis.gpu_time, analysis.jobs) == ((), (), ())


def test_writers_of_gpus_named_by_uuid_are_merged(tmp_path: Path) -> None:
    logs = [writer(1, 0, 600, gpus=2, name="uuid"), writer(2, 20.37, 600, gpus=2, name="uuid")]
    recording = read_text(tmp_path, interleaved(logs))
    assert ids(recording) == ["gpu:0", "gpu:1"]
    assert marks(recording) == [{1, 2}, {1, 2}]
    assert kept(recording)


def check_stored(gpureport: Program, direct: Recording) -> None:
    """Check that a log comes from the store as it is read, in the order of device and time."""
    assert gpureport("ingest", "gpu.csv").code == 0
    assert gpureport("runs", "export", direct.run.name, "-o", "run.parquet").code == 0
    stored = parquet.read_table("run.parquet").select(direct.series.column_names)
    assert stored.to_pylist() == direct.series.to_pylist()


def test_a_second_writer_met_late(tmp_path: Path, gpureport: Program) -> None:
    recording = read_text(tmp_path, interleaved([writer(1, 0, 900), writer(2, 500.37, 400, celsius=9)]))
    assert [device.mixed for device in recording.run.devices] == [True]
    check_stored(gpureport, recording)


def test_an_earlier_recording_below_a_later_one(tmp_path: Path, gpureport: Program) -> None:
    later = "\n".join([HEADER, *(row(second, gpu) for second in range(2000, 2300) for gpu in range(2)), ""])
    recording = read_text(tmp_path, later + log(300, gpus=2))
    assert {*steps(recording)} == {("log restarted", 0.0)}
    assert recording.run.ended - recording.run.started == 2299 * 1_000_000
    assert kept(recording) == 1200
    assert {(gap.end - gap.start) / 1e6 for gap in recording.run.quality.gaps} == {1701.0}
    check_stored(gpureport, recording)


@pytest.mark.parametrize(("end", "times"), [("\n", 1), ("\n", 3), ("", 1), ("", 3)])
def test_a_log_appended_to_itself(tmp_path: Path, end: str, times: int) -> None:
    plain = "\n".join(line for _, line in writer(1, 0, 200, gpus=2))
    recording = read_text(tmp_path, (plain + end) * (times + 1) + ("" if end else "\n"))
    rejected = {entry.reason: entry.rows for entry in recording.run.quality.rejected}
    assert rejected["duplicate segment"] >= times * (400 - 1)
    assert (kept(recording), steps(recording)) == (400, [])


def test_a_copy_whose_columns_stand_in_another_order(tmp_path: Path) -> None:
    lines = [[cell.strip() for cell in line.split(",")] for _, line in writer(1, 0, 200, gpus=2)]
    cells = [*lines, *([*line[:2], "fan.speed [%]" if line is lines[0] else "[N/A]", *line[:1:-1]] for line in lines)]
    assert copies(read_text(tmp_path, "".join(", ".join(line) + "\n" for line in cells))) == 400


def test_two_recordings_appended_again_and_again(tmp_path: Path) -> None:
    early, late = ("\n".join([*(line for _, line in writer(1, start, 300)), ""]) for start in (0, 4000))
    recording = read_text(tmp_path, (late + early) * 3)
    assert (copies(recording), steps(recording), kept(recording)) == (1200, [("log restarted", 0.0)], 600)


@BOUNDED
@given(first=st.integers(0, 398), last=st.integers(1, 400))
def test_any_part_of_a_log_appended_to_it(tmp_path: Path, first: int, last: int) -> None:
    lines = [line for _, line in writer(1, 0, 400)][1:]
    part = lines[first : max(last, first + 2)]
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], temperature.gpu, power.draw [W]"
    content = "\n".join([head, *lines, *part, ""])
    cut = read_text(tmp_path, content[:-4]).run.quality
    assert (cut.rows_kept, cut.clock_steps) == (400, ())
    quality = read_text(tmp_path, content).run.quality
    assert quality.rejected == (Rejected(reason="duplicate segment", rows=len(part), first_line=402),)
    assert (quality.rows_kept, quality.clock_steps) == (400, ())


def test_a_copy_of_a_part_that_goes_on_is_left_out(tmp_path: Path) -> None:
    rows = [row(second + second % 7 / 100, gpu, util=second % 90) for second in range(300) for gpu in (0, 1)]
    recording = read_text(tmp_path, "\n".join([HEADER, *rows[:400], *rows[200:], ""]))
    assert (copies(recording), kept(recording), steps(recording)) == (200, 600, [])
    assert recording.run.quality.gaps == ()


def test_a_clock_set_back_moves_all_gpus(tmp_path: Path) -> None:
    rows = [row(second - (33 if second >= 250 else 0), gpu) for second in range(500) for gpu in range(2)]
    recording = read_text(tmp_path, "\n".join([HEADER, *rows, ""]))
    assert steps(recording) == [("clock set back", 33)] * 2
    assert recording.run.ended - recording.run.started == 499 * 1_000_000


def test_a_zone_set_while_the_log_goes_on_is_no_restart(tmp_path: Path) -> None:
    rows = [row(second) for second in range(1800, 3060)]
    later = [line.replace("2026/03/14 09:", "2026/03/14 08:") for line in rows[600:]]
    recording = read_text(tmp_path, "\n".join([HEADER, *rows[:600], *later, ""]))
    assert [cause for cause, _ in steps(recording)] == ["clock set back"]
    assert recording.run.quality.gaps == ()


@BOUNDED
@given(
    offset=st.floats(3, 60), every=st.floats(0.5, 5), gpus=st.integers(1, 4), block=st.sampled_from([1024, 4096, 8192])
)
def test_whoever_writes_every_line_is_accounted_for(
    tmp_path: Path, offset: float, every: float, gpus: int, block: int
) -> None:
    logs = [writer(1, 0, 300, 1.0, gpus), writer(2, offset, 200, every, gpus, celsius=7)]
    assert kept(read_text(tmp_path, interleaved(logs, block)))


def test_a_clock_set_back_into_the_doubled_hour_once_it_is_over(tmp_path: Path) -> None:
    minutes = [*range(90, 190), *range(131, 160)]
    moments = [datetime(2026, 10, 25) + timedelta(minutes=minute) for minute in minutes]
    rows = [f"{moment:%Y/%m/%d %H:%M:%S}, {place % 97} %" for place, moment in enumerate(moments)]
    recording = read_text(tmp_path, "\n".join(["timestamp, utilization.gpu [%]", *rows, ""]), tz="Europe/Berlin")
    assert [found for found, _ in steps(recording)] == ["clock set back"]


@pytest.mark.parametrize(("above", "start", "mixed"), [(20, 2, True), (19, 2, False), (60, 3, True), (60, 4, False)])
def test_how_a_second_writer_is_known(tmp_path: Path, above: int, start: int, mixed: bool) -> None:
    own = [line for _, line in [*writer(1, 0, above), *writer(2, start, above)[1:]]]
    recording = read_text(tmp_path, "\n".join([*own, ""]))
    assert ([device.mixed for device in recording.run.devices], len(steps(recording))) == ([mixed], int(not mixed))


def test_one_row_that_says_again_what_an_earlier_one_said(tmp_path: Path) -> None:
    lines = [line for _, line in writer(1, 0, 60)]
    recording = read_text(tmp_path, "\n".join([*lines, lines[20], ""]))
    assert copies(recording) == 1
    assert recording.run.quality.notes[0].startswith("1 row says again")
