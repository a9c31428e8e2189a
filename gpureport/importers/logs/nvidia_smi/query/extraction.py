"""One nvidia-smi query log being read: from its pieces to the series of its GPUs.

This is the plain road, which a clean log takes.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import IntArray
from gpureport.data_quality import Quality
from gpureport.errors import CodedProblem, SourceError
from gpureport.importers.decoding.pieces import PIECE_BYTES, head, pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.parsing import Parser
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine, Section
from gpureport.importers.devices.column_values import (
    ColumnsRead,
    Values,
    columns_by_target,
    split_clock_events,
)
from gpureport.importers.devices.gpu_identity import ATTRIBUTES, SoundIdentities, is_name_cut, names_gpus
from gpureport.importers.devices.identification import NOT_NAMED, Devices
from gpureport.importers.devices.identification import NOT_SELECTED as DROPPED
from gpureport.importers.devices.line_tally import Tally
from gpureport.importers.logs.nvidia_smi.query import fields, unusable_log
from gpureport.importers.logs.nvidia_smi.query.damaged_rows import DamagedRows
from gpureport.importers.logs.nvidia_smi.query.driver_messages import LOST, DriverEvents, find_lost_rows
from gpureport.importers.logs.nvidia_smi.query.host_column import HOST_COLUMN, HostColumnCheck
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import is_unambiguous
from gpureport.importers.logs.nvidia_smi.query.opening import Opening, iterate_lines, read_beginning, read_opening
from gpureport.importers.logs.nvidia_smi.query.timeless import find_rows_without_unit
from gpureport.importers.logs.nvidia_smi.query.unnamed_gpus.tick_assignment import (
    DAMAGED_KINDS,
    MIXED_GPUS_NOTE,
    TickAssignment,
)
from gpureport.importers.ordering.row_placement import AssignedRows, RowPlacement
from gpureport.importers.protocol.importer import HEAD_BYTES, Outcome, ReadOptions
from gpureport.importers.protocol.reject_reasons import (
    GPU_NOT_NAMED,
    MALFORMED,
    NOT_SELECTED,
    OUT_OF_SEQUENCE,
    UNUSABLE_HEADER,
)
from gpureport.importers.timebase import zones
from gpureport.importers.timebase.placed_rows import PlacedRows
from gpureport.importers.timebase.tick_times import UNUSED_INTERVAL, TickTimes

if TYPE_CHECKING:
    import pyarrow as pa

    from gpureport.importers.ordering.placement_plan import PlacementPlan
    from gpureport.recording import Device


class QueryGpuExtraction:
    """One log being read."""

    def __init__(self, file: RawFile, options: ReadOptions) -> None:
        self._file = file
        self._options = options
        self._tally = Tally()
        self._devices = Devices(options.gpus)
        self._identities = SoundIdentities()
        self._damage: DamagedRows | None = None
        self._zone = zones.load_zone(options.tz) if options.tz else None
        self._row_placement = RowPlacement(self._zone, self._survey)
        self._machines: HostColumnCheck | None = None
        self._ticks: TickAssignment | None = None
        self._tick_times = TickTimes(options.interval) if options.interval else None
        self._messages: DriverEvents | None = None
        self._events: list[NonDataLine] = []
        self._last: int | None = None
        self._opening = Opening()
        self._columns = ColumnsRead()
        self._stamped: bool | None = None
        self._absolute = False
        self._problem: CodedProblem | None = None

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one GPU each.

        Raises:
            SourceError: when no row can be used, or the columns of a log without a header cannot be told.
        """
        for section, rows in self._rows():
            placed = self._row_placement.place(rows)
            self._tally.settle(section, placed)
            self._note_events(section, placed)
            yield from self._row_placement.batches(placed, _select_series(split_clock_events(rows.data)))
        if self._events:
            self._event_log().add(self._events, np.zeros(0, np.int64), np.zeros(0, np.int64))
        if self._tally.rows == 0:
            problem = self._problem or unusable_log.explain_no_rows(self._file, self._tally, self._devices.indices)
            what, hint, code = problem
            raise SourceError(str(self._file.path), what, hint, code=code)

    def _rows(self) -> Iterator[tuple[Section, AssignedRows]]:
        """Yield the sections of the log with the GPU each row belongs to."""
        sections = self._sections()
        for section in sections:
            if names_gpus(section):
                yield section, self._assign_gpus(section, None)
            else:
                unnamed = self._assignment().assign(chain((section,), sections))
                yield from ((each, self._assign_gpus(each, places)) for each, places in unnamed)

    def _sections(self) -> Iterator[Section]:
        """Yield the sections of the log that can be used."""
        self._opening = self._read_opening()
        for parsed in Parser(self._opening.dialect, self._opening.layout).sections(pieces(self._file)):
            self._tally.add(parsed)
            if any(line.kind in DAMAGED_KINDS for line in parsed.other_lines):
                self._assignment().add_damaged(parsed.other_lines, parsed.layout)
            self._events += [line for line in parsed.other_lines if line.kind is LineKind.EVENT]
            for section in parsed.sections:
                self._problem = self._unusable_columns(section.layout)
                if self._problem:
                    self._tally.drop(f"{UNUSABLE_HEADER} {self._problem[0]}", section.numbers)
                else:
                    self._columns.see(section.layout)
                    yield section if section.layout.stamp is not None else self._drop_printed(section)

    def _read_opening(self) -> Opening:
        """Return how the lines of the log are read."""
        first = head(self._file.again(), HEAD_BYTES)
        if self._options.columns is None and is_unambiguous(first):
            return Opening(stamped=True)
        text = read_beginning(self._file)
        return read_opening(str(self._file.path), text, self._options.columns, lambda: iterate_lines(self._file))

    def _assignment(self) -> TickAssignment:
        """Return what assigns rows to GPUs where no column names them."""
        whole = self._file.size < PIECE_BYTES
        self._ticks = self._ticks or TickAssignment(rows_per_tick=self._options.gpus_per_tick, whole=whole)
        return self._ticks

    def _drop_printed(self, section: Section) -> Section:
        """Return a section without what a job printed among the rows of a log without time stamps."""
        bad = np.zeros(len(section.numbers), dtype=np.bool_)
        for source, rows in find_rows_without_unit(section):
            self._tally.drop(f"{MALFORMED} {source}", section.numbers[rows & ~bad])
            bad |= rows
        return section.select(~bad) if bad.any() else section

    def _unusable_columns(self, layout: Layout) -> CodedProblem | None:
        """Return what a header lacks and what to do, None when its rows can be used."""
        if layout.holds(fields.METRICS):
            if self._stamped is None:
                self._stamped = layout.stamp is not None or self._opening.stamped
            if layout.stamp is not None and self._stamped:
                return None
        return unusable_log.explain_unusable_columns(
            layout,
            stamped=bool(self._stamped),
            counted_times=self._tick_times is not None,
            fractions=bool(self._opening.dialect.fractions),
        )

    def _survey(self) -> "PlacementPlan":
        """Read the whole log once more, to see why its stamps run backwards."""
        from gpureport.importers.ordering.backward_survey import survey_log  # noqa: PLC0415 - the stamps of most logs rise

        again = QueryGpuExtraction(self._file.again(), self._options)
        return survey_log(
            (rows for _, rows in again._rows()), self._row_placement.zone, sure=lambda: again._devices.sure
        )

    def _assign_gpus(self, section: Section, places: IntArray | None) -> AssignedRows:
        """Return the rows of a section with the GPU each belongs to."""
        data = columns_by_target(section)
        if any(map(HOST_COLUMN.fullmatch, data)):
            self._machines = self._machines or HostColumnCheck(str(self._file.path))
            self._machines.see(data)
        sound = None
        if places is not None or is_name_cut(section) or not self._identities.are_all(data, len(section.times)):
            self._damage = self._damage or DamagedRows(self._tally, self._identities.rows)
            sound = self._damage.find_sound(section, data, places)
        codes, ids = self._devices.assign(data, section.times, sound)
        not_named = codes == NOT_NAMED
        self._tally.drop(GPU_NOT_NAMED, section.numbers[not_named if sound is None else not_named & sound])
        self._tally.drop(NOT_SELECTED, section.numbers[codes == DROPPED])
        times = section.times
        if section.layout.stamp is None and self._tick_times is not None:
            times = self._tick_times.times(codes, ids)
            # counted times are no local ones
            self._row_placement.zone = None
        if section.layout.absolute and section.layout.stamp is not None:
            # and UTC is not local either
            self._absolute, self._row_placement.zone = True, None
        outliers = (codes >= 0) & self._row_placement.find_outliers(times, codes)
        self._tally.drop(OUT_OF_SEQUENCE, section.numbers[outliers])
        codes[outliers] = NOT_NAMED
        return AssignedRows(lines=section.numbers, stamps=times, devices=codes, ids=ids, data=data)

    def _note_events(self, section: Section, placed: PlacedRows) -> None:
        """Note what happened up to the end of a section."""
        kept = placed.devices >= 0
        times = placed.times[kept]
        lost = any(reason in LOST for column in section.columns.values() for reason in column.reasons)
        if self._events or self._messages or lost:
            messages = self._event_log()
            messages.add_lost(find_lost_rows(section), section.numbers, placed.devices, placed.ids, placed.times)
            before = [line for line in self._events if line.number < section.numbers[-1]]
            self._events = self._events[len(before) :]
            messages.add(before, section.numbers[kept], times)
        self._last = int(times[-1]) if len(times) else self._last

    def _event_log(self) -> DriverEvents:
        """Return what keeps the events of the log."""
        self._messages = self._messages or DriverEvents(self._last)
        return self._messages

    def outcome(self) -> Outcome:
        """Return what is known after the last batch."""
        clocks, plan = list(self._row_placement.clocks.values()), self._row_placement.plan
        devices, notes = self._describe_devices(plan)
        quality = self._tally.quality(clocks, (*notes, *self._row_placement.notes()))
        return Outcome(
            devices=devices,
            quality=self._mark_times(replace(quality, log_events=self._messages.events() if self._messages else ())),
            span=(min(clock.first or 0 for clock in clocks), max(clock.last or 0 for clock in clocks)),
            intervals={clock.device: clock.interval for clock in clocks if clock.interval is not None},
            columns=self._columns.metrics(),
            timezone="UTC" if self._absolute else None,
        )

    def _describe_devices(self, plan: "PlacementPlan | None") -> tuple[tuple["Device", ...], tuple[str, ...]]:
        """Return the devices, and what a reader must know about how they and the columns were recognised."""
        devices = self._devices.devices(averaged=self._columns.fills("power.draw.average", "gpu_power_watts"))
        devices = devices if plan is None else tuple(plan.devices(devices))
        by_place = self._ticks.notes() if self._ticks else ()
        notes = (*self._opening.notes, *self._describe_translations(), *by_place, *self._devices.notes())
        if self._devices.named or self._options.gpus_per_tick == 1:
            return devices, notes
        bunched = any(clock.bunched() for clock in self._row_placement.clocks.values())
        if not bunched and not (self._ticks and self._ticks.mixed):
            return devices, notes
        return tuple(replace(device, mixed=True) for device in devices), (*notes, MIXED_GPUS_NOTE)

    def _describe_translations(self) -> tuple[str, ...]:
        """Return which fields the hand-written headings were taken for."""
        taken = ", ".join(self._columns.translated())
        return (f"Headings that nvidia-smi does not write: {taken}.",) if taken else ()

    def _mark_times(self, quality: Quality) -> Quality:
        """Return the account; in a log without time stamps, times are synthetic."""
        if self._stamped:
            unused = self._tick_times is not None
            note = (UNUSED_INTERVAL,) if unused else ()
            return replace(quality, notes=(*quality.notes, *note))
        return replace(quality, synthetic_time=True, coverage_ratio=None, gaps=())


def _select_series(data: dict[str, Values]) -> dict[str, Values]:
    """Return the columns that are series, not attributes of a device."""
    attributes = set(ATTRIBUTES.values())
    return {name: value for name, value in data.items() if name not in attributes}
