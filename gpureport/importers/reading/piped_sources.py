"""Sources that can be read only once, standard input and named pipes: copied to a file first, up to a limit."""

import atexit
import os
import select
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from gpureport.errors import SourceError
from gpureport.limits import MOST_PIPE_BYTES, PIPE_PATIENCE
from gpureport.regular_files import UnsafeFileError, check_regular_file

_BLOCK = 2**20


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes | None: ...


def spool(source: str, path: Path) -> Path:
    """Return a file with the content of a pipe or of standard input, which can be read only once.

    Raises:
        SourceError: when nobody writes to the pipe, it does not end, or it is a device, a socket or a folder.
    """
    handle, name = tempfile.mkstemp(prefix="gpureport-")
    atexit.register(Path(name).unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as copy:
        if source == "-":
            if sys.stdin is None:
                raise SourceError(source, "standard input is closed", "give a file, or a pipe")
            # a buffer would go on waiting for more without looking whether the process was asked to end
            _copy(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer), copy.write, source)
        else:
            with _open_pipe(source, path) as pipe:
                _copy(pipe, copy.write, source)
    return Path(name)


def _copy(pipe: _Readable, write: Callable[[bytes], object], source: str) -> None:
    size = 0
    while block := pipe.read(_BLOCK):
        size += len(block)
        if size > MOST_PIPE_BYTES:
            what = f"more than {MOST_PIPE_BYTES:,} bytes came through the pipe"
            raise SourceError(source, what, "end what writes to it, or write a file and give that")
        write(block)


@contextmanager
def _open_pipe(source: str, path: Path) -> Iterator[_Readable]:
    """Give a pipe that somebody has opened for writing.

    Raises:
        SourceError: when nobody has for a while, or it is no pipe.
    """
    if not stat.S_ISFIFO(path.stat().st_mode):
        try:
            check_regular_file(path)
        except UnsafeFileError as error:
            raise SourceError(source, str(error.strerror), error.hint) from error
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb", buffering=0) as pipe:
        if not select.select([pipe], [], [], PIPE_PATIENCE)[0] and pipe.read(1) is not None:
            # with a writer that has nothing to say yet, there would be nothing at all instead of an end
            what = f"nobody wrote to the pipe within {PIPE_PATIENCE:g} s"
            raise SourceError(source, what, "start what writes to it first")
        os.set_blocking(pipe.fileno(), True)
        yield pipe
