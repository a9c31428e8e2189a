"""Starts and records the runs of a trial, and continues where an earlier call stopped.

A run is recorded under `interrupted` and moved into place once finished, so runs there are complete.
"""

import csv
import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from math import fsum, inf
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from gpureport.errors import SourceError, StoreError
from gpureport.number_format import format_duration
from gpureport.record_folder import HOST_LOG, RUN_FILE, RecordedRun, read_run_file
from gpureport.regular_files import code_system_error
from gpureport.trial.decision import FIRST_LOOK, INTERRUPTED, Measured, TriedRun, decide, find_dropped
from gpureport.trial.plan import Plan, Setting, fill_command, label_setting, make_error, open_plan, write_json
from gpureport.trial.result import DECISION_FILE

_OUTPUT, _UNFINISHED = "output.log", "interrupted"
_SIGNAL_BASE, _KILLED = 128, 128 + signal.SIGKILL
_NO_MEMORY = re.compile(
    rb"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|OutOfMemoryError|RESOURCE_EXHAUSTED|\bMemoryError\b"
    rb"|[Cc]annot allocate memory|std::bad_alloc"
)
_NO_SPACE = re.compile(rb"No space left on device|Disk quota exceeded")
_TAIL, _PROBE = 65_536, 1 << 20
_LAST_ROWS, _FULL_PERCENT = 10, 95.0
_AFTERWARDS = 1.2
"""Intervals of at least one second that the recorder adds to each run."""
_RUN = """
import os, sys
sys.path.append(sys.argv.pop(1))
from gpureport.recorder.nvidia_smi import END_WITH_PARENT
END_WITH_PARENT and END_WITH_PARENT()
if os.getppid() == int(sys.argv.pop(1)):
    from gpureport.cli.main import main
    main()
"""
"""Runs gpureport without importing from the working folder, where the job may have files of the same name.

`preexec_fn` would run hooks in this process, in which Python loses an interrupt.
"""
Measure = Callable[[Sequence[TriedRun]], Measured]
Say = Callable[[str], None]


def run_trial(folder: Path, wanted: Plan, command: Sequence[str], measure: Measure, say: Say) -> dict[str, Any]:
    """Start the missing runs. Raises KeyboardInterrupt or SystemExit if a signal ends a run."""
    # a script ignores Ctrl-C for its background jobs, but the recorder does not
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with _hold(folder, say):
            plan = open_plan(folder, wanted)
            runs = read_runs(folder, plan, say)
            known = [*runs]
            ended = _make_runs(plan, runs, partial(_make_run, folder, plan, command), measure, say)
            if runs == known and ended != "budget":
                say("All runs had finished; nothing was run.")
            content = decide(measure(runs), plan, ended)
            write_json(folder / DECISION_FILE, content)
            return content
    except (KeyboardInterrupt, SystemExit):
        say("The trial was interrupted. The same command continues it.")
        raise


def _make_runs(
    plan: Plan, runs: list[TriedRun], make: Callable[[Setting, int], TriedRun], measure: Measure, say: Say
) -> str:
    """Add the missing runs. Return `finished`, or why no more runs start (`one_left`, `none_left` or `budget`)."""
    dropped = set[Setting]()
    for number in range(1, plan.repeat + 1):
        if number > FIRST_LOOK:
            found = measure([run for run in runs if run.round < number])
            for setting in find_dropped(found, plan.repeat):
                if setting not in dropped and all(run.setting != setting or not run.failure for run in found.runs):
                    say(f"{label_setting(setting)}: worse after round {number - 1}; not run again.")
                dropped.add(setting)
        for setting in plan.order_round(number):
            done = [run for run in runs if run.failure != INTERRUPTED]
            left = {*plan.settings} - dropped - {run.setting for run in done if run.failure}
            if len(left) <= 1 < number:
                return "one_left" if left else "none_left"
            if setting not in left or (setting, number) in ((run.setting, run.round) for run in done):
                continue
            whole = [run for run in done if not run.failure]
            alike = [run.seconds for run in whole if run.setting == setting] or [run.seconds for run in whole]
            need = fsum(alike) / max(len(alike), 1)
            if fsum(run.seconds + _AFTERWARDS for run in runs) + need > (plan.budget_seconds or inf):
                return "budget"
            about = f", about {format_duration(need)}" if need else ""
            # refuse wrong options early
            measure(runs)
            say(f"Round {number} of {plan.repeat}: {label_setting(setting)}{about}")
            runs.append(make(setting, number))
            if failure := runs[-1].failure:
                see = f"see {Path(runs[-1].folder, _OUTPUT)}"
                say(f"{label_setting(setting)}: {failure.replace('_', ' ')}; not run again; {see}")
    return "finished"


def read_runs(folder: Path, plan: Plan, say: Say) -> list[TriedRun]:
    """Return the runs without values, in chronological order. Damaged runs are set aside."""
    found = []
    for setting, name in plan.name_folders().items():
        for number in range(1, plan.repeat + 1):
            place = folder / name / f"round-{number}"
            found.append(_read_run(place, setting, number))
            if found[-1] is None and place.exists():
                aside = folder / _UNFINISHED / f"{name}-round-{number}-{place.stat().st_mtime_ns}"
                os.renames(place, aside)
                say(f"{place / RUN_FILE} is missing or damaged; moved to {aside}.")
            left = folder.glob(f"{_UNFINISHED}/{name}-round-{number}-*")
            found += [_read_run(path, setting, number, INTERRUPTED) for path in left]
    return sorted(filter(None, found), key=lambda run: run.started)


def _read_run(path: Path, setting: Setting, number: int, failure: str | None = None) -> TriedRun | None:
    times = sorted(each.stat().st_mtime_ns // 1000 for each in path.iterdir()) if path.is_dir() else []
    run = read_run_file(path) if times else None
    if not (times if failure else run and run.ended and run.exit_code is not None):
        return None
    # the files alone show when a run without its own file took place
    run = run or RecordedRun(started=times[0])
    seconds = ((run.ended or times[-1]) - run.started) / 1e6
    return TriedRun(
        setting=setting,
        round=number,
        folder=str(path),
        started=run.started,
        seconds=max(seconds - _AFTERWARDS * max(1.0, run.interval), min(seconds, 0.1)),
        exit_code=run.exit_code or 0,
        failure=failure or _find_failure(path, run.exit_code or 0),
    )


def _make_run(folder: Path, plan: Plan, command: Sequence[str], setting: Setting, number: int) -> TriedRun:
    name = plan.name_folders()[setting]
    unfinished, place = folder / _UNFINISHED, folder / name / f"round-{number}"
    attempt = sum(1 for _ in unfinished.glob(f"{name}-round-{number}-*")) + 1
    path = unfinished / f"{name}-round-{number}-{attempt}"
    path.mkdir(parents=True)
    words = [sys.executable, "-P", "-c", _RUN, str(Path(__file__).parents[2]), str(os.getpid())]
    words += ["-q", "record", "-o", str(path), "--interval", f"{plan.interval:g}"]
    words += ["--host-only", "--"] if plan.host_only else ["--"]
    with (path / _OUTPUT).open("wb") as output:
        filled = fill_command(fill_command(command, setting), (("folder", str(path)),))
        code = _run_program([*words, *filled], output.fileno())
    # a run on a full disk says nothing about its setting
    with TemporaryFile(dir=path) as probe:
        probe.write(bytes(_PROBE))
    tail = _read_tail(path)
    if code and _NO_SPACE.search(tail):
        raise make_error(StoreError, path, "disk_full")
    run = _read_run(path, setting, number)
    if run is None:
        said = tail.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("gpureport: ")
        raise make_error(SourceError, path, "recording_failed", said=said or f"exit code {code}")
    place.parent.mkdir(exist_ok=True)
    path.rename(place)
    return replace(run, folder=str(place))


def _run_program(words: Sequence[str], output: int) -> int:
    program = subprocess.Popen(  # noqa: S603 - this program
        words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, close_fds=False
    )
    try:
        return program.wait()
    except (KeyboardInterrupt, SystemExit) as stop:
        # the recorder passes signals on to the job, unless these come from the terminal
        program.send_signal(signal.SIGINT if isinstance(stop, KeyboardInterrupt) else signal.SIGTERM)
        program.wait()
        raise


@contextmanager
def _hold(folder: Path, say: Say) -> Iterator[None]:
    """Lock a folder, and turn its disk errors into trial errors."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
        # the recorder of a run holds the lock too, but not its job
        os.set_inheritable(lock, True)
        try:
            # some file systems cannot lock folders
            with suppress(OSError):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    say(f"Waiting for the run still active in {folder}.")
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
    except OSError as error:
        what, code = error.strerror or "cannot be written", code_system_error(error, "cannot_write")
        raise StoreError(str(folder), what, "check the disk, then repeat the command", code=code) from error


def _read_tail(path: Path) -> bytes:
    with (path / _OUTPUT).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        return file.read()


def _find_failure(path: Path, exit_code: int) -> str | None:
    if not exit_code:
        return None
    with suppress(OSError, ValueError, KeyError):
        if _NO_MEMORY.search(_read_tail(path)):
            return "out_of_memory"
        with (path / HOST_LOG).open(encoding="utf-8", newline="") as log:
            rows = [float(row["memory_percent"] or 0) for row in csv.DictReader(log)]
        if exit_code == _KILLED and max(rows[-_LAST_ROWS:], default=0.0) >= _FULL_PERCENT:
            return "out_of_memory"
    return "killed" if exit_code > _SIGNAL_BASE else "failed"
