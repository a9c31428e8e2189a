"""Interprets headings written by people, using one table of normalised words for all sources.

`GPU Mem_Used(MB)` and `gpuMemoryUsed [mb]` both become `gpu memory used mb`; word order does not matter.
"""

import math
import re
from functools import lru_cache
from typing import NamedTuple

from gpureport.metrics import BY_NAME
from gpureport.parsing import UNITS


def _by_word(*rows: str) -> dict[str, str]:
    pairs = [entry.split(": ") for row in rows for entry in row.split("; ")]
    return {word: meaning for meaning, spellings in pairs for word in spellings.split()}


UNIT_WORDS = _by_word(
    "B: bytes b; KiB: kb kib; MiB: mb mib; GiB: gb gib; TiB: tb tib",
    "W: w watts; mW: mw milliwatts; kW: kw; Hz: hz; kHz: khz; MHz: mhz; GHz: ghz",
    "%: percent; 1: ratio; C: c celsius",
)
"""Words for units; MB means MiB, as in drivers and psutil."""
_SPELLINGS = _by_word(
    "gpu: cuda; gpu memory: vram hbm fb; memory: mem; host memory: ram; host: virtual; system: sys",
    "index: idx; device id: deviceid; name: model; process: proc pid python train",
    "utilization: util utilisation; io wait: iowait; load average: loadavg; limit: cap; write: written",
    "average: avg mean; total: overall; available: avail; temperature: temp; power: pwr",
    "clock: clk clocks freq frequency; network: net; receive: recv received rx; transmit: sent transmitted tx",
    "percent: % pct perc percentage; ratio: frac fraction; c: degc; watts: watt; hz: hertz; bytes: byte",
    "second: s sec ps seconds; date time: datetime; unix time: unixtime",
    "timestamp ms: timestampms; timestamp us: timestampus; timestamp ns: timestampns",
) | {"deg": ""}
_WORD = re.compile(r"gpu|[a-z]+?(?=gpu)|[a-z]+|\d+|%", re.ASCII)
_CAPITAL = re.compile(r"(?<=[a-z]{2})(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
"""Matches where a capital letter starts a word, as in `powerWatts` or `GPUTemp`, but not in `MiB` or `kHz`."""
_LONGEST = 100


@lru_cache(4096)
def heading_words(heading: str) -> tuple[str, ...]:
    parts = _WORD.findall(_CAPITAL.sub(" ", heading).lower()) if len(heading) <= _LONGEST else []
    return tuple(word for part in parts for word in _SPELLINGS.get(part, part).split())


INDEX, MODEL, CORE = "index", "model", "core"
"""Columns that are not metrics: the number and model of a GPU, and the load of one core."""
CORE_LOADS = frozenset({CORE, "process_cpu_cores", "job_cpu_cores"})
"""Loads that may be percentages of one core."""
_LOAD = "percent usage utilization used total average"


_SIZED = ("cpu_power_watts", "host_memory_used_bytes", "host_memory_total_bytes", "process_memory_used_bytes")
_Columns = list[tuple[str, frozenset[str], frozenset[str], str, bool]]
"""Each metric's required and permitted heading words, base unit, and whether it needs a unit."""


def _columns(*rows: tuple[str, ...]) -> _Columns:
    found = []
    for target, needed, *more in rows:
        # core loads are shares; byte rates use the units of bytes
        base = "1" if target in CORE_LOADS else BY_NAME[target].unit if target in BY_NAME else ""
        # the unit of these values cannot be inferred from their size
        needs_unit = target in _SIZED or target.endswith("per_second") or needed == "gpu memory"
        words = frozenset(needed.split()), frozenset("".join(more).split())
        found.append((target, *words, base.removesuffix("/s"), needs_unit))
    return found


GPU_COLUMNS = _columns(
    ("gpu_power_limit_requested_watts", "power limit", "gpu"),
    ("gpu_power_watts", "power", "gpu draw usage"),
    ("gpu_memory_temperature_celsius", "memory temperature", "gpu"),
    ("gpu_temperature_celsius", "temperature", "gpu"),
    ("gpu_memory_clock_hertz", "memory clock", "gpu"),
    ("gpu_sm_clock_hertz", "sm clock", "gpu"),
    ("gpu_sm_clock_hertz", "gpu clock"),
    ("gpu_memory_total_bytes", "memory total", "gpu"),
    ("gpu_memory_free_bytes", "memory free", "gpu"),
    ("gpu_memory_controller_ratio", "memory utilization", "gpu"),
    ("gpu_memory_used_bytes", "memory used", "gpu"),
    ("gpu_memory_used_bytes", "gpu memory", "usage"),
    ("gpu_fan_ratio", "fan", "gpu speed"),
    ("gpu_utilization_ratio", "gpu utilization"),
    ("gpu_utilization_ratio", "gfx", "utilization activity"),
    ("gpu_graphics_clock_hertz", "gfx clock"),
    (MODEL, "gpu name"),
    (INDEX, "gpu", "index id"),
    (INDEX, "device id"),
)
"""Columns about GPUs, with headings that are used for nothing else."""
INDEX_COLUMNS = _columns((INDEX, "gpu", "index id"), (INDEX, "index"), (INDEX, "device", "index id"), (INDEX, "card"))
HOST_COLUMNS = _columns(
    ("cpu_iowait_ratio", "io wait", "cpu"),
    ("host_memory_total_bytes", "memory total", "host"),
    ("host_memory_used_ratio", "memory percent", f"ratio host {_LOAD}"),
    ("host_memory_used_ratio", "memory ratio", f"host {_LOAD}"),
    ("host_memory_used_ratio", "memory usage", "host used utilization"),
    ("host_memory_used_ratio", "memory utilization", "host used"),
    ("process_memory_used_bytes", "process memory", "used rss host"),
    ("process_memory_used_bytes", "process rss", "used"),
    ("host_memory_used_bytes", "memory", "used usage host"),
    ("host_load_average", "load 1", "average m min"),
    ("host_load_average", "host load average"),
    *(
        (f"host_disk_{way}_bytes_per_second", f"{device} {way} second", "per host")
        for way in ("read", "write")
        for device in ("disk", "io")
    ),
    *((f"host_network_{way}_bytes_per_second", f"network {way} second", "per host") for way in ("receive", "transmit")),
    ("process_cpu_cores", "process cpu", f"cores {_LOAD}"),
    ("job_cpu_cores", "job cpu", f"cores {_LOAD}"),
    ("cpu_power_watts", "cpu power"),
    ("cpu_logical_cores", "cpu count", "core logical"),
    ("cpu_busiest_core_ratio", "cpu max", "core"),
    ("cpu_busiest_core_ratio", "cpu busiest core"),
    (CORE, "cpu #", f"core {_LOAD}"),
    (CORE, "core #", _LOAD),
    ("cpu_utilization_ratio", "cpu load percent", _LOAD),
    ("cpu_utilization_ratio", "cpu", _LOAD),
)
"""Columns about a machine; `#` means any number."""
_TIME_WORDS = frozenset({"timestamp", "time", "date", "unix", "epoch", "ts", "utc"})
_TIME_UNITS = frozenset(["second", "ms", "us", "ns", "local", "wall", "stamp"])


class ColumnName(NamedTuple):
    target: str
    unit: str = ""


def recognise_column(heading: str, columns: _Columns) -> ColumnName | None:
    """Return the column that a heading describes, or None if it contains any other word."""
    words = heading_words(heading)
    of_host = words[:1] in {("host",), ("system",)} and columns is HOST_COLUMNS
    for plain in map(frozenset, (words, words[1:]) if of_host else (words,)):
        numbered = frozenset("#" if word.isdigit() else word for word in plain)
        units = [word for word in UNIT_WORDS if word in plain]
        for target, needs, may, base, needs_unit in columns:
            have = numbered if "#" in needs else plain
            stated = next((word for word in units if UNITS[UNIT_WORDS[word]].base == base), "")
            if needs <= have and not have - needs - may - {stated} and (stated or not needs_unit):
                return ColumnName(target, UNIT_WORDS.get(stated, ""))
    return None


def is_time_heading(heading: str) -> bool:
    words = frozenset(heading_words(heading))
    return bool(words & _TIME_WORDS) and words <= _TIME_WORDS | _TIME_UNITS


_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


def parse_number(cell: object) -> float | None:
    # strip() removes ASCII separators, which float() does not accept
    cell = cell.strip() if isinstance(cell, str) else cell
    is_text = isinstance(cell, str) and _NUMBER.fullmatch(cell)
    try:
        value = float(cell) if is_text or type(cell) in {int, float} else math.nan  # type: ignore[arg-type]  # a number
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def absence_word(cell: object) -> str | None:
    text = "null" if cell is None else str(cell).strip()
    return (text or "empty") if text.lower() in {"", "nan", "n/a", "-", "null", "none"} else None
