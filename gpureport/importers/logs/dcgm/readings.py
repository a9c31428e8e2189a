"""One reading of one field to what the series holds of it."""

from gpureport.importers.logs.dcgm import fields
from gpureport.importers.text.chunk_builder import ChunkBuilder
from gpureport.importers.values.quantities import absent, as_text, clock_events, lack, number

Values = dict[str, float | bool | str]


def take(name: str, cell: str, values: Values, gathering: ChunkBuilder, unit: str | None = None) -> None:
    """Take a cell of a field into the values of its row.

    Args:
        name: any name of the field.
        cell: what its reading says.
        values: values of the row, which are added to.
        gathering: is told of a cell without a value.
        unit: unit instead of the one the name stands for.
    """
    known = fields.field(name)
    if (none := absent(cell)) is not None:
        gathering.lacks(name, none)
    elif known is None or (name == fields.EITHER and unit is None):
        values.update([as_text(name, cell)])
    elif known.target == fields.MASK:
        _mask(name, cell, values, gathering)
    else:
        found = number(cell)
        value = None if found is None else fields.value(found, known, known.unit if unit is None else unit)
        if value is not None:
            values[known.target] = value
        else:
            gathering.lacks(name, "blank" if found is not None and fields.blank(found) else lack(cell))


def _mask(name: str, cell: str, values: Values, gathering: ChunkBuilder) -> None:
    found = number(cell)
    events = clock_events(int(found)) if found is not None and found.is_integer() and not fields.blank(found) else {}
    values.update(events)
    if not events:
        gathering.lacks(name, lack(cell))
