"""Recordings of tools other than nvidia-smi as text, for tests of what reads them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

_PAIRS = Path(__file__).parents[1] / "readers" / "pairs"
START = datetime(2026, 3, 14, 9, tzinfo=UTC)
EPOCH = START.timestamp()
MAP = """
[time]
column = "when"
format = "epoch_s"

[columns."GPU0 power"]
metric = "gpu_power_watts"
device = "gpu:0"

[columns."GPU1 power"]
metric = "gpu_power_watts"
device = "gpu:1"

[columns."RAM"]
metric = "host_memory_used_bytes"
unit = "MiB"
"""
CAPTURES = tuple(sorted(path for path in _PAIRS.glob("*/captured_*") if path.suffix != ".json"))
"""Files that tools wrote, gpustat and nvitop when asked about a stand-in of NVML; each in the folder of its kind."""


def stamp(second: float) -> str:
    """Return an ISO stamp without a zone."""
    return (START + timedelta(seconds=second)).replace(tzinfo=None).isoformat()


def gpustat_document(second: float, gpus: int = 2, *, indent: int | None = 4) -> str:
    """Return one document of `gpustat --json`."""
    listed = [
        {
            "index": gpu,
            "uuid": f"GPU-{gpu}",
            "name": "NVIDIA L4",
            "temperature.gpu": 60 + gpu,
            "fan.speed": None,
            "utilization.gpu": int(second) % 100,
            "power.draw": 71,
            "enforced.power.limit": 72,
            "memory.used": 1024,
            "memory.total": 23034,
            "processes": [{"username": "u", "command": "python {", "pid": 7, "gpu_memory_usage": 900}],
        }
        for gpu in range(gpus)
    ]
    content = {"hostname": "node1", "driver_version": "580.1", "query_time": stamp(second), "gpus": listed}
    return json.dumps(content, indent=indent) + "\n"


def gpustat_log(documents: int = 6, *, indent: int | None = 4) -> str:
    """Return documents of `gpustat --json`, one a second."""
    return "".join(gpustat_document(second, indent=indent) for second in range(documents))


def nvitop_csv(rows: int = 6) -> str:
    """Return the CSV of a collector that was cleared after each row, of the machine and of one GPU of CUDA's order."""
    metrics = ("host/cpu_percent (%)", "cuda:0 (gpu:3)/gpu_utilization (%)", "cuda:0 (gpu:3)/memory_used (MiB)")
    names = [f"job/{metric}/{statistic}" for metric in metrics for statistic in ("mean", "min", "max", "last")]
    lines = [",".join([*names, "job/duration (s)", "job/timestamp"])]
    for row in range(rows):
        cells = [str(value) for base in (12.5, 90.0, 1024.0) for value in (base + row, base, base + 2 * row, base + 1)]
        lines.append(",".join([*cells, "5.0", str(EPOCH + 5 * row)]))
    return "\n".join(lines) + "\n"


def dmon_log(ticks: int = 6, *, stamped: bool = False) -> str:
    """Return what `dcgmi dmon` prints of two GPUs, its heading again after every third tick."""
    lines = []
    for tick in range(ticks):
        mark = f"{stamp(tick)} " if stamped else ""
        if tick % 3 == 0:
            lines.append(f"{mark}#Entity   GPUTL        POWER        TOTEC        SMACT   DVCCTR       FBUSD")
            lines.append(f"{mark}ID                     W            mJ")
        cells = f"{tick % 100}           70.5         2.07e+11     0.367   4            1024"
        lines += [f"{mark}GPU {gpu}     {cells}" for gpu in range(2)]
    return "\n".join(lines) + "\n"


def prometheus_answer(**series: list[str]) -> str:
    """Return the answer to a range query: samples of some metrics of one GPU."""
    found = series or {"DCGM_FI_DEV_GPU_UTIL": [str(percent) for percent in range(6)]}
    labels = {"gpu": "0", "UUID": "GPU-0", "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "node1"}
    result: list[dict[str, object]] = [
        {"metric": {"__name__": name, **labels}, "values": [[EPOCH + 15 * n, cell] for n, cell in enumerate(cells)]}
        for name, cells in found.items()
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}) + "\n"


def long_csv(moments: int = 6) -> str:
    """Return a table of DCGM's fields with one reading a line."""
    lines = ["GPUId,TimeStampUs,Field,Values"]
    for moment in range(moments):
        micros = round((EPOCH + moment) * 1e6)
        lines += [f"{gpu},{micros},{name},{50 + moment}" for gpu in range(2) for name in ("GPUTL", "POWER")]
    return "\n".join(lines) + "\n"


def wide_csv(rows: int = 6) -> str:
    """Return a table of DCGM's fields with one GPU a line."""
    lines = ["timestamp,Hostname,gpu,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_DEV_PCIE_REPLAY_COUNTER"]
    lines += [f"{stamp(row)},node1,{gpu},{row % 100},70.5,0" for row in range(rows) for gpu in range(2)]
    return "\n".join(lines) + "\n"


def wandb_csv(rows: int = 6) -> str:
    """Return W&B's stream of system metrics as pandas writes it."""
    lines = [",system.gpu.0.gpu,system.gpu.0.memoryAllocatedBytes,system.cpu.0.cpu_percent,_timestamp,_runtime"]
    lines += [f"{row},{row % 100},1073741824,{row % 50}.5,{EPOCH + 15 * row},{15 * row}" for row in range(rows)]
    return "\n".join(lines) + "\n"


def wandb_lines(rows: int = 6) -> str:
    """Return W&B's stream of system metrics as JSON lines."""
    return "".join(
        json.dumps({"system.gpu.0.gpu": row % 100, "_timestamp": EPOCH + 15 * row, "_runtime": 15 * row}) + "\n"
        for row in range(rows)
    )


def wrapper_csv(rows: int = 6) -> str:
    """Return a table that only MAP tells how to read."""
    lines = ["when,GPU0 power,GPU1 power,RAM"]
    lines += [f"{EPOCH + row},{70 + row}.5 W,{80 + row}.5W,2117MB" for row in range(rows)]
    return "\n".join(lines) + "\n"
