"""Rows of a GPU that one damaged cell made up: a few, each in place of a row of a GPU that is named otherwise."""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import GAP_INTERVALS, gap_seconds
from gpureport.importers.devices.column_values import Values
from gpureport.importers.devices.gpu_identity import MOST_IDENTITIES, Identity, number_identities

_HANDFUL, _OFTEN = 5, 20
"""Rows of a damaged identity at most, and how often as many the GPU must have that they are of (pragmatic)."""
_BEAT_SHARE = 0.6
"""Share of an interval to the rows before and after that a row in their beat keeps at least. A row of another GPU lies
nearer to one of the two, unless one is missing (pragmatic)."""
_SAME_STAMPS = 0.05
"""Share of rows with the stamp of the row before from which on stamps tell no beat, and the order of the rows does."""
_AT_EDGE = 2
"""Rows at the beginning or the end that are a change of the GPU and no damage (pragmatic)."""


class DamagedIdentities:
    """Finds rows that name a GPU as no other does and stand where a row of another GPU is missing.

    It goes section by section and remembers how often each identity was seen. A GPU that comes late, is lost early or
    is logged by another process has rows beside those of the others, and one that changed its name or index goes on
    under it.
    """

    def __init__(self, sound: Mapping[Identity, int] | None = None) -> None:
        """Start with nothing seen; `sound` counts the rows of sections that are not looked at here, by identity."""
        self._sound = sound or {}
        self._seen: Counter[Identity] = Counter()

    def rows(self, data: dict[str, Values], times: IntArray, whole: BoolArray) -> BoolArray:
        """Return which rows of a section are suspect.

        Args:
            data: columns of the rows.
            times: their stamps, in microseconds.
            whole: which rows can be believed otherwise; the others are none of these.
        """
        suspect = np.zeros(len(times), dtype=np.bool_)
        rows = np.flatnonzero(whole)
        codes, identities = number_identities(data, rows)
        if not len(rows) or len(identities) > MOST_IDENTITIES:
            return suspect
        self._seen.update(dict(zip(identities, np.bincount(codes).tolist(), strict=True)))
        for code, others in self._rare_identities(identities):
            odd = np.flatnonzero(codes == code)
            for other in others:
                suspect[rows[odd]] |= _replaces_row(odd, np.flatnonzero(codes == other), times[rows])
        return suspect

    def _rare_identities(self, identities: list[Identity]) -> Iterator[tuple[int, list[int]]]:
        """Yield each identity that few rows have and no GPU's is in agreement with, and those of which it may be."""
        for code, identity in enumerate(identities):
            count = self._rows(identity)
            if count > _HANDFUL:
                continue
            others = [other for other, each in enumerate(identities) if self._rows(each) >= _OFTEN * count]
            if not any(_identities_agree(identity, identities[other]) for other in others):
                yield code, others

    def _rows(self, identity: Identity) -> int:
        """Return how many rows of the log so far have an identity."""
        return self._seen[identity] + self._sound.get(identity, 0)


def _identities_agree(one: Identity, other: Identity) -> bool:
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
