"""The place in time of every row of a log that runs backwards, looked up by line as the log is read again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from gpureport.columns import IntArray
from gpureport.data_quality import ClockStep
from gpureport.importers.ordering.backward_clocks import RowTimes
from gpureport.importers.protocol.reject_reasons import DUPLICATE
from gpureport.importers.timebase.device_clock import Clock
from gpureport.importers.timebase.placed_rows import PlacedRows
from gpureport.importers.timebase.row_order import RowOrder
from gpureport.recording import Device


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """What the survey of a log found.

    Attributes:
        track: the rows of the log.
        verdict: time of each.
        ids: device ids, by the numbers the track has for them.
        mixed: whether rows of one device may be of several GPUs.
        notes: what a reader must know.
    """

    track: RowOrder
    verdict: RowTimes
    ids: list[str]
    mixed: bool
    notes: tuple[str, ...] = field(default=())

    def rows(self, lines: IntArray) -> IntArray:
        """Return the rows that stand on some lines."""
        return np.minimum(np.searchsorted(self.track.lines, lines), len(self.track) - 1)

    def _devices(self) -> list[int]:
        """Return the devices that still have rows; a torn name leaves a device without any."""
        return [int(device) for device in np.unique(self.track.devices[~self.verdict.copies])]

    def devices(self, devices: Iterable[Device]) -> Iterator[Device]:
        """Yield the devices that have rows."""
        known = {self.ids[number] for number in self._devices()}
        for device in devices:
            if device.id in known:
                yield replace(device, mixed=device.mixed or self.mixed)

    def clocks(self) -> dict[str, Clock]:
        """Return the clock of every device, read over the whole log."""
        clocks: dict[str, Clock] = {}
        for device in self._devices():
            clock = Clock(self.ids[device])
            clock.accept(np.sort(self.verdict.times[(self.track.devices == device) & ~self.verdict.copies]))
            clock.steps = self._steps(device)
            clocks[clock.device] = clock
        return clocks

    def _steps(self, device: int) -> list[ClockStep]:
        """Return the backward steps of a device."""
        return [
            ClockStep(
                device=self.ids[device],
                at=int(self.verdict.times[step.row]),
                step_seconds=step.step / 1e6,
                shift_seconds=step.shift / 1e6,
                cause=step.cause,
            )
            for step in self.verdict.steps
            if step.device == device
        ]

    def placed(self, lines: IntArray, devices: IntArray) -> PlacedRows:
        """Return rows in their place.

        Args:
            lines: their lines.
            devices: device of each, negative for a row to leave out.
        """
        rows = self.rows(lines)
        copies = self.verdict.copies[rows]
        codes = np.where(copies, -1, devices)
        left_out = {DUPLICATE: (devices >= 0) & copies}
        return PlacedRows(times=self.verdict.times[rows], devices=codes, ids=self.ids, left_out=left_out)
