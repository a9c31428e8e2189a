"""Logs as text, for tests of what reads them."""

from pathlib import Path

from gpureport.importers import Labels, Placement, Reading, find
from gpureport.recording import Recording

HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]"


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


def read(path: Path, placement: Placement | None = None, labels: Labels | None = None) -> Recording:
    """Return the one run a path holds."""
    (inputs,) = find(path)
    return Reading(inputs, placement or Placement(), labels or Labels()).recording()


def read_text(folder: Path, content: str | bytes, placement: Placement | None = None) -> Recording:
    """Return the run a log of this content holds."""
    path = folder / "gpu.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(path, placement)
