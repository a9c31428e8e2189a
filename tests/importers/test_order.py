"""Rows that are not in the order of time, and logs of one run: copies, second writers, nodes, logs of the machine."""

import random
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpureport.testing import Recording, Rejected, analyze
from tests.readers.pairs import describe_recording, hold, kept, seconds
from tests.support import logs
from tests.support.logs import HEADER, Line, interleaved, log, read, read_text, row
from tests.support.program import Program

Case = str | bytes | dict[str, str]
UUIDS = [f"GPU-00000000-0000-0000-0000-00000000000{gpu}" for gpu in range(8)]
EARLY, LATE, BOTH = range(60), range(60, 120), range(120)
FINE = [tick / 20 for tick in range(30_000)]
UUID, BUS, SERIAL = "uuid", "pci.bus_id", "serial"
FIELDS = "timestamp, index, utilization.gpu [%], power.draw [W]"
HOST_LOG = "timestamp,cpu_percent\n" + "".join(f"2026-03-14T09:00:{second:02d}.000,50\n" for second in range(20))
BOUNDED = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def stamp(second: float) -> str:
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
            lines.append((second, f"{stamp(second)}, {who}, {values}, {noise.uniform(50, 300):.2f} W"))
    return lines


def rows(ticks: Iterable[float], *held: tuple[int, str], seed: int = 1, name: str = "") -> str:
    """Return a log of GPUs, two where none is given: index, and what a column tells of each; `seed` tells machines."""
    found = [FIELDS + (f", {name}" if name else "")]
    for tick in ticks:
        for gpu, own in held or ((0, f"GPU-{seed}0"), (1, f"GPU-{seed}1")):
            util, watts = int(tick * (7 + seed) + 13 * gpu) % 101, 200 + (tick * seed + gpu) % 97
            found.append(f"{stamp(tick)}, {gpu}, {util} %, {watts:.2f} W" + (f", {own}" if name else ""))
    return "\n".join(found) + "\n"


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


def table(*lines: Iterable[str], head: str = HEADER) -> str:
    return "\n".join([head, *chain(*lines), ""])


def again(*parts: Iterable[tuple[float, str]]) -> str:
    """Return what writers wrote one after the other, all below the heading of the first."""
    lines = [line for place, part in enumerate(parts) for _, line in list(part)[place > 0 :]]
    return "\n".join([*lines, ""])


def host(name: str, values: dict[float, int]) -> str:
    return f"timestamp,{name}\n" + "".join(f"{stamp(time)},{value}\n" for time, value in values.items())


def night(minutes: Iterable[int]) -> str:
    moments = (datetime(2026, 10, 25) + timedelta(minutes=minute) for minute in minutes)
    cells = (f"{moment:%Y/%m/%d %H:%M:%S}, {place % 97} %" for place, moment in enumerate(moments))
    return table(cells, head="timestamp, utilization.gpu [%]")


def other_columns() -> str:
    lines = [[cell.strip() for cell in line.split(",")] for _, line in writer(1, 0, 200, gpus=2)]
    cells = [*lines, *([*line[:2], "fan.speed [%]" if line is lines[0] else "[N/A]", *line[:1:-1]] for line in lines)]
    return "".join(", ".join(line) + "\n" for line in cells)


def idle_then(seed: int) -> str:
    idle = [f"{stamp(tick)}, 0, 0 %, 40.00 W" for tick in range(60)]
    return table(idle, rows(range(60, 160), (0, ""), seed=seed).splitlines()[1:], head=FIELDS)


def rotated(**spans: Iterable[int]) -> dict[str, str]:
    made = {name: table(row(second) for second in span) for name, span in spans.items()}
    return {f"{name}.csv": text.replace("250.00 W", "[N/A]", 2) for name, text in made.items()}


def nodes(*places: str, told: tuple[str, ...] = ("", "")) -> dict[str, str]:
    held = enumerate(zip(places, told, strict=False), 1)
    return {path: rows(BOTH, (0, own), name=UUID * bool(own), seed=seed) for seed, (path, own) in held}


def swapped(name: str, a: str, b: str, c: str) -> dict[str, str]:
    late = rows(LATE, (0, b), (1, a), (2, c), name=name)
    return {"gpu.csv.1": rows(EARLY, (0, a), (1, b), name=name), "gpu.csv": late}


def two(one: str, other: str) -> dict[str, str]:
    return {"a.csv": one, "b.csv": other}


def list_orders() -> Iterator[tuple[str, Case]]:
    """Yield single logs: of several writers, of clocks set back, and of boards whose names are damaged."""
    yield "writers_by_uuid", interleaved([writer(1, 0, 600, 1, 2, UUID), writer(2, 20.37, 600, 1, 2, UUID)])
    yield "a_writer_met_late", interleaved([writer(1, 0, 900), writer(2, 500.37, 400, celsius=9)])
    yield "an_earlier_log_below", table(row(at, gpu) for at in range(2000, 2300) for gpu in (0, 1)) + log(300, gpus=2)
    late = [row(at + at % 7 / 100, gpu, util=at % 90) for at in range(300) for gpu in (0, 1)]
    yield "a_copy_of_a_part_that_goes_on", table(late[:400], late[200:])
    yield "a_clock_set_back", table(row(at - 33 * (at >= 250), gpu) for at in range(500) for gpu in (0, 1))
    hour = [row(second) for second in range(1800, 3060)]
    yield "an_hour_set_back", table(hour[:600], (each.replace("14 09:", "14 08:") for each in hour[600:]))
    for above, start in ((20, 2), (19, 2), (60, 3), (60, 4)):
        yield f"a_writer_{start}_s_below_{above}_rows", again(writer(1, 0, above), writer(2, start, above))
    yield "a_copy_in_other_columns", other_columns()
    yield "copies_again_and_again", (again(writer(1, 4000, 300)) + again(writer(1, 0, 300))) * 3
    lines = again(writer(1, 0, 60)).splitlines()
    yield "one_row_again", table(lines[1:], lines[21:22], head=lines[0])
    for name, (one, other) in {
        "a_brand_that_comes_later": ("A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        "a_damaged_letter_of_a_name": ("NVIDIA A100-SXM4-80GB", "NVIDIA A1O0-SXM4-80GB"),
    }.items():
        yield name, table((_row(at, name=other if at >= 300 else one) for at in range(_SECONDS)), head=_HEADER)
    sizes = {50: 8192, 200: 8192}
    yield "a_damaged_memory_size", table((_row(at, total=sizes.get(at, 81920)) for at in range(_SECONDS)), head=_HEADER)


def list_copies() -> Iterator[tuple[str, Case]]:
    """Yield two logs of one time, of which rows stand in both, or contradict each other."""
    for name, shared in (("", 3), ("", 60), (UUID, 10), (SERIAL, 60)):
        later = rows(range(100 - shared, 200), name=name)
        yield f"{shared}_rows_in_both{name and f'_by_{name}'}", two(rows(range(100), name=name), later)
    yield "a_recorder_that_starts_before_the_end", two(rows(range(30)), rows((27.4 + t for t in range(30)), seed=2))
    for offset in (0, 0.3):
        later = rows((tick + offset for tick in range(60, 200)), seed=2)
        yield f"logs_that_contradict_each_other_after_{offset}_s", two(rows(range(120)), later)
    yield "logs_of_idle_gpus_that_contradict_each_other_late", two(idle_then(1), idle_then(2))
    whole = rows(range(200))
    yield "a_cut_copy", two(whole[: len(rows(range(50))) - 4], whole)
    yield "rows_between_rows", two(rows(range(100), name=UUID), rows((t + 0.4 for t in range(50, 150)), name=UUID))
    changed = rows(range(50, 150), name=UUID).replace(" W", "1 W", 2)
    yield "two_rows_that_differ_of_known_gpus", two(rows(range(100), name=UUID), changed)
    yield "two_rows_that_differ", two(rows(range(30)), rows(range(27, 60)).replace("%, 2", "%, 1", 2))
    for seed in (1, 2):
        yield f"long_logs_of_{seed}_machines", two(rows(FINE[:25_000]), rows(FINE[500:], seed=seed))
    torn = rows([*range(30), *range(90, 100), *range(130, 140)], name=UUID)
    yield "a_gap_that_the_other_fills", two(torn, rows(range(20, 100), name=UUID))


def list_runs() -> Iterator[tuple[str, Case]]:
    """Yield the logs of one run: rotated, of nodes, of GPUs that were swapped, and of the machine beside them."""
    yield "rotated_logs", rotated(a=range(10), b=range(10, 20))
    yield "time_between_rotated_logs", rotated(a=range(10), b=range(110, 120))
    yield (
        "a_log_per_gpu",
        {f"{gpu}.csv": table(row(at, gpu) for at in range(20)) for gpu in (0, 1)} | {"host.csv": HOST_LOG},
    )
    yield (
        "logs_of_nodes",
        {
            path: text
            for node, util in (("n1", 90), ("n2", 20))
            for path, text in (
                (f"{node}/host.csv", HOST_LOG),
                (f"{node}/nvidia-smi.csv", table(row(at, util=util) for at in range(20)) + "rubbish\n"),
            )
        },
    )
    yield "indices_swapped_by_uuid", swapped(UUID, "GPU-a", "GPU-b", "GPU-c")
    yield "indices_swapped_by_bus", swapped(BUS, *(f"00000000:0{n}:00.0" for n in (1, 2, 3)))
    replaced = (rows(span, (0, own), name=UUID) for span, own in ((EARLY, "GPU-a"), (LATE, "GPU-b")))
    yield "a_gpu_replaced", dict(zip(("gpu.csv.1", "gpu.csv"), replaced, strict=True))
    for (how, paths), told in product(
        {"file": ("node1.csv", "node2.csv"), "folder": ("n1/nvidia-smi.csv", "n2/nvidia-smi.csv")}.items(),
        (("", ""), ("GPU-a", "GPU-b")),
    ):
        yield f"nodes_named_by_{how}{'_with_uuids' if told[0] else ''}", nodes(*paths, told=told)
    yield "nodes_with_names_of_gpus", nodes("gpu-a_gpu.csv", "gpu-b_gpu.csv")
    cut = {
        f"{n}.csv{end}": rows(span, (0, ""), seed=s)
        for s, n in ((1, "a"), (2, "b"))
        for end, span in (("", LATE), (".1", EARLY))
    }
    cpu = host("cpu_percent", {float(at): at for at in BOTH})
    yield "a_host_log_of_a_node", cut | {"b-host.csv": cpu}
    yield "a_host_log_of_nobody", nodes("a.csv", "b.csv") | {"cpu.csv": cpu}
    for name in (UUID, SERIAL):
        yield (
            f"a_gpu_in_two_logs_by_{name}",
            two(rows(EARLY, (0, "GPU-a"), name=name), rows(range(30, 120), (3, "GPU-a"), name=name)),
        )
    shared_board = rows(EARLY, (0, "1"), (1, "1"), name=SERIAL)
    yield "a_board_of_two_gpus", two(shared_board, shared_board)
    yield "a_copy_of_a_node", nodes("n1/gpu.csv", "n2/gpu.csv") | {"copy-of-n1/gpu.csv": nodes("n1")["n1"]}
    yield (
        "a_rotated_log_of_another_machine",
        {"gpu.csv.1": rows(range(62), (0, "")), "gpu.csv": rows(LATE, (0, ""), seed=2)},
    )
    # logs of a machine beside each other: cells of the nearer row, of a coarser reading for all rows it covers
    for name, (cpu_times, io) in {
        "finer": ([2, 3, 4], {1.8: 2, 2.8: 3, 3.8: 4}),
        "coarser": (range(1, 13), {4.0: 4, 8.0: 8}),
        "late": ([1, 2, 3, 4], {1.4: 1, 2.4: 2, 3.4: 3, 4.4: 4}),
    }.items():
        own = {float(at): 10 * at for at in cpu_times}
        yield (
            f"two_host_logs_{name}",
            {"gpu.csv": log(20), "cpu.csv": host("cpu_percent", own), "io.csv": host("iowait_percent", io)},
        )


CASES = dict(chain(list_orders(), list_copies(), list_runs()))


@pytest.mark.parametrize("name", CASES)
def test_a_written_log(name: str, tmp_path: Path, *, update_golden: bool) -> None:
    case, folder = CASES[name], tmp_path / "run"
    if isinstance(case, dict):
        for path, text in case.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    recording = read(folder, as_one_run=True) if isinstance(case, dict) else read_text(folder, case)
    hold(Path(__file__).with_name("expected") / f"{name}.json", describe_recording(recording), update=update_golden)


def test_an_hour_that_comes_twice(tmp_path: Path) -> None:
    recording = read_text(tmp_path, night([*range(90, 190), *range(131, 160)]), tz="Europe/Berlin")
    assert [step.cause for step in recording.run.quality.clock_steps] == ["clock set back"]
    # an earlier recording that was added below is not the second time of the hour
    recording = read_text(tmp_path, night(range(150, 170)) + night(range(120, 140)), tz="Europe/Berlin")
    assert [step.cause for step in recording.run.quality.clock_steps] == ["log restarted"]


def one(folder: Path, **texts: str) -> Recording:
    for left in (folder / "run").glob("*"):
        left.unlink()
    logs.write(folder / "run", **texts)
    return logs.read(folder / "run", as_one_run=True)


@pytest.mark.parametrize(("gpus", "every"), [(1, 2.0003), (4, 1.0), (8, 2.0003)])
def test_rows_of_several_writers_are_put_in_order_and_not_judged(
    tmp_path: Path, gpureport: Program, gpus: int, every: float
) -> None:
    content = interleaved([writer(1, 0, 400, every, gpus), writer(2, 20.37, 400, every, gpus, celsius=5)])
    recording = read_text(tmp_path, content)
    assert [device.id for device in recording.run.devices] == [f"gpu:{gpu}" for gpu in range(gpus)]
    for device in recording.run.devices:
        used = recording.rows_of(device.id).column("gpu_memory_used_bytes").to_numpy()
        assert (device.mixed, {1, 2} <= {*(used / 2**20 / 1000).tolist()}) == (True, True)
    assert (recording.run.quality.clock_steps, kept(recording) > 0.95 * 800 * gpus) == ((), True)
    analysis = analyze(recording)
    assert (analysis.findings, analysis.gpu_time, analysis.jobs) == ((), (), ())
    assert gpureport("ingest", "gpu.csv").code == 0
    assert gpureport("runs", "export", recording.run.name, "-o", "run.parquet").code == 0
    stored = parquet.read_table("run.parquet").select(recording.series.column_names)
    assert stored.to_pylist() == recording.series.to_pylist()


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


@BOUNDED
@given(
    offset=st.floats(3, 60), every=st.floats(0.5, 5), gpus=st.integers(1, 4), block=st.sampled_from([1024, 4096, 8192])
)
def test_whoever_writes_every_line_is_accounted_for(
    tmp_path: Path, offset: float, every: float, gpus: int, block: int
) -> None:
    logs = [writer(1, 0, 300, 1.0, gpus), writer(2, offset, 200, every, gpus, celsius=7)]
    assert kept(read_text(tmp_path, interleaved(logs, block)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@example(cuts=[(0, 8), (7, 8)])
@given(cuts=st.lists(st.tuples(st.integers(0, 80), st.integers(8, 100)), min_size=1, max_size=4))
def test_any_parts_of_a_log_are_that_log(tmp_path: Path, cuts: list[tuple[int, int]]) -> None:
    parts = {f"p{place}": rows(range(start, start + length)) for place, (start, length) in enumerate(cuts)}
    recording = one(tmp_path, **parts)
    held = sorted({tick for start, length in cuts for tick in range(start, start + length)})
    assert ([device.id for device in recording.run.devices], seconds(recording)) == (["gpu:0", "gpu:1"], held)
    assert kept(recording) == 2 * len(held)


def _read(folder: Path, rows: list[str] | str) -> Recording:
    return read_text(folder, rows if isinstance(rows, str) else "\n".join([_HEADER, *rows, ""]))


def _held(recording: Recording) -> dict[str, float]:
    return {time.device: time.job_seconds for time in analyze(recording).gpu_time}


def _in_turn(one: Callable[[float], str], other: Callable[[float], str]) -> list[str]:
    return [row for second in range(_SECONDS) for row in (one(second), other(second + 0.4))]


def test_two_boards_are_not_judged(tmp_path: Path) -> None:
    for other in (partial(_row, idle=True, name="NVIDIA L4"), partial(_row, idle=True, total=40960)):
        recording = _read(tmp_path, _in_turn(_row, other))
        assert [device.mixed for device in recording.run.gpus] == [True]
        assert _held(recording) == {}


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
