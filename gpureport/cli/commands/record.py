"""`gpureport record`."""

import shlex
from datetime import datetime
from pathlib import Path

import click

from gpureport.cli.command import Command, command
from gpureport.cli.messages import UsageError, print_note
from gpureport.cli.options import Options


class _RecordCommand(Command):
    """A command whose job begins after `--`: an option between the words of a job would be taken for one of ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse a job without `--` before it."""
        typed = list(args)
        rest = super().parse_args(ctx, args)
        job = ctx.params.get("command") or ()
        if job and typed[-len(job) - 1 : -len(job)] != ["--"]:
            msg = f"put -- before the command to run: gpureport record -- {shlex.join(job)}"
            raise UsageError(msg, code="missing_dashes")
        return rest


@command(
    "record",
    click.Argument(["command"], nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]"),
    kind=_RecordCommand,
    context_settings={"allow_interspersed_args": False},
)
def record(job: tuple[str, ...], options: Options) -> int:
    """Record the GPUs and the machine while COMMAND runs, or until Ctrl-C.

    Example: gpureport record -o runs/base -- python train.py --epochs 3

    The folder holds the logs of nvidia-smi, of the machine and of the job's processes. The exit code is that of
    COMMAND, or 0 after Ctrl-C without one. If nvidia-smi is missing, COMMAND does not start, and the exit code is 3.
    Passwords and tokens in COMMAND are not written down.
    """
    from gpureport.recorder.recording_session import RecordingSession  # noqa: PLC0415 - loads psutil

    folder = options.folder or Path(f"recording-{datetime.now():%Y%m%d-%H%M%S}")
    session = RecordingSession(folder, job, options.record_interval, host_only=options.host_only)
    if not job:
        print_note(f"Recording into {folder}. Ctrl-C ends it.")
    code = session.record()
    for note in session.run.notes:
        print_note(f"gpureport: {note}")
    print_note(f"Recorded {_length(session.run.started, session.run.ended)} in {folder}.")
    print_note(f"Read it: gpureport report {folder} -o report.html")
    return code


def _length(started: int, ended: int | None) -> str:
    """Return the length of a recording in words."""
    seconds = round(((ended or started) - started) / 1e6)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes) + [f"{seconds} s"]
    return " ".join(parts[:2])
