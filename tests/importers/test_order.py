"""Rows that are not in the order of time, in one log or in several of a run: copies, second writers, other machines."""

import random
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpureport.testing import LogGap, Recording, Rejected, analyze
from tests.importers.accounts import START, kept, seconds
from tests.support import logs
from tests.support.logs import HEADER, Line, interleaved, log, read_text, row, stamp
from tests.support.program import Program

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


def check_stored(gpureport: Program, direct: Recording, *source: str) -> None:
    """Check that a log comes from the store as it is read, in the order of device and time."""
    assert gpureport("ingest", *(source or ["gpu.csv"])).code == 0
    assert gpureport("runs", "export", direct.run.name, "-o", "run.parquet").code == 0
    stored = parquet.read_table("run.parquet").select(direct.series.column_names)
    assert stored.to_pylist() == direct.series.to_pylist()


def test_second_writers_met_late_and_named_by_uuid(tmp_path: Path, gpureport: Program) -> None:
    logs = [writer(1, 0, 600, gpus=2, name="uuid"), writer(2, 20.37, 600, gpus=2, name="uuid")]
    recording = read_text(tmp_path, interleaved(logs))
    assert ids(recording) == ["gpu:0", "gpu:1"]
    assert marks(recording) == [{1, 2}, {1, 2}]
    assert kept(recording)
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


def test_a_copy_of_a_part_that_goes_on_and_a_clock_set_back(tmp_path: Path) -> None:
    rows = [row(second + second % 7 / 100, gpu, util=second % 90) for second in range(300) for gpu in (0, 1)]
    recording = read_text(tmp_path, "\n".join([HEADER, *rows[:400], *rows[200:], ""]))
    assert (copies(recording), kept(recording), steps(recording)) == (200, 600, [])
    assert recording.run.quality.gaps == ()
    rows = [row(second - (33 if second >= 250 else 0), gpu) for second in range(500) for gpu in range(2)]
    recording = read_text(tmp_path, "\n".join([HEADER, *rows, ""]))
    assert steps(recording) == [("clock set back", 33)] * 2
    assert recording.run.ended - recording.run.started == 499 * 1_000_000


@BOUNDED
@given(
    offset=st.floats(3, 60), every=st.floats(0.5, 5), gpus=st.integers(1, 4), block=st.sampled_from([1024, 4096, 8192])
)
def test_whoever_writes_every_line_is_accounted_for(
    tmp_path: Path, offset: float, every: float, gpus: int, block: int
) -> None:
    logs = [writer(1, 0, 300, 1.0, gpus), writer(2, offset, 200, every, gpus, celsius=7)]
    assert kept(read_text(tmp_path, interleaved(logs, block)))


def test_hours_that_a_clock_goes_back(tmp_path: Path) -> None:
    rows = [row(second) for second in range(1800, 3060)]
    later = [line.replace("2026/03/14 09:", "2026/03/14 08:") for line in rows[600:]]
    recording = read_text(tmp_path, "\n".join([HEADER, *rows[:600], *later, ""]))
    assert [cause for cause, _ in steps(recording)] == ["clock set back"]
    assert recording.run.quality.gaps == ()
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


def test_copies_in_other_columns_and_again_and_again(tmp_path: Path) -> None:
    lines = [[cell.strip() for cell in line.split(",")] for _, line in writer(1, 0, 200, gpus=2)]
    cells = [*lines, *([*line[:2], "fan.speed [%]" if line is lines[0] else "[N/A]", *line[:1:-1]] for line in lines)]
    assert copies(read_text(tmp_path, "".join(", ".join(line) + "\n" for line in cells))) == 400
    early, late = ("\n".join([*(line for _, line in writer(1, start, 300)), ""]) for start in (0, 4000))
    recording = read_text(tmp_path, (late + early) * 3)
    assert (copies(recording), steps(recording), kept(recording)) == (1200, [("log restarted", 0.0)], 600)
    rows = [line for _, line in writer(1, 0, 60)]
    recording = read_text(tmp_path, "\n".join([*rows, rows[20], ""]))
    assert copies(recording) == 1
    assert recording.run.quality.notes[0].startswith("1 row says again")


FIELDS = "timestamp, index, utilization.gpu [%], power.draw [W]"


def rows(ticks: Iterable[float], *, seed: int = 1, told: str = "", gpus: int = 2) -> str:
    """Return a log of two GPUs of one machine, each reading told by its time; `seed` tells machines apart."""
    found = [FIELDS + (f", {told}" if told else "")]
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


def device_ids(recording: Recording) -> list[str]:
    return [device.id for device in recording.run.devices]


@pytest.mark.parametrize(("told", "shared"), [("", 3), ("", 60), ("uuid", 10), ("serial", 60)])
def test_rows_that_stand_in_both_are_taken_once(tmp_path: Path, told: str, shared: int) -> None:
    recording = one(tmp_path, a=rows(range(100), told=told), b=rows(range(100 - shared, 200), told=told))
    assert (device_ids(recording), seconds(recording, "gpu:1")) == (["gpu:0", "gpu:1"], list(range(200)))
    quality = recording.run.quality
    assert [(entry.rows, entry.first_line) for entry in quality.rejected] == [(2 * shared, None)]
    assert (quality.accounted, quality.gaps, quality.coverage_ratio) == (True, (), 1)


def test_a_recorder_that_starts_before_the_other_ends(tmp_path: Path, gpureport: Program) -> None:
    recording = one(tmp_path, a=rows(range(30)), b=rows([27.4 + tick for tick in range(30)], seed=2))
    assert seconds(recording) == sorted([*range(30), *(27.4 + tick for tick in range(30))])
    assert (recording.run.quality.rejected, recording.run.quality.accounted) == ((), True)
    check_stored(gpureport, recording, "run", "--as-one-run")


def test_logs_that_contradict_each_other_are_two_machines(tmp_path: Path) -> None:
    for offset in (0, 0.3):
        recording = one(tmp_path, a=rows(range(120)), b=rows([tick + offset for tick in range(60, 200)], seed=2))
        assert device_ids(recording) == ["a/gpu:0", "a/gpu:1", "b/gpu:0", "b/gpu:1"], offset
        assert (kept(recording), recording.run.quality.rejected) == (520, ()), offset
    idle = "".join(f"{logs.stamp(tick)}, 0, 0 %, 40.00 W\n" for tick in range(60))
    texts = {
        name: f"{FIELDS}\n{idle}" + rows(range(60, 160), seed=seed, gpus=1)[len(FIELDS) + 1 :]
        for name, seed in (("a", 1), ("b", 2))
    }
    recording = one(tmp_path, **texts)
    assert (device_ids(recording), kept(recording)) == (["a/gpu:0", "b/gpu:0"], 320)


def test_what_other_logs_hold_of_the_same_rows_adds_nothing_or_fills_gaps(tmp_path: Path) -> None:
    whole = rows(range(200))
    recording = one(tmp_path, a=whole[: len(rows(range(50))) - 4], b=whole)
    assert (device_ids(recording), kept(recording), recording.run.quality.coverage_ratio) == (
        ["gpu:0", "gpu:1"],
        401,
        1,
    )
    assert seconds(recording, "gpu:1") == [*range(50), 49, *range(50, 200)]
    other = rows([tick + 0.4 for tick in range(50, 150)], told="uuid")
    recording = one(tmp_path, a=rows(range(100), told="uuid"), b=other)
    assert device_ids(recording) == ["gpu:0", "gpu:1"]
    assert seconds(recording) == sorted([*range(100), *(tick + 0.4 for tick in range(50, 150))])
    assert (recording.run.quality.rejected, recording.run.quality.gaps) == ((), ())
    changed = rows(range(50, 150), told="uuid").replace(" W", "1 W", 2)
    recording = one(tmp_path, a=rows(range(100), told="uuid"), b=changed)
    assert [entry.rows for entry in recording.run.quality.rejected] == [98]
    assert kept(recording) == 302
    recording = one(tmp_path, a=rows(range(30)), b=rows(range(27, 60)).replace("%, 2", "%, 1", 2))
    assert (kept(recording), [entry.rows for entry in recording.run.quality.rejected]) == (122, [4])
    ticks = [tick / 20 for tick in range(30_000)]
    for seed, devices, held in ((1, 2, 60_000), (2, 4, 109_000)):
        recording = one(tmp_path, a=rows(ticks[:25_000]), b=rows(ticks[500:], seed=seed))
        assert (len(device_ids(recording)), recording.run.quality.rows_kept) == (devices, held)
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
    assert (device_ids(recording), seconds(recording)) == (["gpu:0", "gpu:1"], held)
    assert kept(recording) == 2 * len(held)


_HEADER = (
    "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], temperature.gpu, "
    "power.draw [W]"
)
_SECONDS = 600


def _row(
    second: float, *, name: str = "NVIDIA A100-SXM4-80GB", total: int = 81920, idle: bool = False, stalls: int = 0
) -> str:
    """Return a row of a GPU that works but for half a minute in two minutes and warms up, or of an idle one."""
    idle = idle or (int(second) + stalls) % 120 < 30
    degrees = 30 if idle else 40 + int(second) % 120 // 4
    return (
        f"{stamp(second)}, 0, {name}, {0 if idle else 95} %, {8 if idle else 30000} MiB, {total} MiB, {degrees}, "
        f"{50 if idle else 300 + second % 7:.2f} W"
    )


def _read(folder: Path, rows: list[str] | str) -> Recording:
    return read_text(folder, rows if isinstance(rows, str) else "\n".join([_HEADER, *rows, ""]))


def _held(recording: Recording) -> dict[str, float]:
    return {time.device: time.job_seconds for time in analyze(recording).gpu_time}


def _in_turn(one: Callable[[float], str], other: Callable[[float], str]) -> list[str]:
    return [row for second in range(_SECONDS) for row in (one(second), other(second + 0.4))]


@pytest.mark.parametrize(
    "names", [("A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"), ("NVIDIA A100-SXM4-80GB", "NVIDIA A1O0-SXM4-80GB")]
)
def test_names_of_one_board_are_one_gpu(tmp_path: Path, names: tuple[str, str]) -> None:
    rows = [_row(second, name=names[second >= 300]) for second in range(_SECONDS)]
    assert len(_read(tmp_path, rows).run.gpus) == 1


def test_a_damaged_memory_size_is_no_gpu_and_two_boards_are_not_judged(tmp_path: Path) -> None:
    for other in (partial(_row, idle=True, name="NVIDIA L4"), partial(_row, idle=True, total=40960)):
        recording = _read(tmp_path, _in_turn(_row, other))
        assert [device.mixed for device in recording.run.gpus] == [True]
        assert _held(recording) == {}
    rows = [_row(second, total=8192 if second in {50, 200} else 81920) for second in range(_SECONDS)]
    assert len(_read(tmp_path, rows).run.gpus) == 1


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([row for second in range(_SECONDS) for row in (_row(second),) * 2], id="same stamps"),
        pytest.param(
            [row for second in range(_SECONDS) for row in (_row(second), _row(second + 0.02))], id="just behind"
        ),
        pytest.param(_in_turn(_row, _row), id="in turn"),
    ],
)
def test_two_recorders_of_one_gpu_count_once(tmp_path: Path, rows: list[str]) -> None:
    recording = _read(tmp_path, rows)
    analysis = analyze(recording)
    assert sum(_held(recording).values()) == pytest.approx(_SECONDS, abs=2)
    assert sum(dict(time.seconds)["no_samples"] for time in analysis.gpu_time) == pytest.approx(0, abs=1)
    assert recording.run.quality.clock_steps == ()


def test_a_second_machine_below_the_first_is_no_clock_set_back(tmp_path: Path) -> None:
    rows = [*map(_row, range(_SECONDS)), *(_row(second + 0.4, stalls=60) for second in range(_SECONDS))]
    recording = _read(tmp_path, rows)
    assert [device.mixed for device in recording.run.gpus] == [True]
    assert _held(recording) == {}
    assert (recording.run.ended - recording.run.started) / 1e6 == pytest.approx(_SECONDS, abs=1)
