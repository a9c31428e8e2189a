"""`gpureport record`."""

import shlex
from datetime import datetime
from pathlib import Path

import click

from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options.usage_errors import UsageError
from gpureport.cli.options.written_paths import OutputType, WritingCommand

_FINEST, _COARSEST = 0.1, 60.0


class _RecordCommand(WritingCommand):
    """A command whose job begins after `--`: an option between the words of a job would be taken for one of ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse a job without `--` before it."""
        typed = list(args)
        rest = super().parse_args(ctx, args)
        job = ctx.params.get("command") or ()
        if job and typed[-len(job) - 1 : -len(job)] != ["--"]:
            msg = f"put -- before the command to run: gpureport record -- {shlex.join(job)}"
            raise UsageError(msg, ctx, code="missing_dashes")
        return rest


@click.command(
    cls=_RecordCommand,
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=OutputType(local="a job is recorded on this machine", is_folder=True),
    metavar="DIR",
    help="New folder for the logs; without it, recording-DATE-TIME is made here.",
)
@click.option(
    "--interval",
    type=click.FloatRange(_FINEST, _COARSEST),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two samples.",
)
@click.option("--host-only", is_flag=True, help="Record the machine without its GPUs.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def record(*, folder: Path | None, interval: float, host_only: bool, command: tuple[str, ...]) -> int:
    """Record the GPUs and the machine while COMMAND runs, or until Ctrl-C.

    Example: gpureport record -o runs/base -- python train.py --epochs 3

    The folder holds the logs of nvidia-smi, of the machine and of the job's processes. The exit code is that of
    COMMAND, or 0 after Ctrl-C without one. If nvidia-smi is missing, COMMAND does not start, and the exit code is 3.
    Passwords and tokens in COMMAND are not written down.
    """
    from gpureport.recorder.recording_session import RecordingPlan, RecordingSession  # noqa: PLC0415 - loads psutil

    folder = folder or Path(f"recording-{datetime.now():%Y%m%d-%H%M%S}")
    session = RecordingSession(RecordingPlan(folder=folder, command=command, interval=interval, host_only=host_only))
    if not command:
        print_note(f"Recording into {make_printable(str(folder))}. Ctrl-C ends it.")
    code = session.record()
    for note in session.run.notes:
        print_note(f"gpureport: {make_printable(note)}")
    shown = make_printable(str(folder))
    print_note(f"Recorded {_length(session.run.started, session.run.ended)} in {shown}.")
    print_note(f"Read it: gpureport report {shown} -o report.html")
    return code


def _length(started: int, ended: int | None) -> str:
    """Return the length of a recording in words."""
    seconds = round(((ended or started) - started) / 1e6)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes) + [f"{seconds} s"]
    return " ".join(parts[:2])
