"""A map to start from: what the header of a table proves of its columns, for a person to complete."""

import json
import re
from collections.abc import Iterator, Sequence

from gpureport.importers.logs.mapped.table import DELIMITERS
from gpureport.importers.protocol.column_map import CLEAR, ISO
from gpureport.importers.text.csv_lines import split_cells
from gpureport.importers.values import quantities
from gpureport.importers.values.column_names import (
    GPU_COLUMNS,
    HOST_COLUMNS,
    INDEX_COLUMNS,
    ColumnName,
    is_time_heading,
    recognise_column,
)
from gpureport.metrics import BY_NAME, Scope
from gpureport.units import UNITS

_GPU = re.compile(r"(?:gpu|cuda|device|card)[ _:.\-]*(\d{1,3})", re.IGNORECASE | re.ASCII)
_MOST_COLUMNS = 200
_HEAD_LINE = "# Complete this, save it as map.toml, and give --map map.toml. What no line names is not read."


def draft_map(text: str) -> str:
    """Return a map for the beginning of a table, empty where no header proves what one of its columns holds."""
    for line in text.splitlines():
        for delimiter in DELIMITERS:
            cells = split_cells(line, delimiter)
            header = cells[:-1] if len(cells) > 1 and not cells[-1] else cells
            if _is_header(header) and any(_prove(heading)[0] for heading in header):
                return "\n".join(_lines(header)) + "\n"
    return ""


def _is_header(header: Sequence[str]) -> bool:
    """Return whether cells are headings: several texts, each once."""
    texts = {cell for cell in header if cell and quantities.parse_number(cell) is None}
    return 2 <= len(header) == len(texts) <= _MOST_COLUMNS  # noqa: PLR2004 - a table has several


def _prove(heading: str) -> tuple[ColumnName | None, int]:
    """Return what a heading says of its column, and the number of its GPU, 0 where it names none."""
    of_gpu = _GPU.search(heading)
    bare = heading if of_gpu is None else heading.replace(of_gpu[0], "gpu", 1)
    found = recognise_column(bare, GPU_COLUMNS) or recognise_column(heading, HOST_COLUMNS)
    return found if found and found.target in BY_NAME else None, int(of_gpu[1]) if of_gpu else 0


def _lines(header: Sequence[str]) -> Iterator[str]:
    time = next((heading for heading in header if is_time_heading(heading)), None)
    numbered = next((heading for heading in header if recognise_column(heading, INDEX_COLUMNS)), None)
    yield _HEAD_LINE
    if time:
        yield f'[time]\ncolumn = {_quote(time)}\nformat = "{ISO}"  # or epoch_s, or such as %d.%m.%Y %H:%M:%S'
    else:
        yield "# No heading is one of a time: name it in [time], or give --interval."
    if numbered:
        yield f"\n[device]\ncolumn = {_quote(numbered)}"
    filled = set[tuple[str, int]]()
    for heading in header:
        found, gpu = _prove(heading)
        if heading in {time, numbered} or found is None or (found.target, gpu) in filled:
            continue
        filled.add((found.target, gpu))
        metric = BY_NAME[found.target]
        yield f"\n[columns.{_quote(heading)}]\nmetric = {_quote(found.target)}"
        if found.unit:
            yield f"unit = {_quote(found.unit)}"
        elif metric.unit not in CLEAR:
            fitting = (name for name, unit in UNITS.items() if name and unit.base == metric.unit)
            yield f'unit = "?"  # one of {", ".join(fitting)}'
        if metric.scope is Scope.GPU and (not numbered or _GPU.search(heading)):
            yield f'device = "gpu:{gpu}"'


def _quote(text: str) -> str:
    """Return a text as TOML writes it, which is as JSON does."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
