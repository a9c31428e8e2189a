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
    """A line that was rejected, by its number from 1, without secrets and shortened."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Lines that could not be used, by reason, with the number of the first, if known, and a few examples."""

    reason: str
    rows: int
    first_line: int | None
    examples: tuple[RejectedLine, ...] = field(default=(), compare=False)

    @property
    def at(self) -> str:
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


CLOCK_SET_BACK = "clock set back"  # cause of a step of one log that goes on, whose later stamps are moved


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStep:
    """A backward step of a device's stamps, why it is there, and the shift that later stamps got for it.

    The cause is `daylight saving` at the end of summer time, `clock set back` where one log goes on, `log restarted`
    where another recording begins, which keeps its stamps. `at` is the time of the first row after it.
    """

    device: str
    at: int
    step_seconds: float
    shift_seconds: float
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """Something the log says happened: a message of the driver between rows, or a GPU that answered no more.

    The kind is `gpu_lost`, `driver_restart`, `no_devices` or `driver_message`, `at` the time of the row beside it.
    """

    kind: str
    at: int | None
    line: int
    device: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What became of every line that was read: lines = rows kept + rejected + headers + noise + events + continued.

    A line with several rows counts once a row; `continued` ones say more of a row that is counted already. `duplicates`
    have the device and stamp of the row before. `synthetic_time` was counted from `--interval`, `imputed_points` are
    values that the recorder is known to drop. `coverage_ratio` is the share of the time of all GPUs that is not in a
    gap. What is `unfinished` has no end: it is recorded still, or the recorder was killed.
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
    """Return the distance between two samples above which the time between them is a gap of the log.

    Jitter of up to 2.6 intervals is normal in genuine logs; below 2 s of interval a collector's hiccup of some seconds
    is too (pragmatic, measured on public logs).
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
