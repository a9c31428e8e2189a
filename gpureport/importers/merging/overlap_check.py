"""Whether two logs that do not identify their devices agree where they overlap in time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpureport import columns
from gpureport.columns import IntArray
from gpureport.importers.merging.shared_devices import LogContents, Pair, Span
from gpureport.importers.ordering.row_keys import Keys, mix_bits, row_keys

if TYPE_CHECKING:
    import pyarrow as pa

_MOST, _LEAST = 2**14, 2**8
"""Rows of a log, and of a device in a window of it, that are compared; the latter where it has many windows."""
_EQUAL = 0.5
"""Share of the rows of the shorter log that the other must contain; either may lack rows (pragmatic)."""
_OTHER = 0.01
"""Share, of the rows that stand in both, of those at the same time with other values up to which one of the two is
damaged; one row a device besides, as the last line of a copy may be cut (pragmatic)."""
Window = tuple[str, Span]
"""A device and a time."""


@dataclass(slots=True)
class _Sample:
    """Rows of a window; where they are too many, the same ones of every log, by their stamps."""

    most: int
    stamps: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    keys: Keys = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    mask: int = 0

    def add(self, stamps: IntArray, keys: Keys) -> None:
        """Take rows."""
        self.stamps, self.keys = np.concatenate([self.stamps, stamps]), np.concatenate([self.keys, keys])
        self.thin(self.mask)
        while len(self.stamps) > self.most:
            self.thin(2 * self.mask + 1)

    def thin(self, mask: int) -> None:
        """Keep the rows whose hashed time stamps have no bit of the mask."""
        self.mask = mask
        if mask:
            picks = mix_bits(np.zeros(len(self.stamps), dtype=np.uint64), self.stamps.view(np.uint64))
            kept = picks & np.uint64(mask) == 0
            self.stamps, self.keys = self.stamps[kept], self.keys[kept]

    def compared(self, other: "_Sample") -> tuple[int, int, int]:
        """Return the row count of the shorter log, and the numbers of equal and of contradicting rows."""
        mask = max(self.mask, other.mask)
        self.thin(mask)
        other.thin(mask)
        equal = np.isin(self.keys, other.keys)
        contradict = ~equal & np.isin(self.stamps, other.stamps)
        return min(len(self.keys), len(other.keys)), int(equal.sum()), int(contradict.sum())


def find_equal_logs(
    logs: Sequence[LogContents], pairs: Iterable[Pair], batches: Callable[[int], Iterator["pa.Table"]]
) -> frozenset[Pair]:
    """Return the pairs of logs that agree where they overlap.

    Args:
        logs: what the logs hold.
        pairs: logs that hold a device at the same time.
        batches: reads a log by its place.
    """
    shared = {pair: _windows(logs[pair[0]], logs[pair[1]]) for pair in pairs}
    samples = {
        place: _sampled(
            batches(place), {window for pair, windows in shared.items() if place in pair for window in windows}
        )
        for place in sorted({place for pair in shared for place in pair})
    }
    return frozenset(
        (one, other) for (one, other), windows in shared.items() if _alike(samples[one], samples[other], windows)
    )


def _windows(one: LogContents, other: LogContents) -> list[Window]:
    """Return the time in which two logs hold the same id, for each."""
    return [
        (device, (max(start, other.spans[device][0]), min(end, other.spans[device][1])))
        for device, (start, end) in one.spans.items()
        if device in other.spans
    ]


def _sampled(batches: Iterator["pa.Table"], windows: set[Window]) -> dict[Window, _Sample]:
    samples = {window: _Sample(max(_MOST // len(windows), _LEAST)) for window in windows}
    for batch in batches:
        own = [
            (span, sample) for (device, span), sample in samples.items() if device == batch.column("device")[0].as_py()
        ]
        times = columns.integers(batch.column("timestamp"))
        keys = row_keys(batch) if own else None
        for (start, end), sample in own:
            rows = (times >= start) & (times <= end)
            if keys is not None and rows.any():
                sample.add(times[rows], keys[rows])
    return samples


def _alike(one: dict[Window, _Sample], other: dict[Window, _Sample], windows: list[Window]) -> bool:
    """Return whether most rows of two logs in the time they share are the same, and hardly any contradict."""
    compared = [one[window].compared(other[window]) for window in windows]
    rows, equal, contradict = (sum(counts) for counts in zip(*compared, strict=True))
    return bool(equal > 0 and equal >= _EQUAL * rows and contradict <= len(windows) + _OTHER * equal)
