"""Reads the stream of system metrics of a W&B run: `run.history(stream="events")` as CSV or JSON lines."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from gpureport.importers.decoding.pieces import Piece, head_text
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.wandb.metric_names import MetricName, is_wandb_name, parse_metric_name
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, NOT_JSON, WRONG_CELLS
from gpureport.importers.text.chunk_builder import ChunkBuilder
from gpureport.importers.text.csv_lines import split_cells
from gpureport.importers.text.json_documents import parse_documents
from gpureport.importers.text.numbered_lines import TextLine, text_lines
from gpureport.importers.text.text_log import Chunk, FormExtraction
from gpureport.importers.values import quantities
from gpureport.importers.values.timestamps import parse_epoch_time

_TIME = ("_timestamp", "timestamp")
_TIMES = frozenset({*_TIME, "_runtime"})
_FEW = 5
"""Lines among which a header is looked for."""
_SAMPLED = 500
_THINNED = (
    "It holds 500 rows, as many as W&B hands out unless asked for more: of a longer run it is a sample. "
    'run.history(stream="events", samples=100000) gives all.'
)
_TOTALS = "Memory installed was told from bytes used and the share that they are."
_ELSEWHERE = "Names with /l: stand for GPUs of other machines and are not read."
_EMPTY = ("", "nan", "NaN", "null", "None")

Values = dict[str, float | bool | str]


class Wandb:
    """The importer of W&B's system metrics."""

    kind: ClassVar[str] = "wandb"
    title: ClassVar[str] = "Weights & Biases"
    recognised_by: ClassVar[str] = (
        "A CSV or JSON lines with system metrics such as `system.gpu.0.powerWatts` and a time."
    )
    sample: ClassVar[str] = "wandb/wandb.csv"

    def identify(self, head: bytes) -> bool:
        """Return whether one of the first lines names metrics as W&B does, and a time."""
        return any(_names(line) for line in head_text(head).splitlines()[:_FEW])

    def extract(self, file: RawFile, options: ReadOptions) -> FormExtraction:
        """Begin to read an export."""
        return FormExtraction(file, options, WandbForm)


def _names(line: str) -> bool:
    """Return whether a line is a header or a document with metrics of GPUs as W&B names them."""
    if line.lstrip().startswith("{"):
        documents = parse_documents(line) or ()
        return any(isinstance(each, dict) and _of_wandb(each) for each in documents)
    return "," in line and _of_wandb(split_cells(line))


def _of_wandb(names: Iterable[str]) -> bool:
    held = list(names)
    return not _TIMES.isdisjoint(held) and any(map(is_wandb_name, held))


class WandbForm:
    """Rows of W&B's stream of system metrics."""

    name: ClassVar[str] = "W&B system metrics"
    averaged = False

    def __init__(self) -> None:
        """Start before any header, in UTC, as the times are."""
        self.zone: str | None = "UTC"
        self._header: list[str] = []
        self._rows = 0

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what an export holds, in its order."""
        builder = ChunkBuilder()
        for line in text_lines(log):
            self._take(line, builder)
            if builder.is_full:
                yield from builder.chunks()
        if self._rows == _SAMPLED:
            builder.add_note(_THINNED)
        yield from builder.chunks()

    def _take(self, line: TextLine, builder: ChunkBuilder) -> None:
        if not line.fault and line.text.lstrip().startswith("{"):
            self._document(line, builder)
            return
        row = [] if line.fault else split_cells(line.text)
        if row and _of_wandb(row):
            self._header = row
            builder.add_non_data_line(line, LineKind.HEADER)
        elif not self._header:
            builder.reject(line, BEFORE_HEADER)
        elif line.cut or len(row) != len(self._header):
            builder.reject(line, CUT_LAST_LINE if line.cut else WRONG_CELLS)
        else:
            self._row(line, dict(zip(self._header, row, strict=True)), builder)

    def _document(self, line: TextLine, builder: ChunkBuilder) -> None:
        documents = parse_documents(line.text)
        if documents is None or len(documents) != 1 or not isinstance(documents[0], dict):
            builder.reject(line, CUT_LAST_LINE if line.cut else NOT_JSON)
        else:
            self._row(line, documents[0], builder)

    def _row(self, line: TextLine, cells_by_name: Mapping[str, Any], builder: ChunkBuilder) -> None:
        devices: dict[int | None, Values] = {}
        cores: list[float] = []
        shares: dict[int, float] = {}
        for text, cell in cells_by_name.items():
            found = parse_metric_name(text)
            if found is None or cell is None or str(cell) in _EMPTY:
                if "/l:" in text:
                    builder.add_note(_ELSEWHERE)
                continue
            number = quantities.parse_number(cell)
            if found.core and number is not None:
                cores.append(number)
            elif found.allocated and found.gpu is not None and number is not None:
                shares[found.gpu] = number
            else:
                _add(devices.setdefault(found.gpu, {}), found, cell, builder)
        self._cores(devices, cores)
        for gpu, share in shares.items():
            _total(devices.setdefault(gpu, {}), share, builder)
        self._keep(line, _time(cells_by_name), devices, builder)

    @staticmethod
    def _cores(devices: dict[int | None, Values], cores: list[float]) -> None:
        """Put what the cores did into the row of the machine."""
        of_all = quantities.parse_quantity(sum(cores) / len(cores), "%", "cpu_utilization_ratio") if cores else None
        busiest = quantities.parse_quantity(max(cores), "%", "cpu_busiest_core_ratio") if cores else None
        if of_all is not None and busiest is not None:
            devices.setdefault(None, {}).update(
                cpu_utilization_ratio=of_all, cpu_busiest_core_ratio=busiest, cpu_logical_cores=len(cores)
            )

    def _keep(
        self, line: TextLine, time: int | None, devices: Mapping[int | None, Values], builder: ChunkBuilder
    ) -> None:
        if not devices:
            builder.add_non_data_line(line, LineKind.NOISE)
            return
        self._rows += 1
        for gpu, values in sorted(devices.items(), key=lambda item: -1 if item[0] is None else item[0]):
            own: Values = values if gpu is None else {"index": str(gpu), **values}
            builder.add_row(line.number, time, own, host=gpu is None)


def _add(values: Values, found: MetricName, cell: object, builder: ChunkBuilder) -> None:
    if found.unit is None:
        values.update([(found.target, str(cell)) if found.target else quantities.extra_column(found.source, cell)])
        return
    value = quantities.parse_quantity(cell, found.unit, found.target)
    if value is None:
        builder.count_absent(found.source, quantities.describe_absence(cell))
    else:
        values[found.target] = value


def _total(values: Values, share: float, builder: ChunkBuilder) -> None:
    """Tell the memory installed from the bytes used and the share they are; keep a share that tells nothing."""
    used = values.get("gpu_memory_used_bytes")
    if "gpu_memory_total_bytes" in values:
        return
    total = None
    if isinstance(used, int) and used > 0 and 0 < share <= 100:  # noqa: PLR2004 - per cent
        total = quantities.parse_quantity(used * 100 / share, "B", "gpu_memory_total_bytes")
    if total is None:
        values.update([quantities.extra_column("memoryAllocated", share)])
    else:
        values["gpu_memory_total_bytes"] = total
        builder.add_note(_TOTALS)


def _time(cells_by_name: Mapping[str, Any]) -> int | None:
    cell = next((cells_by_name[key] for key in _TIME if key in cells_by_name), None)
    moment = parse_epoch_time(cell)
    return None if moment is None else moment.micros
