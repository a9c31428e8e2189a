"""vmstat and top: zones, first readings that cover no interval, cores cut off."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import ReadOptions
from tests.importers.accounts import lines
from tests.importers.logs.host.series import CAPTURES, clock, read, rejected, text, values
from tests.importers.peak import peak_bytes

GROUPS = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----"
NAMES = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st"
TOP = "top - {} up  3:11,  0 user,  load average: 0.59, 0.46, 0.70"
MEMORY = "MiB Mem :  16000.0 total,  4000.0 free,  8000.0 used,  4000.0 buff/cache"
SWAP = "MiB Swap:      0.0 total,      0.0 free,      0.0 used.  23585.7 avail Mem"


def vmstat(second: int, *, zone: str = "UTC", idle: int = 50) -> list[str]:
    """Return a row of `vmstat -t` below its headings."""
    row = f" 1  0      0 4000000  10000 200000    0    0     8    16  264  130 {98 - idle}  0 {idle}  2  0"
    return [GROUPS, f"{NAMES}   {zone}", f"{row} 2026-11-21 15:00:{second:02}"]


def test_the_first_row_of_vmstat_covers_no_interval(tmp_path: Path) -> None:
    """It is the mean since the machine was started: its time is kept, its values are not, and the account says so."""
    found = text(tmp_path, lines(*vmstat(0), *vmstat(1, idle=30)[2:], *vmstat(2, idle=20)))
    assert values(found, "cpu_utilization_ratio") == [None, 0.68, 0.78]
    assert values(found, "host_disk_write_bytes_per_second") == [None, 16 * 1024, 16 * 1024]
    assert [cells.reason for cells in found.outcome.quality.absent_cells] == ["means since the machine was started"]
    assert (found.outcome.timezone, found.outcome.quality.headers) == ("UTC", 4)


def test_vmstat_started_again_and_again(tmp_path: Path) -> None:
    """The first row of each start speaks of the time since the machine's; a heading that is repeated begins nothing."""
    once = [line for second in range(0, 50, 10) for line in vmstat(second)]
    found = text(tmp_path, lines(*once, *vmstat(51)[2:]))
    assert values(found, "cpu_utilization_ratio") == [*[None] * 5, 0.48]
    assert [cells.cells for cells in found.outcome.quality.absent_cells] == [5]
    page = [line for second in range(21) for line in vmstat(second)[2:]]
    for start, first in ((21, 0.48), (20, 0.48), (30, None)):
        rows = [vmstat(start)[2], vmstat(start + 1)[2]]
        found = text(tmp_path, lines(*vmstat(0)[:2], *page, *vmstat(0)[:2], *rows))
        assert values(found, "cpu_utilization_ratio")[-2:] == [first, 0.48]
    # a few rows each time, the next start right behind the last row
    some = [vmstat(second)[2] for second in range(3)]
    found = text(tmp_path, lines(*vmstat(0)[:2], *some, *vmstat(0)[:2], vmstat(2)[2], vmstat(3)[2]))
    assert values(found, "cpu_utilization_ratio")[-1] == 0.48


@pytest.mark.parametrize(
    "names",
    [
        NAMES.replace("buff  cache", "inact active"),
        f"  r    b {'swpd':>12} {'free':>12} {'buff':>12} {'cache':>12} {NAMES.partition('cache')[2]}",
        f"{NAMES} gu",
    ],
)
def test_other_columns_of_vmstat(tmp_path: Path, names: str) -> None:
    """-a tells other memory, -w is wider, and newer ones tell the time given to guests; none of it moves a figure."""
    more = "" if "gu" not in names else "  0"
    rows = [vmstat(second, idle=30)[2].replace(" 2026", f"{more} 2026") for second in range(3)]
    found = text(tmp_path, lines(GROUPS, f"{names}   UTC", *rows))
    assert values(found, "cpu_utilization_ratio") == [None, 0.68, 0.68]
    assert values(found, "host_disk_read_bytes_per_second") == [None, 8 * 1024, 8 * 1024]


def test_other_zones_of_vmstat_are_local_time(tmp_path: Path) -> None:
    """An abbreviation is no zone: IST is one of three; a note says what was said."""
    found = text(tmp_path, lines(*vmstat(0, zone="CET"), *vmstat(1, zone="CET")))
    assert found.outcome.timezone is None
    assert "CET" in found.outcome.quality.notes[0]


def test_a_time_of_vmstat_cut_behind_its_minutes_is_none(tmp_path: Path) -> None:
    """Its row would stand at another moment."""
    whole = lines(*vmstat(0), *vmstat(1)[2:], *vmstat(2)[2:])
    found = text(tmp_path, whole.rstrip("\n").removesuffix(":02"))
    assert [row.rows for row in found.outcome.quality.rejected] == [1]
    assert len(found.rows()) == 2


def test_vmstat_without_stamps_is_refused(tmp_path: Path) -> None:
    """Nobody can say when it was."""
    with pytest.raises(SourceError, match=r"\(vmstat\) holds a value of a machine \(1 no time stamp\)"):
        text(tmp_path, lines(GROUPS, NAMES, vmstat(1)[2].rpartition(" 2026")[0]))


def test_damaged_rows_of_vmstat(tmp_path: Path) -> None:
    """Each is rejected for what is wrong with it."""
    rows = [vmstat(second)[2] for second in range(1, 5)]
    damaged = (rows[0].replace(" 8 ", " x ", 1), rows[1].replace("11-21", "13-41"), rows[2] + " more", rows[3][:-9])
    found = text(tmp_path, lines(vmstat(0)[2], *vmstat(0), *damaged))
    assert rejected(found) == [
        *(("before any header", 1), ("malformed bi", 1), ("malformed timestamp", 1), ("wrong number of cells", 2)),
    ]


def summary(time: str, *cores: str) -> list[str]:
    """Return what `top` prints above its list."""
    return [TOP.format(time), "Tasks:  87 total,   3 running", *cores, MEMORY, SWAP, ""]


def test_top_is_dated_by_the_log_beside(tmp_path: Path) -> None:
    """Its times are those of the day of the log, midnight passed or not; the first load is left out."""
    every = "%Cpu(s): 40.0 us,  5.0 sy,  0.0 ni, 50.0 id,  4.0 wa,  0.0 hi,  1.0 si,  0.0 st"
    midnight = 1_795_219_200_000_000
    content = lines(*summary("23:59:59", every), *summary("00:00:00", every))
    found = text(tmp_path, content, ReadOptions(around=(midnight - 5_000_000, midnight + 60_000_000)))
    assert clock(found) == ["11-20T23:59:59", "11-21T00:00:00"]
    assert values(found, "cpu_utilization_ratio") == [None, 0.46]
    assert values(found, "cpu_iowait_ratio") == [None, 0.04]
    assert values(found, "host_memory_used_ratio") == [0.5, 0.5]
    assert values(found, "host_load_average") == [0.59, 0.59]
    with pytest.raises(SourceError, match="no time stamp"):
        text(tmp_path, content, ReadOptions())


def test_cores_of_top_that_the_terminal_cuts_off_say_nothing(tmp_path: Path) -> None:
    """Of two cores on a line that holds one and a half, neither the mean nor the busiest is known."""
    core = "%Cpu{}  : 40.0 us,  0.0 sy,  0.0 ni, {} id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st"
    whole = f"{core.format(0, 60.0)}   {core.format(1, 10.0)}"
    content = lines(*summary("10:00:00", whole), *summary("10:00:01", whole), *summary("10:00:02", whole[:-50]))
    found = text(tmp_path, content)
    assert values(found, "cpu_busiest_core_ratio") == [None, 0.9, None]
    assert values(found, "cpu_utilization_ratio") == [None, 0.65, None]
    assert "cut off by the width of the terminal" in {cells.reason for cells in found.outcome.quality.absent_cells}


@pytest.mark.parametrize("shown", [(0,), (0, 2, 4, 6)], ids=["of two", "of eight"])
def test_cores_of_top_that_the_terminal_leaves_out_whole_say_nothing(tmp_path: Path, shown: tuple[int, ...]) -> None:
    """Into 80 columns, as where its output goes to a file, `top -b -1` writes the first of each two cores."""
    core = "%Cpu{}  : 90.0 us,  0.0 sy,  0.0 ni, 10.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st "
    cores = [core.format(number) for number in shown]
    content = lines(*(line for second in range(3) for line in summary(f"10:00:0{second}", *cores)))
    found = text(tmp_path, content)
    assert "cpu_utilization_ratio" not in found.table.column_names
    assert "cpu_busiest_core_ratio" not in found.table.column_names
    assert ("%Cpu", "cut off by the width of the terminal", 2) in {
        (cells.column, cells.reason, cells.cells) for cells in found.outcome.quality.absent_cells
    }


def test_top_of_other_countries_is_read(tmp_path: Path) -> None:
    """Decimal commas, translated words, and a list whose columns are found by their names."""
    every = "%CPU(s):  0,0 us, 10,0 sy,  0,0 ni, 90,0 id,  0,0 wa,  0,0 hi,  0,0 si,  0,0 st"
    memory = "MiB Spch:  16000,0 total,  4000,0 free,  8000,0 used,  4000,0 buff/cache"
    head = "  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     ZEIT+ BEFEHL"
    row = "    1 root      20   0   48132   1,5g   6412 S 130,0   0,1   0:38.02 python"
    parts = [[TOP.format(f"10:00:0{second}"), every, memory, "", head, row, ""] for second in range(3)]
    found = text(tmp_path, lines(*(line for part in parts for line in part)))
    assert values(found, "cpu_utilization_ratio") == [None, 0.1, 0.1]
    assert values(found, "process_cpu_cores") == [None, 1.3, 1.3]
    assert values(found, "process_memory_used_bytes") == [1.5 * 2**30] * 3


def test_memory_larger_than_any_machine_is_no_reading(tmp_path: Path) -> None:
    """A damaged number that its column cannot hold is absent, and costs no warning."""
    head = "  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND"
    row = "    1 root      20   0   48132   {}   6412 S  99,0   0,1   0:38.02 python"
    parts = [(f"10:00:0{second}", size) for second, size in enumerate(("1,5g", "99999999999999999999999t", "1,5g"))]
    found = text(
        tmp_path, lines(*(line for time, size in parts for line in (TOP.format(time), "", head, row.format(size), "")))
    )
    assert values(found, "process_memory_used_bytes") == [1.5 * 2**30, None, 1.5 * 2**30]


def test_several_summaries_a_second_are_rows_of_their_own() -> None:
    """`top` prints whole seconds."""
    found = read(CAPTURES / "top.txt")
    assert found.outcome.quality.rows_kept == 30


def test_threads_that_top_lists_are_no_processes(tmp_path: Path) -> None:
    """With `-H` a process of eight busy threads shows as one core busy, eight times over."""
    head = "  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND"
    thread = "    1 root      20   0   48132   1,5g   6412 S  99,0   0,1   0:38.02 python"
    above = "Threads: 870 total,   8 running, 862 sleeping,   0 stopped,   0 zombie"
    parts = [[TOP.format(f"10:00:0{second}"), above, MEMORY, "", head, *[thread] * 8, ""] for second in range(3)]
    found = text(tmp_path, lines(*(line for part in parts for line in part)))
    assert "process_cpu_cores" not in found.table.column_names
    assert values(found, "process_memory_used_bytes") == [1.5 * 2**30] * 3
    (absent,) = (each for each in found.outcome.quality.absent_cells if each.column == "%CPU")
    assert (absent.reason.partition(",")[0], absent.cells) == ("the list is one of threads", 3)


def test_a_long_line_of_a_core_takes_little_memory(tmp_path: Path) -> None:
    """What stands behind `%Cpu0 :` is looked through letter by letter, without a place to go back to at each."""
    line = "%Cpu0  : " + "x" * 500_000
    assert peak_bytes(lambda: text(tmp_path, lines(TOP.format("15:00:00"), line, MEMORY))) < 20 * len(line)
