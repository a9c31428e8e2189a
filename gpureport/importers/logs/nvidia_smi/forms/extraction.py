"""Reads a log with forms of nvidia-smi output, and reports its blocks and what to do where times are missing."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpureport.errors import CodedProblem
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.drawn_tables import LACKS, LACKS_BESIDE
from gpureport.importers.logs.nvidia_smi.forms.mixed_forms import TEXT, MixedForms
from gpureport.importers.logs.nvidia_smi.forms.monitors.dmon import Dmon
from gpureport.importers.logs.nvidia_smi.query.driver_messages import DriverEvents
from gpureport.importers.ordering.row_placement import AssignedRows
from gpureport.importers.protocol.importer import Outcome, ReadOptions
from gpureport.importers.text.text_log import INTERVAL, Chunk, FormExtraction
from gpureport.importers.timebase.placed_rows import PlacedRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpureport.columns import IntArray

_HINT = f"{INTERVAL}: 1 s unless -d said otherwise; dmon -o DT writes the time"
_LISTS = "record a list of processes with its time: pmon -o DT, or --query-compute-apps=timestamp,..."
_CLOCK = "gpu_sm_clock_hertz"


class MixedFormsExtraction(FormExtraction):
    """One log of one or several forms being read."""

    def __init__(self, file: RawFile, options: ReadOptions) -> None:
        self._mixed = MixedForms()
        super().__init__(file, options, MixedForms)
        self._form = self._mixed
        self._messages = DriverEvents()
        self._events: list[NonDataLine] = []
        self._lost: Mapping[str, IntArray] = {}
        self._throttling = False

    def _count(self, part: Chunk) -> None:
        super()._count(part)
        told = (values for name, values in part.data.items() if name == _CLOCK or name.startswith("clock_event_"))
        self._throttling = self._throttling or any(values.valid.any() for values in told)
        self._lost = part.lost
        self._events += [line for line in part.other_lines if line.kind is LineKind.EVENT]

    def _note(self, rows: AssignedRows, placed: PlacedRows) -> None:
        """Give the messages above the last of the rows a time."""
        self._messages.add_lost(self._lost, rows.lines, placed.devices, placed.ids, placed.times)
        kept = placed.devices >= 0
        before = [line for line in self._events if line.number < rows.lines[-1]]
        self._events = self._events[len(before) :]
        self._messages.add(before, rows.lines[kept], placed.times[kept])

    def _nothing(self) -> CodedProblem:
        what, hint, code = super()._nothing()
        if hint != INTERVAL:
            return what, hint, code
        forms = [form for form in self._mixed.rows if form != TEXT]
        if not any(self._mixed.rows.values()):
            hint = _LISTS
        return f"its rows ({', '.join(forms)}) have no time", _HINT if Dmon.name in forms else hint, code

    def outcome(self) -> Outcome:
        """Return what is known after the last batch."""
        outcome = super().outcome()
        self._messages.add(self._events, np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._events = []
        notes = (LACKS_BESIDE if note == LACKS and self._throttling else note for note in outcome.quality.notes)
        return replace(
            outcome, quality=replace(outcome.quality, log_events=self._messages.events(), notes=tuple(notes))
        )
