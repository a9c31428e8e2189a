"""Rows of a GPU that one damaged cell made up: a few, each in place of a row of a GPU that is named otherwise."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from gpureport import columns
from gpureport.columns import BoolArray, IntArray, present
from gpureport.importers.devices.identification import IDENTITY
from gpureport.importers.devices.series_assembly import Values
from gpureport.quality import GAP_INTERVALS, gap_seconds

_HANDFUL, _OFTEN = 5, 20
"""Rows of a damaged identity at most, and how often as many the GPU must have that they are of (pragmatic)."""
_BEAT_SHARE = 0.6
"""Share of an interval to the rows before and after that a row in their beat keeps at least. A row of another GPU lies
nearer to one of the two, unless one is missing (pragmatic)."""
_SAME_STAMPS = 0.05
"""Share of rows with the stamp of the row before from which on stamps tell no beat, and the order of the rows does."""
_AT_EDGE = 2
"""Rows at the beginning or the end that are a change of the GPU and no damage (pragmatic)."""
_MOST = 1024
"""Identities of a section beyond which a column does not name GPUs."""

_Identity = tuple[str | None, ...]
"""What a row says of its GPU in each column of IDENTITY; None where nothing."""


class Suspects:
    """Finds rows that name a GPU as no other does and stand where a row of another GPU is missing.

    It goes section by section and remembers how often each identity was seen. A GPU that comes late, is lost early or
    is logged by another process has rows beside those of the others, and one that changed its name or index goes on
    under it.
    """

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._seen: Counter[_Identity] = Counter()

    def rows(self, data: dict[str, Values], times: IntArray, whole: BoolArray) -> BoolArray:
        """Return which rows of a section are suspect.

        Args:
            data: columns of the rows.
            times: their stamps, in microseconds.
            whole: which rows can be believed otherwise; the others are none of these.
        """
        suspect = np.zeros(len(times), dtype=np.bool_)
        rows = np.flatnonzero(whole)
        codes, identities = _identities(data, rows)
        if not len(rows) or len(identities) > _MOST:
            return suspect
        self._seen.update(dict(zip(identities, np.bincount(codes).tolist(), strict=True)))
        for code, others in self._rare_identities(identities):
            odd = np.flatnonzero(codes == code)
            for other in others:
                suspect[rows[odd]] |= _replaces_row(odd, np.flatnonzero(codes == other), times[rows])
        return suspect

    def _rare_identities(self, identities: list[_Identity]) -> Iterator[tuple[int, list[int]]]:
        """Yield each identity that few rows have and no GPU's is in agreement with, and those of which it may be."""
        for code, identity in enumerate(identities):
            count = self._seen[identity]
            if count > _HANDFUL:
                continue
            others = [other for other, each in enumerate(identities) if self._seen[each] >= _OFTEN * count]
            if not any(_agree(identity, identities[other]) for other in others):
                yield code, others


def _identities(data: dict[str, Values], rows: IntArray) -> tuple[IntArray, list[_Identity]]:
    """Return for each row a number of its identity, and the identities."""
    codes = np.zeros(len(rows), dtype=np.int64)
    found: list[_Identity] = [()]
    for name in IDENTITY.values():
        values = data.get(name)
        texts = [*((values and values.texts) or []), None]
        if values is None or (columns.is_constant(values.data) and values.valid.all()):
            text = None if values is None or not len(values.data) else texts[int(values.data[0])]
            found = [(*each, text) for each in found]
            continue
        own = np.where(values.valid, values.data, len(texts) - 1)[rows]
        met, codes = _numbered(codes * len(texts) + own, len(found) * len(texts))
        found = [(*found[pair // len(texts)], texts[pair % len(texts)]) for pair in met]
    return codes, found


def _numbered(pairs: IntArray, size: int) -> tuple[list[int], IntArray]:
    """Return the numbers that occur, below `size`, and for each row the place of its number among them."""
    if size > _MOST * _MOST:
        met, codes = np.unique(pairs, return_inverse=True)
        return met.tolist(), codes
    occurring = present(pairs)
    table = np.zeros(size, dtype=np.int64)
    table[occurring] = np.arange(len(occurring))
    return occurring, table[pairs]


def _agree(one: _Identity, other: _Identity) -> bool:
    """Return whether two identities say the same wherever both say something."""
    return all(mine == its for mine, its in zip(one, other, strict=True) if mine is not None and its is not None)


def _replaces_row(odd: IntArray, own: IntArray, times: IntArray) -> BoolArray:
    """Return which odd rows keep the beat of a GPU that has no row there.

    Args:
        odd: rows of one strange identity.
        own: rows of the GPU.
        times: stamps of all rows, in microseconds.
    """
    steps = np.abs(np.diff(times[own]))
    if not len(steps):
        return np.zeros(len(odd), dtype=np.bool_)
    if (steps == 0).mean() > _SAME_STAMPS:
        times = np.arange(len(times), dtype=np.int64)
        step = float(np.median(np.diff(own)))
        limit = GAP_INTERVALS * step
    else:
        step = float(np.median(steps))
        limit = gap_seconds(step / 1e6) * 1e6
    following = np.searchsorted(own, odd)
    sides = (following - 1, following > 0), (following, following < len(own))
    fits = np.ones(len(odd), dtype=np.bool_)
    for neighbour, there in sides:
        apart = np.abs(times[odd] - times[own[np.clip(neighbour, 0, len(own) - 1)]])
        fits &= np.where(there, (apart >= _BEAT_SHARE * step) & (apart <= limit), (~there).sum() < _AT_EDGE)
    return fits
