"""Rows of a GPU that one damaged cell made up: a few, each in place of a row of a GPU that is named otherwise."""

import re
from collections import Counter

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.importers.columns import NAMES, Rows, Texts

_MOST = 1024
"""Identities of a block beyond which no column names GPUs."""
_HANDFUL, _OFTEN = 5, 20
"""Rows of a damaged identity at most, and how often as many the GPU must have that they are of (pragmatic)."""
_BEAT_SHARE = 0.6
"""Share of an interval to the rows before and after that a row in their beat keeps at least. A row of another GPU lies
nearer to one of the two, unless one is missing (pragmatic)."""
_AT_EDGE = 2
"""Rows at the beginning or the end that are a change of the GPU and no damage (pragmatic)."""
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
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
    suspect, places = np.zeros(len(rows), dtype=np.bool_), np.flatnonzero(where)
    texts = [column for name in NAMES if isinstance(column := rows.data.get(name), Texts)]
    keys = np.zeros(len(places), dtype=np.int64)
    for column in texts:
        keys = keys * (len(column.texts) + 1) + column.codes[places] + 1
        if int(keys.max(initial=0)) > _MOST * _MOST:
            keys = np.unique(keys, return_inverse=True)[1]
    counts = np.bincount(keys)
    met = np.flatnonzero(counts)
    if len(met) > _MOST:
        return suspect
    first = np.zeros(len(counts), dtype=np.int64)
    first[keys[::-1]] = places[::-1]
    identities = {
        key: tuple(column.texts[code] if (code := column.codes[first[key]]) >= 0 else None for column in texts)
        for key in met.tolist()
    }
    seen.update({identity: int(counts[key]) for key, identity in identities.items()})
    for key, identity in identities.items():
        if seen[identity] > _HANDFUL:
            continue
        others = {other: each for other, each in identities.items() if seen[each] >= _OFTEN * seen[identity]}
        odd = np.flatnonzero(keys == key)
        if any(text and text[:2] == "GP" and not _UUID.fullmatch(text) for text in identity):
            # where the log has whole ones, it is torn
            suspect[places[odd]] = any(text and _UUID.fullmatch(text) for each in others.values() for text in each)
        elif not any(_agree(identity, each) for each in others.values()):
            for other in others:
                suspect[places[odd]] |= _replaces_row(odd, np.flatnonzero(keys == other), times[places])
    return suspect


def _agree(one: Identity, other: Identity) -> bool:
    """Return whether two identities say the same wherever both say something."""
    return all(mine == its for mine, its in zip(one, other, strict=False) if mine is not None and its is not None)


def _replaces_row(odd: IntArray, own: IntArray, times: IntArray) -> BoolArray:
    """Return which odd rows keep the beat of a GPU, of which some rows are its own, that has no row there."""
    steps = np.abs(np.diff(times[own]))
    step = float(np.median(steps)) if len(steps) else 0.0
    following = np.searchsorted(own, odd)
    fits = np.full(len(odd), step > 0)
    for neighbour, there in ((following - 1, following > 0), (following, following < len(own))):
        apart = np.abs(times[odd] - times[own[np.clip(neighbour, 0, len(own) - 1)]])
        beat = (apart >= _BEAT_SHARE * step) & (apart <= gap_seconds(step / 1e6) * 1e6)
        fits &= np.where(there, beat, (~there).sum() < _AT_EDGE)
    return fits
