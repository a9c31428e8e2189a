"""The lines of an nvidia-smi query log that are no rows: headers, driver messages, and noise."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from gpureport.importers.delimited.cells import Column
from gpureport.importers.delimited.layout import Layout, cells, layout
from gpureport.importers.delimited.parts import LineKind
from gpureport.importers.nvidia_smi import fields
from gpureport.importers.nvidia_smi.headings import about_gpus, translated

_EVENTS = (
    "No devices were found",
    "Unable to determine the device handle",
    "Unable to determine the number of GPUs",
    "NVIDIA-SMI has failed",
    "NVIDIA-SMI couldn't find",
    "Failed to initialize NVML",
    "NVML library version",
    "Problem with GPU",
    "GPU is lost",
    "Failed to create log file",
)
"""How the messages begin that the nvidia-smi program writes between rows (strings of its 535 and 550 binaries)."""
_NOISE = re.compile(r"[-=+*#_ ]{3,}|\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?")


class QueryGpuDialect:
    """Lines of `nvidia-smi --query-gpu=… --format=csv`."""

    def header(self, line: str) -> Layout | None:
        """Return the columns a header declares: all cells are field names, at least one of them a known one."""
        if not line[:1].isalpha():
            return None
        delimiter, headings = cells(line)
        own = _columns(headings)
        if own is not None and any(map(fields.known, own)):
            return layout(own, fields.PREFERRED, delimiter, line)
        if not any(map(about_gpus, headings)):
            return None
        written = _columns([translated(heading) or heading for heading in headings])
        if written is None:
            return None
        named = [replace(column, heading=heading) for column, heading in zip(written, headings, strict=True)]
        return layout(named, fields.PREFERRED, delimiter, line)

    def classify(self, line: str) -> LineKind:
        """Return whether a line that is no row is a driver message, noise, or simply rejected."""
        if line.startswith(_EVENTS):
            return LineKind.EVENT
        return LineKind.NOISE if _NOISE.fullmatch(line) else LineKind.REJECTED


def _columns(headings: Sequence[str]) -> list[Column] | None:
    """Return a column for each heading, None when one is no heading."""
    columns = list(takewhile(lambda column: column is not None, map(fields.column, headings)))
    found = [column for column in columns if column is not None]
    return found if len(found) == len(headings) else None
