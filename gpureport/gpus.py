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
"""The one Ampere chip whose readings do not average; those older than it do not either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value of the table, in base units, with where it comes from in words."""

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What is known about one model, in base units; None where nobody has a source.

    All words of one set of `names` occur in a matching name, and none of `excluded`. `clock_events_masked` is 1 where
    NVIDIA's diagnostics leave the clock events of the model aside.
    """

    model: str
    names: tuple[frozenset[str], ...]
    excluded: frozenset[str] = frozenset()
    compute_capability: tuple[int, int]
    power_limit_default_watts: Cell | None = None
    memory_total_bytes: Cell | None = None
    memory_reserved_bytes: Cell | None = None
    sm_clock_max_hertz: Cell | None = None
    temperature_max_operating_celsius: Cell | None = None
    pcie_generation: Cell | None = None
    utilisation_window_seconds: Cell | None = None
    power_idle_watts: Cell | None = None
    memory_bandwidth_bytes_per_second: Cell | None = None
    tensor_operations_per_second: Cell | None = None
    clock_events_masked: Cell | None = None

    @property
    def power_window(self) -> str:
        """What a power reading averages over: `1 s` on Ampere and newer except GA100, else `instant` (NVML)."""
        return "1 s" if self.compute_capability > _GA100 else "instant"


def _row(entry: dict[str, Any], sources: dict[str, str]) -> Gpu:
    names, excluded = entry.pop("names"), entry.pop("not", ())
    major, minor = entry.pop("compute_capability")[0].split(".")
    return Gpu(
        model=entry.pop("model"),
        names=tuple(map(frozenset, names)),
        excluded=frozenset(excluded),
        compute_capability=(int(major), int(minor)),
        **{key: Cell(value=float(value), source=sources[source]) for key, (value, source) in entry.items()},
    )


@cache
def load_gpus() -> tuple[Gpu, ...]:
    """Return every model, in the order in which they are tried."""
    import tomllib

    content = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return tuple(_row(entry, content["sources"]) for entry in content["gpu"])


@cache
def find_gpu(name: str | None) -> Gpu | None:
    """Return the first model that a name from a log fits, in any spelling, None when there is none."""
    words = frozenset(re.findall(r"[a-z0-9]+", (name or "").lower()))
    fits = (gpu for gpu in load_gpus() if not words & gpu.excluded and any(each <= words for each in gpu.names))
    return next(fits, None) if words else None
