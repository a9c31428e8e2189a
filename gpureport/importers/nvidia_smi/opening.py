"""The columns of the rows before any header: those a person names, else those their content tells."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.delimited.layout import Layout, layout
from gpureport.importers.delimited.layout import cells as split
from gpureport.importers.nvidia_smi import fields
from gpureport.importers.nvidia_smi.guess import guess, headerless
from gpureport.importers.nvidia_smi.lines import QueryGpuDialect

LINES = 2_000
"""Lines whose content is looked at."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How rows before any header are read.

    Attributes:
        layout: their columns; None when the log begins with a header.
        note: what a reader must know about it, empty when there is nothing.
        stamped: whether a header among the first lines names a time stamp.
        told_by: who told them, `--columns` or `content`; empty when the header does.
    """

    layout: Layout | None
    note: str = ""
    stamped: bool = False
    told_by: str = ""


def opening(where: str, head: str, names: Sequence[str] | None) -> Opening:
    """Return how the rows before any header are read.

    Args:
        where: the log, for an error.
        head: its first lines.
        names: query fields a person named, None when none were.

    Raises:
        SettingsError: when a name is no query field.
        SourceError: when there is no header, and the content does not tell what each column is.
    """
    lines = [line.strip() for line in head.splitlines()[:LINES] if line.strip()]
    if names is not None:
        return Opening(_named(names, lines), told_by="--columns")
    headers = [header for line in lines if (header := QueryGpuDialect().header(line)) is not None]
    if headers or not headerless(lines):
        return Opening(None, stamped=any(header.stamp is not None for header in headers))
    return _guessed(where, lines)


def _named(names: Sequence[str], lines: Sequence[str]) -> Layout:
    columns = [fields.column(name) for name in names]
    wrong = next((name for name, column in zip(names, columns, strict=True) if column is None), None)
    if wrong is not None:
        raise SettingsError("--columns", f"no query field {wrong!r}", "name them as in --query-gpu, one for each cell")
    delimiter = split(lines[0])[0] if lines else ","
    return layout([column for column in columns if column is not None], fields.PREFERRED, delimiter)


def _guessed(where: str, lines: Sequence[str]) -> Opening:
    delimiter, first = split(lines[0])
    rows = [cells for line in lines if len(cells := split(line)[1]) == len(first)]
    found = guess(rows)
    shown = ",".join(found.headings)
    if found.ambiguous or found.confidence == "low":
        what = f"it has no header, and {'; '.join(found.ambiguous) or 'its cells tell no metric for sure'}"
        raise SourceError(where, what, f"name its columns with --columns, perhaps {shown}")
    columns = [column for heading in found.headings if (column := fields.column(heading)) is not None]
    said = ", ".join(
        f"{heading} ({sure} confidence: {reason})"
        for heading, sure, reason in zip(found.headings, found.confidences, found.reasons, strict=True)
    )
    note = f"The log has no header; its columns are taken for {said}. --columns names them otherwise."
    return Opening(layout(columns, fields.PREFERRED, delimiter), note, told_by="content")
