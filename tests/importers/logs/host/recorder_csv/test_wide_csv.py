"""CSVs of recorders of one's own: times of any kind, headings as people name them."""

from pathlib import Path

import pytest

from gpureport.importers.logs.host import HostLog
from gpureport.importers.logs.host.recorder_csv.host_columns import interpret_heading
from gpureport.importers.protocol.importer import HEAD_BYTES
from gpureport.importers.values.timestamps import Moment, parse_timestamp
from tests.importers.accounts import lines
from tests.importers.logs.host.series import BEGAN, clock, rejected, text, values

AT = BEGAN * 1_000_000


@pytest.mark.parametrize(
    ("written", "micros", "utc"),
    [
        ("1795276759", AT, True),
        ("1795276759.25", AT + 250_000, True),
        ("1795276759250", AT + 250_000, True),
        ("1795276759250000", AT + 250_000, True),
        ("1795276759250000000", AT + 250_000, True),
        ("2026-11-21T15:59:19Z", AT, True),
        ("2026-11-21 16:59:19.250+01:00", AT + 250_000, True),
        ("2026-11-21T10:29:19-0530", AT, True),
        ("2026/11/21 15:59:19,25", AT + 250_000, False),
        ("2026-11-21 15:59:19", AT, False),
        ("2026-02-30 15:59:19", None, False),
        ("17", None, False),
        ("", None, False),
    ],
)
def test_stamps(written: str, micros: int | None, *, utc: bool) -> None:
    """A stamp is a moment, in UTC where it says so."""
    found = parse_timestamp(written)
    assert found == (None if micros is None else Moment(micros, utc))


@pytest.mark.parametrize(
    ("heading", "metric", "scale"),
    [
        ("cpu", "cpu_utilization_ratio", 0.01),
        ("CPU Usage (%)", "cpu_utilization_ratio", 0.01),
        ("cpu_percent_total", "cpu_utilization_ratio", 0.01),
        ("cpu7", "core", 0.01),
        ("cpu_percent_12", "core", 0.01),
        ("core 3 [%]", "core", 0.01),
        ("iowait", "cpu_iowait_ratio", 0.01),
        ("mem_percent", "host_memory_used_ratio", 0.01),
        ("ram_used_gb", "host_memory_used_bytes", 2**30),
        ("memory_total_mib", "host_memory_total_bytes", 2**20),
        ("load_avg_1m", "host_load_average", 1),
        ("disk_read_mb_s", "host_disk_read_bytes_per_second", 2**20),
        ("net_recv_mb_s", "host_network_receive_bytes_per_second", 2**20),
        ("network_transmit_bytes_per_second", "host_network_transmit_bytes_per_second", 1),
        ("job_cpu_cores", "job_cpu_cores", 1),
        ("job_cpu_percent", "job_cpu_cores", 0.01),
        ("process_cpu_percent", "process_cpu_cores", 0.01),
        ("process_rss_mib", "process_memory_used_bytes", 2**20),
        ("cpu_utilization_ratio", "cpu_utilization_ratio", 1),
    ],
)
def test_headings(heading: str, metric: str, scale: float) -> None:
    """What a column holds is told by its heading."""
    found = interpret_heading(heading)
    assert found is not None
    assert (found.metric, found.scale) == (metric, scale)


@pytest.mark.parametrize(
    "heading", ["cpu_load", "cpu_temp", "cpu_freq_mhz", "disk_read_bytes", "net_recv_mb", "gpu", "loss", "swap"]
)
def test_other_headings_are_not_guessed(heading: str) -> None:
    """Counters that only rise, clocks and words of another kind are no metric."""
    assert interpret_heading(heading) is None


def test_one_column_a_core(tmp_path: Path) -> None:
    """The busiest counts; a cell without a value is no 0."""
    found = text(
        tmp_path, lines("unix,cpu0,cpu1,cpu,ram_used_gb,note", f"{BEGAN},10,90.5,50,1.5,x", f"{BEGAN + 1},,80,,,")
    )
    assert values(found, "cpu_busiest_core_ratio") == [0.905, 0.8]
    assert values(found, "cpu_utilization_ratio") == [0.5, None]
    assert values(found, "host_memory_used_bytes") == [1.5 * 2**30, None]
    assert found.outcome.timezone == "UTC"
    assert found.outcome.quality.notes == (
        "Columns of the host log that are not kept: note.",
        "Units are powers of 1024: ram_used_gb for GiB.",
    )


def test_stamps_of_another_kind_are_rejected(tmp_path: Path) -> None:
    """One log has one clock."""
    rows = ("2026-11-21T16:59:19+01:00,5", "2026-11-21T16:59:20,6", "soon,7", "2026-11-21T16:59:21+01:00,8")
    found = text(tmp_path, lines("time,cpu_percent", *rows))
    assert clock(found) == ["11-21T15:59:19", "11-21T15:59:21"]
    assert rejected(found) == [("malformed time", 2)]


def test_date_and_time_in_two_columns_or_no_date(tmp_path: Path) -> None:
    """They make one stamp; a time of day alone is dated by the log beside."""
    found = text(tmp_path, lines("date;time;cpu_usage", "2026-11-21;16:59:19;12,5", "2026-11-21;16:59:20;13"))
    assert clock(found) == ["11-21T16:59:19", "11-21T16:59:20"]
    assert values(found, "cpu_utilization_ratio") == [0.125, 0.13]
    assert clock(text(tmp_path, lines("time,cpu_percent", "16:59:19,5"))) == ["11-21T16:59:19"]


def test_a_share_or_per_cent(tmp_path: Path) -> None:
    """Where neither heading nor values tell, the column is left out; a column beside it that tells speaks for it."""
    rows = ("1795276759,0.25,3,1", "1795276760,0.75,4,1")
    found = text(tmp_path, lines("unix,cpu,load1,x", *rows))
    assert "cpu_utilization_ratio" not in found.table.column_names
    assert "is a share or per cent" in found.outcome.quality.notes[1]
    assert values(text(tmp_path, lines("unix,cpu_ratio", "1795276759,0.25")), "cpu_utilization_ratio") == [0.25]
    found = text(tmp_path, lines("unix,cpu_percent,iowait", "1795276759,0.25,0.5"))
    assert values(found, "cpu_iowait_ratio") == [0.005]


def test_memory_beside_columns_of_gpus_is_theirs(tmp_path: Path) -> None:
    """A recorder that writes both to one file: only what plainly is the host's is taken."""
    found = text(tmp_path, lines("unix,cpu_percent,gpu_util,memory_used_mb,ram_used_mb", "1795276759,5,90,8000,100"))
    assert values(found, "host_memory_used_bytes") == [100 * 2**20]


def test_values_that_cannot_be(tmp_path: Path) -> None:
    """More than all cores, less than nothing, and words."""
    bad = ("1795276759,350,1", "1795276760,-3,1", "1795276761,many,1", "1795276762,nan,1", "1795276763,1")
    rows = (*bad, "1795276764,100.5,1")
    found = text(tmp_path, lines("unix,cpu_percent,load1", *rows))
    assert values(found, "cpu_utilization_ratio") == [None, None, None, 1.005]
    assert rejected(found) == [("malformed cpu_percent", 1), ("wrong number of cells", 1)]
    assert {(cells.reason, cells.cells) for cells in found.outcome.quality.absent_cells} == {
        *(("above 100%", 1), ("negative", 1), ("nan", 1)),
    }


@pytest.mark.parametrize(
    "header",
    ["timestamp, index, utilization.gpu [%], memory.used [MiB]", "time,gpu_util,mem_used_mb", "epoch,loss", "cpu,ram"],
)
def test_other_logs_are_none_of_a_machine(header: str) -> None:
    """A log of GPUs, one of training, and one without a time."""
    assert not HostLog().identify(f"{header}\n1,2,3,4\n".encode()[:HEAD_BYTES])
