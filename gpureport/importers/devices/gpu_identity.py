"""What rows say of their GPU: its identity, its names, its driver, its limits and sizes."""

import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from gpureport import columns, gpus
from gpureport.columns import IntArray, present
from gpureport.importers.delimited.row_sections import Section
from gpureport.importers.devices.column_values import Values
from gpureport.importers.values.cells import CUT
from gpureport.recording import Device

IDENTITY = {"uuid": "uuid", "pci.bus_id": "bus_id", "serial": "serial", "index": "index", "name": "model"}
"""What tells GPUs apart, the surest first: by nvidia-smi's name, the column of texts it is kept in."""
ATTRIBUTES = {"driver_version": "driver", "mig.mode.current": "mig", **IDENTITY}
"""What describes a GPU instead of being a series."""
_LIMITS = ("gpu_power_limit_watts", "gpu_power_limit_requested_watts")
Identity = tuple[str | None, ...]
"""What a row says of its GPU in each column of IDENTITY; None where nothing."""
MOST_IDENTITIES = 1024
"""Identities of a section beyond which a column does not name GPUs."""
OFTEN = 20
"""Rows from which on an identity is no damage (pragmatic)."""
DRIVER_FORMS = {
    "uuid": re.compile(r"(?:GPU|MIG)-(?:GPU-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:/\d+/\d+)?"),
    "bus_id": re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]"),
}
"""How the driver writes what identifies a GPU."""
_MEMORY = "gpu_memory_total_bytes"
_NAMES = tuple(name for name in IDENTITY.values() if name != "model")


def names_gpus(section: Section) -> bool:
    """Return whether a column names the GPU of any row; a model names none."""
    return any(
        section.layout.columns[position].target in _NAMES and column.valid().any()
        for position, column in section.columns.items()
    )


def is_name_cut(section: Section) -> bool:
    """Return whether the cell that names the GPU of any row may be a part of another name."""
    return any(
        CUT in column.reasons and section.layout.columns[position].target in IDENTITY.values()
        for position, column in section.columns.items()
    )


class SoundIdentities:
    """What many rows say of their GPU, as the driver writes it.

    Attributes:
        rows: how many rows say it.
    """

    def __init__(self) -> None:
        self.rows: Counter[Identity] = Counter()

    def are_all(self, data: dict[str, Values], rows: int) -> bool:
        """Return whether all rows of a section have such identities and one size of memory; they are counted then."""
        if _MEMORY in data and len(data[_MEMORY].data) and (data[_MEMORY].data != data[_MEMORY].data[0]).any():
            return False
        codes, identities = number_identities(data, np.arange(rows))
        counts = dict(zip(identities, np.bincount(codes, minlength=len(identities)).tolist(), strict=True))
        if len(identities) > MOST_IDENTITIES or not all(map(self._is_sound, counts, counts.values())):
            return False
        self.rows.update(counts)
        return True

    def _is_sound(self, identity: Identity, rows: int) -> bool:
        if identity in self.rows:
            return True
        names = zip(IDENTITY.values(), identity, strict=True)
        return rows >= OFTEN and all(
            text is None or name not in DRIVER_FORMS or DRIVER_FORMS[name].fullmatch(text) for name, text in names
        )


def number_identities(data: dict[str, Values], rows: IntArray) -> tuple[IntArray, list[Identity]]:
    """Return for each row a number of its identity, and the identities."""
    codes = np.zeros(len(rows), dtype=np.int64)
    found: list[Identity] = [()]
    for name in IDENTITY.values():
        values = data.get(name)
        texts = [*((values and values.texts) or []), None]
        if values is None or (columns.is_constant(values.data) and values.valid.all()):
            text = None if values is None or not len(values.data) else texts[int(values.data[0])]
            found = [(*each, text) for each in found]
            continue
        own = np.where(values.valid, values.data, len(texts) - 1)[rows]
        met, codes = _renumber(codes * len(texts) + own, len(found) * len(texts))
        found = [(*found[pair // len(texts)], texts[pair % len(texts)]) for pair in met]
    return codes, found


def _renumber(pairs: IntArray, size: int) -> tuple[list[int], IntArray]:
    """Return the numbers that occur, below `size`, and for each row the place of its number among them."""
    if size > MOST_IDENTITIES * MOST_IDENTITIES:
        met, codes = np.unique(pairs, return_inverse=True)
        return met.tolist(), codes
    occurring = present(pairs)
    table = np.zeros(size, dtype=np.int64)
    table[occurring] = np.arange(len(occurring))
    return occurring, table[pairs]


@dataclass(slots=True)
class GpuDescription:
    """What was seen of one GPU so far."""

    index: int
    attributes: dict[str, str] = field(default_factory=dict)
    extremes: dict[str, float] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)


def first_text(values: Values, rows: IntArray) -> str | None:
    """Return the first text that some rows hold."""
    valid = values.valid[rows]
    return (values.texts or [])[values.data[rows[np.argmax(valid)]]] if valid.any() else None


def note_attributes(seen: GpuDescription, rows: IntArray, data: dict[str, Values]) -> list[tuple[str, str]]:
    """Keep what some rows say of a GPU: each attribute once, limits and sizes at their extremes.

    Returns:
        the attributes that were not known before.
    """
    fresh = []
    for name in ATTRIBUTES.values():
        values = data.get(name) if name not in seen.attributes else None
        text = None if values is None else first_text(values, rows)
        if text is not None:
            seen.attributes[name] = text
            fresh.append((name, text))
    models = data.get("model")
    if models is not None:
        seen.models |= {(models.texts or [])[code]: None for code in present(models.data[rows[models.valid[rows]]])}
    for name, pick in (
        ("gpu_memory_total_bytes", max),
        ("gpu_memory_reserved_bytes", max),
        ("gpu_power_limit_default_watts", max),
        *((limit, min) for limit in _LIMITS),
    ):
        values = data.get(name)
        held = np.zeros(0) if values is None else values.data[rows][values.valid[rows]]
        if len(held):
            value = float(held.max() if pick is max else held.min())
            seen.extremes[name] = pick(seen.extremes.get(name, value), value)
    return fresh


def make_device(seen: GpuDescription, *, averaged: bool) -> Device:
    """Return a GPU as a device; `averaged` says that power came from `power.draw.average`."""
    attributes, extremes = seen.attributes, seen.extremes
    limit = next((extremes[name] for name in _LIMITS if name in extremes), None)
    memory, reserved = (extremes.get(f"gpu_memory_{part}_bytes") for part in ("total", "reserved"))
    gpu = gpus.find_gpu(attributes.get("model"))
    return Device(
        id=f"gpu:{seen.index}",
        index=seen.index,
        uuid=attributes.get("uuid"),
        bus_id=attributes.get("bus_id"),
        serial=attributes.get("serial"),
        model=attributes.get("model"),
        memory_total_bytes=None if memory is None else int(memory),
        memory_reserved_bytes=None if reserved is None else int(reserved),
        power_limit_watts=limit,
        power_limit_default_watts=extremes.get("gpu_power_limit_default_watts"),
        power_window="1 s" if averaged else "unknown" if gpu is None else gpu.power_window,
        driver=attributes.get("driver"),
        mig=None if "mig" not in attributes else attributes["mig"] == "Enabled",
    )
