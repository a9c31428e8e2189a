"""Rows of a GPU that one damaged cell made up: a few, each in place of a row of a GPU that is named otherwise."""

from collections import Counter

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import GAP_INTERVALS, gap_seconds
from gpureport.importers.columns import NAMES, Rows, Texts

_MOST = 1024
"""Identities of a block beyond which no column names GPUs."""
_HANDFUL, _OFTEN = 5, 20
"""Rows of a damaged identity at most, and how often as many the GPU must have that they are of (pragmatic)."""
_BEAT_SHARE = 0.6
"""Share of an interval to the rows before and after that a row in their beat keeps at least. A row of another GPU lies
nearer to one of the two, unless one is missing (pragmatic)."""
_SAME_STAMPS = 0.05
"""Share of rows with the stamp of the row before from which on stamps tell no beat, and the order of the rows does."""
_AT_EDGE = 2
"""Rows at the beginning or the end that are a change of the GPU and no damage (pragmatic)."""
Identity = tuple[str | None, ...]
"""What a row says of its GPU in each column of NAMES."""


def find_damaged_names(rows: Rows, times: IntArray, where: BoolArray, seen: Counter[Identity]) -> BoolArray:
    """Return which rows name a GPU as no other does and stand where a row of another GPU is missing.

    A GPU that comes late, is lost early or is logged by another process has rows beside those of the others, and one
    that changed its name or index goes on under it.

    Args:
        rows: the rows.
        times: their stamps, in microseconds.
        where: which of them are looked at.
        seen: rows of each identity so far; those of these are added.
    """
    suspect = np.zeros(len(rows), dtype=np.bool_)
    places = np.flatnonzero(where)
    codes, identities = _number(rows, places)
    if not len(places) or len(identities) > _MOST:
        return suspect
    seen.update(dict(zip(identities, np.bincount(codes).tolist(), strict=True)))
    for code, identity in enumerate(identities):
        if seen[identity] > _HANDFUL:
            continue
        others = [other for other, each in enumerate(identities) if seen[each] >= _OFTEN * seen[identity]]
        if not any(_agree(identity, identities[other]) for other in others):
            odd = np.flatnonzero(codes == code)
            for other in others:
                suspect[places[odd]] |= _replaces_row(odd, np.flatnonzero(codes == other), times[places])
    return suspect


def _number(rows: Rows, places: IntArray) -> tuple[IntArray, list[Identity]]:
    """Return for some rows a number of the identity of each, and the identities."""
    columns = [rows.data[name] for name in NAMES if name in rows.data]
    texts = [column for column in columns if isinstance(column, Texts)]
    keys, size = np.zeros(len(places), dtype=np.int64), 1
    for column in texts:
        keys, size = keys * (len(column.texts) + 1) + column.codes[places] + 1, size * (len(column.texts) + 1)
        if size > _MOST * _MOST:
            keys = np.unique(keys, return_inverse=True)[1]
            size = int(keys.max(initial=0)) + 1
    met = np.flatnonzero(np.bincount(keys, minlength=1))
    table = np.zeros(size, dtype=np.int64)
    table[met] = np.arange(len(met))
    codes, first = table[keys], np.zeros(len(met), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(places))[::-1]
    rows_of = places[first].tolist()
    named = [
        tuple(column.texts[column.codes[row]] if column.codes[row] >= 0 else None for column in texts)
        for row in rows_of[: _MOST + 1]
    ]
    return codes, named


def _agree(one: Identity, other: Identity) -> bool:
    """Return whether two identities say the same wherever both say something."""
    return all(mine == its for mine, its in zip(one, other, strict=False) if mine is not None and its is not None)


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
    fits = np.ones(len(odd), dtype=np.bool_)
    for neighbour, there in ((following - 1, following > 0), (following, following < len(own))):
        apart = np.abs(times[odd] - times[own[np.clip(neighbour, 0, len(own) - 1)]])
        fits &= np.where(there, (apart >= _BEAT_SHARE * step) & (apart <= limit), (~there).sum() < _AT_EDGE)
    return fits
