"""The columns of CSV files that scripts write of DCGM's fields: one reading a line, or one GPU a line."""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

from gpureport.importers.logs.dcgm import fields
from gpureport.importers.values.column_names import INDEX_COLUMNS, is_time_heading, recognise_column
from gpureport.importers.values.heading_words import heading_words
from gpureport.importers.values.timestamps import Moment, parse_epoch_time, parse_iso_time

_ENTITIES = {"entity", "entityid"}
"""What DCGM calls a GPU."""
_FIELDS = {"field", "fieldname", "fieldid", "metric", "metricname"}
_VALUES = {"value", "values"}
_TEXTS = {"uuid": "uuid", "gpuuuid": "uuid", "modelname": "model", "gpuname": "model"}
_NODES = {"hostname", "host", "node"}
_COUNTS = ("us", "ms", "ns")
_SEPARATORS = re.compile(r"[ _\-.]")
_INDEX = re.compile(r"(?:gpu|nvidia)?[ :_]*([0-9]{1,4})", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldTable:
    """Columns of a CSV by what they hold.

    Attributes:
        header: its headings.
        time: position of the time, None where there is none.
        counted: unit the time is counted in since 1970, where its heading says so.
        gpu: position of the GPU's number, None where a uuid tells.
        field: position of the name of the field, in a table with one reading a line.
        value: position of its value, in such a table.
        fields: positions of fields with their names, in a table with one GPU a line.
        texts: positions of what describes a GPU, with the names of the attributes.
        node: position of the machine, None where there is none.
    """

    header: tuple[str, ...]
    time: int | None
    counted: str | None
    gpu: int | None
    field: int | None
    value: int | None
    fields: tuple[tuple[int, str], ...]
    texts: tuple[tuple[int, str], ...]
    node: int | None

    def moment(self, row: Sequence[str]) -> Moment | None:
        """Return the time of a row."""
        cell = "" if self.time is None else row[self.time]
        return parse_epoch_time(cell, self.counted) or parse_iso_time(cell)

    def describes(self, row: Sequence[str]) -> dict[str, str]:
        """Return what a row says of its GPU."""
        said = {name: row[place] for place, name in self.texts if row[place]}
        index = None if self.gpu is None else _INDEX.fullmatch(row[self.gpu])
        return said if index is None else {"index": str(int(index[1])), **said}


def recognise_table(header: Sequence[str]) -> FieldTable | None:
    """Return the columns of a header, None when it is none of a table of DCGM's fields.

    A table with one reading a line is only known by its rows; its header has a GPU, a field and a value.
    """
    # a line of no table may repeat a heading a million times
    bare = {heading: _SEPARATORS.sub("", heading.lower()) for heading in dict.fromkeys(header)}
    plain = [bare[heading] for heading in header]

    def place(names: Container[str]) -> int | None:
        return next((place for place, name in enumerate(plain) if name in names), None)

    time = place({bare[heading] for heading in bare if is_time_heading(heading)})
    gpu = place(_ENTITIES | {bare[heading] for heading in bare if recognise_column(heading, INDEX_COLUMNS)})
    texts = tuple((place, _TEXTS[name]) for place, name in enumerate(plain) if name in _TEXTS)
    named, value = place(_FIELDS), place(_VALUES)
    known = any(heading.isidentifier() and fields.find_field(heading) for heading in bare)
    long = named is not None and value is not None
    if (gpu is None and not texts) or not (long or known):
        return None
    unused = set(range(len(header))) - {time, gpu, place(_NODES), *(place for place, _ in texts)}
    return FieldTable(
        header=tuple(header),
        time=time,
        counted=None if time is None else next((each for each in _COUNTS if each in heading_words(header[time])), None),
        gpu=gpu,
        field=named if long else None,
        value=value if long else None,
        fields=() if long else tuple((place, header[place]) for place in sorted(unused)),
        texts=texts,
        node=place(_NODES),
    )
