"""Counts how each line was handled, and defines reason and note codes."""

import re
import shlex
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpureport.columns import IntArray
from gpureport.data_quality import AbsentCells, LogEvent, Quality, Rejected, RejectedLine
from gpureport.redaction import redact_start

WRONG_CELLS = "wrong number of cells"
MALFORMED = "malformed"
"""Reason for rejecting a row with a malformed cell; the column name is appended."""
TORN = "torn line"
NUL_BYTES = "NUL bytes"
CUT_LAST_LINE = "cut last line"
NOT_TEXT = "not UTF-8 text"
BEFORE_HEADER = "before any header"
GPU_NOT_NAMED = "GPU not named"
NOT_SELECTED = "GPU not selected"
NO_TIME = "no time stamp"
OTHER_FORMAT = "time not in the map's format"
MIG_INSTANCE = "row of a MIG instance"
NO_READING = "no reading of a GPU"
OUTSIDE = "outside --from and --to"
OTHER_JOB = "outside the job of --job"
OTHER_ENTITY = "row of no GPU"
NOT_JSON = "not JSON of this tool"
CUT_DOCUMENT = "cut document"
TWICE = "recorded in the log before as well"
NOT_OF_FORM = "no line of the format"
"""Reason for leaving out a damaged row or any other unexpected line."""
OTHER_MACHINE = "another machine"
OTHER_PROCESS = "another process recorded the same device"
"""Reason for leaving out duplicate points: each process in a run records all GPUs."""
BESIDE_A_LOG = "recorded in an attached log as well"
NO_MAIN_ROW = "no row of the main log at that time"
SECOND_HOST = "another log of the run holds the machine"
TWICE_AT_ONCE = "another value at the same time"
FORKED = "a forked process had the monitor start again"
"""Reason for leaving out points from forked workers of the Neptune client."""
CHOSEN = frozenset({NOT_SELECTED, OTHER_PROCESS, FORKED, OTHER_JOB})
"""Reasons that do not indicate a faulty source."""
_EXAMPLES, _LONGEST = 5, 200
_MOST_EVENTS = 200
_MESSAGES = {
    "Unable to determine the device handle.*(?:is lost|Unknown Error)|(?:Problem with GPU|.*NVRM: Xid \\().*GPU is lost"
    "|GPU is lost": "gpu_lost",
    "NVIDIA-SMI (?:has failed|couldn't find)|Failed to initialize NVML": "driver_restart",
    "No devices were found|Unable to determine the number of GPUs": "no_devices",
    "Unable to determine the device handle|Failed to create log file|NVML library version|Problem with GPU"
    "|.*NVRM: Xid \\(": "driver_message",
}
"""Patterns for the start of each kind of message between rows (nvidia-smi 535 and 550)."""
_CLOCK = r"\d\d:\d\d:\d\d"
_DATE = rf"[A-Z][a-z]{{2}} (?:[A-Z][a-z]{{2}} +\d{{1,2}} {_CLOCK}|\d{{1,2}} [A-Z][a-z]{{2}} \d{{4}} {_CLOCK})"
NOISE = re.compile(
    rf"[-=+*#_ ]{{3,}}|#TYPE [\w.+]+|\d{{4}}[-/]\d\d[-/]\d\d[ T]{_CLOCK}(?:\.\d+)?"
    rf"|{_DATE}(?: [AP]M)?(?: [A-Z]{{2,5}}| [+-]\d{{2,4}})?(?: \d{{4}})?"
)
"""Matches separator lines and dates, such as `Mon Apr 20 03:14:15 PM UTC 2026`."""
_STAMPED = re.compile(r"\s*\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:")
_FIGURES = re.compile(r"\d ?MiB\b|\d%? +\|")
"""Matches text found only in rows: an amount of memory, or a number before a bar."""
_NUMBERS = re.compile(r"(?:(?:-|[-+]?\d[\d.:/-]*|%|W|MHz|C)(?:[\s,;|]+|$)){2,}")
LOST_WORDS = frozenset({"GPU is lost", "GPU requires reset"})
"""Texts shown instead of a value when a GPU no longer responds."""
ERROR_WORDS = frozenset({"Unknown Error", "ERR!"})
"""Texts shown instead of a value that the driver could not read."""


def find_message_kind(text: str) -> str:
    return next((kind for pattern, kind in _MESSAGES.items() if re.match(pattern, text)), "")


def format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def list_first(names: Sequence[str], most: int) -> str:
    """Join the first `most` names, as in `a, b, c and 2 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def format_columns_option(row: Sequence[str]) -> str:
    names = ["timestamp" if _STAMPED.match(cell) else f"column_{place}" for place, cell in enumerate(row, 1)]
    return f"name its columns with --columns {shlex.quote(','.join(names))}, replacing column_N with --query-gpu fields"


@dataclass(slots=True)
class Account:
    """Counts each line of a log once: rows when yielded, and other lines when read.

    `absent` counts cells without a value by column and reason. `snapshot` is true if the log may
    show only one moment. `mixed_note` is added if GPUs cannot be told apart.
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
    rejected: dict[str, list[Any]] = field(default_factory=dict)
    _waiting: deque[tuple[int, str]] = field(default_factory=deque)
    _events: dict[tuple[str, str], LogEvent] = field(default_factory=dict)
    _last: int | None = None

    @property
    def lines(self) -> int:
        """The number of non-empty lines; a line with several rows counts once per row."""
        rejected: int = sum(rows for rows, *_ in self.rejected.values())
        return self.rows + rejected + self.headers + self.noise + self.messages + self.continued

    def note(self, *notes: str) -> None:
        self.notes |= dict.fromkeys(notes)

    def reject(self, reason: str, number: int, text: str = "", rows: int = 1) -> None:
        entry = self.rejected.setdefault(reason, [0, number, []])
        entry[0] += rows
        entry[1] = min(entry[1], number)
        if text and len(entry[2]) < _EXAMPLES:
            entry[2].append(RejectedLine(line=number, text=redact_start(text.strip(), _LONGEST)))

    def reject_rows(self, reason: str, numbers: IntArray) -> None:
        if len(numbers):
            self.reject(reason, int(numbers.min()), rows=len(numbers))

    def drop(self, reason: str, numbers: IntArray) -> None:
        self.rows -= len(numbers)
        self.reject_rows(reason, numbers)

    def message(self, number: int, text: str) -> None:
        self.messages += 1
        self._waiting.append((number, redact_start(text.strip(), _LONGEST)))

    def sort_out(self, number: int, text: str, reason: str) -> None:
        """Count a line that is not a row as a message, as noise or, with a `reason`, as rejected."""
        text = text.strip()
        if find_message_kind(text):
            self.message(number, text)
        elif not reason or NOISE.fullmatch(text):
            self.noise += 1
        else:
            self.reject(reason, number, text)

    def stray(self, number: int, text: str) -> None:
        """Count a line between blocks; if it looks like a row, count it as a damaged row."""
        self.sort_out(number, text, NOT_OF_FORM if _FIGURES.search(text) or _NUMBERS.fullmatch(text) else "")

    def date_messages(self, numbers: IntArray, times: IntArray) -> None:
        """Give each driver message between rows the time of the previous row."""
        if not len(numbers):
            return
        while self._waiting and self._waiting[0][0] < numbers[-1]:
            number, text = self._waiting.popleft()
            row = int(np.searchsorted(numbers, number)) - 1
            at = int(times[row]) if row >= 0 else int(times[0]) if self._last is None else self._last
            self.keep_event(text, number, at)
        self._last = int(times[-1])

    def keep_event(self, text: str, number: int, at: int | None, device: str | None = None) -> None:
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
                Rejected(reason=reason, rows=rows, first_line=at, examples=tuple(examples))
                for reason, (rows, at, examples) in sorted(self.rejected.items())
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
    return NUL_BYTES if "\0" in line else NOT_TEXT if "\ufffd" in line else ""


def whole_lines(
    lines: Iterable[str], first: int, account: Account, *, ends: str | None = None, may_be_cut: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield the number and text of intact or empty lines, stripped of trailing `ends`."""
    for number, line in enumerate(lines, first):
        reason = damage(line) or ("" if may_be_cut or line.endswith("\n") else CUT_LAST_LINE)
        if reason and not line.isspace():
            account.reject(reason, number, line)
        else:
            yield number, line.rstrip(ends)


NOTE_CODES: dict[str, str] = {
    "damaged_archive": "the compressed log is ",
    "copied_log": " is a copy of rows in ",
    "several_writers": "writers wrote to the log at once",
    "nul_bytes_skipped": " skipped.",
    "latin_1_lines": "in latin-1, not utf-8",
    "lines_shortened": " shortened, ",
    "last_line_cut": "so its last line may be cut",
    "torn_lines": "in a whole row",
    "columns_not_used": "--columns was not used",
    "headings_translated": "headings that nvidia-smi does not write",
    "fractions_or_per_cent": "could be fractions or ",
    "share_or_per_cent": "is a share or ",
    "day_before_month": "are read as day/month/year",
    "month_before_day": " the month first",
    "columns_assumed": "dmon wrote no header",
    "columns_not_kept": "not kept",
    "several_values_at_once": "has several values for one gpu and time",
    "what_is_kept": "thresholds and processes are ",
    "instant_power": "no average power, so",
    "power_in_whole_watts": "whole watts hide throttling",
    "processes_listed": "lists processes",
    "means_of_job": "statistics of a job are means over",
    "summary_of_one_gpu": "so it is read as one gpu",
    "means_since_start": "from two of them",
    "mixed_gpus": "neither a column nor their order tells them apart",
    "gpus_by_place": " in the tick: ",
    "one_gpu_assumed": "one gpu is assumed",
    "gpus_by_order": "in the order in which nvidia-smi lists them",
    "several_models": "would show which",
    "minor_numbers": "gpus are numbered by their minor numbers",
    "mig_instances": "mig instances",
    "gpu_model_given": "the gpu model ",
    "gpu_model_not_used": " is not used for it",
    "tags_not_set": " or none, so the ",
    "interval_not_used": "--interval was not used",
    "single_moment": "read as a single sample",
    "rows_without_time": "to read them, give --interval",
    "time_of_day": "so days are counted from",
    "dates_placed": "its times were placed on",
    "zone_above_tables": "as written, without conversion",
    "zones_of_sources": "zones of the time",
    "different_zones": "recordings were made in different",
    "unknown_zone": "known here; give --tz",
    "ambiguous_hour": " in autumn",
    "rows_repeated": "stamp and values)",
    "recordings_out_of_order": "recordings in the log are not",
    "rows_sorted": "too often for a clock",
    "steps_begin_anew": "the steps of the training log",
    "start_up_not_waited": "first iterations in the training log took",
    "steps_only": "no times, so its points",
    "times_from_zero": "counts its times from 0",
    "rows_joined": " joined by time",
    "several_machines": "have the same gpu indices",
    "log_not_used": " the log, but ",
    "log_attached": " and replaces its series for ",
    "attachment_not_used": "is attached to the run",
    "labels_not_read": "is not read as labels",
    "run_file_damaged": "params, zone and exit code are",
    "unfinished": "ended before the job, or",
    "exit_code": "the job ended with exit code",
    "job_not_started": "the job was not started",
    "log_missing": " is missing: ",
    "driver_restarted": "nvidia-smi ended while ",
    "empty_log": " contains no row",
    "mlflow_store": "read from a",
    "deleted_run": "the run was deleted in mlflow",
    "no_end": "the run has no end",
    "no_system_metrics": "no system metrics in this run",
    "derived_values": "derived from a value",
    "reserved_memory_counted": "what the driver reserves",
    "zeros_put_back": "samples with a utilization of 0",
    "never_reported": "was never reported",
    "stamped_late": "stamps a system metric when it logs it",
    "processes_told_by_steps": "processes recorded the same names",
    "monitoring_ended": "hardware monitoring ended",
    "artifacts_not_read": "artifacts of the run could not be",
    "zeros_missing": "and idle time is missing",
    "memory_of_largest": "memory of each gpu is",
    "first_sample_off": "the first sample lies",
    "operations_uploaded": "uploaded and deleted",
    "operations_lost": " lost when the process was killed",
    "newer_database": "the database has version",
    "bars_added": "bars of the training log were",
    "work_counted": "work done",
    "no_work_metric": "counts work in this run",
    "one_mean": " one mean ",
}
"""Note codes, each with lower-case words that identify the note; the first match applies."""


def find_note_code(note: str, files: Iterable[str] = ()) -> str:
    for file in (each for each in files if "." in each):
        note = note.replace(file, "")
    return next((code for code, words in NOTE_CODES.items() if words in note.lower()), "")


def find_reject_code(reason: str) -> str:
    """Return a reason in snake_case, without the column name."""
    known = MALFORMED if reason.startswith(f"{MALFORMED} ") else reason
    return re.sub(r"[^a-z0-9]+", "_", known.lower()).strip("_")
