"""`nvidia-smi pmon`: a row a process and tick. How many there are is a figure of the GPU; what each does is none."""

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.monitors import day_clock
from gpureport.importers.logs.nvidia_smi.forms.monitors.processes import Listed, ListReader, rejected
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, MALFORMED, NO_TIME, WRONG_CELLS
from gpureport.importers.text.text_log import Chunk
from gpureport.importers.values import stamps

_HEADINGS = re.compile(r"\s*+#?\s*+(?:date[\s,]+)?(?:time[\s,]+)?gpu[\s,]+pid[\s,]+type\b.*", re.IGNORECASE | re.DOTALL)
_UNITS = re.compile(r"\s*+#?\s*+(?:yyyymmdd[\s,]+)?(?:hh:mm:ss[\s,]+)?idx[\s,]+#.*", re.IGNORECASE | re.DOTALL)
_INDEX, _PID = re.compile(r"[0-9]{1,4}"), re.compile(r"[0-9]{1,10}|-")
_NOTE = (
    "pmon lists processes: how many a GPU has and what memory they hold is kept. Their sm, mem, enc and dec do not add "
    "up to those of the GPU; nvidia-smi dmon -o DT records these."
)


class Pmon:
    """Reads `nvidia-smi pmon`."""

    name: ClassVar[str] = "nvidia-smi pmon"
    zone: str | None = None
    averaged: bool = False

    def __init__(self) -> None:
        self._names: list[str] = []
        self._comma = False
        self._clock = day_clock.DayClock()

    @staticmethod
    def opens(line: str) -> bool:
        """Return whether a line is a heading of pmon."""
        return _HEADINGS.fullmatch(line) is not None

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield a chunk a piece, and the last tick at the end."""
        yield from ListReader(0, self._line, (_NOTE,)).chunks(log)

    def _line(self, number: int, text: str) -> Listed | NonDataLine:
        if self.opens(text):
            self._comma = "," in text
            self._names = [name.lower() for name in text.replace(",", " ").replace("#", " ", 1).split()]
            return NonDataLine(number, LineKind.HEADER, "", text)
        if _UNITS.fullmatch(text):
            return NonDataLine(number, LineKind.HEADER, "", text)
        if text.lstrip().startswith("#"):
            return NonDataLine(number, LineKind.NOISE, "", text)
        return self._row(number, text) if self._names else rejected(number, BEFORE_HEADER, text)

    def _row(self, number: int, text: str) -> Listed | NonDataLine:
        """Return what a process is, or why the line is none; only its name may hold blanks or commas."""
        cells = [cell.strip() for cell in text.strip().split("," if self._comma else None, len(self._names) - 1)]
        if len(cells) != len(self._names):
            return rejected(number, WRONG_CELLS, text)
        row = dict(zip(self._names, cells, strict=True))
        for name, wanted in (("gpu", _INDEX), ("pid", _PID)):
            if not wanted.fullmatch(row[name]):
                return rejected(number, f"{MALFORMED} {name}", text)
        if "time" not in row:
            return rejected(number, NO_TIME, text)
        time = self._time(row)
        if time is None:
            return rejected(number, f"{MALFORMED} time", text)
        memory = f"{row['fb']} MB" if row.get("fb", "-").isdigit() else row.get("fb")
        return Listed(number=number, time=time, gpu={"index": row["gpu"]}, pid=row["pid"], memory=memory)

    def _time(self, row: dict[str, str]) -> int | None:
        if "date" in row:
            return stamps.read(f"{row['date']} {row['time']}")
        clock = day_clock.of_day(row["time"])
        return None if clock is None else int(self._clock.times(np.array([clock]))[0])
