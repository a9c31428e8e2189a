"""Sources that can be read only once, standard input and named pipes: copied to a file first, up to a limit."""

import atexit
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gpureport.errors import SourceError
from gpureport.limits import MOST_PIPE_BYTES
from gpureport.regular_files import UnsafeFileError, open_pipe

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
                raise SourceError(
                    source, "standard input is closed", "give a file, or a pipe", code="no_standard_input"
                )
            # a buffer would go on waiting for more without looking whether the process was asked to end
            _copy(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer), copy.write, source)
        else:
            try:
                with open_pipe(path) as pipe:
                    _copy(pipe, copy.write, source)
            except UnsafeFileError as error:
                raise SourceError(source, str(error.strerror), error.hint, code="not_a_regular_file") from error
    return Path(name)


def _copy(pipe: _Readable, write: Callable[[bytes], object], source: str) -> None:
    size = 0
    while block := pipe.read(_BLOCK):
        size += len(block)
        if size > MOST_PIPE_BYTES:
            what = f"more than {MOST_PIPE_BYTES:,} bytes came through the pipe"
            raise SourceError(
                source, what, "end what writes to it, or write a file and give that", code="pipe_too_large"
            )
        write(block)
