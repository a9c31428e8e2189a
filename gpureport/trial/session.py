"""Makes the runs of a trial, each as a recording of its own, and goes on where an earlier start ended.

A run is recorded under `interrupted` and moved to its place when it has finished, so what is in its place is whole.
"""

import csv
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import fmean

from gpureport.errors import SettingsError, SourceError, StoreError
from gpureport.number_format import format_duration
from gpureport.record_folder import HOST_LOG, read_run_file
from gpureport.recorder.nvidia_smi import build_query_command, end_with_parent
from gpureport.trial.decision import FIRST_LOOK, Setting, TriedRun, decide, find_dropped
from gpureport.trial.measure import Measured
from gpureport.trial.plan import Plan, disk_errors, fill_command, label_setting
from gpureport.trial.result import FAILURES, Result

OUTPUT, _UNFINISHED = "output.log", "interrupted"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
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
_PATIENCE, _PAUSE = 10.0, 0.2
"""Seconds to wait for the runs of a trial that was killed, and between attempts."""
_RUN = "import sys; sys.path.append(sys.argv.pop(1)); from gpureport.cli.main import main; main()"
"""Runs gpureport without taking modules from the working folder, where the job may have files of the same name."""


def run_trial(
    folder: Path,
    plan: Plan,
    command: Sequence[str],
    measure: Callable[[Sequence[TriedRun]], Measured],
    say: Callable[[str], None],
) -> Result:
    """Make all runs that are missing, and decide. Raises KeyboardInterrupt or SystemExit if a signal ends a run."""
    looks, dropped, ended = plan.repeat - 1, set[Setting](), "finished"
    for setting in plan.settings:
        program = fill_command(command, setting)[0]
        if shutil.which(program) is None:
            raise SettingsError(program, "no such program", "check the command after --", code="no_such_program")
    if not plan.host_only:
        build_query_command(plan.interval)

    def make(setting: Setting, number: int, need: float) -> None:
        about = f", about {format_duration(need)}" if need else ""
        say(f"Round {number} of {plan.repeat}: {label_setting(setting)}{about}")
        failure = _make_run(folder, plan, fill_command(command, setting), setting, number)
        if failure:
            say(f"{label_setting(setting)}: {FAILURES[failure]}; not run again.")

    try:
        with disk_errors(folder), _locked(folder):
            for number in range(1, plan.repeat + 1):
                if number > FIRST_LOOK:
                    found = measure([run for run in read_runs(folder, plan) if run.round < number])
                    worse = {*find_dropped(found.runs, found.better, looks, found.refused)} - dropped
                    for setting in worse:
                        say(f"{label_setting(setting)}: worse after round {number - 1}; not run again.")
                    dropped |= worse
                ended = _make_round(folder, plan, number, dropped, make)
                if ended != "finished":
                    break
    except (KeyboardInterrupt, SystemExit):
        say("The trial was interrupted. The same command goes on with it.")
        raise
    found = measure(read_runs(folder, plan))
    decision = decide(found.runs, plan.settings[0], found.better, looks, found.refused)
    about = {name: getattr(found, name) for name in ("better", "metric", "unit", "notes")}
    return Result(plan=plan, decision=decision, ended=ended, **about)


def _make_round(
    folder: Path, plan: Plan, number: int, dropped: set[Setting], make: Callable[[Setting, int, float], None]
) -> str:
    """Make the missing runs of a round. Return `finished`, or why no more runs are made (`one_left` or `budget`)."""
    for setting in plan.order_round(number):
        done = read_runs(folder, plan)
        left = {*plan.settings} - dropped - {run.setting for run in done if run.failure}
        if len(left) <= 1 < number:
            return "one_left"
        if setting in left and all((run.setting, run.round) != (setting, number) for run in done):
            need = _estimate_seconds(done, setting)
            if plan.budget_seconds is not None and measure_elapsed(folder) + need > plan.budget_seconds:
                return "budget"
            make(setting, number, need)
    return "finished"


def read_runs(folder: Path, plan: Plan) -> list[TriedRun]:
    """Return the finished runs of a trial, without their values, in the order in which they began."""
    found = []
    for setting, name in plan.name_folders().items():
        for number in range(1, plan.repeat + 1):
            run = read_run_file(path) if (path := folder / name / f"round-{number}").is_dir() else None
            if run is None or run.ended is None or run.exit_code is None:
                continue
            seconds = (run.ended - run.started) / 1e6
            found.append(
                TriedRun(
                    setting=setting,
                    round=number,
                    folder=str(path),
                    started=run.started,
                    seconds=max(seconds - _AFTERWARDS * max(1.0, run.interval), min(seconds, 0.1)),
                    exit_code=run.exit_code,
                    failure=_find_failure(path, run.exit_code),
                )
            )
    return sorted(found, key=lambda run: run.started)


def measure_elapsed(folder: Path) -> float:
    """Return the seconds that all runs took, including interrupted ones."""
    seconds = 0.0
    for path in folder.glob("*/*/run.json"):
        if (run := read_run_file(path.parent)) is not None:
            last = max(each.stat().st_mtime for each in path.parent.iterdir())
            seconds += (run.ended / 1e6 if run.ended else last) - run.started / 1e6
    return seconds


def _estimate_seconds(done: Sequence[TriedRun], setting: Setting) -> float:
    every = [run.seconds for run in done if not run.failure]
    own = [run.seconds for run in done if run.setting == setting]
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
        code, signals = _run_program([*words, *fill_command(command, (("folder", str(path)),))], output.fileno())
    if signals:
        raise KeyboardInterrupt if signals[0] == signal.SIGINT else SystemExit(_SIGNAL_BASE + signals[0])
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
        what, hint = f"the recording failed ({said or f'exit code {code}'})", "mend this, then repeat the command"
        raise SourceError(str(path), what, hint, code="recording_failed")
    place.parent.mkdir(exist_ok=True)
    path.rename(place)
    return _find_failure(place, run.exit_code)


def _run_program(words: Sequence[str], output: int) -> tuple[int, list[int]]:
    """Return the exit code of a program, and the signals that came meanwhile and were passed on to it."""
    came: list[int] = []
    started: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _: object) -> None:
        came.append(number)
        for program in started:
            with suppress(ProcessLookupError):
                program.send_signal(number)

    # a program run by nohup ignores SIGHUP
    heeded = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in heeded}
    try:
        program = subprocess.Popen(  # noqa: S603 - this program
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            close_fds=False,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - one thread only
        )
        started.append(program)
        if came:
            started[0].send_signal(came[0])
        return started[0].wait(), came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait until the last run of a trial that was killed has ended. Raises SettingsError if another trial runs."""
    lock, end = os.open(folder, os.O_RDONLY), time.monotonic() + _PATIENCE
    # the recorder holds the lock too, but not its job
    os.set_inheritable(lock, True)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > end:
                    hint = "wait for it, or name another folder with -o"
                    raise SettingsError(str(folder), "a trial is running here", hint, code="trial_running") from error
                time.sleep(_PAUSE)
            except OSError:
                # some file systems cannot lock folders
                break
            else:
                break
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
    with suppress(OSError):
        if _NO_MEMORY.search(_read_tail(path)):
            return "out_of_memory"
    if exit_code == _KILLED and _was_memory_full(path / HOST_LOG):
        return "out_of_memory"
    return "killed" if exit_code > _SIGNAL_BASE else "failed"


def _was_memory_full(log: Path) -> bool:
    with suppress(OSError, ValueError, KeyError), log.open(encoding="utf-8", newline="") as file:
        rows = [float(row["memory_percent"] or 0) for row in csv.DictReader(file)]
        return max(rows[-_LAST_ROWS:], default=0.0) >= _FULL_PERCENT
    return False
