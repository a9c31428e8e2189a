"""`nvidia-smi stats` of drivers up to R530: a line a sample, `gpu, metric, microseconds, value`, metric by metric."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.aligned_columns import CUT
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, MALFORMED, WRONG_CELLS
from gpureport.importers.text.text_log import Chunk, Record, columns_from_records
from gpureport.importers.values.cells import extra_name
from gpureport.metrics import BY_NAME

_SAMPLE = re.compile(r"\s*(\d{1,4})\s*,\s*([A-Za-z]\w*)\s*,\s*(\d{15,16})\s*,\s*(\d{1,12}(?:\.\d+)?|-|\[?N/A\]?)\s*")
_METRICS = {
    "procClk": ("gpu_sm_clock_hertz", 1e6),
    "memClk": ("gpu_memory_clock_hertz", 1e6),
    "pwrDraw": ("gpu_power_watts", 1.0),
    "temp": ("gpu_temperature_celsius", 1.0),
    "gpuUtil": ("gpu_utilization_ratio", 100),
    "memUtil": ("gpu_memory_controller_ratio", 100),
    "encUtil": ("gpu_encoder_ratio", 100),
    "decUtil": ("gpu_decoder_ratio", 100),
}
"""Name to metric, and what its numbers are to be multiplied by, or divided by where the metric is a ratio."""
_KNOWN = {*_METRICS, "violPwr", "violThm"}
_HELD = 10_000_000
"""Microseconds that samples are held back, so that those of another metric at the same time can join them."""
_MOST = 500_000
"""Samples that are held at most."""


@dataclass(frozen=True, slots=True)
class _Sample:
    time: int
    gpu: str
    number: int
    name: str
    value: float | str | None


class Stats:
    """Reads `nvidia-smi stats`; its times count from 1970, so that they are UTC."""

    name: ClassVar[str] = "nvidia-smi stats"
    zone: str | None = "UTC"
    averaged: bool = False

    def __init__(self) -> None:
        """Start without samples."""
        self._held: list[_Sample] = []
        self._absent: Counter[tuple[str, str]] = Counter()

    @staticmethod
    def opens(line: str) -> bool:
        """Return whether a line is a sample of a metric that stats is known to write."""
        match = _SAMPLE.fullmatch(line)
        return match is not None and match[2] in _KNOWN

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield rows of one GPU and time each, in the order of time."""
        for piece in log:
            cut = piece.last and bool(piece.data) and not piece.data.endswith(b"\n")
            other_lines = list(self._take(piece, cut=cut))
            newest = max((sample.time for sample in self._held), default=0)
            wait = 0 if len(self._held) > _MOST else _HELD
            yield self._chunk(newest - wait, other_lines, (CUT,) if cut else ())
        yield self._chunk(None, (), ())

    def _take(self, piece: Piece, *, cut: bool) -> Iterator[NonDataLine]:
        """Hold the samples of a piece; yield the lines that are none."""
        lines = piece.data.split(b"\n")
        for number, raw in enumerate(lines, piece.first_line):
            text = raw.decode(errors="replace").strip("\r")
            if not text.strip("\0\t "):
                continue
            match = _SAMPLE.fullmatch(text)
            if cut and number == piece.first_line + len(lines) - 1:
                yield NonDataLine(number, LineKind.REJECTED, CUT_LAST_LINE, text)
            elif match is None:
                yield NonDataLine(number, LineKind.REJECTED, WRONG_CELLS, text)
            elif (sample := _sample(number, match)) is None:
                yield NonDataLine(number, LineKind.REJECTED, f"{MALFORMED} {match[2]}", text)
            else:
                self._held.append(sample)
                if sample.value is None:
                    self._absent[match[2], match[4].strip("[]")] += 1

    def _chunk(self, until: int | None, other_lines: Sequence[NonDataLine], notes: tuple[str, ...]) -> Chunk:
        """Return the samples up to a time, all when None, as rows of one GPU and time."""
        ready = [sample for sample in self._held if until is None or sample.time <= until]
        self._held = [] if until is None else [sample for sample in self._held if sample.time > until]
        rows: dict[tuple[int, str], dict[str, float | bool | str]] = {}
        numbers: dict[tuple[int, str], int] = {}
        for sample in sorted(ready, key=lambda sample: (sample.time, sample.gpu, sample.number)):
            key = sample.time, sample.gpu
            numbers.setdefault(key, sample.number)
            row = rows.setdefault(key, {"index": sample.gpu})
            if sample.value is not None:
                row[_METRICS.get(sample.name, (extra_name(sample.name), 1))[0]] = sample.value
        absent, self._absent = dict(self._absent), Counter()
        return Chunk(
            numbers=np.sort(np.array(list(numbers.values()), dtype=np.int64)),
            times=np.array([time for time, _ in rows], dtype=np.int64),
            data=columns_from_records([Record(number=0, time=None, values=row) for row in rows.values()]),
            lines=len(ready) + len(other_lines),
            other_lines=other_lines,
            continued=len(ready) - len(rows),
            absent=absent,
            notes=notes,
        )


def _sample(number: int, match: "re.Match[str]") -> _Sample | None:
    """Return what a line says, None where its value cannot be one of its metric."""
    gpu, name, time, text = match.groups()
    value: float | str | None = None
    if text[0].isdigit():
        metric, factor = _METRICS.get(name, ("", 1))
        ratio = metric in BY_NAME and BY_NAME[metric].unit == "1"
        value = text if not metric else float(text) / factor if ratio else float(text) * factor
        if ratio and float(text) > factor:
            return None
    return _Sample(int(time), str(int(gpu)), number, name, value)
