"""Forms that are still read by the first engine."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gpureport.importers.account import Account
from gpureport.importers.columns import HOST_ROW, LOST, Rows, Texts
from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.devices.column_values import Values as OldValues
from gpureport.importers.extraction import Form
from gpureport.importers.logs.nvidia_smi.forms import FORMS as OLD_FORMS
from gpureport.importers.text.text_log import Chunk


def read_with(make: Callable[[], Any], before: str = "") -> Form:
    """Return a form that reads with one of the first engine."""

    def read(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
        form = make()
        if before:
            list(form.chunks([Piece(before.encode(), first - 1, last=False, lines=1)]))
        for chunk in form.chunks(_pieces(lines, first)):
            account.averaged |= form.averaged
            yield from rows_of(chunk, form.zone, account)

    return read


def _pieces(lines: Iterable[str], first: int) -> Iterator[Piece]:
    text = "".join(lines).encode()
    yield Piece(text, first, last=True, lines=text.count(b"\n"))


def rows_of(chunk: Chunk, zone: str | None, account: Account) -> Iterator[Rows]:
    """Yield the rows of a chunk of the first engine, and count its lines."""
    for line in chunk.other_lines:
        if line.kind is LineKind.REJECTED:
            account.reject(line.reason, line.number, line.text)
        elif line.kind is LineKind.EVENT:
            account.message(line.number, line.text)
        else:
            account.headers += line.kind is LineKind.HEADER
            account.noise += line.kind is LineKind.NOISE
    account.continued += chunk.continued
    account.absent.update(chunk.absent)
    account.note(*chunk.notes)
    account.tags |= dict(chunk.tags)
    if not len(chunk.numbers):
        return
    data: dict[str, Any] = {name: _values(values) for name, values in chunk.data.items()}
    if chunk.hosts is not None:
        data[HOST_ROW] = np.where(chunk.hosts, 1.0, np.nan)
    if chunk.lost:
        said: list[str | None] = [None] * len(chunk.numbers)
        for text, numbers in chunk.lost.items():
            for place in np.flatnonzero(np.isin(chunk.numbers, numbers)).tolist():
                said[place] = text
        data[LOST] = Texts.of(said)
    yield Rows(chunk.numbers, chunk.times, data, zone)


def _values(values: OldValues) -> Any:
    if values.texts is not None:
        return Texts(np.where(values.valid, values.data, -1).astype(np.int32), values.texts)
    return np.where(values.valid, values.data.astype(np.float64), np.nan)


OLD: tuple[tuple[Callable[[str], bool], Form, str], ...] = tuple(
    (form.opens, read_with(form), form.name) for form in OLD_FORMS
)


def csv_going_on(header: str) -> Form:
    """Return a form for rows that go on below a header."""
    return read_with(OLD_FORMS[-1], header)
