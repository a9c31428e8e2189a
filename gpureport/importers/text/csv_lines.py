"""Lines of comma-separated cells that may stand in quotes."""

import csv

_LONGEST = 2**20


def split_cells(text: str, delimiter: str = ",") -> list[str]:
    """Return the cells of a line, blanks around them left out; none where its quotes are damaged."""
    if '"' not in text:
        return [cell.strip() for cell in text.split(delimiter)]
    if len(text) > _LONGEST:
        return []
    try:
        rows = list(csv.reader([text], delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error:
        return []
    return [cell.strip() for row in rows for cell in row]
