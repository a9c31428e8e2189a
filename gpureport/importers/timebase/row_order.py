"""The rows of a whole log in the order they were written, as plain numbers, and where their stamps run back."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import gap_seconds

_BACKWARD = 0.5
"""A step back by more than this share of the interval is a reversal; a smaller one is jitter (pragmatic)."""
_MOST_LINE_GAPS = 0.1
"""Line gaps at more than this share of the rows are too common to explain a reversal (pragmatic)."""


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Rows of a log.

    Attributes:
        lines: line of each row in the log, rising.
        stamps: stamp of each row, in microseconds.
        devices: number of the device of each row.
        keys: hash of the device and all values of each row, without the stamp.
    """

    lines: IntArray
    stamps: IntArray
    devices: IntArray
    keys: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.lines)

    def select(self, rows: BoolArray | IntArray) -> "RowOrder":
        """Return some of the rows."""
        return RowOrder(self.lines[rows], self.stamps[rows], self.devices[rows], self.keys[rows])

    def between(self, start: int, end: int) -> "RowOrder":
        """Return the rows from one to another."""
        rows = slice(start, end)
        return RowOrder(self.lines[rows], self.stamps[rows], self.devices[rows], self.keys[rows])

    def with_stamps(self, stamps: IntArray) -> "RowOrder":
        """Return the same rows with other stamps."""
        return RowOrder(self.lines, stamps, self.devices, self.keys)

    def reversed(self) -> "RowOrder":
        """Return the rows from the last to the first."""
        return RowOrder(-self.lines[::-1], self.stamps[::-1], self.devices[::-1], self.keys[::-1])

    def previous_rows(self) -> IntArray:
        """Return for each row the row before it of the same device, -1 where there is none."""
        order = np.argsort(self.devices, kind="stable")
        before = np.full(len(self), -1, dtype=np.int64)
        same = np.diff(self.devices[order]) == 0
        before[order[1:][same]] = order[:-1][same]
        return before

    def differences(self) -> IntArray:
        """Return how far each stamp lies after the one before it of the same device, 0 where there is none."""
        before = self.previous_rows()
        return np.where(before >= 0, self.stamps - self.stamps[before], 0)

    def pace(self) -> int:
        """Return the median positive difference between stamps of one device, 0 when there is none."""
        differences = self.differences()
        positive = differences[differences > 0]
        return int(np.median(positive)) if len(positive) else 0

    def reversals(self, pace: int) -> "IntArray | None":
        """Return the rows at which the log runs back; None when each device has a clock of its own.

        One process writes with one clock, so the rows of all devices fall at the same place in the log.
        """
        limit = -_BACKWARD * pace
        before = self.previous_rows()
        own = np.flatnonzero((before >= 0) & (self.differences() < limit))
        common = np.flatnonzero(np.diff(self.stamps) < limit) + 1
        if len(common) > len(own):
            return None
        # a fall in several small steps shows only between rows of one device
        missed = np.searchsorted(common, own, "right") == np.searchsorted(common, before[own], "right")
        return np.union1d(common, own[missed])

    def after_line_gaps(self) -> BoolArray:
        """Return which rows follow a line that is no row; none of them in a log where such lines are common."""
        gaps = np.concatenate([[False], np.diff(self.lines) > 1])
        return gaps if gaps.sum() <= max(_MOST_LINE_GAPS * len(self), 1) else np.zeros(len(self), dtype=np.bool_)

    def hold_jitter(self, segments: IntArray) -> IntArray:
        """Return the stamps without jitter: within a segment, none of a device lies below the one before it."""
        times = self.stamps.copy()
        order = np.lexsort((self.devices, segments))
        bounds = np.flatnonzero((np.diff(segments[order]) != 0) | (np.diff(self.devices[order]) != 0)) + 1
        for rows in np.split(order, bounds):
            times[rows] = np.maximum.accumulate(times[rows])
        return times


def split_at(cuts: IntArray, length: int) -> list[tuple[int, int]]:
    """Return the segments between cuts as pairs of first row and row after the last."""
    bounds = [0, *cuts.tolist(), length]
    return list(pairwise(bounds))


def stamps_before_gap(stamps: IntArray, pace: int) -> IntArray:
    """Return the stamps of a segment up to its first gap."""
    gaps = np.diff(stamps) > gap_seconds(pace / 1e6) * 1e6
    return stamps[: int(np.argmax(gaps)) + 1] if gaps.any() else stamps
