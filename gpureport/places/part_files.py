"""Files that appear whole or not at all, where a person keeps files as well; and what killed writers left."""

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_STALE = 86_400
"""Age in seconds of a half-written file or folder whose writer can no longer be at it."""


@contextmanager
def write_part(target: Path) -> Iterator[Path]:
    """Give an empty file beside a target to write to; on success it takes the target's place, otherwise it is removed.

    Those that killed writers of the same target left a day ago or longer are removed.
    """
    own = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}\.part")
    with suppress(OSError):
        beside = [each for each in target.parent.iterdir() if own.fullmatch(each.name)]
        remove_stale(beside, lambda left: stat.S_ISREG(left.lstat().st_mode))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.replace(target)
    finally:
        remove_entry(part)


def remove_stale(paths: Iterable[Path], is_own: Callable[[Path], bool]) -> None:
    """Remove files and folders that a writer made and last wrote a day ago or longer, as far as that is possible."""
    for left in paths:
        with suppress(OSError):
            inside = left.iterdir() if left.is_dir() and not left.is_symlink() else ()
            if is_own(left) and max(each.lstat().st_mtime for each in (left, *inside)) < time.time() - _STALE:
                remove_entry(left)


def remove_entry(path: Path) -> None:
    """Remove a file, a folder, or a link and not what it leads to, as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()
