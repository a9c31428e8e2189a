"""The commands that do not analyse runs, and `gpureport` without a command."""

import os
import shlex
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path

import click

from gpureport.cli.messages import count, list_names, print_note
from gpureport.cli.options import Options, is_own_output

_LOGS = {".csv", ".log", ".txt", ".xml"}
_MOST = 1000
_ALWAYS = (
    "Record a job:           gpureport record -- COMMAND",
    "Report on this folder:  gpureport report . -o report.html",
    "See an example:         gpureport demo",
    "All commands:           gpureport --help",
)
_COMPLETION = """Install completion with one line, then open a new terminal:
  bash  echo 'command -v gpureport > /dev/null && eval "$(gpureport completion bash)"' >> ~/.bashrc
  zsh   echo 'command -v gpureport > /dev/null && eval "$(gpureport completion zsh)"' >> ~/.zshrc
  fish  gpureport completion fish > ~/.config/fish/completions/gpureport.fish"""


def record(job: tuple[str, ...], options: Options) -> int:
    from gpureport.number_format import format_duration
    from gpureport.recorder.recording_session import RecordingSession

    folder = options.folder or Path(f"recording-{datetime.now():%Y%m%d-%H%M%S}")
    session = RecordingSession(folder, job, options.record_interval, host_only=options.host_only)
    if not job:
        print_note(f"Recording to {folder}. Press Ctrl-C to stop.")
    code, run = session.record(), session.run
    for note in run.notes:
        print_note(f"gpureport: {note}")
    print_note(f"Recorded {format_duration(((run.ended or run.started) - run.started) / 1e6)} in {folder}.")
    print_note(f"{'Add a GPU log; r' if options.host_only else 'R'}ead it: gpureport report {folder} -o report.html")
    return code


def publish(files: tuple[str, ...], options: Options) -> None:
    from gpureport.places import parse_place
    from gpureport.publishing import prepare

    skip, follow = options.skip_missing, options.follow_artifact_uri
    for put in prepare([*map(parse_place, files)], options.targets, skip_missing=skip, follow_artifact_uri=follow):
        print_note(f"published {put()}")


def explain(name: str | None, options: Options) -> None:
    from gpureport.analysis import RULES
    from gpureport.analysis.account.selection import apply_settings
    from gpureport.cli.output import measure_page
    from gpureport.report import explanation
    from gpureport.settings import read_settings

    rules = apply_settings(RULES, read_settings(options.config))
    blocks = explanation.explain(name, rules, brief=options.explained_detail == "short")
    click.echo(explanation.render(blocks, measure_page()), nl=False)


def completion(shell: str | None, _: Options) -> None:
    from click.shell_completion import get_completion_class

    program = click.get_current_context().find_root().command
    made = get_completion_class(shell) if shell else None
    click.echo(made(program, {}, "gpureport", "_GPUREPORT_COMPLETE").source() if made else _COMPLETION)


def _list_entries(folder: Path) -> list[Path]:
    try:
        return sorted(islice(folder.iterdir(), _MOST))
    except OSError:
        return []


def describe_folder(folder: Path) -> Iterator[str]:
    from gpureport.record_folder import RUN_FILE

    entries = _list_entries(folder)
    inner = [path for path in entries if path.is_dir() and not path.name.startswith(".")]
    below = [each for path in inner for each in _list_entries(path) if each.is_dir()]
    recordings = [path for path in (*inner, *below[:_MOST]) if (path / RUN_FILE).is_file()]
    logs = [path for path in entries if _LOGS.intersection(map(str.lower, path.suffixes)) and path.is_file()]
    # gpureport's own files may have the extension of a log
    logs = [path for path in logs if os.access(path, os.R_OK) and not is_own_output(path)]
    told = [
        (f"{count(len(found), noun)} ({list_names(map(str, found), 3)}):", f"analyze {shlex.quote(str(found[-1]))}")
        for found, noun in ((recordings, "recording"), (logs, "log"))
        if found
    ]
    stores = [name for name in ("mlflow.db", "mlruns", ".neptune") if (folder / name).exists()]
    told += [(f"Runs in {name}:", f"ingest {name} --list") for name in stores]
    told += [("Stored runs:", "runs")] if (folder / ".gpureport").is_dir() else []
    yield from (f"{what:<23} gpureport {command}" for what, command in told)
    yield from _ALWAYS
