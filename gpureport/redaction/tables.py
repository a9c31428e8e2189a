"""Columns of text without their secrets. Whoever imports this loads Arrow."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa

from gpureport.redaction.texts import redact_text, redact_value

EXTRA = "extra_"
"""How the names of columns begin that hold what a log says beside the metrics, as text."""


def redact_extra_columns(table: "pa.Table") -> "pa.Table":
    """Return a table without secrets in its extra columns: those that their name or their form tells."""
    for place, name in enumerate(table.column_names):
        if name.startswith(EXTRA):
            table = _replace_texts(table, place, partial(redact_value, name.removeprefix(EXTRA)))
    return table


def redact_column(table: "pa.Table", name: str) -> "pa.Table":
    """Return a table without secrets in the texts of one column; texts that differ stay so, with a number behind.

    The number depends on the other texts of the table, so that what is shown alike in two tables need not be alike.
    """
    return _replace_texts(table, table.schema.get_field_index(name), redact_text, distinct=True)


def _replace_texts(
    table: "pa.Table", place: int, redact: Callable[[str], str], *, distinct: bool = False
) -> "pa.Table":
    """Return a table with the texts of a column replaced; the table itself where none changes."""
    column, kind = table.column(place), table.schema.field(place).type
    if not (pa.types.is_string(kind) or pa.types.is_dictionary(kind)):
        return table
    texts: list[Any] = column.unique().to_pylist()
    shown = {text: redacted for text in texts if text is not None and (redacted := redact(text)) != text}
    if not shown:
        return table
    if distinct:
        shown = _number_equal(shown, {text for text in texts if text is not None and text not in shown})
    replaced = pa.array([shown.get(text, text) for text in column.to_pylist()], pa.string())
    is_dictionary = pa.types.is_dictionary(kind)
    return table.set_column(
        place, table.schema.field(place), replaced.dictionary_encode() if is_dictionary else replaced
    )


def _number_equal(shown: dict[Any, str], taken: set[str]) -> dict[Any, str]:
    """Return what is shown of each text, with a number behind what stands for another as well.

    Args:
        shown: what is shown, by text.
        taken: the texts that stay.
    """
    numbered = {}
    for text in sorted(shown):
        names = (f"{shown[text]} ({number})" if number > 1 else shown[text] for number in count(1))
        numbered[text] = next(name for name in names if name not in taken)
        taken.add(numbered[text])
    return numbered
