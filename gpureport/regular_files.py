"""Opens untrusted files safely: only regular files, only within a folder, and only up to a given size.

A link may lead anywhere, a named pipe blocks its reader, and a device never ends. A file in a bucket is read from a
copy in a temporary folder, which is removed when the process ends. Messages show the object's URL. The copy of
`s3://logs/a/gpu.csv` is `<folder>/s3/logs/a/gpu.csv`, so replacing the start of a path gives the URL.
"""

import atexit
import errno
import io
import os
import select
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from gpureport.parsing import DEEPEST_FOLDER, MOST_SETTINGS_BYTES, PIPE_PATIENCE

SCHEMES = ("s3", "gs", "az")
"""URL schemes of buckets on S3 and compatible services, Google Cloud Storage, and Azure Blob Storage."""
_VARIABLE = "GPUREPORT_COPIES"
"""Environment variable with the folder for copies, so worker processes use the same log names."""
_CODES = {errno.ENOENT: "no_such_file"}
_CODES |= dict.fromkeys([errno.EACCES, errno.EPERM, errno.EROFS], "no_permission")
_CODES |= dict.fromkeys([errno.ENOSPC, errno.EDQUOT, errno.EFBIG], "disk_full")


class UnsafeFileError(OSError):
    """A file that is not opened because of its type or size. The message says what is wrong."""

    def __init__(self, path: Path, what: str, hint: str, code: str) -> None:
        super().__init__(errno.EPERM, what, str(path))
        self.hint, self.code = hint, code


class TooLargeFileError(UnsafeFileError):
    def __init__(self, path: Path, most: int) -> None:
        super().__init__(path, f"too large: more than {most:,} bytes", "shorten or remove it", "file_too_large")


def code_system_error(error: OSError, otherwise: str) -> str:
    return error.code if isinstance(error, UnsafeFileError) else _CODES.get(error.errno or 0, otherwise)


# unlike methods of `Path`, these functions return False for names that are too long
path_exists, is_folder = os.path.exists, os.path.isdir


def check_regular_file(path: Path, *, root: Path | None = None, most: int | None = None) -> None:
    """Check that a path is a regular file within `root`, after following links, with at most `most` bytes.

    Raises UnsafeFileError otherwise, and OSError if the file is missing.
    """
    state, copy = path.stat(), "put a copy in its place, or remove it"
    if root is not None and not lies_within(path, root):
        raise UnsafeFileError(path, f"a link that leads out of {root}", copy, "link_out_of_folder")
    if not stat.S_ISREG(state.st_mode):
        kind = "a folder" if stat.S_ISDIR(state.st_mode) else "a named pipe, a socket or a device"
        raise UnsafeFileError(path, f"{kind}, not a regular file", copy, "not_a_regular_file")
    if most is not None and state.st_size > most:
        raise TooLargeFileError(path, most)


def lies_within(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def read_regular_file(path: Path, *, root: Path | None = None, most: int = MOST_SETTINGS_BYTES) -> bytes:
    check_regular_file(path, root=root, most=most)
    # opening does not block, even if the file has become a named pipe since the check
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise TooLargeFileError(path, most)
    return content


def walk_folder(root: Path, *, follows_links: bool = False) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield `root` and each folder below it with the names of its subfolders and files, as `os.walk` does.

    Skips folders that were already visited or that the caller removed, and links unless `follows_links`.
    Raises UnsafeFileError if folders are nested too deeply.
    """
    met: set[str] = set()
    for place, folders, names in os.walk(root, followlinks=follows_links):
        here, real = Path(place), os.path.realpath(place) if follows_links else place
        if real in met:
            folders.clear()
            continue
        met.add(real)
        if len(here.parts) - len(root.parts) > DEEPEST_FOLDER:
            what = f"it has folders nested more than {DEEPEST_FOLDER} levels deep"
            raise UnsafeFileError(root, what, "specify the subfolder with the runs", "nested_too_deeply")
        yield here, folders, names


@contextmanager
def open_pipe(path: Path) -> Iterator[io.FileIO]:
    """Yield a named pipe that has a writer. Raises UnsafeFileError if no writer sends data for a while."""
    if not stat.S_ISFIFO(path.stat().st_mode):
        check_regular_file(path)
    with io.FileIO(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))) as pipe:
        # a pipe without a writer is at its end, whereas a silent writer just has no data yet
        if not select.select([pipe], [], [], PIPE_PATIENCE)[0] and pipe.read(1) is not None:
            what = f"nothing was written to the pipe within {PIPE_PATIENCE:g} s"
            raise UnsafeFileError(path, what, "start its writer first", "silent_pipe")
        os.set_blocking(pipe.fileno(), True)
        yield pipe


def read_small_text(path: Path) -> str:
    """Return the text of a small hand-written file, or of a pipe. Raises UnsafeFileError for any other file."""
    if not stat.S_ISFIFO(path.stat().st_mode):
        return read_regular_file(path).decode("utf-8")
    with open_pipe(path) as pipe:
        content = b""
        while len(content) <= MOST_SETTINGS_BYTES and (block := pipe.read(MOST_SETTINGS_BYTES)):
            content += block
    if len(content) > MOST_SETTINGS_BYTES:
        raise TooLargeFileError(path, MOST_SETTINGS_BYTES)
    return content.decode("utf-8")


def copy_path(scheme: str, path: str) -> Path:
    return _make_folder() / scheme / path


def name_by_url(text: str) -> str:
    folder = os.environ.get(_VARIABLE)
    for scheme in SCHEMES if folder else ():
        text = text.replace(f"{folder}/{scheme}/", f"{scheme}://")
    return text


@cache
def _make_folder() -> Path:
    folder = make_temporary_folder()
    os.environ[_VARIABLE] = str(folder)
    return folder


def make_temporary_folder() -> Path:
    # readers also resolve paths before naming them
    folder = Path(tempfile.mkdtemp(prefix="gpureport-")).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
