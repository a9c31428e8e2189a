"""What was made of the rows that were looked at last, for whoever looks at the same rows next."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import ref

from gpureport.series_table import SeriesRows

T = TypeVar("T")

MOST_ROWS = 1_000_000
"""Rows of all devices above which nothing is kept: reading so many takes longer than what is made once a device."""


class LatestRows:
    """Keeps what was made of the rows of one recording: the last one, for as long as somebody else holds these rows."""

    def __init__(self) -> None:
        self._rows: ref[SeriesRows] | None = None
        self._made: dict[Hashable, Any] | None = None

    def memoize(self, rows: SeriesRows, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returned for these rows and a key before.

        It may depend on nothing else, and must not hold the rows.
        """
        made = self._made_of(rows)
        if made is None:
            return make()
        if key not in made:
            made[key] = make()
        found: T = made[key]
        return found

    def _made_of(self, rows: SeriesRows) -> dict[Hashable, Any] | None:
        """Return what was made of some rows; None where they are too many."""
        if self._rows is None or self._rows() is not rows:
            made: dict[Hashable, Any] = {}
            self._rows, self._made = ref(rows, lambda _: made.clear()), made if len(rows) <= MOST_ROWS else None
        return self._made


LATEST = LatestRows()
"""The rows of whichever recording was looked at last."""
