"""The words of a heading: lower case, parted at capitals, digits and signs, each in one spelling.

`GPU Mem_Used(MB)` and `gpuMemoryUsed [mb]` are both `gpu memory used mb`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from gpureport.units import UNITS


def _by_word(words: Mapping[str, str]) -> dict[str, str]:
    return {word: meaning for meaning, spellings in words.items() for word in spellings.split()}


UNIT_WORDS = _by_word(
    {
        "B": "bytes b",
        "KiB": "kb kib",
        "MiB": "mb mib",
        "GiB": "gb gib",
        "TiB": "tb tib",
        "%": "percent",
        "1": "ratio",
        "W": "w watts",
        "mW": "mw milliwatts",
        "kW": "kw",
        "C": "c celsius",
        "Hz": "hz",
        "kHz": "khz",
        "MHz": "mhz",
        "GHz": "ghz",
    }
)
"""Words that state a unit. What monitoring scripts call MB are the MiB that drivers and psutil count."""
DECIMAL_WORDS = frozenset({"kb", "mb", "gb", "tb"})
"""Words of units that are powers of 1000 by their name, and powers of 1024 in practice."""
_SPELLINGS = _by_word(
    {
        "gpu": "cuda",
        "gpu memory": "vram hbm fb",
        "memory": "mem",
        "host memory": "ram",
        "host": "virtual",
        "system": "sys",
        "index": "idx",
        "device id": "deviceid",
        "name": "model",
        "utilization": "util utilisation",
        "io wait": "iowait",
        "load average": "loadavg",
        "average": "avg mean",
        "total": "overall",
        "available": "avail",
        "temperature": "temp",
        "clock": "clk clocks freq frequency",
        "power": "pwr",
        "limit": "cap",
        "write": "written",
        "network": "net",
        "receive": "recv received rx",
        "transmit": "sent transmitted tx",
        "process": "proc pid python train",
        "percent": "% pct perc percentage",
        "ratio": "frac fraction",
        "c": "degc",
        "watts": "watt",
        "hz": "hertz",
        "bytes": "byte",
        "second": "s sec ps seconds",
        "date time": "datetime",
        "unix time": "unixtime",
        "timestamp ms": "timestampms",
        "timestamp us": "timestampus",
        "timestamp ns": "timestampns",
    }
) | {"deg": ""}
"""Words of the table and their other spellings."""
_WORD = re.compile(r"gpu|[a-z]+?(?=gpu)|[a-z]+|\d+|%", re.ASCII)
_CAPITAL = re.compile(r"(?<=[a-z]{2})(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
"""Where a capital begins a word: `powerWatts` and `GPUTemp`, but not `MiB`, `mW` or `kHz`."""
_LONGEST = 100
"""Letters of a heading at most."""


@lru_cache(4096)
def heading_words(heading: str) -> tuple[str, ...]:
    """Return the words of a heading in the spelling of the table; none for a text too long to be one."""
    parts = _WORD.findall(_CAPITAL.sub(" ", heading).lower()) if len(heading) <= _LONGEST else []
    return tuple(word for part in parts for word in _SPELLINGS.get(part, part).split())


def stated_unit_word(words: frozenset[str], base: str) -> str:
    """Return the word that states a unit of this base, empty where none does; bytes count bytes a second too."""
    wanted = base.removesuffix("/s")
    return next((word for word in UNIT_WORDS if word in words and UNITS[UNIT_WORDS[word]].base == wanted), "")
