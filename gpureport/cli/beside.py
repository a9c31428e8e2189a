"""What a report or comparison of long runs does beside its work: reads them ahead, lets a second process judge some."""

import gc
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from gpureport.cli import sources
from gpureport.second_process import SecondProcess

if TYPE_CHECKING:
    from gpureport.cli.options import SourceOptions
    from gpureport.recording import Recording
    from gpureport.store.store import Entry

LONG = 24_000
"""Rows of all runs from which a second process is worth what it takes to start: fifty minutes of eight GPUs.

Measured on two processors: of 24 480 rows the page of one run takes .99 s instead of 1.06 s, that of two runs 1.50 s
instead of 1.90 s, and of 201 600 rows .86 s instead of 1.21 s and 1.88 s instead of 2.31 s.
"""

JUDGING, DRAWING = "gpureport.cli.judging", "gpureport.report.interval_charts"
"""Modules for what it may be asked for, which take longest to import."""


@dataclass(slots=True)
class Beside:
    """A second process, where it is worth it, and the stored runs that are read ahead.

    Attributes:
        draws: whether it is to draw figures, too; else it is worth it for several runs alone.
        second: the process, which may never be started.
        read: stored runs as they are read, by what names them.
        stored: where those runs lie that are judged as they are stored, by their ids.
    """

    draws: bool = False
    second: SecondProcess = field(default_factory=SecondProcess)
    read: "Mapping[str, Future[Recording]]" = field(default_factory=dict)
    stored: "Mapping[str, Entry]" = field(default_factory=dict)
    _reader: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def __enter__(self) -> Self:
        """Take it for a block; nothing is started."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        gc.enable()
        self._reader.shutdown(cancel_futures=True)
        self.second.__exit__(kind, error, trace)

    def begin(self, names: Sequence[str], options: "SourceOptions") -> None:
        """Begin to read stored runs while the rest of the program is imported; start the process where they are long.

        Arrow lets other threads run, so that this takes little of their time.
        """
        found = sources.entries(names, options)
        rows = sum(entry.run.quality.rows_kept for entry in found.values())
        if rows < LONG or not (self.draws or len(found) > 1):
            return
        self._hurry()
        self.second.prepare(JUDGING if len(found) > 1 else DRAWING)
        store = sources.store(options)
        self.read = {name: self._reader.submit(store.read, entry) for name, entry in found.items()}
        if not options.anonymise and options.window is None and options.job is None:
            self.stored = {entry.run.id: entry for entry in found.values()}

    def go_on(self, recordings: "Sequence[Recording]") -> None:
        """Start the process where runs turned out to be long; those that are not stored it can only draw."""
        if self.draws and sum(len(each.series) for each in recordings) >= LONG:
            self._hurry()

    def prepare_drawing(self) -> None:
        """Let the process import what it draws with once it has nothing else to do."""
        if self.draws:
            self.second.prepare(DRAWING)

    def _hurry(self) -> None:
        """Start the process, and let memory in cycles be: to look for it takes a twentieth of the time."""
        gc.disable()
        self.second.start()
