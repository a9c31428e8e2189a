"""A second process that works beside this one: one task at a time, and done here wherever it cannot be had.

It is an interpreter of its own, spoken to over its standard streams: no module of whoever calls is imported there,
an interrupt from the terminal reaches this process alone, and where this one ends, it reads the end of its input.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import TracebackType
from typing import IO, Any, Generic, Self, TypeVar

T = TypeVar("T")

_BEGIN = (
    "import pickle, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "sys.path[:], sys.dont_write_bytecode = pickle.load(sys.stdin.buffer); "
    "from gpureport.second_process import serve; serve()"
)
_LOST = (OSError, EOFError, ValueError, pickle.PickleError)
"""What reading from or writing to a process that is gone raises; ValueError where the stream is closed."""

_PATIENCE = 2.0
"""Seconds in which it is to end by itself."""

_NOT_DONE: tuple[bool, Any] = (False, None)


@dataclass(frozen=True, slots=True)
class Imported:
    """A module to be imported while nothing else is to be done; nobody waits for it."""

    module: str


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """A function of a module, and what it is called with; all of it can be pickled."""

    function: Callable[..., T]
    arguments: tuple[Any, ...]

    def done(self) -> T:
        """Do it here."""
        return self.function(*self.arguments)


@dataclass(slots=True)
class Answer(Generic[T]):
    """What becomes of a task, asked of a process or, without one, done when it is wanted."""

    task: Task[T]
    process: "SecondProcess | None" = None

    def result(self) -> T:
        """Return what the task yields, from the process, or done here where it did not do it; asked for once."""
        there, self.process = self.process, None
        succeeded, value = there.received() if there else _NOT_DONE
        if not succeeded:
            return self.task.done()
        found: T = value
        return found


@dataclass(slots=True)
class SecondProcess:
    """A process that is started when it is worth it, and ended with the block it is opened for."""

    _process: "subprocess.Popen[bytes] | None" = None
    _asked: bool = field(default=False)

    def __enter__(self) -> Self:
        """Take it for a block; nothing is started."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._end(busy=self._asked or kind is not None)

    @property
    def there(self) -> bool:
        """Whether it was started, and still answers."""
        return self._process is not None

    def start(self) -> None:
        """Start it, once, where this machine has a processor for it."""
        if self._process is None and _processors() > 1 and sys.executable and not getattr(sys, "frozen", False):
            # -P: no module is to be found where a person happens to stand
            command = [sys.executable, "-P", "-c", _BEGIN]
            with suppress(OSError):
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter and the text above
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
                )
                self._send((sys.path, sys.dont_write_bytecode))

    def prepare(self, module: str) -> None:
        """Let it import a module once it has nothing else to do."""
        self._send(Imported(module))

    def ask(self, function: Callable[..., T], *arguments: Any) -> Answer[T]:  # noqa: ANN401 - whatever it takes
        """Let it call a function; without it, or while another answer is awaited, that is done here when wanted.

        Args:
            function: found by its name in its module; what it returns can be pickled.
            arguments: can be pickled.
        """
        task = Task(function, arguments)
        # a second task might wait to be read by one that waits for its answer to be read
        if self._asked or not self._send(task):
            return Answer(task)
        self._asked = True
        return Answer(task, self)

    def received(self) -> tuple[bool, Any]:
        """Return whether the task asked for was done, and what it yields."""
        self._asked = False
        if self._process is not None and self._process.stdout is not None:
            try:
                answer: tuple[bool, Any] = pickle.load(self._process.stdout)  # noqa: S301 - from the process started here
            except _LOST:
                self._end(busy=True)
            else:
                return answer
        return _NOT_DONE

    def _send(self, message: object) -> bool:
        """Send it what to do; return whether it is there."""
        if self._process is None or self._process.stdin is None:
            return False
        try:
            pickle.dump(message, self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except _LOST:
            self._end(busy=True)
        return self._process is not None

    def _end(self, *, busy: bool) -> None:
        """Close its input, at which it ends, or ask it to end where it would first finish what nobody wants."""
        process, self._process, self._asked = self._process, None, False
        if process is None:
            return
        if busy:
            process.terminate()
        for stream in (process.stdin, process.stdout):
            with suppress(*_LOST):
                if stream is not None:
                    stream.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            # a request that comes just before a call that waits is seen when that call is over
            process.kill()
            process.wait()


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def serve() -> None:
    """Do what the other process asks for until it closes this one's input."""
    # what is done may leave files that it puts away when it is ended
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # it ends before memory in cycles is worth looking for
    gc.disable()
    given = sys.stdin.buffer
    # what a library prints must not get among the answers
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while _served(given, answers):
        pass
    # nothing here is worth an orderly end, which takes a tenth of a second
    os._exit(0)


def _served(given: IO[bytes], answers: IO[bytes]) -> bool:
    """Do one thing; return whether there may be another."""
    try:
        message = pickle.load(given)  # noqa: S301 - from the process that started this one
        if isinstance(message, Imported):
            import_module(message.module)
        else:
            pickle.dump((True, message.done()), answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
    except Exception:  # noqa: BLE001 - whatever fails here is done again, and told, where it was asked for
        return False
    return True
