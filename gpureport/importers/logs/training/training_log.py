"""The importer of training logs: what Lightning's CSVLogger, a Trainer of Hugging Face and TensorBoard's export write.

Their metrics are told apart by headings or keys. A row may state a date, seconds since 1970, seconds since the run
began, or a step only; then its points have no time.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpureport.errors import SourceError
from gpureport.importers.decoding.pieces import head_text, pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.layout import split_header as header_cells
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.devices.line_tally import Tally
from gpureport.importers.logs.training.points import Points
from gpureport.importers.logs.training.rows import find_time_and_step, normalise_name, read_row
from gpureport.importers.protocol.importer import Outcome, ReadOptions
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, MALFORMED, NO_TIME, WRONG_CELLS
from gpureport.importers.timebase import zones
from gpureport.json_text import parse_json

if TYPE_CHECKING:
    import pyarrow as pa

_TAG = re.compile(r"(?:run-.*-)?tag-(.+)", re.IGNORECASE)
_BOARD = {"wall_time", "step", "value"}
_HISTORY = "log_history"
_TRAINING_METRIC = re.compile(
    r"(?:^|[^a-z])(?:loss|acc|accuracy|perplexity|ppl|f1|auc|bleu|reward|lr|learning_rate)(?:$|[^a-z])"
)
"""What only a training loop writes."""
WANTED = "give Lightning's metrics.csv, a trainer_state.json, a CSV of TensorBoard, or a CSV with a step or a time"


@dataclass(frozen=True, slots=True)
class Training:
    """A training log that was read.

    Attributes:
        table: its points, as `Recording.training`.
        outcome: what is known of it; its span is 0 where no point has a time.
        counted: whether its times were counted from the start of the run.
    """

    table: "pa.Table"
    outcome: Outcome
    counted: bool

    @property
    def dated(self) -> bool:
        """Whether its points state when they were written."""
        return self.table.column("timestamp").null_count == 0 and not self.counted


class TrainingLog:
    """The importer of training logs."""

    kind: ClassVar[str] = "training"
    title: ClassVar[str] = "training log"
    recognised_by: ClassVar[str] = "A CSV or JSON lines with a step or a time and at least one metric, such as a loss."
    sample: ClassVar[str] = "no_progress/training.csv"

    def identify(self, head: bytes) -> bool:
        """Return whether the first line is an object, or headings with a step or a time and at least one metric."""
        text = head_text(head).lstrip()
        if text.startswith("{"):
            return True
        first = text.partition("\n")[0].strip()
        _, names = header_cells(first)
        return len(names) > 1 and any(find_time_and_step({normalise_name(name): name for name in names}))

    def is_training_log(self, head: bytes) -> bool:
        """Return whether an unnamed file is a training log: it must also name a loss or a similar metric."""
        text = head_text(head).lstrip()
        if text.startswith("{"):
            found = next(_objects(text.split("\n", 1)[:1]), (0, ""))[1]
            return f'"{_HISTORY}"' in text or (isinstance(found, Mapping) and _has_training_columns(found))
        return self.identify(head) and _has_training_columns(header_cells(text.partition("\n")[0].strip())[1])

    def read(self, file: RawFile, options: ReadOptions, started: int, name: str) -> Training:
        """Read a training log.

        Args:
            file: the log.
            options: the zone of its stamps.
            started: when the run began, in microseconds, for a log of elapsed times.
            name: what a person called it; TensorBoard's export names its metric nowhere else.

        Raises:
            SourceError: when it holds no point.
        """
        lines = [line for piece in pieces(file) for line in piece.data.decode(errors="replace").split("\n")]
        reader = _Reader(name)
        reader.read(lines)
        if not len(reader.points):
            raise SourceError(str(file.path), "it holds no training metric", WANTED, code="no_training_metrics")
        return reader.training(options, started)


class _Reader:
    def __init__(self, name: str) -> None:
        self.points = Points()
        self._tally = Tally()
        self._value = _tag(name)

    def read(self, lines: list[str]) -> None:
        text = "\n".join(lines)
        state = _state(text)
        if state is not None:
            self._state(text, state)
        elif text.lstrip().startswith("{"):
            self._rows(lines, _objects(lines))
        else:
            self._rows(lines, self._table(lines))

    def _state(self, text: str, history: list[Any]) -> None:
        """Take the history in the state of a Trainer; its lines are those of one object each and more."""
        lines = sum(1 for line in text.split("\n") if line.strip())
        rows = [entry for entry in history if isinstance(entry, dict)]
        faults = [fault for entry in rows if (fault := self._take(entry))]
        lines = max(lines, len(rows))
        other_lines = [NonDataLine(0, LineKind.REJECTED, fault, "") for fault in faults]
        self._tally.take(lines, len(rows) - len(faults), lines - len(rows), other_lines)

    def _table(self, lines: list[str]) -> Iterator[tuple[int, Mapping[str, object] | str]]:
        """Yield the rows of a CSV by their lines, or why a line is none."""
        delimiter, names = header_cells(next((line for line in lines if line.strip()), ""))
        names = [name.strip('"').removeprefix("\ufeff") for name in names]
        if {normalise_name(name) for name in names} == _BOARD:
            names = [self._value if normalise_name(name) == "value" else name for name in names]
        header = False
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if not header:
                header = True
                self._tally.take(1, 0, 0, [NonDataLine(number, LineKind.HEADER, "", line)])
                continue
            cells = _cells(line, delimiter)
            if number == len(lines):
                yield number, CUT_LAST_LINE
            elif len(cells) != len(names):
                yield number, WRONG_CELLS
            else:
                yield number, dict(zip(names, cells, strict=True))

    def _rows(self, lines: list[str], found: Iterable[tuple[int, Mapping[str, object] | str]]) -> None:
        for number, cells in found:
            fault = cells if isinstance(cells, str) else self._take(cells)
            other_lines = [NonDataLine(number, LineKind.REJECTED, fault, lines[number - 1])] if fault else []
            self._tally.take(1, not fault, 0, other_lines)

    def _take(self, cells: Mapping[str, object]) -> str:
        """Take a row; return why that cannot be done."""
        found = read_row(cells)
        if found.when is None:
            return f"{MALFORMED} time"
        return "" if self.points.add(found.when, found.step, found.values) else NO_TIME

    def training(self, options: ReadOptions, started: int) -> Training:
        """Return the points on the time base of the run."""
        kind, times = self.points.kind, self.points.times
        placed = times + (started if kind == "elapsed" else 0)
        if kind == "local" and options.tz is not None:
            placed = zones.to_utc(times, zones.load_zone(options.tz), np.zeros(len(times), dtype=np.bool_))
        self._tally.notes += self._notes()
        return Training(
            self.points.table(placed),
            Outcome(
                devices=(),
                quality=self._tally.quality([]),
                span=(0, 0) if kind == "none" else (int(placed.min()), int(placed.max())),
                timezone="UTC" if kind == "utc" else None,
            ),
            counted=kind == "elapsed",
        )

    def _notes(self) -> Iterator[str]:
        if self.points.kind == "none":
            yield "The training log states no times: its points are known by their steps only."
        elif self.points.kind == "elapsed":
            yield "The training log counts its times from 0: they were counted from the first sample of the run."


def _has_training_columns(names: Iterable[str]) -> bool:
    """Return whether headings or keys name a time or a step, and a metric that only a training loop has."""
    named = {normalise_name(name.strip('"').removeprefix("\ufeff")): name for name in names}
    return any(find_time_and_step(named)) and (named.keys() >= _BOARD or any(map(_TRAINING_METRIC.search, named)))


def _state(text: str) -> list[Any] | None:
    """Return the history in the state of a Trainer, None where the text is none."""
    if f'"{_HISTORY}"' not in text:
        return None
    try:
        content = parse_json(text)
    except (ValueError, RecursionError):
        return None
    history = content.get(_HISTORY) if isinstance(content, dict) else None
    return history if isinstance(history, list) else None


def _objects(lines: list[str]) -> Iterator[tuple[int, Mapping[str, object] | str]]:
    """Yield JSON objects by their lines, or why a line is none."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                content = parse_json(line)
            except (ValueError, RecursionError):
                yield number, CUT_LAST_LINE if number == len(lines) else f"{MALFORMED} object"
                continue
            yield number, content if isinstance(content, dict) else f"{MALFORMED} object"


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _tag(name: str) -> str:
    """Return the metric an export of TensorBoard is called after."""
    stem = Path(name).stem
    match = _TAG.search(stem)
    return match[1] if match else stem
