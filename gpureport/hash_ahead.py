"""The hash of a file's beginning, made while the modules that read it are still being imported.

Importing them keeps one core busy for some tenths of a second, in which another one hashes a few hundred megabytes.
"""

from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Thread

_BLOCK = 4 * 2**20
"""Bytes hashed at a time: the interpreter, which the imports hold most of the time, is asked for after each."""
_MOST = 256 * 2**20
"""Bytes hashed ahead at most: a file may turn out to be none whose hash is wanted."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells whether a file was written to."""

    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> "FileState":
        """Return the state of a file now."""
        found = path.stat()
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


class HashAhead:
    """The beginning of a file, being hashed by a thread of its own."""

    def __init__(self, path: Path) -> None:
        """Begin.

        Raises:
            OSError: when there is no such file.
        """
        self.state = FileState.of(path)
        self.hasher = sha256()
        self.hashed = 0
        self._path = path
        self._stopped = False
        # nobody waits for it at the end of the process
        self._thread = Thread(target=self._hash, name="hash ahead", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it; `hasher` has taken the first `hashed` bytes then."""
        self._stopped = True
        self._thread.join()

    def _hash(self) -> None:
        block = memoryview(bytearray(min(_BLOCK, self.state.size)))
        # whoever reads the file says why it cannot be read
        with suppress(OSError), self._path.open("rb", buffering=0) as file:
            while not self._stopped and self.hashed < min(self.state.size, _MOST):
                read = file.readinto(block[: self.state.size - self.hashed])
                if not read:
                    break
                self.hasher.update(block[:read])
                self.hashed += read


_begun: dict[Path, HashAhead] = {}


def begin(path: Path) -> None:
    """Begin to hash a file that is going to be read; nothing is done where there is no such file."""
    # a name may be too long for a file
    with suppress(OSError):
        if path.is_file():
            _begun[path] = HashAhead(path)


def taken(path: Path) -> HashAhead | None:
    """Return what was begun for a file, once, and only if the file was not written to since."""
    found = _begun.pop(path, None)
    if found is None:
        return None
    found.stop()
    return found if found.state == FileState.of(path) else None
