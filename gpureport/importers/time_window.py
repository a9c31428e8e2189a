"""Extracts part of a run by keeping only the rows between two moments."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from gpureport import columns
from gpureport.data_quality import Rejected
from gpureport.errors import SettingsError, SourceError
from gpureport.importers.account import OTHER_JOB, OUTSIDE
from gpureport.importers.clock import load_zone
from gpureport.importers.headings import parse_number
from gpureport.names import choose_throughput
from gpureport.parsing import parse_duration
from gpureport.recording import Recording, Run, arrange_series

if TYPE_CHECKING:
    from gpureport.importers.reading import Reading
    from gpureport.importers.tracker_series import TrackedReading

_CLOCK = re.compile(r"(?:(\d{1,9}):)?(\d{1,2}):(\d{1,2}(?:\.\d+)?)")
_HINT = "give a time since the start, such as 90s, 1h30m or 0:10:00, or a date and time, such as 2026-03-14T09:26"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Part of a run, from `start` up to but not including `end`; None means unbounded.

    Each is an offset from the start of the run or an absolute time. `job` is a job's number.
    """

    start: str | None = None
    end: str | None = None
    job: int | None = None

    def bounds(self, run: Run) -> tuple[int, int]:
        start = run.started if self.start is None else _parse_moment("--from", self.start.strip(), run)
        end = run.ended + 1 if self.end is None else _parse_moment("--to", self.end.strip(), run)
        if self.start and self.end and end <= start:
            hint = "give a later end or an earlier start"
            raise SettingsError("--to", "the end is not after the start", hint, code="empty_window")
        return start, end


def _parse_moment(option: str, text: str, run: Run) -> int:
    elapsed = parse_duration(text)
    if clock := _CLOCK.fullmatch(text):
        elapsed = int(clock[1] or 0) * 3_600 + int(clock[2]) * 60 + float(clock[3])
    elif elapsed is None:
        elapsed = parse_number(text)
    if elapsed is not None and isfinite(elapsed * 1e6):
        return run.started + round(elapsed * 1e6)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(option, f"{text!r} is not a time", _HINT, code="not_a_time") from error
    if moment.tzinfo is not None and run.timezone is None:
        what = f"{text!r} has a time zone, but the run has none"
        raise SettingsError(option, what, "leave it out, or give --tz", code="zone_not_known")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC if run.timezone is None else load_zone(run.timezone))
    return round(moment.timestamp() * 1e6)


def cut_recording(recording: Recording, window: Window) -> Recording:
    """Return part of a run, without the run's stated work if training metrics show the part's work."""
    run, training, quality = recording.run, recording.training, recording.run.quality
    start, end = window.bounds(run)

    def keep(table: "pa.Table") -> "pa.Table":
        times = columns.integers(table.column("timestamp"), null=start - 1)
        return table.filter(columns.to_arrow((times >= start) & (times < end), pa.bool_()))

    series = keep(recording.series)
    times = columns.integers(series.column("timestamp"))
    if not len(times):
        what = "nothing was recorded between --from and --to"
        raise SourceError(run.name, what, "choose another part of the run", code="nothing_in_window")
    cut = (replace(gap, start=max(gap.start, start), end=min(gap.end, end)) for gap in quality.gaps)
    gaps = tuple(gap for gap in cut if gap.end > gap.start)
    whole = (min(end, run.ended) - max(start, run.started)) * max(len(run.devices), 1)
    covered = 1 - sum(gap.end - gap.start for gap in gaps) / whole if whole > 0 else None
    outside = len(recording.series) - len(series)
    left = Rejected(reason=OUTSIDE if window.job is None else OTHER_JOB, rows=outside, first_line=None)
    account = replace(
        quality,
        rows_kept=quality.rows_kept - outside,
        rejected=(*quality.rejected, left) if outside else quality.rejected,
        gaps=gaps,
        clock_steps=tuple(step for step in quality.clock_steps if start <= step.at < end),
        log_events=tuple(event for event in quality.log_events if event.at is None or start <= event.at < end),
        coverage_ratio=None if quality.coverage_ratio is None else covered,
    )
    counts_work = choose_throughput(map(str, training.column("name").unique().to_pylist()), None) is not None
    part = replace(
        run,
        name=run.name if window.job is None else f"{run.name} #{window.job}",
        work=None if counts_work else run.work,
        started=int(times.min()),
        ended=int(times.max()),
        stages=tuple(
            replace(stage, start=max(stage.start, start), end=min(stage.end, end))
            for stage in run.stages
            if stage.start < end and stage.end >= start
        ),
        quality=account,
    )
    return Recording(run=part, series=arrange_series([series]), training=keep(training))


class CutReading:
    """Provides part of a run as a `Reading` while keeping the whole run in memory."""

    def __init__(self, reading: "RunReading", window: Window, whole: Recording | None = None) -> None:
        self._reading, self._window, self._whole = reading, window, whole
        self.labels: Any = reading.labels

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reading, name)

    @cached_property
    def _part(self) -> Recording:
        cut = cut_recording(self._whole or self._reading.recording(), self._window)
        work = self.labels.find_work(cut.run.quality) or cut.run.work
        return replace(cut, run=self.labels.look_up(replace(cut.run, id=self.run_id, work=work)))

    @property
    def run_id(self) -> str:
        text = f"{self._reading.run_id}\nfrom={self._window.start or ''} to={self._window.end or ''}\n"
        # arguments may contain any bytes
        return sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]

    def batches(self) -> Iterator["pa.Table"]:
        yield from self._part.by_device().values()

    def run(self) -> Run:
        return self._part.run

    def training(self) -> "pa.Table":
        return self._part.training

    def recording(self) -> Recording:
        return self._part


RunReading: TypeAlias = "Reading | TrackedReading | CutReading"
"""Reads a run or part of one, from logs or a tracker."""
