"""Logs as text, for tests of what reads them."""

import random
from pathlib import Path

from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.record_folder import RecordedRun, format_run_file
from gpureport.testing import Recording

HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]"
SERIES = (
    *("timestamp", "utilization.gpu [%]", "utilization.memory [%]", "temperature.gpu", "temperature.memory"),
    *("power.draw [W]", "power.limit [W]", "memory.total [MiB]", "memory.used [MiB]", "memory.free [MiB]"),
    *("clocks.current.sm [MHz]", "clocks.current.memory [MHz]", "pstate"),
)
"""Headings of the columns `series` makes."""


def stamp(second: float, start: str = "2026/03/14 09:00:00") -> str:
    """Return a stamp some seconds after the start of an hour."""
    whole, millis = divmod(round(second * 1000), 1000)
    return f"{start[:14]}{whole // 60:02d}:{whole % 60:02d}.{millis:03d}"


def row(second: float, gpu: int = 0, *, util: int = 90, power: str = "250.00 W") -> str:
    """Return a row under HEADER."""
    return f"{stamp(second)}, {gpu}, NVIDIA L4, {util} %, 1024 MiB, {power}"


def log(rows: int = 20, gpus: int = 1) -> str:
    """Return a clean log of one row a second and GPU."""
    lines = [HEADER, *(row(second, gpu) for second in range(rows) for gpu in range(gpus))]
    return "\n".join(lines) + "\n"


def write_recording(folder: Path, content: str, *, started: int = 0, ended: int | None = None, zone: str = "") -> None:
    """Write what `gpureport record` leaves behind.

    Args:
        folder: the folder of the recording.
        content: its log of GPUs.
        started: microseconds since 1970.
        ended: as `started`; None of a recording that goes on, or whose recorder was killed.
        zone: of the machine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu.csv").write_text(content, encoding="utf-8")
    run = RecordedRun(started=started, ended=ended, timezone=zone)
    (folder / "run.json").write_text(format_run_file(run), encoding="utf-8")


def series(rows: int = 400, seed: int = 1) -> dict[str, list[str]]:
    """Return columns of one GPU by heading: idle at first, then at work with pauses, as nvidia-smi writes them."""
    chance = random.Random(seed)
    columns: dict[str, list[str]] = {heading: [] for heading in SERIES}
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
            columns[heading].append(cell)
    return columns


def read(path: Path, options: ReadOptions | None = None, labels: Labels | None = None) -> Recording:
    """Return the one run a path holds."""
    (inputs,) = find_runs(path)
    return Reading(inputs, options or ReadOptions(), labels or Labels()).recording()


def read_text(folder: Path, content: str | bytes, options: ReadOptions | None = None) -> Recording:
    """Return the run a log of this content holds."""
    path = folder / "gpu.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(path, options)
