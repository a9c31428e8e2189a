"""Where tables begin, and the time and the driver above each."""

import re
from dataclasses import dataclass
from functools import lru_cache

from gpureport.importers.logs.nvidia_smi.forms.drawn_table.table_lines import LineShape, TableLines
from gpureport.importers.logs.nvidia_smi.forms.printed_times import (
    ASCTIME,
    names_zone,
    parse_asctime,
    parse_printed_time,
)

_BANNER = b"| NVIDIA-SMI "
_OPENING = re.compile(rf"\s*(?:\| NVIDIA-SMI \d|{ASCTIME.pattern}\s*$)")
_DRIVER = re.compile(r"(?:Driver|KMD) Version: *(\d[\w.]*)")
_TEXT, _FRAME = int(LineShape.TEXT), int(LineShape.FRAME)
_BLANK_OR_FRAME = bytes([LineShape.BLANK, LineShape.FRAME])
_LOOKED_AT = 4096
"""Bytes above a banner in which these are looked for."""
_ABOVE = 4
"""Lines of text above a table in which a job script may have written its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What stands above a table.

    Attributes:
        line: its first line.
        time: its time as written, in microseconds; None where none is.
        stamp: the line its time stands in, negative where none does.
        banner: the line of its banner, negative where it has none.
        driver: version of the driver, None where none is said.
        zoned: whether the time names a zone.
    """

    line: int
    time: int | None = None
    stamp: int = -1
    banner: int = -1
    driver: str | None = None
    zoned: bool = False


NOWHERE = Opening(line=-1)
"""Stands above a table whose beginning the log does not hold."""


def opens(line: str) -> bool:
    """Return whether a line is nvidia-smi's time above a table, or the banner of one."""
    return _OPENING.match(line) is not None


def openings(lines: TableLines) -> list[Opening]:
    """Return what stands above each table, in their order."""
    banners = {line for line in lines.where(LineShape.FRAME) if _BANNER in lines.raw[line]}
    stamps = {
        line: time for line in lines.where(LineShape.TEXT) if (time := parse_asctime(lines.raw[line])) is not None
    }
    found: list[Opening] = []
    stamp = -1
    for line in sorted(banners | stamps.keys()):
        if stamp >= 0:
            banner = line if line in banners and _joined(lines.shapes[stamp + 1 : line]) else -1
            driver = _driver(lines.raw[banner]) if banner >= 0 else None
            found.append(Opening(line=stamp, time=stamps[stamp], stamp=stamp, banner=banner, driver=driver))
            stamp = -1
            if banner >= 0:
                continue
        if line in stamps:
            stamp = line
        else:
            last = found[-1] if found else NOWHERE
            found.append(_above(lines, line, max(last.line, last.banner) + 1))
    if stamp >= 0:
        found.append(Opening(line=stamp, time=stamps[stamp], stamp=stamp))
    return found


def lines_above(text: bytes) -> int:
    """Return how many of the last lines of some text belong to the table whose banner follows."""
    lines = TableLines.from_bytes(text[-_LOOKED_AT:] + b"| NVIDIA-SMI |")
    return len(lines) - 1 - _above(lines, len(lines) - 1).line


@lru_cache(64)
def _driver(banner: bytes) -> str | None:
    match = _DRIVER.search(banner.decode(errors="replace"))
    return None if match is None else match[1]


def _joined(between: bytes) -> bool:
    """Return whether nothing but the border of a table stands between a time and a banner, by the shapes of lines."""
    return not between.strip(_BLANK_OR_FRAME) and between.count(_FRAME) <= 1


def _above(lines: TableLines, banner: int, first: int = 0) -> Opening:
    """Return what stands above a banner without nvidia-smi's own time: the nearest time that a script wrote.

    Args:
        lines: lines of tables and what stands between them.
        banner: the line of the banner.
        first: the first line that is looked at.
    """
    bordered = banner > first and lines.shapes[banner - 1] == _FRAME
    top = line = banner - bordered
    texts = 0
    while line > first and texts < _ABOVE and lines.shapes[line - 1] <= _TEXT:
        line -= 1
        if lines.shapes[line] == _TEXT:
            texts += 1
            text = lines.text(line)
            if text.count(",") > 1:
                # a row of a CSV, whose time is its own
                break
            time = parse_printed_time(text)
            if time is not None:
                driver, zoned = _driver(lines.raw[banner]), names_zone(text)
                return Opening(line=line, time=time, stamp=line, banner=banner, driver=driver, zoned=zoned)
    return Opening(line=top, banner=banner, driver=_driver(lines.raw[banner]))
