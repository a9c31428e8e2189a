"""When a driver reported a lost GPU or an Xid error, and when a GPU answered last."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.rulebook import Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.columns import IntArray
from gpureport.data_quality import LogEvent

LIVENESS_METRICS = (
    "gpu_utilization_ratio",
    "gpu_temperature_celsius",
    "gpu_power_watts",
    "gpu_memory_used_bytes",
    "gpu_sm_clock_hertz",
)
"""Metrics a GPU that answers has a value of."""
FATAL_CAUSES = ("lost", "no answer")
"""Causes of gpu_lost that end what a GPU can do: it was said to be lost, or its rows stay empty; an Xid need not be."""


XID = "gpu_xid_code"
_XID = re.compile(r"\bXid\b(?: *\((?:PCI:)?(?P<bus>[0-9A-Fa-f:.]+)\))?[: ]+(?P<code>\d{1,3})\b")
_BUS = re.compile(r"\b(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class LossEvent:
    """Something that happened to a GPU.

    Attributes:
        device: the GPU; None if the message does not name it.
        at: when, in microseconds.
        code: number of the Xid; None for a GPU that is said to be lost.
    """

    device: str | None
    at: int
    code: int | None


def find_answer_times(series: DeviceSeries) -> IntArray:
    """Return the times at which a GPU answered with any value; not to be written to."""

    def find() -> IntArray:
        known = np.zeros(len(series), dtype=np.bool_)
        for metric in LIVENESS_METRICS:
            known |= series.known_rows(metric)
        return series.times[known]

    return series.memoize("answering", find)


def find_loss_events(context: Context) -> Iterator[LossEvent]:
    """Yield losses and Xid errors from log messages and the driver's Xid code, in the order of time."""
    yield from sorted([*_find_logged_events(context), *_find_xid_changes(context)], key=lambda loss: loss.at)


def _find_logged_events(context: Context) -> Iterator[LossEvent]:
    for event in context.recording.run.quality.log_events:
        code = _XID.search(event.text)
        if event.at is None or (event.kind != "gpu_lost" and code is None):
            continue
        number = int(code["code"]) if code else None
        yield LossEvent(device=_find_device(context, event), at=event.at, code=number)


def _find_device(context: Context, event: LogEvent) -> str | None:
    """Return which GPU an event means: the one it names, the one at the address it names, or the only one."""
    if event.device is not None:
        return event.device
    addresses = {_normalise_address(match[0]) for match in _BUS.finditer(event.text)}
    named_gpus = [
        name
        for name, series in context.gpus().items()
        if series.device.bus_id and _normalise_address(series.device.bus_id) in addresses
    ]
    all_gpus = list(context.gpus())
    chosen = named_gpus or (all_gpus if len(all_gpus) == 1 else [])
    return chosen[0] if len(chosen) == 1 else None


def _normalise_address(address: str) -> str:
    """Return a PCI address by domain, bus and device alone: `0:3b:00`, the domain 0 where none is named."""
    if ":" not in address:
        return ""
    parts = address.lower().split(".")[0].split(":")
    domain = parts[0] if len(parts) > 2 else "0"  # noqa: PLR2004 - domain, bus, device
    return f"{int(domain, 16):x}:{parts[-2]}:{parts[-1]}"


def _find_xid_changes(context: Context) -> Iterator[LossEvent]:
    """Yield an event where the last Xid code changes; the first code belongs to an earlier job."""
    for device, series in context.gpus().items():
        if not series.is_recorded(XID):
            continue
        rows = np.flatnonzero(series.known_rows(XID))
        codes = series.values(XID)[rows].astype(np.int64)
        for place in np.flatnonzero((codes[1:] != codes[:-1]) & (codes[1:] != 0)).tolist():
            code, at = int(codes[place + 1]), int(series.times[rows[place + 1]])
            yield LossEvent(device=device, at=at, code=code)
