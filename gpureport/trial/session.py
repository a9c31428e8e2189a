"""Makes the runs of a trial, each as a recording of its own, and goes on where an earlier start ended.

A run is recorded under `interrupted` and moved to its place when it has finished, so what is in its place is whole.
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
from glob import escape
from math import fsum
from pathlib import Path
from statistics import fmean

from gpureport.errors import SourceError, StoreError
from gpureport.number_format import format_duration
from gpureport.record_folder import HOST_LOG, read_run_file
from gpureport.recorder.nvidia_smi import END_WITH_PARENT
from gpureport.trial.decision import FIRST_LOOK, INTERRUPTED, Setting, TriedRun, decide, find_dropped
from gpureport.trial.measure import Measured
from gpureport.trial.plan import Plan, disk_errors, fill_command, label_setting, open_plan, write_json
from gpureport.trial.result import DECISION_FILE, FAILURES, Result, encode

OUTPUT, _UNFINISHED = "output.log", "interrupted"
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
_RUN = "import sys; sys.path.append(sys.argv.pop(1)); from gpureport.cli.main import main; main()"
"""Runs gpureport without taking modules from the working folder, where the job may have files of the same name."""


def run_trial(
    folder: Path,
    wanted: Plan,
    command: Sequence[str],
    measure: Callable[[Sequence[TriedRun]], Measured],
    say: Callable[[str], None],
) -> Result:
    """Make the runs that are missing, and decide. Raises KeyboardInterrupt or SystemExit if a signal ends a run."""
    looks, dropped, ended = wanted.repeat - 1, set[Setting](), "finished"

    def make(setting: Setting, number: int, need: float) -> None:
        about = f", about {format_duration(need)}" if need else ""
        say(f"Round {number} of {plan.repeat}: {label_setting(setting)}{about}")
        failure = _make_run(folder, plan, fill_command(command, setting), setting, number)
        if failure:
            say(f"{label_setting(setting)}: {FAILURES[failure]}; not run again.")

    try:
        with disk_errors(folder), _locked(folder, say):
            plan = open_plan(folder, wanted)
            for number in range(1, plan.repeat + 1):
                if number > FIRST_LOOK:
                    found = measure([run for run in read_runs(folder, plan) if run.round < number])
                    out = {*find_dropped(found.runs, found.better, looks, found.refused)} - dropped
                    for setting in out - {run.setting for run in found.runs if run.failure}:
                        say(f"{label_setting(setting)}: worse after round {number - 1}; not run again.")
                    dropped |= out
                ended = _make_round(folder, plan, number, dropped, make)
                if ended != "finished":
                    break
    except (KeyboardInterrupt, SystemExit):
        say("The trial was interrupted. The same command goes on with it.")
        raise
    found = measure(read_runs(folder, plan))
    decision = decide(found.runs, plan.settings[0], found.better, looks, found.refused)
    about = {name: getattr(found, name) for name in ("better", "metric", "unit", "notes")}
    result = Result(plan=plan, decision=decision, ended=ended, **about)
    write_json(folder / DECISION_FILE, encode(result))
    return result


def _make_round(
    folder: Path, plan: Plan, number: int, dropped: set[Setting], make: Callable[[Setting, int, float], None]
) -> str:
    """Make the missing runs of a round. Return `finished`, or why no more runs are made (`one_left` or `budget`)."""
    for setting in plan.order_round(number):
        every = read_runs(folder, plan)
        done = [run for run in every if run.failure != INTERRUPTED]
        left = {*plan.settings} - dropped - {run.setting for run in done if run.failure}
        if len(left) <= 1 < number:
            return "one_left"
        if setting in left and all((run.setting, run.round) != (setting, number) for run in done):
            need = _estimate_seconds(done, setting)
            if (
                plan.budget_seconds is not None
                and fsum(run.seconds + _AFTERWARDS for run in every) + need > plan.budget_seconds
            ):
                return "budget"
            make(setting, number, need)
    return "finished"


def read_runs(folder: Path, plan: Plan) -> list[TriedRun]:
    """Return the runs of a trial, without their values, in the order in which they began."""
    found = []
    for setting, name in plan.name_folders().items():
        for number in range(1, plan.repeat + 1):
            finished = _read_run(folder / name / f"round-{number}", setting, number)
            left = folder.glob(f"{_UNFINISHED}/{escape(name)}-round-{number}-*")
            found += [finished, *(_read_run(path, setting, number, INTERRUPTED) for path in left)]
    return sorted(filter(None, found), key=lambda run: run.started)


def _read_run(path: Path, setting: Setting, number: int, failure: str | None = None) -> TriedRun | None:
    run = read_run_file(path) if path.is_dir() else None
    if run is None or (failure is None and (run.ended is None or run.exit_code is None)):
        return None
    ended = run.ended or max(each.stat().st_mtime for each in path.iterdir()) * 1e6
    seconds = (ended - run.started) / 1e6
    return TriedRun(
        setting=setting,
        round=number,
        folder=str(path),
        started=run.started,
        seconds=max(seconds - _AFTERWARDS * max(1.0, run.interval), min(seconds, 0.1)),
        exit_code=run.exit_code or 0,
        failure=failure or _find_failure(path, run.exit_code or 0),
    )


def _estimate_seconds(done: Sequence[TriedRun], setting: Setting) -> float:
    every = [run.seconds for run in done if not run.failure]
    own = [run.seconds for run in done if not run.failure and run.setting == setting]
    return fmean(own or every) if own or every else 0.0


def _make_run(folder: Path, plan: Plan, command: Sequence[str], setting: Setting, number: int) -> str | None:
    """Make a run and return why it failed, or None."""
    name = plan.name_folders()[setting]
    unfinished, place = folder / _UNFINISHED, folder / name / f"round-{number}"
    attempt = sum(1 for _ in unfinished.glob(f"{name}-round-{number}-*")) + 1
    path = unfinished / f"{name}-round-{number}-{attempt}"
    path.mkdir(parents=True)
    words = [sys.executable, "-P", "-c", _RUN, str(Path(__file__).parents[2]), "-q", "record", "-o", str(path)]
    words += ["--interval", f"{plan.interval:g}", *(["--host-only"] if plan.host_only else []), "--"]
    with (path / OUTPUT).open("wb") as output:
        code = _run_program([*words, *fill_command(command, (("folder", str(path)),))], output.fileno())
    tail = _read_tail(path)
    # a run on a full disk says nothing about its setting
    probe = path / ".probe"
    try:
        probe.write_bytes(bytes(_PROBE))
    finally:
        probe.unlink(missing_ok=True)
    if code and _NO_SPACE.search(tail):
        hint = "free some space, then repeat the command"
        raise StoreError(str(path), "the job found no space left on a disk", hint, code="disk_full")
    run = read_run_file(path)
    if run is None or run.ended is None or run.exit_code is None:
        said = tail.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("gpureport: ")
        what = f"the recording failed ({said or f'exit code {code}'})"
        raise SourceError(str(path), what, "mend this, then repeat the command", code="recording_failed")
    place.parent.mkdir(exist_ok=True)
    path.rename(place)
    return _find_failure(place, run.exit_code)


def _run_program(words: Sequence[str], output: int) -> int:
    program = subprocess.Popen(  # noqa: S603 - this program
        words,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        close_fds=False,
        preexec_fn=END_WITH_PARENT,  # noqa: PLW1509 - one thread only
    )
    try:
        return program.wait()
    except (KeyboardInterrupt, SystemExit) as stop:
        # the recorder passes signals on to the job, unless these come from the terminal
        program.send_signal(signal.SIGINT if isinstance(stop, KeyboardInterrupt) else signal.SIGTERM)
        program.wait()
        raise


@contextmanager
def _locked(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
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
                say(f"Waiting for the run that goes on in {folder}.")
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _read_tail(path: Path) -> bytes:
    with (path / OUTPUT).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        return file.read()


def _find_failure(path: Path, exit_code: int) -> str | None:
    if not exit_code:
        return None
    with suppress(OSError, ValueError, KeyError):
        if _NO_MEMORY.search(_read_tail(path)) or (exit_code == _KILLED and _was_memory_full(path / HOST_LOG)):
            return "out_of_memory"
    return "killed" if exit_code > _SIGNAL_BASE else "failed"


def _was_memory_full(log: Path) -> bool:
    with log.open(encoding="utf-8", newline="") as file:
        rows = [float(row["memory_percent"] or 0) for row in csv.DictReader(file)]
    return max(rows[-_LAST_ROWS:], default=0.0) >= _FULL_PERCENT
