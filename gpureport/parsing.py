"""What is read of others: the limits of it, and texts as quantities, lengths of time, JSON and names with numbers.

A limit bounds what a hostile or broken file can cost, and lies far above what a recording needs;
`docs/reference/limits.md` says them to people.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_MIB, _GIB = 2**20, 2**30
MOST_SETTINGS_BYTES = _MIB
"""Bytes of a file that a person writes by hand: settings, policies, maps, labels, steps; and of one label of a run."""
MOST_RECORD_BYTES = _GIB  # bytes of one file of a tracker: the points of a metric, or the operations of a process
MOST_SERIES_BYTES = 4 * _GIB  # bytes of a stored run's series, held in memory: about a thousand million rows
MOST_VALUE_BYTES = 16 * _MIB  # bytes of one value of a database
MOST_PIPE_BYTES = 2 * _GIB  # bytes that are taken from a pipe, which is copied to disk first
PIPE_PATIENCE = 10.0  # seconds until somebody must have written to a named pipe
MOST_UNPACKED_RATIO = 2000
"""A log in gzip, zstd, bzip2 or xz that holds more than `UNPACKED_FREELY` bytes is at most this many times its size:
recordings of GPUs that never work reach 150 times in gzip, 230 in zstd and bzip2, 720 in xz (measured). Gzip cannot
exceed 1,032."""
UNPACKED_FREELY = 64 * _MIB  # decompressed bytes up to which the ratio does not count
LONGEST_LINE = _MIB  # bytes of a line; a longer one is shortened, and counted
MOST_GPUS = 10_000  # GPUs of a run
DEEPEST_FOLDER = 40  # folders below one that is searched for logs or runs
MOST_SECRET_PATTERNS = LONGEST_SECRET_PATTERN = 100  # names, and patterns, of `[secrets]`, and letters of each
MOST_LABELS = 10_000  # params, or tags, of a run of a tracker
MOST_ANSWER_BYTES = 256 * _MIB  # bytes of one answer of a tracking server
MOST_PAGES = 10_000  # pages of one list of a tracking server
FIRST_MICROSECOND, LAST_MICROSECOND = 0, 253_370_764_800 * 1_000_000
"""Times that are read: from 1970 on, before the year 9999, so that every zone and every end of a sample has a date."""
MOST = 2.0**62
_QUANTITY = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(%|°?C|[A-Za-z]+(?:/s)?)?")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as written in a source: value in base = value * numerator / denominator."""

    base: str
    numerator: int
    denominator: int = 1

    def to_base(self, value: float) -> float:
        return value * self.numerator / self.denominator


_SIZES: dict[str, dict[str, tuple[int, int]]] = {
    "": {"": (1, 1)},
    "1": {"1": (1, 1), "%": (1, 100)},
    # old nvidia-smi headers say MB where the driver counts binary megabytes
    "By": {"B": (1, 1), "KiB": (2**10, 1), "MiB": (2**20, 1), "GiB": (2**30, 1), "TiB": (2**40, 1), "MB": (2**20, 1)},
    "By/s": {"KB/s": (1000, 1), "MB/s": (10**6, 1), "MiB/s": (2**20, 1), "B/s": (1, 1)},
    "W": {"mW": (1, 1000), "W": (1, 1), "kW": (1000, 1)},
    "Hz": {"Hz": (1, 1), "kHz": (1000, 1), "MHz": (10**6, 1), "GHz": (10**9, 1)},
    "Cel": {"C": (1, 1), "°C": (1, 1)},
    "J": {"mJ": (1, 1000), "J": (1, 1)},
    "s": {"ns": (1, 10**9), "us": (1, 10**6), "ms": (1, 1000), "s": (1, 1), "seconds": (1, 1)},
}
UNITS: dict[str, Unit] = {name: Unit(base, *size) for base, sizes in _SIZES.items() for name, size in sizes.items()}
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(w|d|h|min|m|s)")
_ESCAPES = re.compile(
    r"\\\\"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""A backslash, two halves of a character, or half a one."""


def parse_quantity(text: str, unit: str, base: str) -> float | None:
    """Return the quantity in a text in a base unit, None when it is not one, or of another dimension.

    A unit of its own wins over `unit`. Only temperatures fall below 0, and nothing measured here is larger than 2**62.
    """
    parts = _QUANTITY.fullmatch(text)
    written = UNITS.get(parts[2] or unit) if parts else None
    if parts is None or written is None or written.base != base:
        return None
    value = written.to_base(float(parts[1]))
    return value if abs(value) < MOST and (value >= 0 or base == "Cel") else None


def parse_duration(text: str) -> float | None:
    """Return a length of time such as `90s`, `1h30m` or `2d` in seconds, None when a text is none."""
    parts = _TIME.findall(text.strip())
    if not parts or "".join(map("".join, parts)) != text.strip():
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def replace_half_characters(text: str) -> str:
    r"""Return JSON in which no escape names half a character, such as `\ud800` alone; its length stays."""
    if r"\ud" not in text and r"\uD" not in text:
        return text
    return _ESCAPES.sub(lambda found: r"\ufffd" if found[1] else found[0], text)


def parse_json(text: str | bytes, parse_number: Callable[[str], Any] | None = None) -> Any:
    """Return what JSON of others holds, in any encoding, so that it can be written again; raise ValueError if none.

    `parse_number` makes a value of a number as it is written. What is nested too deeply is a RecursionError.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    return json.loads(replace_half_characters(text), parse_float=parse_number, parse_int=parse_number)


def split_numbers(name: str) -> list[tuple[str, int, str]]:
    """Return a name as what people expect it to sort by: `gpu:2` before `gpu:10`, `step 9` before `step 10`."""
    texts, digits = re.split("[0-9]+", name), (*(each.lstrip("0") for each in re.findall("[0-9]+", name)), None)
    return [(text, -1 if each is None else len(each), each or "") for text, each in zip(texts, digits, strict=True)]
