"""One job of a log that holds several, or each of them as a run of its own."""

from typing import TYPE_CHECKING

from gpureport.cli.messages.progress import show_progress
from gpureport.errors import SettingsError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpureport.analysis.results import Job
    from gpureport.importers.time_window import RunReading, Window
    from gpureport.recording import Recording, Run

EACH = 0
"""The number that means every job."""


def select_readings(reading: "RunReading", job: int) -> "Iterator[RunReading]":
    """Yield the wanted jobs of a run, or the run itself where it cannot be read.

    Raises:
        SettingsError: when it has no such job.
    """
    from gpureport.importers.time_window import CutReading  # noqa: PLC0415 - loads pyarrow

    try:
        with show_progress(reading):
            whole = reading.recording()
    except SourceError:
        # the caller reads it again, and reports the error with the name of its source
        yield reading
        return
    for window in _windows(whole, job):
        yield CutReading(reading, window, whole)


def select_recordings(recording: "Recording", job: int | None) -> "Iterator[Recording]":
    """Yield the jobs of a run that are wanted, the run itself where no job is selected.

    Raises:
        SettingsError: when it has no such job.
    """
    from gpureport.importers.time_window import cut_recording  # noqa: PLC0415 - loads pyarrow

    if job is None:
        yield recording
        return
    for window in _windows(recording, job):
        yield cut_recording(recording, window)


def _windows(recording: "Recording", job: int) -> "list[Window]":
    """Return when the jobs are that are wanted."""
    from gpureport.analysis.job.jobs import find_jobs  # noqa: PLC0415 - loads numpy and pyarrow
    from gpureport.report.sections.head.recording_doubts import job_list  # noqa: PLC0415 - as above

    run = recording.run
    found = find_jobs(recording)
    if not found:
        raise SettingsError("--job", f"{run.name} holds no job: no GPU worked", "leave --job out", code="no_job")
    wanted = [each for each in found if job in {EACH, each.number}]
    if not wanted:
        count = "one job" if len(found) == 1 else f"{len(found)} jobs"
        raise SettingsError(
            "--job", f"{run.name} has no job {job}", f"it holds {count}: {job_list(run, found)}", code="no_such_job"
        )
    return [_window(run, each) for each in wanted]


def _window(run: "Run", job: "Job") -> "Window":
    """Return when a job is; the last sample of a log lies at its end, and belongs to it."""
    from gpureport.importers.time_window import Window  # noqa: PLC0415 - loads pyarrow

    start, end = job.interval.start - run.started, job.interval.end - run.started
    last = job.interval.end == run.ended
    return Window(start=f"{start / 1e6:.6f}s", end=f"{(end + last) / 1e6:.6f}s", job=job.number)
