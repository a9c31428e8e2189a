"""The small text files of MLflow's file store: missing is an answer, unreadable is an error."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from gpureport.errors import SourceError


def read_text(path: Path) -> str | None:
    """Return what a file holds, None where there is none.

    Raises:
        SourceError: when it cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise_unreadable(error, path)


def list_folder(parent: Path) -> list[Path]:
    """Return what lies in a folder, sorted.

    Raises:
        SourceError: when it cannot be listed.
    """
    try:
        return sorted(parent.iterdir())
    except OSError as error:
        raise_unreadable(error, parent)


def list_names(folder: Path, beginning: tuple[str, ...] = ("",)) -> Iterator[str]:
    """Yield the names of the files in a folder, sorted; a name with slashes is a file in folders.

    Args:
        folder: the folder; without it there are no names.
        beginning: what the names that are wanted begin with, any of these.

    Raises:
        SourceError: when a folder cannot be listed.
    """
    found = []
    for parent, below, files in os.walk(folder, onerror=_raise_unless_missing):
        here = Path(parent).relative_to(folder).as_posix()
        prefix = "" if here == "." else f"{here}/"
        if not prefix:
            below[:] = [each for each in below if f"{each}/".startswith(beginning)]
        found += [prefix + each for each in files if (prefix + each).startswith(beginning)]
    yield from sorted(found)


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise_unreadable(error, Path())


def raise_unreadable(error: OSError, path: Path) -> NoReturn:
    """Say that a file or folder cannot be read.

    Raises:
        SourceError: always; it names the path the system names, else this one.
    """
    where = str(error.filename or path)
    raise SourceError(where, error.strerror or "cannot be read", "check its permissions, or copy it") from error
