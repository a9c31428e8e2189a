"""Stamps and headings in every spelling."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.errors import GpureportError
from gpureport.testing import Recording
from tests.support.logs import HEADER, gpustat_document, iso_stamp, read, read_text, stamp

EPOCH = datetime(1970, 1, 1)
NINE = 1_773_478_800_000_000


def started(folder: Path, *stamps: str, delimiter: str = ", ") -> int:
    """Return when a log of rows with these stamps begins, in microseconds."""
    rows = [delimiter.join([each, "5 %"]) for each in stamps]
    return read_text(folder, "\n".join([f"timestamp{delimiter}utilization.gpu [%]", *rows, ""])).run.started


def is_refused(folder: Path, text: str) -> bool:
    try:
        read_text(folder, text)
    except GpureportError:
        return True
    return False


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1)))
def test_any_moment_survives(tmp_path: Path, moment: datetime) -> None:
    found = started(tmp_path, f"{moment:%Y/%m/%d %H:%M:%S.%f}")
    assert found == (moment - EPOCH) // timedelta(microseconds=1)


def test_spellings_of_one_moment(tmp_path: Path) -> None:
    half = NINE + 500_000
    for text, expected in {
        "2026/03/14 09:00:00.5": half,
        "2026-03-14T09:00:00.500": half,
        "2026-03-14 09:00:00.500000": half,
        "2026-03-14T09:00:00,5": half,
        "20260314 09:00:00": NINE,
        "20260314T09:00:00": NINE,
        "2026-03-14T10:00:00.5+01:00": half,
    }.items():
        delimiter = ";" if "," in text else ", "
        assert started(tmp_path, text, delimiter=delimiter) == expected, text


def test_stamps_of_spreadsheets_and_what_is_none(tmp_path: Path) -> None:
    for text, expected in {
        "14.03.2026 09:00:00": 0,
        "14/03/2026 09:00": 0,
        "14.03.2026 09:00:00,500": 500_000,
    }.items():
        assert started(tmp_path, text, text, delimiter=";") == NINE + expected, text
    for text in (
        *("20261314 09:26:53", "2026031 09:26:53", "2025/027", "2026/02/29 00:00:00", "2026/13/01 00:00:00"),
        *("2026/01/01 24:00:00", "2026/01-01 00:00:00", "2026/01/01 00:00:00.", "12026/01/01 00:00:0"),
        *("31.02.2026 09:00:00", "14.03.2026 24:00:00", "14.03.2026 09:60:00", "14.03.1969 09:00:00"),
    ):
        assert is_refused(tmp_path, f"timestamp;utilization.gpu [%]\n{text};5 %\n"), text
    for text in ("2024/02/29 23:59:59", "2000/02/29 00:00:00", "2026/12/31 23:59:59", "2026/04/30 00:00:00"):
        expected = (datetime.strptime(text, "%Y/%m/%d %H:%M:%S") - EPOCH) // timedelta(microseconds=1)
        assert started(tmp_path, text) == expected, text
    for text in ("2026/02/29 00:00:00", "2100/02/29 00:00:00", "2026/04/31 00:00:00", "2026/00/10 00:00:00"):
        assert is_refused(tmp_path, f"timestamp;utilization.gpu [%]\n{text};5 %\n"), text


def test_spellings_of_a_moment_in_json(tmp_path: Path) -> None:
    for text, micros in {
        "2026-03-14T09:00:00": 0,
        "2026/03/14 09:00:00.25": 250_000,
        "2026-03-14 09:00:00,123456789": 123_456,
        "2026-03-14 09:00": 0,
    }.items():
        run = read_text(tmp_path, gpustat_document(0, indent=None).replace(iso_stamp(0), text)).run
        assert run.started == NINE + micros, text
    for text in (
        "2026-03/14 09:00:00",
        "2026-02-30 09:00:00",
        "2026-03-14 24:00:00",
        "1969-12-31 23:59:59",
        "20260314",
    ):
        assert is_refused(tmp_path, gpustat_document(0, indent=None).replace(iso_stamp(0), text)), text


def night(folder: Path, *spans: tuple[float, float], zone: str | None = "Europe/Berlin") -> Recording:
    """Return rows of two GPUs, one a minute, in some hours of the night in which summer time ends."""
    rows = [
        f"{datetime(2026, 10, 25) + timedelta(minutes=minute):%Y/%m/%d %H:%M:%S}.000, {gpu}, NVIDIA L4, 9 %, 1 MiB, 2 W"
        for first, last in spans
        for minute in range(int(first * 60), int(last * 60))
        for gpu in (0, 1)
    ]
    return read_text(folder, "\n".join([HEADER, *rows, ""]), **({} if zone is None else {"tz": zone}))


def test_rows_of_which_nothing_says_which_hour_are_noted(tmp_path: Path) -> None:
    for spans, noted in (
        ([(2.25, 2.5)], True),
        ([(1.5, 3.5)], True),
        # paused before it
        ([(0.5, 1.5), (2.25, 2.5)], True),
        # the rows themselves tell
        ([(1.5, 3), (2, 3.5)], False),
        ([(3, 5)], False),
    ):
        assert bool(night(tmp_path, *spans).run.quality.notes) is noted, spans
    for zone in (None, "UTC"):
        assert night(tmp_path, (2.25, 2.5), zone=zone).run.quality.notes == ()


GPU = "gpu.csv"


def test_headings_of_gpus(tmp_path: Path) -> None:
    cases: list[tuple[str, str | None, float | None]] = [
        ("mem_used_MB", "gpu_memory_used_bytes", 50 * 2**20),
        ("gpuMemoryUsed [MiB]", "gpu_memory_used_bytes", 50 * 2**20),
        ("power_draw", "gpu_power_watts", 50),
        ("power_mW", "gpu_power_watts", 0.05),
        ("gpu_power_limit_mW", "gpu_power_limit_requested_watts", 0.05),
        ("GPUTemp °C", "gpu_temperature_celsius", 50),
        *((heading, None, None) for heading in ("memory", "power_mib", "gpu_mb", "ram_used_mb", "gpu_power_bound")),
    ]
    for heading, metric, value in cases:
        rows = "".join(f"{stamp(second)}, 5 %, 50\n" for second in range(9))
        series = read_text(tmp_path, f"timestamp, utilization.gpu [%], {heading}\n{rows}").series
        found = {name for name in series.column_names if name.startswith("gpu_")} - {"gpu_utilization_ratio"}
        assert found == ({metric} if metric else set()), heading
        if metric:
            assert series.column(metric).to_pylist() == pytest.approx([value] * 9), heading


def host(folder: Path, text: str, tz: str | None = "UTC") -> dict[str, list[float | None]]:
    """Return the columns of a CSV of a machine, read beside a log of a GPU."""
    (folder / GPU).write_text("timestamp, utilization.gpu [%]\n" + "".join(f"{stamp(at)}, 5 %\n" for at in (0, 9)))
    (folder / "host.csv").write_text(text)
    rows = read(folder / GPU, host=folder / "host.csv", tz=tz).rows_of("host")
    names = [name for name in rows.column_names if name not in {"device", "timestamp", "imputed"}]
    return {name: rows.column(name).to_pylist() for name in names if rows.column(name).null_count < len(rows)}


def test_headings_of_machines(tmp_path: Path) -> None:
    cases: list[tuple[str, str | None, float]] = [
        ("cpu_percent", "cpu_utilization_ratio", 0.01),
        ("CPU Usage (%)", "cpu_utilization_ratio", 0.01),
        ("system_cpu_percent", "cpu_utilization_ratio", 0.01),
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
        *((heading, None, 0) for heading in ("cpu_load", "cpu_temp", "cpu_freq_mhz", "disk_read_bytes", "swap")),
    ]
    for heading, metric, scale in cases:
        found = host(tmp_path, f"unix,load5,load1,{heading}\n1773478801,2,3,30\n1773478802,2,3,30\n")
        if metric == "host_load_average":
            assert found in ({metric: [3, 3]}, {metric: [30, 30]}), heading
        else:
            assert found.keys() - {"host_load_average"} == ({metric} if metric else set()), heading
            assert metric is None or found[metric] == pytest.approx([30 * scale] * 2), heading


def test_stamps_of_machines(tmp_path: Path) -> None:
    for text, tz in (
        ("1773478801", "UTC"),
        ("1773478801.25", "UTC"),
        ("1773478801250", "UTC"),
        ("1773478801250000", "UTC"),
        ("1773478801250000000", "UTC"),
        ("2026-03-14T09:00:01Z", "UTC"),
        ("2026-03-14 10:00:01.250+01:00", "UTC"),
        ("2026-03-14T03:30:01-0530", "UTC"),
        ("2026/03/14 09:00:01", None),
    ):
        assert host(tmp_path, f"time,cpu_percent\n{text},30\n", tz) == {"cpu_utilization_ratio": [pytest.approx(0.3)]}
        rows = read(tmp_path / GPU, host=tmp_path / "host.csv", tz=tz).rows_of("host")
        start = rows.column("timestamp").to_numpy()[0].item()
        assert (start.isoformat()[:19], start.microsecond) == ("2026-03-14T09:00:01", 250_000 * ("25" in text)), text
    for text in ("2026-02-30 09:00:01", "17", ""):
        with pytest.raises(GpureportError):
            host(tmp_path, f"time,cpu_percent\n{text},30\n", None)


def test_other_tables_are_none_of_a_machine(tmp_path: Path) -> None:
    for header in ("timestamp, index, utilization.gpu [%], memory.used [MiB]", "epoch,loss", "cpu,ram"):
        with pytest.raises(GpureportError):
            host(tmp_path, f"{header}\n1,2,3,4\n")
