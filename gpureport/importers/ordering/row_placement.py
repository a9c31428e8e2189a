"""Rows to batches of one device each, every row in its place in time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import BoolArray, IntArray, present
from gpureport.importers.devices.column_values import Values
from gpureport.importers.ordering.timestamp_outliers import LONGEST_STEP, find_outliers
from gpureport.importers.timebase import ambiguous_hour, zones
from gpureport.importers.timebase.ambiguous_hour import RepeatedHour
from gpureport.importers.timebase.device_clock import Clock
from gpureport.importers.timebase.placed_rows import PlacedRows

if TYPE_CHECKING:
    from gpureport.importers.ordering.placement_plan import PlacementPlan


_REMEMBERED = 64
"""Rows remembered from section to section: the last two of each of up to 32 GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedRows:
    """Rows of one layout, and the device each belongs to.

    Attributes:
        lines: line of each row in the log.
        stamps: stamps as written, in microseconds.
        devices: index into `ids` for each row; negative for a row to leave out.
        ids: device ids.
        data: columns of the rows.
    """

    lines: IntArray
    stamps: IntArray
    devices: IntArray
    ids: list[str]
    data: dict[str, Values]


class RowPlacement:
    """Turns rows of several devices into batches of one device each, every row in its place in time.

    As long as stamps rise, a row's stamp is its place. When one falls for the first time, the whole log is
    surveyed, and the survey knows the place of every row.

    Attributes:
        zone: zone of the stamps, None when unknown.
        plan: what the survey found, None while stamps rise.
        clocks: what was seen of the clock of each device.
    """

    def __init__(self, zone: ZoneInfo | None, survey: Callable[[], "PlacementPlan"]) -> None:
        """Start without devices.

        Args:
            zone: zone of the stamps, None when unknown.
            survey: reads the whole log once more.
        """
        self.zone = zone
        self._survey = survey
        self._newest: int | None = None
        self._last: dict[str, int] = {}
        self.plan: PlacementPlan | None = None
        self.clocks: dict[str, Clock] = {}
        self._doubled: dict[str, RepeatedHour] = {}
        self._recent_stamps: IntArray = np.zeros(0, dtype=np.int64)
        self._recent_devices: IntArray = np.zeros(0, dtype=np.int64)

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know of the order and the times of the rows."""
        if self.plan is not None:
            return self.plan.notes
        if not self._doubled:
            return ()
        return ambiguous_hour.fold_notes(sum(each.rows for each in self._doubled.values()), self.zone)

    def find_outliers(self, stamps: IntArray, devices: IntArray) -> BoolArray:
        """Return which rows of the next section have a damaged date; no row is held back.

        Args:
            stamps: their stamps, in microseconds.
            devices: device of each, negative for rows to leave out.
        """
        known = len(self._recent_stamps)
        around = np.concatenate([self._recent_stamps, stamps])
        outliers = np.zeros(len(stamps), dtype=np.bool_)
        if _has_leap(around[: known + _REMEMBERED]) or _has_leap(stamps):
            outliers = find_outliers(around, np.concatenate([self._recent_devices, devices]))[known:]
        # outliers are remembered as well: a leap that lasts is no damage
        stamps, devices = stamps[-_REMEMBERED:], devices[-_REMEMBERED:]
        named = devices >= 0
        self._recent_stamps = np.concatenate([self._recent_stamps, stamps[named]])[-_REMEMBERED:]
        self._recent_devices = np.concatenate([self._recent_devices, devices[named]])[-_REMEMBERED:]
        return outliers

    def place(self, rows: AssignedRows) -> PlacedRows:
        """Return the rows with their place in time."""
        if self.plan is None and self._falls(rows):
            self.plan = self._survey()
            self.clocks = self.plan.clocks()
        if self.plan is None:
            return PlacedRows(times=self._as_written(rows), devices=rows.devices, ids=rows.ids)
        return self.plan.placed(rows.lines, rows.devices)

    def _falls(self, rows: AssignedRows) -> bool:
        """Return whether the stamp of any device is below the one before it."""
        used = rows.devices >= 0
        stamps = rows.stamps if used.all() else rows.stamps[used]
        if not len(stamps):
            return False
        rises = (self._newest is None or stamps[0] >= self._newest) and bool((stamps[1:] >= stamps[:-1]).all())
        self._newest = int(stamps.max()) if self._newest is None else max(int(stamps.max()), self._newest)
        if rises:
            return False
        for code in present(rows.devices):
            own = rows.stamps[rows.devices == code]
            if own[0] < self._last.get(rows.ids[code], own[0]) or (own[1:] < own[:-1]).any():
                return True
        return False

    def _as_written(self, rows: AssignedRows) -> IntArray:
        """Return the times of rows whose stamps rise; in UTC where the zone is known."""
        times = rows.stamps.copy()
        if self.zone is not None:
            zones.refuse_skipped_hours(times, self.zone)
            times = zones.to_utc(times, self.zone, np.zeros(len(times), dtype=np.bool_))
        for code in present(rows.devices):
            own = np.flatnonzero(rows.devices == code)
            device = rows.ids[code]
            if self.zone is not None:
                self._doubled.setdefault(device, RepeatedHour(self.zone)).take(rows.stamps[own])
            times[own] = self.clocks.setdefault(device, Clock(device)).accept(times[own])
            self._last[device] = int(rows.stamps[own[-1]])
        return times

    @staticmethod
    def batches(placed: PlacedRows, data: dict[str, Values]) -> Iterator["pa.Table"]:
        """Yield one table a device.

        Args:
            placed: rows with their place in time.
            data: columns of the rows.
        """
        codes = present(placed.devices)
        # a stable sort of small integers counts them instead of comparing
        order = np.argsort(placed.devices.astype(np.int16), kind="stable")
        bounds = np.searchsorted(placed.devices[order], [*codes, len(placed.ids)])
        alone = len(codes) == 1 and bounds[0] == 0
        times = placed.times if alone else placed.times[order]
        sorted_data = data if alone else {name: value.select(order) for name, value in data.items()}
        whole: pa.Table | None = None
        for code, start, end in zip(codes, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if (end - start) * len(codes) * _UNEVEN < len(order):
                # it would keep the memory of all rows while it waits to be written
                rows = _table(times[start:end], sorted_data, slice(start, end))
            else:
                whole = _table(times, sorted_data, slice(None)) if whole is None else whole
                rows = whole.slice(start, end - start)
            device = columns.category(placed.ids[code], end - start)
            yield rows.add_column(0, "device", device)


_UNEVEN = 2
"""Times a device has less than an even share of the rows, at least, for its own to be converted alone."""


def _has_leap(stamps: IntArray) -> bool:
    """Return whether any two neighbours lie far apart."""
    if not len(stamps) or stamps.max() - stamps.min() <= LONGEST_STEP:
        return False
    return bool(np.abs(np.diff(stamps)).max() > LONGEST_STEP)


def _table(times: IntArray, data: dict[str, Values], rows: slice) -> "pa.Table":
    """Return rows of one device or more, at these times."""
    arrays = {
        "timestamp": columns.to_arrow(times, pa.timestamp("us")),
        "imputed": columns.to_arrow(columns.repeat_value(value=np.False_, length=len(times)), pa.bool_()),
    }
    arrays |= {name: value.arrow(name, rows) for name, value in data.items()}
    return pa.Table.from_arrays(list(arrays.values()), names=list(arrays))
