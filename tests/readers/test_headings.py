"""What a heading of a person's own stands for."""

from pathlib import Path

import pytest

from gpureport.errors import GpureportError
from tests.support.logs import read, read_text, stamp

GPU = "gpu.csv"


@pytest.mark.parametrize(
    ("heading", "metric", "value"),
    [
        ("mem_used_MB", "gpu_memory_used_bytes", 50 * 2**20),
        ("gpuMemoryUsed [MiB]", "gpu_memory_used_bytes", 50 * 2**20),
        ("power_draw", "gpu_power_watts", 50),
        ("power_mW", "gpu_power_watts", 0.05),
        ("gpu_power_limit_mW", "gpu_power_limit_requested_watts", 0.05),
        ("GPUTemp °C", "gpu_temperature_celsius", 50),
        *((heading, None, None) for heading in ("memory", "power_mib", "gpu_mb", "ram_used_mb", "gpu_power_bound")),
    ],
)
def test_headings_of_gpus(heading: str, metric: str | None, value: float | None, tmp_path: Path) -> None:
    rows = "".join(f"{stamp(second)}, 5 %, 50\n" for second in range(9))
    series = read_text(tmp_path, f"timestamp, utilization.gpu [%], {heading}\n{rows}").series
    found = {name for name in series.column_names if name.startswith("gpu_")} - {"gpu_utilization_ratio"}
    assert found == ({metric} if metric else set())
    if metric:
        assert series.column(metric).to_pylist() == pytest.approx([value] * 9)


def host(folder: Path, text: str, tz: str | None = "UTC") -> dict[str, list[float | None]]:
    """Return the columns of a CSV of a machine, read beside a log of a GPU."""
    (folder / GPU).write_text("timestamp, utilization.gpu [%]\n" + "".join(f"{stamp(at)}, 5 %\n" for at in (0, 9)))
    (folder / "host.csv").write_text(text)
    rows = read(folder / GPU, host=folder / "host.csv", tz=tz).rows_of("host")
    names = [name for name in rows.column_names if name not in {"device", "timestamp", "imputed"}]
    return {name: rows.column(name).to_pylist() for name in names if rows.column(name).null_count < len(rows)}


@pytest.mark.parametrize(
    ("heading", "metric", "scale"),
    [
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
    ],
)
def test_headings_of_machines(heading: str, metric: str | None, scale: float, tmp_path: Path) -> None:
    found = host(tmp_path, f"unix,load5,load1,{heading}\n1773478801,2,3,30\n1773478802,2,3,30\n")
    if metric == "host_load_average":
        assert found in ({metric: [3, 3]}, {metric: [30, 30]})
    else:
        assert found.keys() - {"host_load_average"} == ({metric} if metric else set())
        assert metric is None or found[metric] == pytest.approx([30 * scale] * 2)


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
