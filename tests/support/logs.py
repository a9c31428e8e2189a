"""Logs as text and on disk, of every tool, as tests need them. They hold one run of an hour from nine o'clock."""

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import gpureport
from gpureport.testing import Recording

SAMPLES = Path(__file__).parents[2] / "sample_logs"
SAMPLE = SAMPLES / "mem_pressure" / "nvidia-smi.csv.gz"
START = datetime(2026, 3, 14, 9, tzinfo=UTC)
EPOCH = START.timestamp()
HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]"


def stamp(second: float, start: str = "2026/03/14 09:00:00") -> str:
    whole, millis = divmod(round(second * 1000), 1000)
    return f"{start[:14]}{whole // 60:02d}:{whole % 60:02d}.{millis:03d}"


def row(second: float, gpu: int = 0, *, util: int = 90, power: str = "250.00 W") -> str:
    return f"{stamp(second)}, {gpu}, NVIDIA L4, {util} %, 1024 MiB, {power}"


def log(rows: int = 20, gpus: int = 1) -> str:
    return table(*(row(second, gpu) for second in range(rows) for gpu in range(gpus)))


def table(*rows: str) -> str:
    return "\n".join([HEADER, *rows, ""])


def gapped(seconds: int = 300, power: str = "250.00 W") -> str:
    middle = range(seconds // 2 - 15, seconds // 2 + 15)
    return table(*(row(second, util=0 if second in middle else 95, power=power) for second in range(seconds)))


def wavering(util: int = 90, rows: int = 900, start: int = 0) -> str:
    return table(*(row(second, util=util + (second * 7 + start) % 5 - 2) for second in range(rows)))


def write_recording(folder: Path, content: str, *, name: str = "gpu.csv", zone: str = "", **fields: Any) -> Path:
    """Write what `gpureport record` leaves behind: a log of GPUs, and `run.json` with these fields; return the folder.

    A recording that goes on, or whose recorder was killed, has no `ended`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content, encoding="utf-8")
    said = {"schema": "gpureport.record/1", "command": [], "host": "", "timezone": zone, "started": 0, "ended": None}
    said |= {"exit_code": None, "interval": 1.0, "params": {}, "tags": {}, "notes": []}
    (folder / "run.json").write_text(json.dumps(said | fields), encoding="utf-8")
    return folder


def series(rows: int = 400, seed: int = 1) -> dict[str, list[str]]:
    """Return columns of one GPU by heading: idle at first, then at work with pauses, as nvidia-smi writes them."""
    chance = random.Random(seed)
    columns: dict[str, list[str]] = {}
    degrees = 31.0
    for number in range(rows):
        busy = number >= rows // 8 and number % 40 > 2
        degrees += 0.6 * busy * (71 - degrees) / 20 - 0.3 * (not busy) * (degrees - 31) / 20
        used = 4 if number < rows // 8 else 18_000 + 13 * (number % 7)
        util, power = (chance.randint(88, 100), chance.uniform(230, 270)) if busy else (0, chance.uniform(40, 44))
        cells = {
            "timestamp": stamp(number),
            "utilization.gpu [%]": f"{util} %",
            "utilization.memory [%]": f"{round(util * chance.uniform(0.4, 0.6))} %",
            "temperature.gpu": f"{degrees:.0f}",
            "temperature.memory": f"{degrees + 8 + chance.uniform(0, 1):.0f}",
            "power.draw [W]": f"{power:.2f} W",
            "power.limit [W]": "300.00 W",
            "memory.total [MiB]": "24564 MiB",
            "memory.used [MiB]": f"{used} MiB",
            "memory.free [MiB]": f"{24564 - 437 - used} MiB",
            "clocks.current.sm [MHz]": f"{210 if not busy else 1980 - 15 * chance.randint(0, 9)} MHz",
            "clocks.current.memory [MHz]": f"{9501 if busy else 405} MHz",
            "pstate": "P2" if busy else "P8",
        }
        for heading, cell in cells.items():
            columns.setdefault(heading, []).append(cell)
    return columns


def write(folder: Path, suffix: str = ".csv", **logs: str | bytes) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}{suffix}" for name in logs]
    for path, content in zip(paths, logs.values(), strict=True):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return paths


def read(path: Path, **options: Any) -> Recording:
    (recording,) = gpureport.read(path, **options)
    return recording


def read_text(folder: Path, content: str | bytes, **options: Any) -> Recording:
    (path,) = write(folder, gpu=content)
    return read(path, **options)


MAP = Path(__file__).with_name("map.toml").read_text(encoding="utf-8")


def iso_stamp(second: float) -> str:
    return (START + timedelta(seconds=second)).replace(tzinfo=None).isoformat()


def gpustat_document(second: float, gpus: int = 2, *, indent: int | None = 4) -> str:
    alike = {"fan.speed": None, "utilization.gpu": int(second) % 100, "power.draw": 71, "enforced.power.limit": 72}
    alike |= {"memory.used": 1024, "memory.total": 23034}
    process = {"username": "u", "command": "python {", "pid": 7, "gpu_memory_usage": 900}
    own = [
        {"index": gpu, "uuid": f"GPU-{gpu}", "name": "NVIDIA L4", "temperature.gpu": 60 + gpu} for gpu in range(gpus)
    ]
    listed: list[dict[str, Any]] = [{**each, **alike, "processes": [process]} for each in own]
    content = {"hostname": "node1", "driver_version": "580.1", "query_time": iso_stamp(second), "gpus": listed}
    return json.dumps(content, indent=indent) + "\n"


def gpustat_log(documents: int = 6, *, indent: int | None = 4) -> str:
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
        mark = f"{iso_stamp(tick)} " if stamped else ""
        if tick % 3 == 0:
            lines.append(f"{mark}#Entity   GPUTL        POWER        TOTEC        SMACT   DVCCTR       FBUSD")
            lines.append(f"{mark}ID                     W            mJ")
        cells = f"{tick % 100}           70.5         2.07e+11     0.367   4            1024"
        lines += [f"{mark}GPU {gpu}     {cells}" for gpu in range(2)]
    return "\n".join(lines) + "\n"


def prometheus_answer(**series: list[str]) -> str:
    found = series or {"DCGM_FI_DEV_GPU_UTIL": [str(percent) for percent in range(6)]}
    labels = {"gpu": "0", "UUID": "GPU-0", "modelName": "NVIDIA H100 80GB HBM3", "Hostname": "node1"}
    result: list[dict[str, object]] = [
        {"metric": {"__name__": name, **labels}, "values": [[EPOCH + 15 * n, cell] for n, cell in enumerate(cells)]}
        for name, cells in found.items()
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}) + "\n"


def long_csv(moments: int = 6) -> str:
    lines = ["GPUId,TimeStampUs,Field,Values"]
    for moment in range(moments):
        micros = round((EPOCH + moment) * 1e6)
        lines += [f"{gpu},{micros},{name},{50 + moment}" for gpu in range(2) for name in ("GPUTL", "POWER")]
    return "\n".join(lines) + "\n"


def wide_csv(rows: int = 6) -> str:
    lines = ["timestamp,Hostname,gpu,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_DEV_PCIE_REPLAY_COUNTER"]
    lines += [f"{iso_stamp(row)},node1,{gpu},{row % 100},70.5,0" for row in range(rows) for gpu in range(2)]
    return "\n".join(lines) + "\n"


def wandb_csv(rows: int = 6) -> str:
    lines = [",system.gpu.0.gpu,system.gpu.0.memoryAllocatedBytes,system.cpu.0.cpu_percent,_timestamp,_runtime"]
    lines += [f"{row},{row % 100},1073741824,{row % 50}.5,{EPOCH + 15 * row},{15 * row}" for row in range(rows)]
    return "\n".join(lines) + "\n"


def wrapper_csv(rows: int = 6) -> str:
    lines = ["when,GPU0 power,GPU1 power,RAM"]
    lines += [f"{EPOCH + row},{70 + row}.5 W,{80 + row}.5W,2117MB" for row in range(rows)]
    return "\n".join(lines) + "\n"


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "zstd": zstd,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
COMPRESSED = [name for name in PACKED if name != "plain"]


BLOCK = 4096
"""Bytes glibc holds back for a file that is no terminal."""

Line = tuple[float, str]
"""When a line is written, and its text."""


def interleaved(logs: Sequence[Sequence[Line]], block: int = BLOCK) -> bytes:
    """Return what a file holds to which several processes append at once; each flushes the rest when it ends."""
    held = [b""] * len(logs)
    written: list[bytes] = []
    left = [len(log) for log in logs]
    lines = [(second, writer, text) for writer, log in enumerate(logs) for second, text in log]
    for _, writer, text in sorted(lines, key=lambda line: line[0]):
        held[writer] += text.encode() + b"\n"
        left[writer] -= 1
        while len(held[writer]) >= block:
            written.append(held[writer][:block])
            held[writer] = held[writer][block:]
        if left[writer] == 0:
            written.append(held[writer])
            held[writer] = b""
    return b"".join(written)
