"""Logs and recordings as text, for commands that read them."""

import json
from pathlib import Path

HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]"
SAMPLES = Path(__file__).parents[2] / "sample_logs"
SAMPLE = SAMPLES / "mem_pressure" / "nvidia-smi.csv.gz"


def stamp(second: float) -> str:
    whole, millis = divmod(round(second * 1000), 1000)
    return f"2026/03/14 09:{whole // 60:02d}:{whole % 60:02d}.{millis:03d}"


def row(second: float, gpu: int = 0, *, util: int = 90, power: str = "250.00 W") -> str:
    return f"{stamp(second)}, {gpu}, NVIDIA L4, {util} %, 1024 MiB, {power}"


def table(*rows: str) -> str:
    return "\n".join([HEADER, *rows, ""])


def log(rows: int = 20, gpus: int = 1) -> str:
    return table(*(row(second, gpu) for second in range(rows) for gpu in range(gpus)))


def gapped(seconds: int = 300, power: str = "250.00 W") -> str:
    middle = range(seconds // 2 - 15, seconds // 2 + 15)
    return table(*(row(second, util=0 if second in middle else 95, power=power) for second in range(seconds)))


def wavering(util: int = 90, rows: int = 900, start: int = 0) -> str:
    return table(*(row(second, util=util + (second * 7 + start) % 5 - 2) for second in range(rows)))


def record(  # noqa: PLR0913 - each argument is something a test varies
    folder: Path,
    content: str,
    *,
    started: int = 0,
    ended: int | None = None,
    zone: str = "",
    params: dict[str, str] | None = None,
) -> None:
    """Write what `gpureport record` leaves behind; without `ended` as where its recorder was killed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu.csv").write_text(content, encoding="utf-8")
    run: dict[str, object] = {
        "schema": "gpureport.record/1",
        "command": [],
        "host": "",
        "timezone": zone,
        "started": started,
    }
    run |= {"ended": ended, "exit_code": None, "interval": 1.0, "params": params or {}, "tags": {}, "notes": []}
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
