"""Tables of sar, mpstat and pidstat: clocks, sections, restarts, and what is no row."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import ReadOptions
from tests.importers.accounts import lines
from tests.importers.logs.host.series import clock, rejected, text, values

BANNER = "Linux 6.1.0 (node1) \t11/21/26 \t_x86_64_\t(2 CPU)"
CPU = "        CPU     %user     %nice   %system   %iowait    %steal     %idle"


def cpu(time: str, idle: float, core: str = "all", waiting: float = 0.0) -> str:
    """Return a row of `sar -u`."""
    used = 100 - idle - waiting
    return f"{time}     {core}     {used:.2f}      0.00      0.00      {waiting:.2f}      0.00     {idle:.2f}"


def test_busy_is_what_is_neither_idle_nor_waiting(tmp_path: Path) -> None:
    """The line of all cores makes the load, those of single cores the busiest one."""
    rows = [cpu("10:00:01", 60, waiting=10), cpu("10:00:01", 95, "0"), cpu("10:00:01", 25, "1", waiting=20)]
    found = text(tmp_path, lines(BANNER, "", f"10:00:00{CPU}", *rows, ""))
    assert values(found, "cpu_utilization_ratio") == [0.3]
    assert values(found, "cpu_iowait_ratio") == [0.1]
    assert values(found, "cpu_busiest_core_ratio") == [0.55]
    assert (found.outcome.quality.rows_kept, found.outcome.quality.continued, found.outcome.quality.headers) == (
        1,
        2,
        2,
    )


def test_midnight_begins_another_day(tmp_path: Path) -> None:
    """Times of day go on, in the heading as in the rows; summer time's end is no midnight."""
    rows = [cpu("23:59:59", 50), "", f"23:59:59{CPU}", cpu("00:00:00", 40), cpu("00:00:01", 30)]
    found = text(tmp_path, lines(BANNER, "", f"23:59:58{CPU}", *rows))
    assert clock(found) == ["11-21T23:59:59", "11-22T00:00:00", "11-22T00:00:01"]


def test_a_log_that_begins_at_midnight(tmp_path: Path) -> None:
    """The date is that of the banner, which was printed before midnight."""
    found = text(tmp_path, lines(BANNER, "", f"23:59:59{CPU}", cpu("00:00:00", 40)))
    assert clock(found) == ["11-22T00:00:00"]


def test_twelve_hours_and_the_dates_of_countries(tmp_path: Path) -> None:
    """Noon and midnight are told apart; dates are read as their signs say."""
    for date, day in (("11/21/2026", "11-21"), ("21.11.2026", "11-21"), ("2026-11-21", "11-21"), ("21/11/26", "11-21")):
        rows = [cpu("12:00:01 AM", 50), cpu("11:59:59 AM", 50), cpu("12:00:00 PM", 50), cpu("01:00:00 PM", 50)]
        banner = BANNER.replace("11/21/26", date)
        found = text(tmp_path, lines(banner, "", f"12:00:00 AM{CPU}", *rows))
        assert clock(found) == [f"{day}T00:00:01", f"{day}T11:59:59", f"{day}T12:00:00", f"{day}T13:00:00"]


def test_a_date_that_may_be_two_is_that_of_the_log_beside(tmp_path: Path) -> None:
    """4 March or 3 April: the log of the GPUs says; without it the month stands first, and a note says so."""
    content = lines(BANNER.replace("11/21/26", "03/04/26"), "", f"10:00:00{CPU}", cpu("10:00:01", 50))
    april = 1_775_210_400_000_000
    assert clock(text(tmp_path, content, ReadOptions(around=(april, april)))) == ["04-03T10:00:01"]
    found = text(tmp_path, content, ReadOptions())
    assert clock(found) == ["03-04T10:00:01"]
    assert found.outcome.quality.notes == ("The date 03/04/26 is taken for 2026-03-04, the month first.",)


def test_tables_one_after_the_other_are_one_row_a_time(tmp_path: Path) -> None:
    """`sar -f` prints a table for the whole day, then the next one; a time that only the second one has is kept."""
    load = "      runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked"
    rows = [
        f"10:00:0{second}            1        99      0.{second}0      0.47      0.70         0" for second in (1, 2, 3)
    ]
    first = [cpu("10:00:01", 50), cpu("10:00:03", 40), "Average:     all      1.00", ""]
    found = text(tmp_path, lines(BANNER, "", f"10:00:00{CPU}", *first, f"10:00:00{load}", *rows))
    assert clock(found) == ["11-21T10:00:01", "11-21T10:00:02", "11-21T10:00:03"]
    assert values(found, "host_load_average") == [0.1, 0.2, 0.3]
    assert values(found, "cpu_utilization_ratio") == [0.5, None, 0.6]
    assert found.outcome.quality.noise == 1


def test_a_night_that_has_an_hour_twice(tmp_path: Path) -> None:
    """The second table goes through the doubled hour as the first one did."""
    load = "      ldavg-1   ldavg-5"
    times = ["02:59:58", "02:59:59", "02:00:00", "02:00:01"]
    rows = [cpu(time, 10 * place) for place, time in enumerate(times)]
    second = [f"{time}      0.{place}0      0.10" for place, time in enumerate(times)]
    found = text(tmp_path, lines(BANNER, "", f"02:59:57{CPU}", *rows, "", f"02:59:57{load}", *second))
    assert values(found, "host_load_average") == [0.0, 0.1, 0.2, 0.3]
    assert values(found, "cpu_utilization_ratio") == [1.0, 0.9, 0.8, 0.7]
    assert len(found.outcome.quality.clock_steps) == 1


def test_a_restart_is_an_event(tmp_path: Path) -> None:
    """The rows after it go on with the heading that follows."""
    rows = [cpu("10:00:01", 50), "", "10:00:02     LINUX RESTART\t(2 CPU)", "", f"10:00:03{CPU}", cpu("10:00:04", 40)]
    found = text(tmp_path, lines(BANNER, "", f"10:00:00{CPU}", *rows))
    assert values(found, "cpu_utilization_ratio") == [0.5, 0.6]
    assert found.outcome.quality.events == 1


def test_two_logs_in_one_file_have_a_date_each(tmp_path: Path) -> None:
    """A second banner begins another day."""
    later = BANNER.replace("11/21", "11/23")
    parts = (BANNER, f"10:00:00{CPU}", cpu("10:00:01", 50), later, f"09:00:00{CPU}", cpu("09:00:01", 40))
    assert clock(text(tmp_path, lines(*parts))) == ["11-21T10:00:01", "11-23T09:00:01"]


def test_older_sysstat_counts_the_page_cache_as_used(tmp_path: Path) -> None:
    """Where used and free are all there is, the cache is taken off; with the slab the total is known."""
    names = "    kbmemfree kbmemused  %memused kbbuffers  kbcached"
    old = text(tmp_path, lines(BANNER, f"10:00:00{names}", "10:00:01  4000000  6000000  60.00  1000000  2000000"))
    assert values(old, "host_memory_used_bytes") == [3_000_000 * 1024]
    assert values(old, "host_memory_total_bytes") == [10_000_000 * 1024]
    new = text(tmp_path, lines(BANNER, f"10:00:00{names}", "10:00:01  4000000  3000000  27.27  1000000  2000000"))
    assert (values(new, "host_memory_used_bytes"), values(new, "host_memory_used_ratio")) == (
        [3_000_000 * 1024],
        [0.2727],
    )
    names += "  kbslab"
    slab = text(
        tmp_path, lines(BANNER, f"10:00:00{names}", "10:00:01  4000000  3000000  27.27  1000000  2000000 1000000")
    )
    assert values(slab, "host_memory_total_bytes") == [11_000_000 * 1024]


def test_disks_are_added_up_unless_all_of_them_are_told(tmp_path: Path) -> None:
    """What lies on other disks is not counted twice, and `sar -b` is better than a sum."""
    disks = "          DEV       tps     rkB/s     wkB/s"
    rows = ["10:00:01 sda 1 100.00 1.00", "10:00:01 sdb 1 10.00 2.00", "10:00:01 dm-0 1 110.00 3.00", ""]
    found = text(tmp_path, lines(BANNER, f"10:00:00{disks}", *rows))
    assert values(found, "host_disk_read_bytes_per_second") == [110 * 1024]
    assert values(found, "host_disk_write_bytes_per_second") == [3 * 1024]
    whole = ["10:00:00 tps bread/s bwrtn/s", "10:00:01 3 2.00 4.00", ""]
    for parts in ((f"10:00:00{disks}", *rows, *whole), (*whole, f"10:00:00{disks}", *rows)):
        found = text(tmp_path, lines(BANNER, *parts))
        assert values(found, "host_disk_read_bytes_per_second") == [1024]


def test_a_list_that_the_log_ends_in_says_nothing(tmp_path: Path) -> None:
    """Without its other cores nobody knows which one was the busiest; the account says so."""
    whole = [cpu(f"10:00:0{second}", 50, core) for second in (1, 2) for core in ("all", "0", "1")]
    found = text(tmp_path, lines(BANNER, f"10:00:00{CPU}", *whole[:5]))
    assert values(found, "cpu_utilization_ratio") == [0.5, 0.5]
    assert values(found, "cpu_busiest_core_ratio") == [0.5, None]
    assert [(cells.column, cells.cells) for cells in found.outcome.quality.absent_cells] == [("cores", 1)]


def test_what_is_no_row_is_counted(tmp_path: Path) -> None:
    """Damaged lines are rejected one by one, each with a reason."""
    parts = (
        *(BANNER, cpu("10:00:00", 1), f"10:00:00{CPU}", cpu("10:00:01", 50), "10:00:02     all     1.00"),
        *(cpu("10:00:03", 50).replace("50.00", "5O.00"), "free words here", cpu("99:00:03", 50), cpu("10:00:04", 10)),
    )
    found = text(tmp_path, lines(*parts) + cpu("10:00:05", 2)[:-2])
    assert rejected(found) == [
        ("before any header", 1),
        ("cut last line", 1),
        ("malformed %idle", 1),
        ("wrong number of cells", 3),
    ]
    assert values(found, "cpu_utilization_ratio") == [0.5, 0.9]


def test_tables_without_a_metric_are_named(tmp_path: Path) -> None:
    """Lines that say more of the machine than is kept are counted, and a note says which."""
    rows = [f"10:00:00{CPU}", cpu("10:00:01", 50), "", "10:00:00  IFACE   rxpck/s", "10:00:01  eth0   3.00", ""]
    quality = text(tmp_path, lines(BANNER, *rows)).outcome.quality
    assert quality.notes == ("Tables that hold no metric were passed over; their columns begin with IFACE.",)
    assert (quality.lines, quality.rows_kept, quality.continued) == (5, 1, 1)


@pytest.mark.parametrize(("whole", "cores"), [("190.00", 1.9), ("11.88", 1.9), ("95.00", 1.9), ("189.98", 1.8998)])
def test_cores_of_a_process_whatever_they_are_divided_by(tmp_path: Path, whole: str, cores: float) -> None:
    """With -I, %CPU is divided by the cores of the machine; its parts are not, so they say how many it kept busy."""
    header = "# Time        UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command"
    row = f"1795276760        0     100  150.00   40.00    0.00    7.00  {whole}     0  python"
    assert values(text(tmp_path, lines(BANNER, header, row, "")), "process_cpu_cores") == [pytest.approx(cores)]


def test_of_several_processes_the_busiest_and_the_largest(tmp_path: Path) -> None:
    """Threads are part of their process; a command may hold blanks; seconds since 1970 are UTC."""
    header = "# Time        UID      TGID       TID    %usr    %CPU   CPU     VSZ     RSS  Command"
    rows = (
        "1795276760        0     100         -   90.00  250.00     0   24348   2048  python train.py",
        "1795276760        0       -       101   90.00  999.00     0   24348   9999  |__python",
        "1795276760        0     200         -   90.00   50.00     0   24348   4096  loader",
        "",
    )
    found = text(tmp_path, lines(BANNER, header, *rows))
    assert values(found, "process_cpu_cores") == [2.5]
    assert values(found, "process_memory_used_bytes") == [4096 * 1024]
    assert found.outcome.timezone == "UTC"


def test_a_log_without_its_banner_is_dated_by_the_log_beside(tmp_path: Path) -> None:
    """The day is the one on which its first time is nearest to the start of that log."""
    midnight = 1_795_219_200_000_000
    content = lines(f"23:59:57{CPU}", cpu("23:59:58", 50), cpu("00:00:01", 40))
    found = text(tmp_path, content, ReadOptions(around=(midnight + 1_000_000, midnight + 60_000_000)))
    assert clock(found) == ["11-20T23:59:58", "11-21T00:00:01"]
    assert "It writes no date" in found.outcome.quality.notes[0]


def test_tables_without_a_metric_are_refused_with_what_is_read(tmp_path: Path) -> None:
    """Disks of processes have a date and a time; that is not what is missing."""
    heading = "10:00:00      UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command"
    row = "10:00:01        0         1      0.00      4.00      0.00       0  python"
    with pytest.raises(SourceError, match=r"record what is read: sar -u .* pidstat -u -r"):
        text(tmp_path, lines(BANNER, "", heading, row, ""))


def test_cores_that_were_picked_out_tell_no_busiest_one(tmp_path: Path) -> None:
    """`-P 0,1` logs two cores of any number, and no line of all."""
    rows = [cpu("10:00:01", 95, "0"), cpu("10:00:01", 25, "1")]
    again = [row.replace("10:00:01", "10:00:02") for row in rows]
    found = text(tmp_path, lines(BANNER, "", f"10:00:00{CPU}", *rows, "", f"10:00:01{CPU}", *again, ""))
    assert "cpu_busiest_core_ratio" not in found.table.column_names
    (absent,) = found.outcome.quality.absent_cells
    assert (absent.column, absent.cells) == ("cores", 2)
    assert absent.reason.startswith("no line of all cores")
