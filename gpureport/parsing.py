"""Limits on untrusted input, and parsers for quantities, durations, JSON, and names with numbers.

The limits bound the cost of a hostile or broken file, and are much higher than any recording needs;
`docs/reference/limits.md` lists them all.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_MIB, _GIB = 2**20, 2**30
MOST_SETTINGS_BYTES = _MIB
"""Maximum bytes in a hand-written file (settings, policies, maps, labels, steps), and in one label of a run."""
MOST_RECORD_BYTES = _GIB  # Bytes in one tracker file: the points of a metric, or the operations of a process.
MOST_SERIES_BYTES = 4 * _GIB  # Bytes of a stored run's series in memory: about a billion rows.
MOST_VALUE_BYTES = 16 * _MIB  # Bytes in one database value.
MOST_PIPE_BYTES = 2 * _GIB  # Bytes read from a pipe, which is copied to disk first.
PIPE_PATIENCE = 10.0  # Seconds within which a named pipe must receive data.
MOST_UNPACKED_RATIO = 2000
"""A log in gzip, zstd, bzip2 or xz may unpack to at most this many times its size above `UNPACKED_FREELY` bytes.
Recordings of idle GPUs reach ratios of 150 in gzip, 230 in zstd and bzip2, and 720 in xz (measured). Gzip cannot
exceed 1,032."""
UNPACKED_FREELY = 64 * _MIB  # Unpacked bytes up to which the ratio does not matter.
LONGEST_LINE = _MIB  # Maximum bytes per line; longer lines are shortened and counted.
MOST_GPUS = 10_000
DEEPEST_FOLDER = 40  # Levels of folders searched for logs or runs.
MOST_SECRET_PATTERNS = LONGEST_SECRET_PATTERN = 100  # Names and patterns in `[secrets]`, and characters in a pattern.
MOST_LABELS = 10_000  # Params or tags of a tracker's run.
MOST_ANSWER_BYTES = 256 * _MIB  # Bytes in one response from a tracking server.
MOST_PAGES = 10_000  # Pages of one list from a tracking server.
FIRST_MICROSECOND, LAST_MICROSECOND = 0, 253_370_764_800 * 1_000_000
"""Accepted times, from 1970 until the end of 9998, so dates are valid in every time zone."""
MOST = 2.0**62
_QUANTITY = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(%|°?C|[A-Za-z]+(?:/s)?)?")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as written in a source. The value in the base unit is value * numerator / denominator."""

    base: str
    numerator: int
    denominator: int = 1

    def to_base(self, value: float) -> float:
        return value * self.numerator / self.denominator


_SIZES: dict[str, dict[str, tuple[int, int]]] = {
    "": {"": (1, 1)},
    "1": {"1": (1, 1), "%": (1, 100)},
    # old nvidia-smi headers say MB, although the driver counts MiB
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
"""Matches an escaped backslash, a surrogate pair, or a lone surrogate."""


def parse_quantity(text: str, unit: str, base: str) -> float | None:
    """Return a quantity in the base unit `base`, or None for any other text.

    A unit in the text takes precedence over `unit`. Only temperatures may be negative, and no quantity may reach 2**62.
    """
    parts = _QUANTITY.fullmatch(text)
    written = UNITS.get(parts[2] or unit) if parts else None
    if parts is None or written is None or written.base != base:
        return None
    value = written.to_base(float(parts[1]))
    return value if abs(value) < MOST and (value >= 0 or base == "Cel") else None


def parse_duration(text: str) -> float | None:
    """Return a duration such as `90s`, `1h30m` or `2d` in seconds, or None for any other text."""
    parts = _TIME.findall(text.strip())
    if not parts or "".join(map("".join, parts)) != text.strip():
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def replace_half_characters(text: str) -> str:
    r"""Return JSON in which lone surrogate escapes, such as `\ud800`, are replaced without changing its length."""
    if r"\ud" not in text and r"\uD" not in text:
        return text
    return _ESCAPES.sub(lambda found: r"\ufffd" if found[1] else found[0], text)


def parse_json(text: str | bytes, parse_number: Callable[[str], Any] | None = None) -> Any:
    """Parse untrusted JSON, in any encoding, into values that can be written as JSON again.

    `parse_number` converts numbers from their text. Raises ValueError, or RecursionError for deeply nested JSON.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    return json.loads(replace_half_characters(text), parse_float=parse_number, parse_int=parse_number)


def split_numbers(name: str) -> list[tuple[str, int, str]]:
    """Return a key that sorts names as people expect: `gpu:2` before `gpu:10`, `step 9` before `step 10`."""
    texts, digits = re.split("[0-9]+", name), (*(each.lstrip("0") for each in re.findall("[0-9]+", name)), None)
    return [(text, -1 if each is None else len(each), each or "") for text, each in zip(texts, digits, strict=True)]
