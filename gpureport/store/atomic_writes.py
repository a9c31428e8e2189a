"""Writes files and folders atomically, and turns disk errors into store errors."""

import ctypes
import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpureport.errors import StoreError
from gpureport.places import Place, RemotePath, remove_entry, send_folder
from gpureport.regular_files import TooLargeFileError, UnsafeFileError, code_system_error

_OWN_NAME = re.compile(r"\.tmp-(?:(?P<target>.+)-\d+-[0-9a-f]{8}|[0-9a-f]{16}-old)")
"""Matches names of temporary files and folders. Other names with this prefix are the user's."""
_STALE = 86_400  # seconds after which the writer of an unfinished file or folder must have ended
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_TRIES = 100


@contextmanager
def raise_store_errors(store: Place) -> Iterator[None]:
    try:
        yield
    except UnsafeFileError as error:
        # the message omits the file's folder, which is temporary
        raise refuse_file(f"{store}: {Path(error.filename).name}", error) from error
    except OSError as error:
        code = code_system_error(error, "cannot_write")
        hint = f"{'free some space, or ' if code == 'disk_full' else ''}choose another store with --store"
        what = os.strerror(error.errno) if error.errno else "cannot be written"
        raise StoreError(str(store), what, hint, code=code) from error


def refuse_file(where: str, error: UnsafeFileError) -> StoreError:
    is_large = isinstance(error, TooLargeFileError)
    hint = "read part of it with --from and --to, or one log per node" if is_large else "ingest the run again"
    return StoreError(where, error.strerror or "not a regular file", hint, code=error.code)


@contextmanager
def write_folder(runs: Place, name: Callable[[], str], last: str) -> Iterator[Path]:
    """Yield a folder to write to. On success, move it to `runs / name()`; on failure, remove it.

    A folder for a bucket is uploaded, and readers see it only once `last`, the final file, is there.
    """
    if isinstance(runs, RemotePath):
        with tempfile.TemporaryDirectory(prefix="gpureport-") as folder:
            yield Path(folder)
            # buckets cannot rename; the order of uploads keeps readers from mixing two versions
            (runs / name()).remove_folder(last)
            send_folder(Path(folder), runs / name(), last)
        return
    part = _temporary_path(runs, "run")
    try:
        with raise_store_errors(runs.parent):
            part.mkdir()
        yield part
        with raise_store_errors(runs.parent):
            for path in (*part.iterdir(), part):
                flush_to_disk(path)
            _move_into_place(part, runs / name())
            flush_to_disk(runs)
    finally:
        # if the run was a link to a folder, `part` is now the link
        remove_entry(part)


def _move_into_place(folder: Path, place: Path) -> None:
    """Move a folder to its place in one step, exchanging names with a folder that is already there.

    If the system cannot exchange folders, the existing one is moved aside first, and readers may briefly not find it.
    """
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    for _ in range(_TRIES):
        try:
            folder.rename(place)
        except OSError as error:
            if error.errno not in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}:
                raise
        else:
            return
        if exchange and not exchange(_AT_FDCWD, os.fsencode(folder), _AT_FDCWD, os.fsencode(place), _RENAME_EXCHANGE):
            return
        code = ctypes.get_errno() if exchange else errno.ENOSYS
        if code in {errno.EINVAL, errno.ENOSYS}:
            with suppress(FileNotFoundError):
                place.rename(folder.with_name(f".tmp-{secrets.token_hex(8)}-old"))
        # another writer of the run may have removed the folder in the meantime
        elif code != errno.ENOENT:
            raise OSError(code, os.strerror(code), str(place))
    raise OSError(errno.EBUSY, "other writers keep replacing it", str(place))


def write_bytes(path: Place, content: bytes, runs: Place) -> None:
    # either both places are on this machine, or neither is
    if isinstance(path, RemotePath) or isinstance(runs, RemotePath):
        path.write_bytes(content)
        return
    part = _temporary_path(runs, path.name)
    try:
        part.write_bytes(content)
        flush_to_disk(part)
        part.replace(path)
        # a folder that is writable but not readable cannot be flushed
        if os.access(path.parent, os.R_OK):
            flush_to_disk(path.parent)
    finally:
        remove_entry(part)


def replace_file(path: Place, content: bytes, folder: Place) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    remove_stale_files(folder, re.escape(path.name))
    write_bytes(path, content, folder)


def remove_folder(folder: Place, last: str) -> None:
    if isinstance(folder, RemotePath):
        folder.remove_folder(last)
        return
    gone = _temporary_path(folder.parent, folder.name)
    folder.rename(gone)
    if gone.is_symlink():
        # the target of the link belongs to the user
        gone.unlink()
    else:
        shutil.rmtree(gone)


def remove_stale_files(runs: Place, targets: str = "") -> None:
    """Remove files that killed writers left at least a day ago. No such files are left in buckets.

    In shared folders, `targets` is a pattern for final names: only matching files are removed, but no folders.
    """
    for left in () if isinstance(runs, RemotePath) else runs.glob(".tmp-*"):
        with suppress(OSError):
            match, mode = _OWN_NAME.fullmatch(left.name), left.lstat().st_mode
            is_wanted = not targets or (match and re.fullmatch(targets, match["target"] or "") and stat.S_ISREG(mode))
            if match and is_wanted:
                inside = left.iterdir() if stat.S_ISDIR(mode) else ()
                if max(each.lstat().st_mtime for each in (left, *inside)) < time.time() - _STALE:
                    remove_entry(left)


def flush_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary_path(runs: Path, name: str) -> Path:
    short = os.fsdecode(os.fsencode(name)[:200])  # many file systems limit names to 255 bytes
    return runs / f".tmp-{short}-{os.getpid()}-{secrets.token_hex(4)}"
