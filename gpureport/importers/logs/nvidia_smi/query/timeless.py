"""Rows of a log without time stamps, where text that a job prints is easily mistaken for a row."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpureport.columns import BoolArray
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.row_sections import Section
from gpureport.importers.timebase.row_order import split_at
from gpureport.importers.values.cells import Column, Value

_FORMS = {
    "uuid": re.compile(r"(?:GPU|MIG)-[\w*/-]{4,120}", re.ASCII),
    "bus_id": re.compile(r"[0-9A-Fa-fx*]{2,8}:[0-9A-Fa-fx*]{2}:[0-9A-Fa-fx*]{2}\.[0-9A-Fa-fx*]"),
    "serial": re.compile(r"[\w*-]{4,40}", re.ASCII),
    "model": re.compile(r"[A-Za-z][\w()/+*-]*(?:[ .][\w()/+*-]+){0,9}", re.ASCII),
    "driver": re.compile(r"\d+(?:\.\d+){1,3}"),
}
"""How the driver writes what it says of a GPU in words, digits that people black out included."""
_LONGEST = 96
"""Letters of the name of a GPU at most (NVML_DEVICE_NAME_V2_BUFFER_SIZE)."""
_RUN = 3
"""Rows in a row that lack the unit of all others, up to which they are no rows of the log (pragmatic)."""


def require_driver_words(layout: Layout) -> Layout:
    """Return a layout in which words must be what the driver writes."""
    return replace(layout, columns=tuple(map(_require_form, layout.columns)))


def _require_form(column: Column) -> Column:
    form = _FORMS.get(column.target)
    if form is None:
        return column

    def read(text: str) -> Value | None:
        return text if len(text) <= _LONGEST and form.fullmatch(text) else None

    return replace(column, read=read)


def find_rows_without_unit(section: Section) -> Iterator[tuple[str, BoolArray]]:
    """Yield each column with the rows that a job printed: the few numbers that lack its unit.

    Numbers that a job prints have none. A log may go on with `nounits`, but not for some rows only.
    """
    for position, column in section.columns.items():
        bare = column.without_unit()
        if bare is None or 2 * bare.sum() > column.valid().sum():
            continue
        for start, end in split_at(np.flatnonzero(np.diff(bare)) + 1, len(bare)):
            if end - start > _RUN:
                bare[start:end] = False
        if bare.any():
            yield section.layout.columns[position].source, bare
