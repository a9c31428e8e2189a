"""One nvidia-smi query log being read: from its pieces to the series of its GPUs."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.errors import SourceError
from gpureport.importers.count_text import counted
from gpureport.importers.decoding.pieces import PIECE_BYTES, head, pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.parsing import Parser
from gpureport.importers.delimited.row_sections import LineKind, OddLine, Section
from gpureport.importers.devices.identification import ATTRIBUTES, IDENTITY, NOT_NAMED, Devices
from gpureport.importers.devices.identification import NOT_SELECTED as DROPPED
from gpureport.importers.devices.series_assembly import Tally, Values, columns_of
from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.logs.nvidia_smi.query.clock_event_bits import expand
from gpureport.importers.logs.nvidia_smi.query.driver_messages import Messages, lost_rows
from gpureport.importers.logs.nvidia_smi.query.host_column import Machines
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import is_unambiguous
from gpureport.importers.logs.nvidia_smi.query.opening import Opening, beginning, every_line, opening
from gpureport.importers.logs.nvidia_smi.query.timeless import strange
from gpureport.importers.logs.nvidia_smi.query.torn_lines import Torn
from gpureport.importers.logs.nvidia_smi.query.unnamed_gpus import tick_places
from gpureport.importers.ordering.row_placement import Assembly, Rows
from gpureport.importers.ordering.timestamp_outliers import Strays
from gpureport.importers.protocol.importer import HEAD_BYTES, Outcome, ReadOptions
from gpureport.importers.protocol.reject_reasons import (
    GPU_DAMAGED,
    GPU_NOT_NAMED,
    MALFORMED,
    NOT_SELECTED,
    OUT_OF_SEQUENCE,
    TORN,
    UNUSABLE_HEADER,
    WRONG_TICK,
)
from gpureport.importers.protocol.understanding import PLACE_IN_TICK, Role, Understanding
from gpureport.importers.recorders.damaged_devices import Suspects
from gpureport.importers.text.column_examples import ColumnsRead
from gpureport.importers.timebase import zones
from gpureport.importers.timebase.tick_times import UNUSED_INTERVAL, TickTimes
from gpureport.importers.values.cells import CUT
from gpureport.quality import Quality

if TYPE_CHECKING:
    import pyarrow as pa

    from gpureport.importers.ordering.placement_plan import Plan
    from gpureport.recording import Device

_ROLES = {
    **dict.fromkeys(ATTRIBUTES.values(), Role.ATTRIBUTE),
    **dict.fromkeys(IDENTITY.values(), Role.IDENTITY),
    fields.CLOCK_EVENTS: Role.CLOCK_EVENTS,
}
_RECORD = "record at least nvidia-smi --query-gpu=timestamp,index,utilization.gpu --format=csv -l 1"
_SHOWN = 24
"""Letters of a line that a message bears."""
_UNIT = "say in its header whether utilization.gpu [1] or utilization.gpu [%] is meant"
_TIMES = {"time", "datetime", "date_time", "time_stamp", "date", "epoch", "unix_time", "ts"}
"""What people call a column of times."""
_INTERVAL = "say with --interval how many seconds apart it was recorded, as given to -l"


class QueryGpuExtraction:
    """One log being read."""

    def __init__(self, file: RawFile, placement: ReadOptions) -> None:
        """Prepare to read; nothing is read yet."""
        self._file = file
        self._placement = placement
        self._tally = Tally()
        self._devices = Devices(placement.gpus)
        self._zone = zones.zone(placement.tz) if placement.tz else None
        self._assembly = Assembly(self._zone, self._survey)
        self._machines = Machines(str(file.path))
        self._torn = Torn()
        self._suspects = Suspects()
        self._strays = Strays()
        whole = file.size < PIECE_BYTES
        self._places = tick_places.Places(given=placement.gpus_per_tick, whole=whole)
        self._tick_times = TickTimes(placement.interval) if placement.interval else None
        self._messages = Messages()
        self._events: list[OddLine] = []
        self._opening = Opening()
        self._columns = ColumnsRead("", _ROLES)
        self._stamped: bool | None = None
        self._absolute = False
        self._problem: tuple[str, str] | None = None

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one GPU each.

        Raises:
            SourceError: when no row can be used, or the columns of a log without a header cannot be told.
        """
        for section, rows in self._rows():
            placed = self._assembly.place(rows)
            self._tally.settle(section, placed)
            self._note(section, placed.devices, placed.ids, placed.times)
            yield from self._assembly.batches(placed, _series(expand(rows.data)))
        self._messages.add(self._events, np.zeros(0, np.int64), np.zeros(0, np.int64))
        if self._tally.rows == 0:
            raise SourceError(str(self._file.path), *self._nothing())

    def _rows(self) -> Iterator[tuple[Section, Rows]]:
        """Yield the sections of the log with the GPU each row belongs to."""
        for section, positions in self._places.along(self._sections()):
            yield section, self._assigned(section, positions)

    def _sections(self) -> Iterator[Section]:
        """Yield the sections of the log that can be used."""
        text, self._opening = self._begin()
        self._columns = ColumnsRead(text, _ROLES)
        for parsed in Parser(self._opening.dialect, self._opening.layout).sections(pieces(self._file)):
            self._tally.add(parsed)
            self._places.add_damaged(parsed.odd, parsed.layout)
            self._events += [line for line in parsed.odd if line.kind is LineKind.EVENT]
            for section in parsed.sections:
                self._problem = self._lacks(section.layout)
                if self._problem:
                    self._tally.drop(f"{UNUSABLE_HEADER} {self._problem[0]}", section.numbers)
                else:
                    self._columns.see(section)
                    self._file.account.delimiter = section.layout.delimiter
                    yield self._believed(section)

    def _begin(self) -> tuple[str, Opening]:
        """Return the beginning of the log, and how its lines are read."""
        first = head(self._file.again(), HEAD_BYTES)
        if self._placement.columns is None and is_unambiguous(first):
            return first.decode(errors="replace"), Opening(stamped=True)
        text = beginning(self._file)
        return text, opening(str(self._file.path), text, self._placement.columns, lambda: every_line(self._file))

    def _believed(self, section: Section) -> Section:
        """Return a section without what a job printed among the rows of a log without time stamps."""
        if section.layout.stamp is not None:
            return section
        bad = np.zeros(len(section.numbers), dtype=np.bool_)
        for source, rows in strange(section):
            self._tally.drop(f"{MALFORMED} {source}", section.numbers[rows & ~bad])
            bad |= rows
        return section.select(~bad) if bad.any() else section

    def _lacks(self, layout: Layout) -> tuple[str, str] | None:
        """Return what a header lacks and what to do, None when its rows can be used."""
        names = ", ".join(column.source for column in layout.columns)
        if not layout.holds(fields.METRICS):
            return f"no GPU metric among the columns {names}", _UNIT if self._opening.dialect.fractions else _RECORD
        if self._stamped is None:
            self._stamped = layout.stamp is not None or self._opening.stamped
        if layout.stamp is None and (self._tick_times is None or self._stamped):
            time = next((each.source for each in layout.columns if each.source.lower() in _TIMES), "")
            hint = f"if {time} holds the time, call it timestamp in the header; else {_INTERVAL}" if time else _INTERVAL
            return f"no timestamp column among {names}", hint
        if layout.stamp is not None and not self._stamped:
            return "time stamps below rows without any", "split the log where its columns change"
        return None

    def _survey(self) -> "Plan":
        """Read the whole log once more, to see why its stamps run backwards."""
        from gpureport.importers.ordering.backward_survey import survey  # noqa: PLC0415 - the stamps of most logs rise

        again = QueryGpuExtraction(self._file.again(), self._placement)
        return survey((rows for _, rows in again._rows()), self._assembly.zone, sure=lambda: again._devices.sure)

    def _assigned(self, section: Section, positions: IntArray | None) -> Rows:
        """Return the rows of a section with the GPU each belongs to."""
        data = columns_of(section)
        self._machines.see(data)
        torn = self._torn.rows(data, section.times)
        self._tally.drop(TORN, section.numbers[torn])
        odd = tick_places.left_out(positions, len(torn)) & ~torn
        self._tally.drop(WRONG_TICK, section.numbers[odd])
        if positions is not None:
            data["index"] = tick_places.index(positions)
        whole = ~(torn | odd)
        unnamed = whole & _identity_cut(section)
        whole &= ~unnamed
        suspect = self._suspects.rows(data, section.times, whole)
        self._tally.drop(GPU_DAMAGED, section.numbers[suspect])
        whole &= ~suspect
        codes, ids = self._devices.assign(data, section.times, whole)
        self._tally.drop(GPU_NOT_NAMED, section.numbers[unnamed | ((codes == NOT_NAMED) & whole)])
        self._tally.drop(NOT_SELECTED, section.numbers[codes == DROPPED])
        times = section.times
        if section.layout.stamp is None and self._tick_times is not None:
            times = self._tick_times.times(codes, ids)
            # counted times are no local ones
            self._assembly.zone = None
        if section.layout.absolute and section.layout.stamp is not None:
            # and UTC is not local either
            self._absolute, self._assembly.zone = True, None
        stray = (codes >= 0) & self._strays.found(times, codes)
        self._tally.drop(OUT_OF_SEQUENCE, section.numbers[stray])
        codes[stray] = NOT_NAMED
        return Rows(lines=section.numbers, stamps=times, devices=codes, ids=ids, data=data)

    def _note(self, section: Section, devices: IntArray, ids: list[str], times: IntArray) -> None:
        """Note what happened up to the end of a section."""
        self._messages.add_lost(lost_rows(section), section.numbers, devices, ids, times)
        kept = devices >= 0
        before = [line for line in self._events if line.number < section.numbers[-1]]
        self._events = self._events[len(before) :]
        self._messages.add(before, section.numbers[kept], times[kept])

    def _nothing(self) -> tuple[str, str]:
        """Return why no row is left, and what to do."""
        if self._problem:
            return self._problem
        reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in self._tally.rejected.items())
        if set(self._tally.rejected) == {NOT_SELECTED}:
            held = ", ".join(map(str, self._devices.indices))
            return "it holds none of the GPUs selected", f"--gpus can name {held}"
        unread, line = self._tally.rejected.get(f"{MALFORMED} timestamp", (0, 0))
        if 2 * unread > sum(rows for rows, _ in self._tally.rejected.values()):
            return self._unstamped(line)
        if self._tally.lines == self._tally.headers:
            return "it holds a header and no row", "record again, and stop nvidia-smi with Ctrl-C or SIGTERM"
        ((header, row), lines), *_ = self._tally.misaligned.most_common(1) or [((0, 0), 0)]
        if 2 * lines > sum(rows for rows, _ in self._tally.rejected.values()):
            names = "its header names" if self._tally.headers else "--columns names"
            which = f"{counted(header, 'column')} and its rows hold {counted(row, 'cell')}"
            what = f"{names} {which}, so which is which cannot be told"
            return what, "name the columns of its rows with --columns"
        what = "its only line is no row that can be used"
        if self._tally.lines > 1:
            what = f"none of its {self._tally.lines} lines is a row that can be used"
        return what + (f" ({reasons})" if reasons else ""), _RECORD

    def _unstamped(self, line: int) -> tuple[str, str]:
        """Return that time stamps cannot be read, with the line of the first, and what to do."""
        text = next(islice(every_line(self._file), line - 1, None), "").strip()[:_SHOWN]
        what = f"its time stamps are none that nvidia-smi writes (line {line} begins {text!r})"
        return what, "--source-kind mapped prints a map in which their format can be said"

    def outcome(self) -> Outcome:
        """Return what is known after the last batch."""
        clocks, plan = list(self._assembly.clocks.values()), self._assembly.plan
        devices, notes = self._told(plan)
        quality = self._tally.quality(clocks, (*notes, *self._assembly.notes()))
        return Outcome(
            devices=devices,
            quality=self._dated(replace(quality, log_events=self._messages.events())),
            span=(min(clock.first or 0 for clock in clocks), max(clock.last or 0 for clock in clocks)),
            intervals={clock.device: clock.interval for clock in clocks if clock.interval is not None},
            rejects=self._tally.rejects(),
            renamed={} if plan is None else plan.renamed(),
            columns=self._columns.columns(),
            timezone="UTC" if self._absolute else None,
            understanding=self._understanding(plan),
        )

    def _understanding(self, plan: "Plan | None") -> Understanding:
        """Return what the columns, the GPUs and the times were told by."""
        header = ("header",) if self._tally.headers else ()
        return Understanding(
            columns_by=(*filter(None, (self._opening.told_by,)), *header),
            columns_notes=self._opening.notes,
            gpus_by=(PLACE_IN_TICK,) if self._places.told else self._devices.told_by,
            gpus_notes=self._places.notes(),
            order_notes=None if plan is None else plan.notes,
        )

    def _told(self, plan: "Plan | None") -> tuple[tuple["Device", ...], tuple[str, ...]]:
        """Return the devices, and what a reader must know about how they and the columns were told."""
        devices = self._devices.devices(averaged=self._columns.fills("power.draw.average", "gpu_power_watts"))
        devices = devices if plan is None else tuple(plan.devices(devices))
        notes = (*self._opening.notes, *self._translated(), *self._places.notes(), *self._devices.notes())
        together = any(clock.bunched() for clock in self._assembly.clocks.values())
        alone = self._devices.named or self._placement.gpus_per_tick == 1
        if alone or not (together or self._places.mixed):
            return devices, notes
        return tuple(replace(device, mixed=True) for device in devices), (*notes, tick_places.MIXED)

    def _translated(self) -> tuple[str, ...]:
        """Return what headings that people wrote were taken for."""
        taken = ", ".join(self._columns.translated())
        return (f"Headings that nvidia-smi does not write: {taken}.",) if taken else ()

    def _dated(self, quality: Quality) -> Quality:
        """Return the account of a log with time stamps as it is; without them, no time is a recorded one."""
        if self._stamped:
            unused = self._tick_times is not None
            note = (UNUSED_INTERVAL,) if unused else ()
            return replace(quality, notes=(*quality.notes, *note))
        return replace(quality, synthetic_time=True, coverage_ratio=None, gaps=())


def _identity_cut(section: Section) -> BoolArray:
    """Return rows of which the cell that names the GPU may be a part of another name."""
    cut = np.zeros(len(section.numbers), dtype=np.bool_)
    for position, column in section.columns.items():
        if section.layout.columns[position].target in IDENTITY.values() and CUT in column.reasons:
            cut |= column.codes == column.reasons.index(CUT)
    return cut


def _series(data: dict[str, Values]) -> dict[str, Values]:
    """Return the columns that are series, not attributes of a device."""
    attributes = set(ATTRIBUTES.values())
    return {name: value for name, value in data.items() if name not in attributes}
