"""What became of every line that was read: the account each recording carries.

Times are integer microseconds since 1970-01-01, on the time base of the recording.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any

from gpureport.redaction import redact_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedLine:
    """A line that was rejected: its number from 1, and what it says, without secrets and shortened."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Lines that were read but could not be used, by reason, with the number of the first of them (from 1).

    The number is None where the lines were counted after they had become rows of the series. A few are examples,
    unless they were whole rows.
    """

    reason: str
    rows: int
    first_line: int | None
    examples: tuple[RejectedLine, ...] = field(default=(), compare=False)

    @property
    def at(self) -> str:
        """The line of the first of them, in brackets; empty when it is not known."""
        return "" if self.first_line is None else f" (first at line {self.first_line})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentCells:
    """Cells of a column that hold no value, by the reason the log gives (`N/A`, `Unknown Error`, `empty`)."""

    column: str
    reason: str
    cells: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGap:
    """A stretch without samples of one device, far longer than the sampling interval, in microseconds."""

    device: str
    start: int
    end: int


CLOCK_SET_BACK = "clock set back"
"""Cause of a step of one log that goes on, whose later stamps are moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStep:
    """A backward step of a device's stamps, why it is there, and the shift that later stamps got for it.

    `at` is the time that the first row after the step has in the series, the shift includes earlier ones. The cause is
    `daylight saving` at the end of summer time, `clock set back` where one log goes on, `log restarted` where another
    recording begins, which keeps its stamps.
    """

    device: str
    at: int
    step_seconds: float
    shift_seconds: float
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """Something the log says happened: a message of the driver between rows, or a GPU that answered no more.

    The kind is `gpu_lost`, `driver_restart`, `no_devices` or `driver_message`; `at` is the time of the row before it,
    of the row after where there is none before, in microseconds, None without rows.
    """

    kind: str
    at: int | None
    line: int
    device: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What became of every line that was read: lines = rows kept + rejected + headers + noise + events + continued.

    Attributes:
        lines: non-empty lines of the log; one that holds several rows counts once a row.
        rows_kept: rows in the series that came from them.
        rejected: lines that were not understood, by reason.
        noise: separator and date lines that carry no data.
        events: whole-line driver messages.
        continued: lines that say more of a row that another line is counted for, as those of a block of XML.
        duplicates: rows with the same device and stamp as the row before them (kept).
        log_events: driver messages and lost GPUs with their time, the first of each kind and text at least.
        synthetic_time: whether times were counted from `--interval` because the log has no stamps.
        imputed_points: values restored because the recorder is known to drop them.
        coverage_ratio: share of the time from first to last sample, over all GPUs, that is not in a gap; None with a
            single sample. An analysis says how much of it samples cover.
        unfinished: whether the recorder has written no end: it is recording still, or was killed.
    """

    lines: int = 0
    rows_kept: int = 0
    rejected: tuple[Rejected, ...] = ()
    headers: int = 0
    noise: int = 0
    events: int = 0
    continued: int = 0
    absent_cells: tuple[AbsentCells, ...] = ()
    gaps: tuple[LogGap, ...] = ()
    duplicates: int = 0
    clock_steps: tuple[ClockStep, ...] = ()
    log_events: tuple[LogEvent, ...] = ()
    synthetic_time: bool = False
    imputed_points: int = 0
    coverage_ratio: float | None = None
    notes: tuple[str, ...] = ()
    unfinished: bool = False

    def redacted(self) -> "Quality":
        """Return the same without secrets in the texts of notes and events."""
        return replace(
            self,
            notes=tuple(map(redact_text, self.notes)),
            log_events=tuple(replace(each, text=redact_text(each.text)) for each in self.log_events),
        )

    @property
    def accounted(self) -> bool:
        """Whether every line read is accounted for."""
        rejected = sum(entry.rows for entry in self.rejected)
        return self.lines == self.rows_kept + rejected + self.headers + self.noise + self.events + self.continued


GAP_INTERVALS = 3.5
_GAP_FLOOR_SECONDS = 5.0
_FINE_SECONDS = 2.0


def gap_seconds(interval: float) -> float:
    """Return the distance between two samples above which the time between them is a gap of the log.

    Jitter of up to 2.6 intervals is normal in genuine logs; below 2 s of interval a collector's hiccup of some
    seconds is too (pragmatic, measured on public logs).

    Args:
        interval: median distance between samples, in seconds.
    """
    return max(GAP_INTERVALS * interval, _GAP_FLOOR_SECONDS if interval < _FINE_SECONDS else 0.0)


def merge_quality(accounts: Sequence[Quality]) -> Quality:
    """Return the account of several sources together; coverage and restored points are those of the first."""
    merged: dict[str, Any] = {}
    for each in fields(Quality):
        values = [getattr(quality, each.name) for quality in accounts]
        if isinstance(values[0], tuple):
            merged[each.name] = tuple(chain.from_iterable(values))
        elif isinstance(values[0], bool):
            merged[each.name] = any(values)
        elif each.name not in {"coverage_ratio", "imputed_points"}:
            merged[each.name] = sum(values)
    return replace(accounts[0], **merged)
