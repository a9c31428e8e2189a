"""What plain `nvidia-smi -l` and `nvidia-smi -q -x -l` would have written of readings."""

from datetime import datetime

from tests.importers.logs.nvidia_smi.forms.outputs import WIDE, Reading, document, table

_CLOCKS = 4
"""Clocks a document lists; a real one lists a hundred and more."""


def _moment(now: datetime) -> str:
    return f"{now:%a %b} {now.day:2d} {now:%H:%M:%S %Y}"


def _shown(read: dict[str, str], watts: str) -> Reading:
    return Reading(
        index=int(read["index"]),
        name=read["name"],
        bus=read["pci.bus_id"],
        fan="N/A",
        celsius=f"{read['temperature.gpu']}C",
        state=read["pstate"],
        watts=f"{watts}W",
        cap=f"{float(read['enforced.power.limit']):.0f}W",
        used=f"{read['memory.used']}MiB",
        total=f"{read['memory.total']}MiB",
        busy=f"{read['utilization.gpu']}%",
        clock=f"{read['clocks.current.sm']} MHz",
        controller=f"{read['utilization.memory']} %",
        capped=int(read["clocks_event_reasons.active"], 16) & 4 > 0,
    )


def tables(now: datetime, readings: list[dict[str, str]]) -> str:
    return table([_shown(read, f"{float(read['power.draw']):.0f}") for read in readings], WIDE, _moment(now))


def documents(now: datetime, readings: list[dict[str, str]]) -> str:
    return document([_shown(read, read["power.draw"]) for read in readings], _moment(now), clocks=_CLOCKS)
