"""CSV of `--query-compute-apps` and `--query-accounted-apps`: a row a process."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.layout import STAMP
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.monitors.processes import Listed, ListReader, rejected
from gpureport.importers.protocol.reject_reasons import (
    BEFORE_HEADER,
    GPU_NOT_NAMED,
    MALFORMED,
    NO_READING,
    NO_TIME,
    WRONG_CELLS,
)
from gpureport.importers.text.text_log import Chunk
from gpureport.importers.values import stamps

_IDENTITY = {"gpu_uuid": "uuid", "gpu_bus_id": "bus_id", "gpu_serial": "serial", "gpu_name": "model"}
"""Field of these queries to what it says of a GPU."""
_MEMORY = ("used_gpu_memory", "used_memory")
_APP = {
    *(STAMP, *_IDENTITY, *_MEMORY, "gpu_instance_id", "compute_instance_id", "process_name", "name", "pid"),
    *("gpu_util", "gpu_utilization", "mem_util", "mem_utilization", "max_memory_usage", "time"),
}
_SLACK = 60_000
"""Rows of one tick lie some milliseconds apart, as those of other queries do; in microseconds."""
_NOTE = (
    "The log lists processes: how many a GPU has and what memory they hold is kept; the GPU has more in use than that. "
    "A GPU has no row while it runs none. gpureport record records the GPU itself."
)


class ComputeApps:
    """Reads lists of processes that a query asked for."""

    name: ClassVar[str] = "nvidia-smi --query-compute-apps"
    zone: str | None = None
    averaged: bool = False

    def __init__(self) -> None:
        self._names: list[str] = []
        self._unit = ""

    @staticmethod
    def opens(line: str) -> bool:
        """Return whether a line is a header that names a process by its id, and nothing but fields of these queries."""
        names = _names(line)
        return "pid" in names and len(names) > 1 and set(names) <= _APP and len(set(names)) == len(names)

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield a chunk a piece, and the last tick at the end."""
        yield from ListReader(_SLACK, self._line, (_NOTE,)).chunks(log)

    def _line(self, number: int, text: str) -> Listed | NonDataLine:
        if self.opens(text):
            self._names = _names(text)
            self._unit = text.rpartition("memory [")[2].partition("]")[0] if "memory [" in text else ""
            return NonDataLine(number, LineKind.HEADER, "", text)
        return self._row(number, text) if self._names else rejected(number, BEFORE_HEADER, text)

    def _row(self, number: int, text: str) -> Listed | NonDataLine:
        row = self._cells(text)
        if row is None:
            return rejected(number, WRONG_CELLS, text)
        time = stamps.read(row[STAMP]) if STAMP in row else None
        gpu = {_IDENTITY[name]: row[name] for name in _IDENTITY if name in row and not row[name].startswith("[")}
        checks = (
            (f"{MALFORMED} pid", row["pid"].isascii() and row["pid"].isdigit()),
            (f"{MALFORMED} {STAMP}", time is not None or STAMP not in row),
            # a process that has ended says nothing of the GPU at any time
            (NO_READING, not {"time", "max_memory_usage"} & row.keys()),
            (NO_TIME, STAMP in row),
            (GPU_NOT_NAMED, bool(gpu)),
        )
        reason = next((reason for reason, holds in checks if not holds), None)
        if reason is not None or time is None:
            return rejected(number, reason or NO_TIME, text)
        memory = next((row[name] for name in _MEMORY if name in row), None)
        if memory is not None and memory.isdigit():
            memory = f"{memory} {self._unit or 'MiB'}"
        return Listed(number=number, time=time, gpu=gpu, pid=row["pid"], memory=memory)

    def _cells(self, text: str) -> dict[str, str] | None:
        """Return the cells of a row by name, None where their number is wrong; a process's name may hold commas."""
        cells = [cell.strip() for cell in text.split(",")]
        free = next((place for place, name in enumerate(self._names) if name in {"process_name", "name"}), None)
        surplus = len(cells) - len(self._names)
        if surplus < 0 or (surplus and free is None):
            return None
        if surplus and free is not None:
            cells[free : free + surplus + 1] = [", ".join(cells[free : free + surplus + 1])]
        return dict(zip(self._names, cells, strict=True))


def _names(line: str) -> list[str]:
    return [cell.partition("[")[0].strip() for cell in line.strip().split(",")]
