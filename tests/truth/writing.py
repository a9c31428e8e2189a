"""The files of a labelled run: nvidia-smi's CSV in one of several column sets, and a host log."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from tests.truth.readings import Readings
from tests.truth.script import Script
from tests.truth.timeline import Floats

BEGUN = datetime(2026, 5, 4, 7, 12, 31, 250_000, tzinfo=UTC)
"""When every run begins, by a clock without a zone."""
COLUMN_SETS = {
    "common": "timestamp index name util controller memory total celsius watts limit clock events",
    "full": "timestamp index name uuid util controller memory total reserved watts limit default celsius clock "
    "clock_max events generation generation_max lanes lanes_max ecc_corrected ecc_uncorrected",
    "shuffled": "watts events index total util clock timestamp celsius memory name limit",
    "no_reasons": "timestamp name index celsius watts limit util memory total clock clock_max",
    "bare": "timestamp index util memory total",
    "no_power": "timestamp index name memory total util clock events celsius",
}
_NAMES = {
    "timestamp": "timestamp",
    "index": "index",
    "name": "name",
    "uuid": "uuid",
    "util": "utilization.gpu [%]",
    "controller": "utilization.memory [%]",
    "memory": "memory.used [MiB]",
    "total": "memory.total [MiB]",
    "reserved": "memory.reserved [MiB]",
    "celsius": "temperature.gpu",
    "watts": "power.draw [W]",
    "limit": "power.limit [W]",
    "default": "power.default_limit [W]",
    "clock": "clocks.current.sm [MHz]",
    "clock_max": "clocks.max.sm [MHz]",
    "events": "clocks_event_reasons.active",
    "generation": "pcie.link.gen.current",
    "generation_max": "pcie.link.gen.max",
    "lanes": "pcie.link.width.current",
    "lanes_max": "pcie.link.width.max",
    "ecc_corrected": "ecc.errors.corrected.volatile.total",
    "ecc_uncorrected": "ecc.errors.uncorrected.volatile.total",
}
_LOST = "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU"
_HOST_MIB = 515_000


def moment(seconds: float) -> datetime:
    return BEGUN + timedelta(seconds=seconds)


def write(folder: Path, script: Script, gpus: list[Readings], host: dict[str, Floats] | None) -> None:
    folder.mkdir(parents=True)
    names = COLUMN_SETS[script.columns].split()
    lines = [(-1.0, ", ".join(_NAMES[name] for name in names))]
    for index, rows in enumerate(gpus):
        cells = [_cells(name, script, index, rows) for name in names]
        # a query takes a few milliseconds for each GPU
        places = (rows.seconds + 0.004 * index).tolist()
        lines.extend((place, ", ".join(row)) for place, row in zip(places, zip(*cells, strict=True), strict=True))
    if script.lost is not None:
        lines.append((script.lost[1] * script.seconds, _LOST))
    lines.sort(key=lambda line: line[0])
    (folder / "nvidia-smi.csv").write_text("\n".join(text for _, text in lines) + "\n")
    if host is not None:
        (folder / "host.csv").write_text(_host(host))


def _cells(name: str, script: Script, index: int, rows: Readings) -> list[str]:
    count, card = len(rows.seconds), script.card
    if name in {"timestamp", "util", "watts", "memory", "celsius", "clock", "events", "controller", "generation"}:
        return _series(name, rows)
    if name.startswith("ecc"):
        return [f"{value:.0f}" for value in (rows.errors if name == "ecc_uncorrected" else 0 * rows.errors)]
    constant = {
        "index": f"{index}",
        "name": card.name,
        "uuid": f"GPU-5c0f1e{index:02d}-7a31-4b5e-9d62-0a4be1c97f{index:02d}",
        "total": f"{card.memory_mib} MiB",
        "reserved": f"{card.reserved_mib} MiB",
        "limit": f"{script.limit * card.limit_watts:.2f} W",
        "default": f"{card.limit_watts:.2f} W",
        "clock_max": f"{card.clock_mhz} MHz",
        "generation_max": f"{card.generation}",
        "lanes": f"{script.lanes if index == 0 else 16}",
        "lanes_max": "16",
    }
    return [constant[name]] * count


_FORMS: dict[str, tuple[str, Callable[[float], str]]] = {
    "util": ("util", lambda value: f"{value:.0f} %"),
    "controller": ("controller", lambda value: f"{value:.0f} %"),
    "memory": ("memory", lambda value: f"{value:.0f} MiB"),
    "watts": ("watts", lambda value: f"{value:.2f} W"),
    "celsius": ("celsius", lambda value: f"{value:.0f}"),
    "clock": ("clock", lambda value: f"{value:.0f} MHz"),
    "events": ("events", lambda value: f"0x{int(value):016X}"),
    "generation": ("generation", lambda value: f"{value:.0f}"),
    "timestamp": ("seconds", lambda value: f"{moment(value):%Y/%m/%d %H:%M:%S.%f}"[:-3]),
}


def _series(name: str, rows: Readings) -> list[str]:
    attribute, form = _FORMS[name]
    values = getattr(rows, attribute)
    return ["[N/A]" if np.isnan(value) else form(value) for value in values.tolist()]


def _host(host: dict[str, Floats]) -> str:
    lines = ["timestamp,cpu_percent,cpu_max_core_percent,iowait_percent,ram_used_mib,ram_total_mib"]
    columns = (host[name].tolist() for name in ("seconds", "cpu_percent", "cpu_max_core_percent", "iowait_percent"))
    for seconds, cpu, core, waits, ram in zip(*columns, host["ram_percent"].tolist(), strict=True):
        stamp = moment(seconds).replace(tzinfo=None).isoformat(timespec="milliseconds")
        lines.append(f"{stamp},{cpu:.1f},{max(core, cpu):.1f},{waits:.1f},{ram / 100 * _HOST_MIB:.0f},{_HOST_MIB}")
    return "\n".join(lines) + "\n"
