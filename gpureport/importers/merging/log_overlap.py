"""Overlapping logs of one device: rows with the same time stamp and values in both are taken once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpureport import columns
from gpureport.columns import BoolArray
from gpureport.importers.merging.shared_devices import Span
from gpureport.importers.ordering.row_keys import Keys, row_keys

if TYPE_CHECKING:
    import pyarrow as pa

_NO_KEYS: Keys = np.zeros(0, dtype=np.uint64)


class RepeatedRowFilter:
    """The rows of a device in earlier logs, as far as a later log covers the same time.

    Repeated rows have the same time stamp and values. Other rows at that time are additional samples, as a second
    recorder takes them. Each row costs eight bytes.
    """

    def __init__(self, spans: Sequence[tuple[int, Span]]) -> None:
        """Start before the first log; `spans` are the logs of the device as they will be read, with their times."""
        self._log: int | None = None
        self._shared: dict[int, Span] = {}
        for place, (log, _) in enumerate(spans[:-1]):
            later = [span for _, span in spans[place + 1 :]]
            self._shared[log] = min(start for start, _ in later), max(end for _, end in later)
        self._known, self._fresh = _NO_KEYS, [_NO_KEYS]
        self._ended = self._latest = np.iinfo(np.int64).min

    def find_repeated(self, batch: "pa.Table", log: int) -> BoolArray:
        """Return which rows of the next batch earlier logs contain.

        Args:
            batch: rows of the device.
            log: their log.
        """
        if log != self._log:
            self._start_log(log)
        times = columns.integers(batch.column("timestamp"))
        start, end = self._shared.get(log, (0, -1))
        kept, asked = (times >= start) & (times <= end), times <= self._ended
        again = np.zeros(len(batch), dtype=np.bool_)
        if kept.any() or (asked.any() and len(self._known)):
            keys = row_keys(batch)
            self._fresh.append(keys[kept])
            again[asked] = self._are_known(keys[asked])
        self._latest = max(self._latest, int(times.max(initial=self._latest)))
        return again

    def _start_log(self, log: int) -> None:
        self._known = np.unique(np.concatenate([self._known, *self._fresh]))
        self._log, self._fresh = log, []
        self._ended = self._latest

    def _are_known(self, keys: Keys) -> BoolArray:
        if not len(self._known):
            return np.zeros(len(keys), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self._known, keys), len(self._known) - 1)
        held: BoolArray = self._known[places] == keys
        return held
