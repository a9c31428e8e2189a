"""The GPU table: what a model is known to be, where its log does not say so itself.

Values in a log always win. A model that is not in the table is no error: `find` returns None and the analyses
say less.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_TABLE = Path(__file__).with_name("gpus.toml")

_GA100 = (8, 0)
_AVERAGING_SINCE = (8, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value of the table, in base units, with where it comes from in words."""

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What is known about one model, in base units; None where nobody has a source.

    All words of one set of `names` occur in a matching name, and none of `excluded`. Above the highest operating
    temperature the driver begins to lower clocks, at that of slowdown the hardware halves them. The tensor cores'
    operations are 16-bit ones without sparsity. `clock_events_masked` is 1 where NVIDIA's diagnostics leave the clock
    events of the model aside.
    """

    model: str
    names: tuple[frozenset[str], ...]
    excluded: frozenset[str] = frozenset()
    compute_capability: tuple[int, int] | None = None
    power_limit_default_watts: Cell | None = None
    memory_total_bytes: Cell | None = None
    memory_reserved_bytes: Cell | None = None
    sm_clock_max_hertz: Cell | None = None
    memory_clock_max_hertz: Cell | None = None
    temperature_max_operating_celsius: Cell | None = None
    temperature_slowdown_celsius: Cell | None = None
    temperature_shutdown_celsius: Cell | None = None
    memory_temperature_max_celsius: Cell | None = None
    pcie_generation: Cell | None = None
    utilisation_window_seconds: Cell | None = None
    power_idle_watts: Cell | None = None
    memory_bandwidth_bytes_per_second: Cell | None = None
    tensor_operations_per_second: Cell | None = None
    clock_events_masked: Cell | None = None

    @property
    def power_window(self) -> str:
        """What a power reading averages over: `1 s` on Ampere and newer except GA100, else `instant` (NVML)."""
        capability = self.compute_capability
        if capability is None:
            return "unknown"
        return "1 s" if capability >= _AVERAGING_SINCE and capability != _GA100 else "instant"


def _row(entry: dict[str, Any], sources: dict[str, str]) -> Gpu:
    cells = {
        key: Cell(value=float(content[0]), source=sources[content[1]])
        for key, content in entry.items()
        if key not in {"model", "names", "not", "compute_capability"}
    }
    major, minor = str(entry["compute_capability"][0]).split(".")
    return Gpu(
        model=entry["model"],
        names=tuple(frozenset(words) for words in entry["names"]),
        excluded=frozenset(entry.get("not", ())),
        compute_capability=(int(major), int(minor)),
        **cells,
    )


@cache
def load_gpus() -> tuple[Gpu, ...]:
    """Return every model, in the order in which they are tried."""
    import tomllib  # noqa: PLC0415 - many logs name no model

    content = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return tuple(_row(entry, content["sources"]) for entry in content["gpu"])


@cache
def find_gpu(name: str | None) -> Gpu | None:
    """Return the first model that a name from a log fits, None when there is none.

    Args:
        name: the name as logged, in any spelling (`NVIDIA A100-SXM4-80GB`, `Tesla T4`).
    """
    if not name:
        return None
    words = frozenset(re.findall(r"[a-z0-9]+", name.lower()))
    for gpu in load_gpus():
        if not words & gpu.excluded and any(needed <= words for needed in gpu.names):
            return gpu
    return None
