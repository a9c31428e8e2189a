"""Reads the CSV of a ResourceMetricCollector: rows of the machine and of each GPU, at the end of their window."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece, head_text
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.nvitop.headings import LAST, Layout, Statistic, recognise_layout
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, WRONG_CELLS
from gpureport.importers.text.chunk_builder import ChunkBuilder
from gpureport.importers.text.csv_lines import split_cells
from gpureport.importers.text.numbered_lines import TextLine, text_lines
from gpureport.importers.text.text_log import Chunk, FormExtraction
from gpureport.importers.values import quantities
from gpureport.importers.values.timestamps import parse_epoch_time, parse_iso_time
from gpureport.metrics import BY_NAME
from gpureport.units import UNITS

_KEPT = "Of each window nvitop's mean is kept, and the last reading of memory"
_CUMULATIVE = (
    "The means are those since the collection began; the mean of each window was made from two of them and their "
    "duration."
)
_WHOLE = 1.02
"""A part of a whole that exceeds it by the error of the difference of two means is the whole."""
_OVERSHOOT = 0.02
"""Share by which the difference of two means may err, since duration and mean are taken a moment apart."""


@dataclass(slots=True)
class Windows:
    """Means since a collection began to means of the time since the row before.

    `collect()` gives the mean since `activate` or `clear` was called last. A script that never clears, as the one in
    nvitop's README, writes means over an ever longer time: their differences, weighted with the time, are the means of
    the windows between the rows.

    Attributes:
        cumulative: whether any row went on with the collection of the row before.
    """

    cumulative: bool = False
    _duration: float | None = None
    _time: int | None = None
    _means: dict[int, float] = field(default_factory=dict)

    def row(self, time: int | None, duration: float | None, means: dict[int, float]) -> dict[int, float]:
        """Return the means of the time since the row before; a column that lacked a mean then has none now.

        Args:
            time: time of the row in microseconds, None when not recorded.
            duration: seconds since the collection began, None when not recorded.
            means: means since then by column.
        """
        before, known, earlier = self._duration, self._means, self._time
        self._duration, self._means, self._time = duration, means, time
        if before is None or duration is None or time is None or earlier is None:
            return means
        # a collection that was cleared is as old as the row before, one that goes on is older by what that was
        if duration <= max((time - earlier) / 1e6 + before / 2, before):
            return means
        self.cumulative = True
        window = duration - before
        since = {
            place: (mean * duration - known[place] * before) / window for place, mean in means.items() if place in known
        }
        return {place: _within(value, means[place]) for place, value in since.items()}


def _within(value: float, mean: float) -> float:
    """Return a value that fell below 0 by less than the error as 0."""
    return 0.0 if -_OVERSHOOT * abs(mean) - 1e-9 <= value < 0 else value


class Nvitop:
    """The importer of nvitop's collections."""

    kind: ClassVar[str] = "nvitop"
    title: ClassVar[str] = "nvitop"
    recognised_by: ClassVar[str] = "A CSV whose headings are `tag/device/metric (unit)/statistic`."
    sample: ClassVar[str] = "recorded/phases/nvitop.csv.gz"

    def identify(self, head: bytes) -> bool:
        """Return whether one of the first lines names columns of a collector."""
        lines = head_text(head).splitlines()[:5]
        return any("/" in line and recognise_layout(split_cells(line)) is not None for line in lines)

    def extract(self, file: RawFile, options: ReadOptions) -> FormExtraction:
        """Begin to read a CSV."""
        return FormExtraction(file, options, NvitopForm)


class NvitopForm:
    """Rows of a ResourceMetricCollector."""

    name: ClassVar[str] = "nvitop ResourceMetricCollector"
    averaged = False

    def __init__(self) -> None:
        self.zone: str | None = None
        self._layout: Layout | None = None
        self._windows = Windows()

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what a CSV holds, in its order."""
        builder = ChunkBuilder()
        for line in text_lines(log):
            self._take(line, builder)
            if builder.is_full:
                yield from builder.chunks()
        if self._windows.cumulative:
            builder.add_note(_CUMULATIVE)
        yield from builder.chunks()

    def _take(self, line: TextLine, builder: ChunkBuilder) -> None:
        row = [] if line.fault else split_cells(line.text)
        header = recognise_layout(row) if row and "/" in line.text else None
        if header is not None:
            self._layout, self._windows = header, Windows(self._windows.cumulative)
            self.zone = "UTC" if header.epoch is not None else None
            builder.add_non_data_line(line, LineKind.HEADER)
            builder.add_note(f"{_KEPT}; not kept: {', '.join(header.ignored)}." if header.ignored else f"{_KEPT}.")
        elif self._layout is None:
            builder.reject(line, BEFORE_HEADER)
        elif len(row) != len(self._layout.header):
            builder.reject(line, CUT_LAST_LINE if line.cut else WRONG_CELLS)
        elif line.cut:
            builder.reject(line, CUT_LAST_LINE)
        else:
            self._rows(line, row, self._layout, builder)

    def _rows(self, line: TextLine, row: Sequence[str], header: Layout, builder: ChunkBuilder) -> None:
        time = _time(row, header)
        means = self._means(time, row, header)
        devices: dict[int | None, dict[str, float | bool | str]] = {}
        for each in header.statistics:
            gpu: dict[str, float | bool | str] = {} if each.gpu is None else {"index": str(each.gpu)}
            values = devices.setdefault(each.gpu, gpu)
            if not each.target:
                if row[each.place]:
                    values.update([quantities.extra_column(each.source, row[each.place])])
                continue
            value = _value(each, row, means)
            if value is None:
                builder.count_absent(each.source, quantities.describe_absence(row[each.place]))
            else:
                values[each.target] = value
        for gpu_index, values in devices.items():
            builder.add_row(line.number, time, values, host=gpu_index is None)

    def _means(self, time: int | None, row: Sequence[str], header: Layout) -> dict[int, float]:
        duration = None if header.duration is None else quantities.parse_number(row[header.duration])
        found = {
            each.place: quantities.parse_number(row[each.place]) for each in header.statistics if each.name != LAST
        }
        return self._windows.row(time, duration, {place: mean for place, mean in found.items() if mean is not None})


def _value(each: Statistic, row: Sequence[str], means: dict[int, float]) -> float | int | None:
    found = quantities.parse_number(row[each.place]) if each.name == LAST else means.get(each.place)
    if found is None:
        return None
    part = UNITS[each.unit].to_base(found)
    if each.unit == "%" and 1 < part <= _WHOLE:
        return part if BY_NAME[each.target].may_exceed_one else 1.0
    return quantities.convert_to_base(found, each.unit, each.target)


def _time(row: Sequence[str], header: Layout) -> int | None:
    if header.epoch is not None:
        moment = parse_epoch_time(row[header.epoch], "s")
    else:
        moment = None if header.local is None else parse_iso_time(row[header.local])
    return None if moment is None else moment.micros
