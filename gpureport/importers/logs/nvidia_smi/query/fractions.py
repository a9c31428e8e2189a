"""Shares of time under a heading without a unit: which of them may be fractions instead of per cent."""

from collections.abc import Callable, Iterable, Sequence

from gpureport.importers.delimited.layout import split_header
from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect


def find_fraction_headings(head: Sequence[str], whole: Callable[[], Iterable[str]]) -> frozenset[str]:
    """Return the headings of columns that name no unit and hold decimals, none of them above 1.

    Args:
        head: the first lines.
        whole: gives all lines; they are read only where the first ones hold such a column.
    """
    suspects = _find_possible_fractions(head)
    return suspects & _find_possible_fractions(whole()) if suspects else suspects


def _find_possible_fractions(lines: Iterable[str]) -> frozenset[str]:
    dialect = QueryGpuDialect()
    delimiter, columns = ",", list[str]()
    decimal, above = set[str](), set[str]()
    for line in lines:
        declared = dialect.header(line.strip())
        if declared is not None:
            delimiter, headings = split_header(line)
            columns = [
                heading if fields.is_share_without_unit(column) else ""
                for heading, column in zip(headings, declared.columns, strict=True)
            ]
        elif any(columns):
            written = line.split(delimiter)
            for heading, cell in zip(columns, written, strict=False):
                value = _number(cell) if heading and len(written) == len(columns) else None
                decimal |= {heading} if value is not None and "." in cell.replace(",", ".") else set()
                above |= {heading} if value is not None and value > 1 else set()
            columns = [heading if heading not in above else "" for heading in columns]
    return frozenset(decimal - above)


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return None
