"""Files that appear whole or not at all, in folders where a person keeps files as well."""

import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_STALE = 86_400
"""Age in seconds of a half-written file whose writer can no longer be at it."""


@contextmanager
def write_part(target: Path) -> Iterator[Path]:
    """Give an empty file beside a target to write to; on success it takes the target's place, else it is removed.

    Those that writers of the same target left a day ago or longer, since they were killed, are removed.
    """
    remove_stale_parts(target)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def remove_stale_parts(target: Path) -> None:
    """Remove what killed writers of a target left beside it; a file of another name belongs to somebody else."""
    own = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}\.part")
    with suppress(OSError):
        for left in [each for each in target.parent.iterdir() if own.fullmatch(each.name)]:
            facts = left.lstat()
            if stat.S_ISREG(facts.st_mode) and facts.st_mtime < time.time() - _STALE:
                left.unlink()
