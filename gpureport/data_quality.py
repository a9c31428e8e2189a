"""Accounts for every line read, as part of each recording.

Times are integer microseconds since 1970-01-01 in the recording's time base.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any

from gpureport.redaction import redact_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedLine:
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Lines rejected for one reason, with the first line's number, if known, and examples."""

    reason: str
    rows: int
    first_line: int | None
    examples: tuple[RejectedLine, ...] = field(default=(), compare=False)

    @property
    def at(self) -> str:
        return "" if self.first_line is None else f" (first at line {self.first_line})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentCells:
    """Cells without a value in one column, with the reason given in the log (`N/A`, `Unknown Error`, `empty`)."""

    column: str
    reason: str
    cells: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGap:
    """A period without samples from one device that is much longer than the sampling interval."""

    device: str
    start: int
    end: int


CLOCK_SET_BACK = "clock set back"  # cause of a step after which the log continues; later timestamps are shifted


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStep:
    """A backward step in a device's timestamps, its cause, and the shift that corrects later timestamps.

    The cause is `daylight saving` at the end of summer time, `clock set back` if the same log
    continues, or `log restarted` if a new recording starts, in which case nothing is shifted.
    `at` is the time of the first row after the step.
    """

    device: str
    at: int
    step_seconds: float
    shift_seconds: float
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """An event in the log: a driver message between rows, or a GPU that stopped responding.

    The kind is `gpu_lost`, `driver_restart`, `no_devices` or `driver_message`. `at` is the time of a neighbouring row.
    """

    kind: str
    at: int | None
    line: int
    device: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """All lines read: lines = rows kept + rejected + headers + noise + events + continued.

    A line with several rows counts once per row. A `continued` line adds to a row that was counted earlier.
    `duplicates` counts rows that repeat the previous row's device and time. `synthetic_time` means that times were
    derived from `--interval`, and `imputed_points` counts restored values that the recorder drops.
    `coverage_ratio` is the share of GPU time that is not in a gap. If a recording is `unfinished`, it is
    still being written, or its recorder was killed.
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
        return replace(
            self,
            notes=tuple(map(redact_text, self.notes)),
            log_events=tuple(replace(each, text=redact_text(each.text)) for each in self.log_events),
        )

    @property
    def accounted(self) -> bool:
        rejected = sum(entry.rows for entry in self.rejected)
        return self.lines == self.rows_kept + rejected + self.headers + self.noise + self.events + self.continued


GAP_INTERVALS, _GAP_FLOOR_SECONDS, _FINE_SECONDS = 3.5, 5.0, 2.0


def gap_seconds(interval: float) -> float:
    """Return the longest time between two samples, in seconds, that is not a log gap.

    Real logs have jitter of up to 2.6 intervals, and collector delays of a few seconds
    at intervals below 2 s.
    """
    return max(GAP_INTERVALS * interval, _GAP_FLOOR_SECONDS if interval < _FINE_SECONDS else 0.0)


def merge_quality(accounts: Sequence[Quality]) -> Quality:
    """Return the combined account of sources, with the coverage and imputed points of the first source."""
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
