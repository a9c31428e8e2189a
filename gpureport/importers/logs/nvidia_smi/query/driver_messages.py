"""What the driver says happened: its messages between rows, and GPUs whose cells say that they are lost."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from gpureport.columns import IntArray
from gpureport.data_quality import LogEvent
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine, Section
from gpureport.redaction import redact_start

_KINDS = (
    (re.compile(r"Unable to determine the device handle.*(?:is lost|Unknown Error)|.*GPU is lost"), "gpu_lost"),
    (re.compile(r"NVIDIA-SMI has failed|NVIDIA-SMI couldn't find|Failed to initialize NVML"), "driver_restart"),
    (re.compile(r"No devices were found|Unable to determine the number of GPUs"), "no_devices"),
)
LOST = ("GPU is lost", "GPU requires reset")
"""Errors in place of a value that say that a GPU answers no more."""
_KEPT, _LONGEST = 200, 200


def find_lost_rows(section: Section) -> dict[str, IntArray]:
    """Return the lines of rows of which a cell says that the GPU is lost, by what it says."""
    return {
        column.reasons[code] or "": section.numbers[column.codes == code]
        for column in section.columns.values()
        for code, reason in enumerate(column.reasons)
        if reason in LOST
    }


def classify_message(message: str) -> str:
    """Return what a message of the driver says happened: `driver_message` where it is none of the known kinds."""
    return next((name for pattern, name in _KINDS if pattern.match(message)), "driver_message")


@dataclass(slots=True)
class DriverEvents:
    """Events of one log, in its order; the first of each text, and the first ones in all.

    A message has the time of the row before it. Those before any row wait for the first one.
    """

    _last: int | None = None
    """Time of the last row so far, in microseconds."""
    _events: list[LogEvent] = field(default_factory=list)
    _texts: set[tuple[str, str | None]] = field(default_factory=set)

    def add(self, other_lines: Iterable[NonDataLine], numbers: IntArray, times: IntArray) -> None:
        """Take the messages of the driver among the lines of a piece.

        Args:
            other_lines: its lines that are no rows.
            numbers: line numbers of its rows, rising.
            times: times of its rows, in microseconds.
        """
        for line in other_lines:
            if line.kind is LineKind.EVENT:
                row = int(np.searchsorted(numbers, line.number)) - 1
                at = int(times[row]) if row >= 0 else self._last
                text = redact_start(line.text.strip(), _LONGEST)
                self._keep(LogEvent(kind=classify_message(text), at=at, line=line.number, device=None, text=text))
        if len(times):
            self._events = [e if e.at is not None else replace(e, at=int(times[0])) for e in self._events]
            self._last = int(times[-1])

    def add_lost(
        self, lost: Mapping[str, IntArray], numbers: IntArray, devices: IntArray, ids: list[str], times: IntArray
    ) -> None:
        """Take the first row of each GPU whose cells say that it is lost.

        Args:
            lost: lines of such rows, by what they say.
            numbers: line of each row.
            devices: index into `ids` for each row, negative for one that is not kept.
            ids: device ids.
            times: time of each row, in microseconds.
        """
        for text, lines in lost.items():
            rows = np.flatnonzero(np.isin(numbers, lines) & (devices >= 0))
            for device in np.unique(devices[rows]).tolist():
                row = rows[np.argmax(devices[rows] == device)]
                line, at = int(numbers[row]), int(times[row])
                self._keep(LogEvent(kind="gpu_lost", at=at, line=line, device=ids[device], text=f"[{text}]"))

    def _keep(self, event: LogEvent) -> None:
        """Keep an event that is the first of its text, or one of the first in all.

        A message that is repeated with no row between is one event, and a GPU is lost once.
        """
        again = bool(self._events) and (self._events[-1].text, self._events[-1].at) == (event.text, event.at)
        known = (event.text, event.device) in self._texts
        if known and (again or event.device is not None or len(self._events) >= _KEPT):
            return
        if len(self._texts) < _KEPT or known:
            self._texts.add((event.text, event.device))
            self._events.append(event)

    def events(self) -> tuple[LogEvent, ...]:
        """Return the events by line."""
        return tuple(sorted(self._events, key=lambda event: event.line))
