"""`gpureport record`."""

from datetime import datetime
from pathlib import Path

from gpureport.cli.messages import print_note
from gpureport.cli.options import Options
from gpureport.number_format import format_duration
from gpureport.recorder.recording_session import RecordingSession


def record(job: tuple[str, ...], options: Options) -> int:
    """Record while a job runs; return its exit code."""
    folder = options.folder or Path(f"recording-{datetime.now():%Y%m%d-%H%M%S}")
    session = RecordingSession(folder, job, options.record_interval, host_only=options.host_only)
    if not job:
        print_note(f"Recording into {folder}. Ctrl-C ends it.")
    code = session.record()
    for note in session.run.notes:
        print_note(f"gpureport: {note}")
    seconds = ((session.run.ended or session.run.started) - session.run.started) / 1e6
    print_note(f"Recorded {format_duration(seconds)} in {folder}.")
    print_note(f"Read it: gpureport report {folder} -o report.html")
    return code
