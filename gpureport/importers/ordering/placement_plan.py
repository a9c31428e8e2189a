"""The place in time of every row of a log that runs backwards, looked up by line as the log is read again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from gpureport.columns import IntArray
from gpureport.data_quality import ClockStep
from gpureport.importers.ordering.backward_clocks import COPY, TORN_ROW, RowTimes
from gpureport.importers.protocol.reject_reasons import DUPLICATE, TORN
from gpureport.importers.recorders.same_gpu import Agreement
from gpureport.importers.timebase.device_clock import Clock
from gpureport.importers.timebase.placed_rows import PlacedRows
from gpureport.importers.timebase.row_order import RowOrder
from gpureport.recording import Device


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """What the survey of a log found.

    Attributes:
        track: the rows of the log.
        verdict: time and writer of each.
        ids: device ids, by the numbers the track has for them.
        agreement: whether all writers watched the same GPUs.
        notes: what a reader must know.
    """

    track: RowOrder
    verdict: RowTimes
    ids: list[str]
    agreement: Agreement
    notes: tuple[str, ...] = field(default=())

    @property
    def separates_writers(self) -> bool:
        """Whether the devices of each writer are kept apart."""
        return self.agreement is Agreement.DIFFERENT

    def rows(self, lines: IntArray) -> IntArray:
        """Return the rows that stand on some lines."""
        return np.minimum(np.searchsorted(self.track.lines, lines), len(self.track) - 1)

    def _writers(self, device: int) -> list[int]:
        """Return who wrote rows of a device, the one who wrote the first row first."""
        found = self.verdict.writers[(self.track.devices == device) & (self.verdict.writers > 0)]
        numbers, first = np.unique(found, return_index=True)
        return [int(number) for number in numbers[np.argsort(first)]]

    def named(self, device: int, writer: int) -> str:
        """Return the id of a device as one writer saw it."""
        return f"writer_{writer}/{self.ids[device]}" if self.separates_writers else self.ids[device]

    def renamed(self) -> dict[str, str]:
        """Return the new ids of devices whose first rows were handed on before a second writer appeared."""
        if not self.separates_writers:
            return {}
        return {self.ids[device]: self.named(device, self._writers(device)[0]) for device in self._devices()}

    def _devices(self) -> list[int]:
        """Return the devices that still have rows; a torn name leaves a device without any."""
        return [int(device) for device in np.unique(self.track.devices[self.verdict.writers > 0])]

    def devices(self, devices: Iterable[Device]) -> Iterator[Device]:
        """Yield the devices that have rows, once for each writer where those are kept apart."""
        numbers = {self.ids[number]: number for number in self._devices()}
        for device in devices:
            if device.id in numbers and not self.separates_writers:
                unknown = self.agreement is Agreement.UNKNOWN and len(self._writers(numbers[device.id])) > 1
                yield replace(device, mixed=device.mixed or unknown)
            elif device.id in numbers:
                number = numbers[device.id]
                for writer in sorted(self._writers(number)):
                    yield replace(device, id=self.named(number, writer), node=f"writer_{writer}")

    def clocks(self) -> dict[str, Clock]:
        """Return the clock of every device, read over the whole log."""
        clocks: dict[str, Clock] = {}
        for device in self._devices():
            own = self.track.devices == device
            for writer in sorted(self._writers(device)) if self.separates_writers else [0]:
                rows = own & (self.verdict.writers == writer if self.separates_writers else self.verdict.writers > 0)
                clock = Clock(self.named(device, writer))
                clock.accept(np.sort(self.verdict.times[rows]))
                clock.steps = self._steps(device, writer, clock.device)
                clocks[clock.device] = clock
        return clocks

    def _steps(self, device: int, writer: int, name: str) -> list[ClockStep]:
        """Return the backward steps of a device, of one writer where those are kept apart."""
        return [
            ClockStep(
                device=name,
                at=int(self.verdict.times[step.row]),
                step_seconds=step.step / 1e6,
                shift_seconds=step.shift / 1e6,
                cause=step.cause,
            )
            for step in self.verdict.steps
            if step.device == device and (not self.separates_writers or self.verdict.writers[step.row] == writer)
        ]

    def placed(self, lines: IntArray, devices: IntArray) -> PlacedRows:
        """Return rows in their place.

        Args:
            lines: their lines.
            devices: device of each, negative for a row to leave out.
        """
        rows = self.rows(lines)
        writers = self.verdict.writers[rows]
        left_out = {
            reason: (devices >= 0) & (writers == code) for reason, code in ((DUPLICATE, COPY), (TORN, TORN_ROW))
        }
        most = int(self.verdict.writers.max(initial=0)) if self.separates_writers else 0
        codes = devices * (most + 1) + (writers if self.separates_writers else 0)
        codes[(devices < 0) | (writers <= 0)] = -1
        ids = [self.named(device, writer) for device in range(len(self.ids)) for writer in range(most + 1)]
        return PlacedRows(times=self.verdict.times[rows], devices=codes, ids=ids, left_out=left_out)
