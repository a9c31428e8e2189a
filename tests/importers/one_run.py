"""One run as three recorders write it down: nvidia-smi, MLflow's monitor and Neptune's client.

What the GPUs do is given; a recorder reads it when it looks, as NVML answers: utilisation and power averaged over the
second before the reading, memory as it is.
"""

from collections.abc import Callable
from datetime import datetime
from math import ceil
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.importers.trackers.mlflow import stores
from tests.importers.trackers.neptune import dumps, folders
from tests.importers.trackers.neptune.schedule import GIB, Schedule

SECONDS = 1560.0
"""Length of the run; its GPUs work at its end."""
BUSY = 97.0
"""Per cent while a GPU works; it is 0 while it does not."""
IDLE_WATTS, BUSY_WATTS = 60.0, 254.0
IDLE = (
    (
        *((0.0, 47.3), (180.0, 61.7), (371.2, 38.4), (520.5, 96.1), (760.8, 24.6), (900.3, 45.9)),
        *((1010.1, 4.2), (1042.7, 7.8), (1083.3, 6.1), (1119.9, 3.4), (1160.2, 9.1), (1198.6, 5.0), (1240.4, 7.3)),
    ),
    (
        *((0.0, 52.8), (203.9, 33.1), (371.2, 38.4), (602.4, 118.7), (800.6, 52.2)),
        *((1103.2, 8.4), (1147.5, 5.6), (1184.1, 3.7), (1229.3, 6.9), (1300.8, 7.5), (1352.2, 4.9)),
    ),
)
"""Begin and length of each stretch without work, by GPU, in seconds of the run; the last ones are short."""
USED_MIB = (
    ((0.0, 512), (41.0, 30_720), (640.0, 42_111), (731.0, 30_720)),
    ((0.0, 512), (44.0, 31_007), (1010.0, 55_003), (1062.0, 31_007)),
)
"""Memory a job holds from a moment on, by GPU; the highest is held for longer than any recorder waits."""
RESERVED, TOTAL, LIMIT_WATTS = 583 * 2**20, 80 * GIB, 400.0
"""What the driver keeps is in NVML's first answer, which trackers ask for, and not in that of nvidia-smi."""
START = stores.START * 1000
"""In microseconds."""
ZONE = "Europe/Berlin"
"""Where the machine stands: nvidia-smi writes its time of day."""
MLFLOW_SECONDS, NEPTUNE_SECONDS = 10.05, 10.0
"""From one reading to the next: MLflow's monitor waits 10 s and then takes its time to log."""

_LOGGING, _MONITOR_BEGINS, _CLIENT_BEGINS, _LOG_BEGINS = 0.05, 0.3, 3.7, 0.35
_HEADER = (
    "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.reserved [MiB], memory.total [MiB], "
    "power.draw [W], power.limit [W], power.default_limit [W], temperature.gpu, clocks.current.sm [MHz], "
    "clocks.max.sm [MHz], clocks_event_reasons.active"
)


def at_work(gpu: int, second: float) -> float:
    idle = (min(begin + length, second) - max(begin, second - 1) for begin, length in IDLE[gpu])
    return 1 - sum(part for part in idle if part > 0)


def percent(gpu: int, second: float) -> float:
    return float(round(BUSY * at_work(gpu, second)))


def watts(gpu: int, second: float) -> float:
    return IDLE_WATTS + (BUSY_WATTS - IDLE_WATTS) * at_work(gpu, second)


def used(gpu: int, second: float) -> int:
    """Return the memory in use in bytes, without what the driver keeps."""
    return next(mib for since, mib in reversed(USED_MIB[gpu]) if since <= second) * 2**20


def ticks(first: float, every: float) -> list[float]:
    return [first + every * place for place in range(ceil((SECONDS - first) / every))]


def nvidia_smi(folder: Path) -> Path:
    """Write what `nvidia-smi --query-gpu=... -l 1` logs, in local time."""
    path = folder / "gpu.csv"
    rows = (_row(gpu, second) for second in ticks(_LOG_BEGINS, 1.0) for gpu in range(len(IDLE)))
    path.write_text("\n".join([_HEADER, *rows]) + "\n")
    return path


def _row(gpu: int, second: float) -> str:
    stamp = datetime.fromtimestamp(START / 1e6 + second, ZoneInfo(ZONE)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
    working = at_work(gpu, second) > 0
    cells = (
        *(stamp, gpu, f"GPU-{gpu:08d}-0000-0000-0000-000000000000", "NVIDIA A100-SXM4-80GB"),
        *(
            f"{percent(gpu, second):.0f} %",
            f"{ceil(used(gpu, second) / 2**20)} MiB",
            "583 MiB",
            f"{TOTAL // 2**20} MiB",
        ),
        *(f"{watts(gpu, second):.2f} W", f"{LIMIT_WATTS:.2f} W", f"{LIMIT_WATTS:.2f} W", 61 if working else 44),
        *(f"{1410 if working else 210} MHz", "1410 MHz", f"0x{0 if working else 1:016x}"),
    )
    return ", ".join(str(cell) for cell in cells)


def _first_answer(gpu: int, second: float) -> int:
    return used(gpu, second) + RESERVED


_MLFLOW: dict[str, Callable[[int, float], float]] = {
    "utilization_percentage": percent,
    "memory_usage_megabytes": lambda gpu, second: _first_answer(gpu, second) / 1e6,
    "memory_usage_percentage": lambda gpu, second: _first_answer(gpu, second) / TOTAL * 100,
    "power_usage_watts": watts,
    "power_usage_percentage": lambda gpu, second: watts(gpu, second) / LIMIT_WATTS * 100,
}


def mlflow(folder: Path) -> Path:
    """Write the database of a run whose monitor stamps what it read after waiting; its last reading is lost."""
    reads = ticks(_MONITOR_BEGINS, MLFLOW_SECONDS)
    stamps = [round((second + MLFLOW_SECONDS - _LOGGING) * 1000) for second in reads[:-1]]
    series = {
        f"system/gpu_{gpu}_{name}": [
            (stores.START + stamp, round(value(gpu, second), 1), step)
            for step, (second, stamp) in enumerate(zip(reads, stamps, strict=False))
        ]
        for gpu in range(len(IDLE))
        for name, value in _MLFLOW.items()
    }
    series["system/cpu_utilization_percentage"] = [
        (stores.START + stamp, 50.0, step) for step, stamp in enumerate(stamps)
    ]
    made = stores.Made(id=stores.run_id(1), series=series, end=stores.START + round(SECONDS * 1000))
    return stores.database(folder / "mlflow.db", [made])


def _gauges() -> Schedule:
    reads = ticks(_CLIENT_BEGINS, NEPTUNE_SECONDS)

    def read(value: Callable[[int, float], float]) -> list[list[float]]:
        return [[value(gpu, second) for second in reads] for gpu in range(len(IDLE))]

    start = START + round(_CLIENT_BEGINS * 1e6)
    return Schedule(
        utilization=read(percent),
        memory=read(lambda gpu, second: _first_answer(gpu, second) / GIB),
        watts=read(watts),
        start=start,
    )


def neptune_export(folder: Path) -> Path:
    """Write an export of a run of Neptune's client, which drops zeros."""
    dumps.write(folder / "dump", dumps.run(_gauges()))
    return folder / "dump"


def neptune_log(folder: Path) -> Path:
    given = folders.operations(_gauges())
    for each in given:
        if each["type"] == "ConfigFloatSeries" and "/gpu_" in "/".join(each["path"]):
            each["max"] = LIMIT_WATTS if "power" in each["path"][-1] else TOTAL / GIB
    folders.write(folder / ".neptune", given)
    return folder / ".neptune"
