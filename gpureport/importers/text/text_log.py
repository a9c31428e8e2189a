"""Logs that are no tables: what a form reads of them, and how its rows become the series of GPUs or of a machine."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.errors import CodedProblem, SourceError
from gpureport.importers.decoding.pieces import Piece, pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.row_sections import NonDataLine
from gpureport.importers.devices.column_values import Values
from gpureport.importers.devices.gpu_identity import ATTRIBUTES
from gpureport.importers.devices.identification import NOT_NAMED, NOT_SELECTED, Devices
from gpureport.importers.devices.line_tally import Tally
from gpureport.importers.ordering.row_placement import AssignedRows, RowPlacement
from gpureport.importers.protocol.importer import Outcome, ReadOptions
from gpureport.importers.protocol.reject_reasons import GPU_DAMAGED, GPU_NOT_NAMED, NO_TIME
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED as LEFT_OUT
from gpureport.importers.recorders.damaged_identities import DamagedIdentities
from gpureport.importers.timebase import zones
from gpureport.importers.timebase.placed_rows import PlacedRows
from gpureport.importers.timebase.tick_times import UNUSED_INTERVAL, TickTimes
from gpureport.limits import LONGEST_LINE
from gpureport.metrics import BY_NAME
from gpureport.recording import HOST, Device
from gpureport.recording_advice import RECORDS_ONE

if TYPE_CHECKING:
    import pyarrow as pa

    from gpureport.importers.ordering.placement_plan import PlacementPlan

_TEXTS = frozenset(ATTRIBUTES.values())
NAME_GPUS = "record a column that names it: index or uuid with --query-gpu, gpu_uuid with --query-compute-apps"
INTERVAL = "say with --interval how many seconds apart it was recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A stretch of a log as one form reads it.

    Attributes:
        numbers: for each row the line that it is counted for, rising; where a line holds several rows, a running
            number of the rows.
        times: stamps in microseconds as written, or in UTC where the form states a zone; None where it has none.
        data: columns of the rows in base units by metric, and texts by `gpu_identity.ATTRIBUTES`.
        lines: non-empty lines, as `Quality.lines` counts them: rows + non-data + continued.
        other_lines: lines that are no rows.
        continued: lines that say more of a row that another line is counted for.
        absent: cells without a value, by column as the source names it and reason.
        notes: what a reader must know, one sentence each; said once a log.
        hosts: which rows are the machine's and no GPU's; None where none is.
        lost: `numbers` of rows that say of their GPU that it is lost, by what they say.
        tags: what the log says of the whole run, by the names of `label_tags`.
    """

    numbers: IntArray
    times: IntArray | None
    data: dict[str, Values]
    lines: int
    other_lines: Sequence[NonDataLine] = ()
    continued: int = 0
    absent: Mapping[tuple[str, str], int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    hosts: BoolArray | None = None
    lost: Mapping[str, IntArray] = field(default_factory=dict)
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row as a form reads it that goes line by line: what a log says of one device at one time.

    Attributes:
        number: as in `Chunk.numbers`.
        time: as in `Chunk.times`.
        values: metrics in base units, and texts by `gpu_identity.ATTRIBUTES`; None, or no entry, if not recorded.
        host: whether it is the machine's.
    """

    number: int
    time: int | None
    values: Mapping[str, float | bool | str | None]
    host: bool = False


def columns_from_records(records: Sequence[Record]) -> dict[str, Values]:
    """Return the columns of records; null where a record lacks a value."""
    names = dict.fromkeys(name for record in records for name in record.values)
    return {name: _column(name, [record.values.get(name) for record in records]) for name in names}


def _column(name: str, cells: list[Any]) -> Values:
    dtype = np.dtype(BY_NAME[name].dtype) if name in BY_NAME else None
    if dtype is not None and dtype.kind in "iu":
        # a sum of counters may be larger than a counter can be: no reading
        cells = [cell if cell is not None and cell <= np.iinfo(dtype).max else None for cell in cells]
    valid = np.array([cell is not None for cell in cells], dtype=np.bool_)
    if dtype is not None:
        return Values(np.array([0 if cell is None else cell for cell in cells], dtype=dtype), valid)
    places: dict[str, int] = {}
    codes = [-1 if cell is None else places.setdefault(str(cell), len(places)) for cell in cells]
    return Values(np.maximum(np.array(codes, dtype=np.int64), 0), valid, list(places) or [""])


def make_chunk(  # noqa: PLR0913 - a chunk has as many parts
    records: Sequence[Record],
    *,
    lines: int,
    other_lines: Sequence[NonDataLine] = (),
    continued: int = 0,
    absent: Mapping[tuple[str, str], int] | None = None,
    notes: tuple[str, ...] = (),
) -> Chunk:
    """Return records as a chunk; all have a time, or none has."""
    stamped = all(record.time is not None for record in records)
    hosts = np.array([record.host for record in records], dtype=np.bool_)
    return Chunk(
        numbers=np.array([record.number for record in records], dtype=np.int64),
        times=np.array([record.time for record in records], dtype=np.int64) if stamped else None,
        data=columns_from_records(records),
        lines=lines,
        other_lines=other_lines,
        continued=continued,
        absent=absent or {},
        notes=notes,
        hosts=hosts if hosts.any() else None,
    )


class Form(Protocol):
    """One way to write down what GPUs, or the machine they sit in, did.

    Attributes:
        name: what a person calls it.
        zone: zone its stamps state, so that they are UTC; None where they state none.
        averaged: whether it is known that its power readings are averages over a second.
    """

    name: ClassVar[str]
    averaged: bool

    @property
    def zone(self) -> str | None: ...  # noqa: D102 - above

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what a log holds, in its order; every non-empty line is counted in one chunk."""
        ...


class FormExtraction:
    """One log of GPUs, or of GPUs and their machine, being read by a form."""

    def __init__(
        self, file: RawFile, options: ReadOptions, form: Callable[[], Form], longest: int = LONGEST_LINE
    ) -> None:
        """Prepare to read; nothing is read yet.

        Args:
            file: the log.
            options: how to select and place rows.
            form: makes the form.
            longest: bytes of a line at most; a longer one is shortened.
        """
        self._file = file
        self._options = options
        self._make, self._form = form, form()
        self._longest = longest
        self._tally = Tally()
        self._devices = Devices(options.gpus)
        self._suspects = DamagedIdentities()
        self._zone = zones.load_zone(options.tz) if options.tz else None
        self._row_placement = RowPlacement(self._zone, self._survey)
        self._tick_times = TickTimes(options.interval) if options.interval else None
        self._stamped: bool | None = None
        self._notes: dict[str, None] = {}
        self._tags: dict[str, str] = {}
        self._untimed = 0

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one device each.

        Raises:
            SourceError: when no row can be used.
        """
        for rows in self._rows():
            placed = self._row_placement.place(rows)
            self._tally.leave_out(rows.lines, placed)
            self._note(rows, placed)
            series = {name: values for name, values in rows.data.items() if name not in _TEXTS}
            yield from self._row_placement.batches(placed, series)
        if self._tally.rows == 0:
            what, hint, code = self._nothing()
            raise SourceError(str(self._file.path), what, hint, code=code)

    def _rows(self) -> Iterator[AssignedRows]:
        if self._tick_times is not None:
            self._stamped = self._mostly_stamped()
        for part in self._form.chunks(pieces(self._file, longest=self._longest)):
            self._count(part)
            if len(part.numbers):
                yield self._assigned(part)

    def _mostly_stamped(self) -> bool:
        """Return whether most rows at the beginning have a time, so that no other is counted."""
        rows = Counter[bool]()
        for part in self._make().chunks(islice(pieces(self._file.again()), 1)):
            rows[part.times is not None] += len(part.numbers)
        return rows[True] > rows[False]

    def _count(self, part: Chunk) -> None:
        self._tally.take(part.lines, len(part.numbers), part.continued, part.other_lines)
        self._tally.absent.update(part.absent)
        self._notes |= dict.fromkeys(part.notes)
        self._tags |= dict(part.tags)

    def _note(self, rows: AssignedRows, placed: PlacedRows) -> None:
        """Take rows in their place in time; what is made of them besides the series, a kind of log knows."""

    def _assigned(self, part: Chunk) -> AssignedRows:
        times = np.zeros(len(part.numbers), dtype=np.int64) if part.times is None else part.times
        usable = self._dated(part)
        hosts = np.zeros(len(times), dtype=np.bool_) if part.hosts is None else part.hosts
        whole = ~hosts if usable else hosts & ~hosts
        suspect = self._suspects.rows(part.data, times, whole)
        codes, gpus = self._devices.assign(part.data, times, whole & ~suspect)
        if usable:
            self._tally.drop(GPU_DAMAGED, part.numbers[suspect])
            self._tally.drop(GPU_NOT_NAMED, part.numbers[(codes == NOT_NAMED) & ~hosts & ~suspect])
            self._tally.drop(LEFT_OUT, part.numbers[codes == NOT_SELECTED])
        else:
            self._tally.drop(NO_TIME, part.numbers)
            self._untimed += len(part.numbers)
        # the machine has the first place, so that a GPU keeps its own when another one is met
        ids = [HOST, *gpus]
        codes[codes >= 0] += 1
        codes[hosts & usable] = 0
        if part.times is None and self._tick_times is not None:
            times = self._tick_times.times(codes, ids)
        if part.times is None or self._form.zone:
            # counted times are no local ones, and UTC is not local either
            self._row_placement.zone = None
        return AssignedRows(lines=part.numbers, stamps=times, devices=codes, ids=ids, data=part.data)

    def _dated(self, part: Chunk) -> bool:
        """Return whether rows can be placed in time as the others are."""
        if self._stamped is None and (part.times is not None or self._tick_times is not None):
            self._stamped = part.times is not None
        return self._stamped == (part.times is not None)

    def _survey(self) -> "PlacementPlan":
        """Read the whole log once more, to see why its stamps run backwards."""
        from gpureport.importers.ordering.backward_survey import survey_log  # noqa: PLC0415 - the stamps of most logs rise

        again = FormExtraction(self._file.again(), self._options, self._make, self._longest)
        return survey_log(again._rows(), self._row_placement.zone, sure=lambda: again._devices.sure)

    def _nothing(self) -> CodedProblem:
        rejected = self._tally.rejected
        if NO_TIME in rejected:
            return f"its rows ({self._form.name}) have no time", INTERVAL, "no_timestamps"
        if set(rejected) == {LEFT_OUT}:
            known = ", ".join(map(str, self._devices.indices))
            return "it holds none of the GPUs selected", f"--gpus can name {known}", "gpus_not_held"
        if set(rejected) == {GPU_NOT_NAMED}:
            return "no row names its GPU", NAME_GPUS, "no_gpu_named"
        reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in rejected.items())
        what = f"none of its {self._tally.lines} lines holds a value of a GPU" + (f" ({reasons})" if reasons else "")
        return what, RECORDS_ONE, "no_usable_row"

    def outcome(self) -> Outcome:
        """Return what is known after the last batch."""
        clocks, plan = list(self._row_placement.clocks.values()), self._row_placement.plan
        devices = self._devices.devices(averaged=self._form.averaged)
        devices += (Device(id=HOST),) if any(clock.device.endswith(HOST) for clock in clocks) else ()
        unused = (UNUSED_INTERVAL,) if self._stamped and self._tick_times is not None else ()
        if self._untimed > self._tally.rows and self._tick_times is None:
            # a few rows with a time beside many without may not be what the log is about
            unused = (f"{self._untimed:,} rows have no time stamp and were left out: --interval reads them instead.",)
        notes = (*self._notes, *unused, *self._devices.notes(), *self._row_placement.notes())
        quality = self._tally.quality(clocks, notes)
        if not self._stamped:
            quality = replace(quality, synthetic_time=True, coverage_ratio=None, gaps=())
        return Outcome(
            devices=devices if plan is None else tuple(plan.devices(devices)),
            quality=quality,
            span=(min(clock.first or 0 for clock in clocks), max(clock.last or 0 for clock in clocks)),
            intervals={clock.device: clock.interval for clock in clocks if clock.interval is not None},
            timezone=self._form.zone if self._stamped else None,
            tags=tuple(self._tags.items()),
        )
