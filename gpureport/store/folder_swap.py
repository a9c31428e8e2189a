"""Putting a finished folder in its place in one step, so that a reader always finds a whole run there."""

import ctypes
import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_TRIES = 100


def move_into_place(folder: Path, place: Path) -> None:
    """Move a folder to its place; a folder already there takes its old name, or is removed.

    Raises:
        OSError: when neither is possible.
    """
    for _ in range(_TRIES):
        if place.exists():
            if _exchange(folder, place):
                return
            continue
        try:
            folder.rename(place)
        except OSError as error:
            # another writer of the same run was first
            if error.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
                raise
        else:
            return
    raise OSError(errno.EBUSY, "other writers keep replacing it", str(place))


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders; false if one of them disappeared."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return _replace_by_two_renames(one, other)
    paths = os.fsencode(one), os.fsencode(other)
    if library.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code == errno.ENOENT:
        return False
    if code in {errno.EINVAL, errno.ENOSYS}:
        return _replace_by_two_renames(one, other)
    raise OSError(code, os.strerror(code), str(other))


def _replace_by_two_renames(one: Path, other: Path) -> bool:
    """Replace a folder by two renames, where the system cannot exchange two; a reader can miss it in between."""
    old = one.with_name(f".tmp-{secrets.token_hex(8)}-old")
    with suppress(FileNotFoundError):
        other.rename(old)
    try:
        one.rename(other)
    except OSError:
        return False
    return True
