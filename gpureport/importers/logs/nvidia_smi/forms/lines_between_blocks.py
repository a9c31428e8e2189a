"""Classifies lines between blocks: messages of the driver, prose of a job, and damaged rows."""

import re
from functools import lru_cache

from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from gpureport.importers.protocol.reject_reasons import NOT_OF_FORM

_FIGURES = re.compile(r"\d ?MiB\b|\d%? +\|")
"""What only rows hold: memory, and cells between bars."""
_NUMBERS = re.compile(r"(?:(?:-|[-+]?\d[\d.:/-]*|%|W|MHz|C)(?:[\s,;|]+|$)){2,}")
"""A line of nothing but numbers."""
_LONGEST = 1_000
"""Characters of a line that are looked at."""


def classify_stray_line(number: int, line: str) -> NonDataLine:
    """Return a line that is of no block; one that holds figures is rejected, prose is noise."""
    text = line.strip()[:_LONGEST]
    kind = _kind(text)
    return NonDataLine(number, kind, NOT_OF_FORM if kind is LineKind.REJECTED else "", text)


@lru_cache(8192)
def _kind(text: str) -> LineKind:
    """Return what a line of no block is; what is strewn over a log mostly says the same."""
    if QueryGpuDialect().classify(text) is LineKind.EVENT:
        return LineKind.EVENT
    return LineKind.REJECTED if _FIGURES.search(text) or _NUMBERS.fullmatch(text) else LineKind.NOISE
