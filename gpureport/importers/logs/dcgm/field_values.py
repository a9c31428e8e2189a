"""One reading of one field to what the series holds of it."""

from gpureport.importers.logs.dcgm import fields
from gpureport.importers.text.chunk_builder import ChunkBuilder
from gpureport.importers.values.quantities import (
    absence_word,
    describe_absence,
    extra_column,
    parse_number,
    split_clock_events,
)

Values = dict[str, float | bool | str]


def read_field(name: str, cell: str, values: Values, builder: ChunkBuilder, unit: str | None = None) -> None:
    """Take a cell of a field into the values of its row.

    Args:
        name: any name of the field.
        cell: what its reading says.
        values: values of the row, which are added to.
        builder: counts a cell without a value.
        unit: unit instead of the one the name stands for.
    """
    known = fields.find_field(name)
    if (none := absence_word(cell)) is not None:
        builder.count_absent(name, none)
    elif known is None or (name == fields.EITHER and unit is None):
        values.update([extra_column(name, cell)])
    elif known.target == fields.MASK:
        _mask(name, cell, values, builder)
    else:
        found = parse_number(cell)
        value = None if found is None else fields.convert_value(found, known, known.unit if unit is None else unit)
        if value is not None:
            values[known.target] = value
        else:
            builder.count_absent(
                name, "blank" if found is not None and fields.is_blank(found) else describe_absence(cell)
            )


def _mask(name: str, cell: str, values: Values, builder: ChunkBuilder) -> None:
    found = parse_number(cell)
    events = (
        split_clock_events(int(found))
        if found is not None and found.is_integer() and not fields.is_blank(found)
        else {}
    )
    values.update(events)
    if not events:
        builder.count_absent(name, describe_absence(cell))
