"""A second process does what it is asked for, and what it cannot do is done here."""

import operator
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpureport import second_process
from gpureport.second_process import SecondProcess

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs a second processor"
)

UNGUARDED = """
import os, sys, time
from gpureport.second_process import SecondProcess
print("once", flush=True)
with SecondProcess() as second:
    second.start()
    print(second.ask(os.getpid).result(), flush=True)
    time.sleep(float(sys.argv[1]))
"""
"""A script that has no guard against being imported anew."""


def alive(process: int) -> bool:
    """Return whether a process runs, waiting a while for its end."""
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True


def test_without_a_start_all_is_done_here() -> None:
    """A task is done where it was asked for when no process was started."""
    with SecondProcess() as second:
        assert not second.there
        assert second.ask(os.getpid).result() == os.getpid()


def test_a_task_is_done_there() -> None:
    """A started process does one task after the other, until the block ends and it with it."""
    with SecondProcess() as second:
        second.start()
        second.prepare("json")
        there = second.ask(os.getpid).result()
        assert there != os.getpid()
        assert second.ask(sorted, [3, 1, 2]).result() == [1, 2, 3]
        assert second.ask(os.getpid).result() == there
    assert not alive(there)


def test_a_second_task_does_not_wait_for_the_first() -> None:
    """What is asked while an answer is awaited is done here, so that neither waits to be read by the other."""
    with SecondProcess() as second:
        second.start()
        first = second.ask(bytes, 10_000_000)
        assert second.ask(os.getpid).result() == os.getpid()
        assert len(first.result()) == 10_000_000


def test_an_error_there_is_raised_here() -> None:
    """A task that fails is done again here, so that its error is as it would be without a second process."""
    with SecondProcess() as second:
        second.start()
        with pytest.raises(ZeroDivisionError):
            second.ask(operator.truediv, 1, 0).result()


def test_a_process_that_dies_is_done_without() -> None:
    """Where the process is gone, its task and all later ones are done here."""
    with SecondProcess() as second:
        second.start()
        os.kill(second.ask(os.getpid).result(), signal.SIGKILL)
        answers = [second.ask(os.getpid) for _ in range(3)]
        assert {answer.result() for answer in answers} == {os.getpid()}


@pytest.mark.parametrize("missing", [None, "/no/such/python"])
def test_where_it_cannot_be_started_all_is_done_here(monkeypatch: pytest.MonkeyPatch, missing: str | None) -> None:
    """Without an interpreter to start, nothing is said and nothing fails."""
    monkeypatch.setattr(sys, "executable", missing)
    with SecondProcess() as second:
        second.start()
        assert second.ask(os.getpid).result() == os.getpid()


def test_one_processor_is_left_to_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only one processor may be used, no process is started."""
    monkeypatch.setattr(second_process, "_processors", lambda: 1)
    with SecondProcess() as second:
        second.start()
        assert not second.there


def test_an_error_ends_what_it_was_doing() -> None:
    """A block that ends with an error does not wait for the task that was asked for."""
    second = SecondProcess()
    second.start()
    there = second.ask(os.getpid).result()
    second.ask(time.sleep, 10_000)
    second.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert not alive(there)


def test_one_that_does_not_end_by_itself_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does may keep it from seeing that it is asked to end."""
    monkeypatch.setattr(second_process, "_PATIENCE", 0.2)
    second = SecondProcess()
    second.start()
    there = second.ask(os.getpid).result()
    # as deaf as in a call that waits and began a moment before the request
    assert second.ask(signal.pthread_sigmask, signal.SIG_BLOCK, [signal.SIGTERM]).result() is not None
    second.ask(time.sleep, 10_000)
    second.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert not alive(there)


@pytest.mark.parametrize("end", ["whole", signal.SIGKILL, signal.SIGINT])
def test_nothing_is_imported_anew_and_nothing_is_left(tmp_path: Path, end: str | signal.Signals) -> None:
    """The script that asks is not run in the second process, which ends with the first however that ends."""
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    command = [sys.executable, str(script), "0" if end == "whole" else "60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "once\n"
        there = int(process.stdout.readline())
        if isinstance(end, signal.Signals):
            process.send_signal(end)
        assert process.stdout.read() == ""
    assert not alive(there)


def test_what_a_task_prints_does_not_get_among_the_answers(capfd: pytest.CaptureFixture[str]) -> None:
    """Standard output of the second process is this one's standard error."""
    with SecondProcess() as second:
        second.start()
        assert second.ask(os.system, "echo said").result() == 0
    assert capfd.readouterr() == ("", "said\n")
