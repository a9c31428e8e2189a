"""What became of every line of a log: rows, noise, rejected lines and why, and notes for readers."""

import re
import shlex
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpureport.columns import IntArray
from gpureport.data_quality import AbsentCells, LogEvent, Quality, Rejected, RejectedLine
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, NOT_OF_FORM, NOT_TEXT, NUL_BYTES
from gpureport.redaction import redact_start

_EXAMPLES, _LONGEST = 5, 200
"""Rejected lines of each reason that are kept, and characters of each."""
_MOST_EVENTS = 200
_MESSAGES = {
    "Unable to determine the device handle.*(?:is lost|Unknown Error)|(?:Problem with GPU|.*NVRM: Xid \\().*GPU is lost"
    "|GPU is lost": "gpu_lost",
    "NVIDIA-SMI (?:has failed|couldn't find)|Failed to initialize NVML": "driver_restart",
    "No devices were found|Unable to determine the number of GPUs": "no_devices",
    "Unable to determine the device handle|Failed to create log file|NVML library version|Problem with GPU"
    "|.*NVRM: Xid \\(": "driver_message",
}
"""How the messages begin that the nvidia-smi program writes between rows (strings of its 535 and 550 binaries)."""
_CLOCK = r"\d\d:\d\d:\d\d"
_DATE = rf"[A-Z][a-z]{{2}} (?:[A-Z][a-z]{{2}} +\d{{1,2}} {_CLOCK}|\d{{1,2}} [A-Z][a-z]{{2}} \d{{4}} {_CLOCK})"
NOISE = re.compile(
    rf"[-=+*#_ ]{{3,}}|#TYPE [\w.+]+|\d{{4}}[-/]\d\d[-/]\d\d[ T]{_CLOCK}(?:\.\d+)?"
    rf"|{_DATE}(?: [AP]M)?(?: [A-Z]{{2,5}}| [+-]\d{{2,4}})?(?: \d{{4}})?"
)
"""Rulers and dates, among them those of `date`: `Mon Apr 20 03:14:15 PM UTC 2026`, `Mon 20 Apr 2026 15:14:15 CEST`."""
_STAMPED = re.compile(r"\s*\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:")
_FIGURES = re.compile(r"\d ?MiB\b|\d%? +\|")
"""What only rows hold: memory, and cells between bars."""
_NUMBERS = re.compile(r"(?:(?:-|[-+]?\d[\d.:/-]*|%|W|MHz|C)(?:[\s,;|]+|$)){2,}")
LOST_WORDS = frozenset({"GPU is lost", "GPU requires reset"})
"""What stands in place of a value where a GPU answers no more."""
ERROR_WORDS = frozenset({"Unknown Error", "ERR!"})
"""What stands in place of a value that the driver could not read."""


def find_message_kind(text: str) -> str:
    return next((kind for pattern, kind in _MESSAGES.items() if re.match(pattern, text)), "")


def format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def list_first(names: Sequence[str], most: int) -> str:
    """Return at most so many names, and the count of the rest: `a, b, c and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def format_columns_option(row: Sequence[str]) -> str:
    names = ["timestamp" if _STAMPED.match(cell) else f"column_{place}" for place, cell in enumerate(row, 1)]
    return f"name its columns: --columns {shlex.quote(','.join(names))}, with the fields of --query-gpu in their place"


@dataclass(slots=True)
class Account:
    """The lines of one log. A form counts each line once: rows count as they are yielded, the others are reported here.

    `absent` counts cells without a value by column and reason, `columns` has headings and what each became, `forms` the
    rows of each form, `rejected` lines and the first by reason. Power may be known to be `averaged` over a second; a
    `snapshot` shows GPUs at one moment; `mixed_note` is for rows of several GPUs that nothing tells apart.
    """

    rows: int = 0
    headers: int = 0
    noise: int = 0
    messages: int = 0
    continued: int = 0
    absent: Counter[tuple[str, str]] = field(default_factory=Counter)
    notes: dict[str, None] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    columns: dict[tuple[str, str], None] = field(default_factory=dict)
    averaged: bool = False
    forms: dict[str, int] = field(default_factory=dict)
    snapshot: bool = False
    mixed_note: str = ""
    rejected: dict[str, list[int]] = field(default_factory=dict)
    examples: dict[str, list[RejectedLine]] = field(default_factory=dict)
    _waiting: deque[tuple[int, str]] = field(default_factory=deque)
    _events: dict[tuple[str, str], LogEvent] = field(default_factory=dict)
    _last: int | None = None

    @property
    def lines(self) -> int:
        """Lines that are not empty; one with several rows counts once per row."""
        rejected = sum(rows for rows, _ in self.rejected.values())
        return self.rows + rejected + self.headers + self.noise + self.messages + self.continued

    def note(self, *notes: str) -> None:
        self.notes |= dict.fromkeys(notes)

    def reject(self, reason: str, number: int, text: str = "", rows: int = 1) -> None:
        """Count unusable lines; `number` is the first of them, `text` its content."""
        entry = self.rejected.setdefault(reason, [0, number])
        entry[0] += rows
        entry[1] = min(entry[1], number)
        examples = self.examples.setdefault(reason, [])
        if text and len(examples) < _EXAMPLES:
            examples.append(RejectedLine(line=number, text=redact_start(text.strip(), _LONGEST)))

    def reject_rows(self, reason: str, numbers: IntArray) -> None:
        if len(numbers):
            self.reject(reason, int(numbers.min()), rows=len(numbers))

    def drop(self, reason: str, numbers: IntArray) -> None:
        """Count yielded rows that stay out of the series, by their lines."""
        self.rows -= len(numbers)
        self.reject_rows(reason, numbers)

    def message(self, number: int, text: str) -> None:
        """Count a message of the driver: it has the time of the row before it."""
        self.messages += 1
        self._waiting.append((number, redact_start(text.strip(), _LONGEST)))

    def sort_out(self, number: int, text: str, reason: str) -> None:
        """Count a line that is no row: a driver message, noise, or rejected."""
        text = text.strip()
        if find_message_kind(text):
            self.message(number, text)
        elif NOISE.fullmatch(text):
            self.noise += 1
        else:
            self.reject(reason, number, text)

    def stray(self, number: int, text: str) -> None:
        """Count a line between blocks: with figures it is a damaged row, prose is noise."""
        if find_message_kind(text):
            self.message(number, text)
        elif _FIGURES.search(text) or _NUMBERS.fullmatch(text):
            self.reject(NOT_OF_FORM, number, text)
        else:
            self.noise += 1

    def date_messages(self, numbers: IntArray, times: IntArray) -> None:
        """Give driver messages above the last of some kept rows, by rising lines, the time of the row before."""
        if not len(numbers):
            return
        while self._waiting and self._waiting[0][0] < numbers[-1]:
            number, text = self._waiting.popleft()
            row = int(np.searchsorted(numbers, number)) - 1
            at = int(times[row]) if row >= 0 else int(times[0]) if self._last is None else self._last
            self.keep_event(text, number, at)
        self._last = int(times[-1])

    def keep_event(self, text: str, number: int, at: int | None, device: str | None = None) -> None:
        """Keep a message of the driver, or that a device is lost: up to some, and each once."""
        if len(self._events) < _MOST_EVENTS:
            kind = "gpu_lost" if device else find_message_kind(text) or "driver_message"
            event = LogEvent(kind=kind, at=at, line=number, device=device, text=text)
            self._events.setdefault((text, device or str(at)), event)

    def quality(self, notes: Iterable[str] = ()) -> Quality:
        for number, text in self._waiting:
            self.keep_event(text, number, self._last)
        self._waiting.clear()
        return Quality(
            lines=self.lines,
            rows_kept=self.rows,
            rejected=tuple(
                Rejected(reason=reason, rows=rows, first_line=at, examples=tuple(self.examples.get(reason, ())))
                for reason, (rows, at) in sorted(self.rejected.items())
            ),
            headers=self.headers,
            noise=self.noise,
            events=self.messages,
            continued=self.continued,
            absent_cells=tuple(AbsentCells(column=c, reason=r, cells=n) for (c, r), n in sorted(self.absent.items())),
            log_events=tuple(sorted(self._events.values(), key=lambda event: event.line)),
            notes=(*self.notes, *notes),
        )


def damage(line: str) -> str:
    if "\0" in line:
        return NUL_BYTES
    return NOT_TEXT if "\ufffd" in line else ""


def whole_lines(lines: Iterable[str], first: int, account: Account) -> Iterator[tuple[int, str]]:
    """Yield all undamaged lines, also empty ones: number, and text without trailing blanks."""
    for number, line in enumerate(lines, first):
        reason = damage(line) or ("" if line.endswith("\n") else CUT_LAST_LINE)
        if reason and not line.isspace():
            account.reject(reason, number, line)
        else:
            yield number, line.rstrip()
