"""Readings of made-up GPUs as tools other than nvidia-smi write them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_HEADING_EVERY = 20
"""Ticks after which dcgmi prints its heading again, as it does when a screen is full."""
_SM_ACTIVE, _TENSOR_ACTIVE = 0.74, 0.31
"""Activity of the job's kernels while they run: made up, as all of it is."""
_WIDTHS = {"GPUTL": 13, "MCUTL": 13, "TMPTR": 10, "POWER": 13, "SMCLK": 10, "FBTTL": 12, "FBUSD": 12}
_WIDTHS |= {"DVCCTR": 14, "SMACT": 10, "TENSO": 10, "DRAMA": 10}
_COPIED = {"PCITX": 13, "PCIRX": 13, "PCIMG": 10, "PCIMW": 10}
"""Columns of the link, for those who watch it."""
_UNITS = {"TMPTR": "C", "POWER": "W"}


@dataclass(frozen=True, slots=True)
class Reading:
    moment: datetime
    cells: dict[str, str]


def gpustat_json(ticks: Iterable[Sequence[Reading]]) -> str:
    return "".join(json.dumps(_document(readings)) + "\n" for readings in ticks)


def _document(readings: Sequence[Reading]) -> dict[str, object]:
    gpus: list[dict[str, object]] = [
        {
            "index": int(cells["index"]),
            "uuid": cells["uuid"],
            "name": cells["name"],
            "temperature.gpu": int(cells["temperature.gpu"]),
            "fan.speed": None,
            "utilization.gpu": int(cells["utilization.gpu"]),
            "power.draw": int(float(cells["power.draw"])),
            "enforced.power.limit": int(float(cells["enforced.power.limit"])),
            "memory.used": int(cells["memory.used"]),
            "memory.total": int(cells["memory.total"]),
            "processes": [],
        }
        for cells in (reading.cells for reading in readings)
    ]
    cells = readings[0].cells
    return {
        "hostname": "node1",
        "driver_version": cells["driver_version"],
        "query_time": readings[-1].moment.isoformat(),
        "gpus": gpus,
    }


def dcgmi_dmon(ticks: Iterable[Sequence[Reading]]) -> str:
    """Return what `dcgmi dmon` would have printed, every line stamped on its way into the file."""
    lines = []
    for place, readings in enumerate(ticks):
        stamp = readings[-1].moment.isoformat(timespec="milliseconds")
        widths = _WIDTHS | (_COPIED if "pcie.rx" in readings[0].cells else {})
        heading = "#Entity   " + "".join(f"{tag:<{width}}" for tag, width in widths.items())
        units = "ID        " + "".join(f"{_UNITS.get(tag, ''):<{width}}" for tag, width in widths.items())
        if place % _HEADING_EVERY == 0:
            lines += [f"{stamp} {heading.rstrip()}", f"{stamp} {units.rstrip()}"]
        lines += [f"{stamp} {_row(reading.cells, widths)}" for reading in readings]
    return "\n".join(lines) + "\n"


def wandb_csv(ticks: Iterable[Sequence[Reading]]) -> str:
    lines: list[str] = []
    for place, readings in enumerate(ticks):
        values = {f"system.gpu.{each.cells['index']}.{name}": text for each in readings for name, text in _wandb(each)}
        moment = readings[0].moment.replace(tzinfo=UTC).timestamp()
        lines = lines or [",".join(["", *values, "_timestamp"])]
        lines.append(",".join([str(place), *values.values(), f"{moment:.3f}"]))
    return "\n".join(lines) + "\n"


def _wandb(reading: Reading) -> Iterator[tuple[str, str]]:
    cells = reading.cells
    yield "gpu", cells["utilization.gpu"]
    yield "memory", cells["utilization.memory"]
    yield "memoryAllocatedBytes", str(int(cells["memory.used"]) * 2**20)
    yield "temp", cells["temperature.gpu"]
    yield "powerWatts", cells["power.draw"]
    yield "enforcedPowerLimitWatts", cells["enforced.power.limit"]


def wrapper_csv(ticks: Iterable[Sequence[Reading]]) -> str:
    """Return what a script of one's own might write, with headings that no tool uses."""
    lines = ["zeit;" + ";".join(f"karte {gpu} {what}" for gpu in (0, 1) for what in ("last", "speicher", "watt"))]
    for readings in ticks:
        numbers = (
            (each.cells["utilization.gpu"], each.cells["memory.used"], each.cells["power.draw"]) for each in readings
        )
        shown = [number.replace(".", ",") for row in numbers for number in row]
        lines.append(";".join([f"{readings[0].moment:%d.%m.%Y %H:%M:%S}", *shown]))
    return "\n".join(lines) + "\n"


def _row(cells: dict[str, str], widths: dict[str, int]) -> str:
    busy = int(cells["utilization.gpu"]) / 100
    shown = {
        "GPUTL": cells["utilization.gpu"],
        "MCUTL": cells["utilization.memory"],
        "TMPTR": cells["temperature.gpu"],
        "POWER": f"{float(cells['power.draw']):.3f}",
        "SMCLK": cells["clocks.current.sm"],
        "FBTTL": cells["memory.total"],
        "FBUSD": cells["memory.used"],
        "DVCCTR": str(int(cells["clocks_event_reasons.active"], 16)),
        "SMACT": f"{_SM_ACTIVE * busy:.3f}",
        "TENSO": f"{_TENSOR_ACTIVE * busy:.3f}",
        "DRAMA": f"{int(cells['utilization.memory']) / 100:.3f}",
        "PCITX": cells.get("pcie.tx", ""),
        "PCIRX": cells.get("pcie.rx", ""),
        "PCIMG": cells["pcie.link.gen.max"],
        "PCIMW": cells["pcie.link.width.max"],
    }
    entity = f"GPU {cells['index']}"
    return f"{entity:<10}{''.join(f'{shown[tag]:<{width}}' for tag, width in widths.items())}".rstrip()
