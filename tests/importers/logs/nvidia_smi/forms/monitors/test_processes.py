"""Lists of processes say how many a GPU has; what a process does is no figure of the GPU."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from gpureport.importers.logs.nvidia_smi.forms.monitors.compute_apps import ComputeApps
from gpureport.importers.logs.nvidia_smi.forms.monitors.pmon import Pmon
from tests.importers.accounts import absent, column, kept, lines, rejected, seconds
from tests.importers.logs.nvidia_smi.forms.monitor_logs import aligned, clock, heading
from tests.importers.written_logs import read_text, stamp

PMON = ("Date", "Time", "gpu", "pid", "type", "sm", "mem", "enc", "dec", "fb", "command")
APPS = "timestamp, gpu_name, gpu_bus_id, gpu_uuid, pid, process_name, used_gpu_memory [MiB]"


def process(second: int, gpu: int, pid: int | None, memory: object = 100, name: str = "python") -> str:
    """Return a row of pmon; a GPU without a process has one of dashes."""
    cells = ["-"] * 8 if pid is None else [pid, "C", 50, 10, "-", "-", memory, name]
    return aligned([*clock(second), gpu, *cells])


def app(second: float, gpu: int, pid: int, memory: str = "100 MiB", name: str = "python") -> str:
    """Return a row of a query."""
    return f"{stamp(second)}, NVIDIA L4, 0000000{gpu}:00:00.0, GPU-{gpu}, {pid}, {name}, {memory}"


def test_pmon_counts_the_processes_of_each_tick(tmp_path: Path) -> None:
    """A tick is a row a GPU: how many processes it has and what memory they hold; none where a dash stands for them."""
    rows = [process(s, gpu, pid) for s in range(3) for gpu, pid in ((0, 7), (0, 8), (1, None))]
    recording = read_text(tmp_path, lines(*heading(PMON, glued=True), *rows[:4], *heading(PMON), *rows[4:]))
    assert kept(recording) == 6
    assert column(recording, "gpu_processes") == [2, 2, 2]
    assert column(recording, "gpu_process_memory_bytes") == [200 * 2**20] * 3
    assert column(recording, "gpu_processes", "gpu:1") == [0, 0, 0]
    assert seconds(recording, "gpu:1") == [0, 1, 2]
    assert "gpu_utilization_ratio" not in recording.series.column_names
    assert recording.run.quality.continued == 3
    assert any("do not add up" in note for note in recording.run.quality.notes)


def test_a_process_that_runs_again_begins_a_tick(tmp_path: Path) -> None:
    """Two ticks in one second are two."""
    recording = read_text(tmp_path, lines(*heading(PMON), *(process(0, 0, pid) for pid in (7, 8, 7))))
    assert column(recording, "gpu_processes") == [2, 1]


def test_memory_of_which_a_part_is_unknown_is_null(tmp_path: Path) -> None:
    """A sum without one of its parts is none."""
    recording = read_text(tmp_path, lines(*heading(PMON), process(0, 0, 7), process(0, 0, 8, "-"), process(1, 0, 7)))
    assert column(recording, "gpu_process_memory_bytes") == [None, 100 * 2**20]
    assert absent(recording) == [("used_gpu_memory", "-", 1)]


def test_names_may_hold_blanks(tmp_path: Path) -> None:
    """The command stands last, and all of the rest of the line is its."""
    recording = read_text(tmp_path, lines(*heading(PMON), process(0, 0, 7, name="NVIDIA Overlay."), process(1, 0, 7)))
    assert column(recording, "gpu_processes") == [1, 1]


def test_pmon_without_time_is_refused(tmp_path: Path) -> None:
    """Nothing says where a tick ends: an interval does not help, -o DT would."""
    text = lines(*heading(PMON[2:]), *(aligned([0, 7, "C", 50, 1, "-", "-", 100, "python"]) for _ in range(3)))
    for options in (ReadOptions(), ReadOptions(interval=1)):
        with pytest.raises(SourceError, match="have no time") as raised:
            read_text(tmp_path, text, options)
        assert "pmon -o DT" in raised.value.hint


def test_damaged_rows_of_pmon_are_named(tmp_path: Path) -> None:
    """Each line that is no row has its reason."""
    rows = [
        process(0, 0, 7),
        "garbage",
        "x" + process(0, 0, 8).lstrip(),
        process(0, 0, 9).replace(" 9 ", " 9x "),
        "# a",
    ]
    recording = read_text(tmp_path, lines(*heading(PMON), *rows))
    assert kept(recording) == 1
    assert rejected(recording) == [("malformed pid", 1, 6), ("malformed time", 1, 5), ("wrong number of cells", 1, 4)]
    assert recording.run.quality.noise == 1


def test_a_line_is_told_anew_below_another_heading(tmp_path: Path) -> None:
    """A row that is none below one heading, however often it stands there, is one below the next."""
    row = aligned([*clock(0), 0, 7, "C", 100])
    text = lines(*heading(PMON), row, row, *heading(("Date", "Time", "gpu", "pid", "type", "fb")), row, "odd", "odd")
    recording = read_text(tmp_path, text)
    assert column(recording, "gpu_processes") == [1]
    assert rejected(recording) == [("wrong number of cells", 4, 3)]


def test_compute_apps_are_counted_by_gpu(tmp_path: Path) -> None:
    """Rows of one tick lie some milliseconds apart; GPUs are told by what the query asked for."""
    rows = [app(s + 0.002 * gpu, gpu, pid) for s in range(3) for gpu in (0, 1) for pid in range(7, 9 + gpu)]
    recording = read_text(tmp_path, lines(APPS, *rows))
    assert kept(recording) == 6
    assert column(recording, "gpu_processes", "gpu:1") == [3, 3, 3]
    assert recording.run.gpus[1].uuid == "GPU-1"
    assert "gpu_memory_used_bytes" not in recording.series.column_names


def test_a_name_may_hold_commas(tmp_path: Path) -> None:
    """What stands left of a process's name and right of it is known by its place."""
    recording = read_text(tmp_path, lines(APPS, app(0, 0, 7, name="sh -c a, b,c"), app(1, 0, 7, "[N/A]")))
    assert column(recording, "gpu_process_memory_bytes") == [100 * 2**20, None]
    assert absent(recording) == [("used_gpu_memory", "N/A", 1)]


def test_units_may_stand_in_the_header_alone(tmp_path: Path) -> None:
    """With nounits the header says MiB."""
    recording = read_text(tmp_path, lines(APPS, app(0, 0, 7, "100")))
    assert column(recording, "gpu_process_memory_bytes") == [100 * 2**20]


@pytest.mark.parametrize(
    ("header", "row", "reason"),
    [
        ("gpu_uuid, pid, used_gpu_memory [MiB]", "GPU-1, 7, 100 MiB", "no time"),
        ("timestamp, pid, used_gpu_memory [MiB]", f"{stamp(0)}, 7, 100 MiB", "no row names its GPU"),
        ("timestamp, gpu_uuid, pid, gpu_utilization [%], time [ms]", f"{stamp(0)}, G, 7, 5 %, 9 ms", "no reading"),
    ],
)
def test_lists_that_say_nothing_of_a_gpu(tmp_path: Path, header: str, row: str, reason: str) -> None:
    """Without a time or a GPU, or of processes that have ended, nothing becomes a series."""
    with pytest.raises(SourceError, match=reason):
        read_text(tmp_path, lines(header, row))


def test_what_opens_a_block() -> None:
    """Headings of these lists do, others do not."""
    assert Pmon.opens("# gpu        pid  type    sm   mem   command")
    assert Pmon.opens("#Date       Time        gpu        pid  type")
    assert [line for line in ("# gpu sm mem", "gpu pid", "# gpu pidgin type", "") if Pmon.opens(line)] == []
    assert ComputeApps.opens(APPS)
    others = ("pid", "timestamp, pid, loss", "timestamp, name, utilization.gpu [%]", "pid, pid", "")
    assert [line for line in others if ComputeApps.opens(line)] == []


def test_a_cut_log_loses_its_last_line(tmp_path: Path) -> None:
    """A process whose line may go on is not counted."""
    recording = read_text(tmp_path, lines(APPS, app(0, 0, 7)) + app(1, 0, 7)[:-2])
    assert kept(recording) == 1
    assert rejected(recording) == [("cut last line", 1, 3)]


@pytest.mark.parametrize("blanks", [" " * 200_000, "#" + " " * 200_000], ids=["bare", "behind a mark"])
def test_a_line_of_blanks_is_no_heading(tmp_path: Path, blanks: str) -> None:
    """However long it is: a pattern that tried every way to share the blanks out took minutes."""
    rows = [process(s, 0, 7) for s in range(3)]
    recording = read_text(tmp_path, lines(*heading(PMON), *rows, f"{blanks}gpus"))
    assert kept(recording) == 3
    assert recording.run.quality.accounted
