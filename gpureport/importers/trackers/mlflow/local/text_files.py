"""The small text files of MLflow's file store: missing is an answer, unreadable is an error."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from gpureport.errors import SourceError
from gpureport.limits import DEEPEST_FOLDER, MOST_FILES
from gpureport.regular_files import UnsafeFileError, read_regular_file


def read_text(path: Path, root: Path) -> str | None:
    """Return what a file of a store holds, None where there is none.

    Args:
        path: the file.
        root: the folder of the store.

    Raises:
        SourceError: when it cannot be read, is no regular file, lies outside the store, or is too large.
    """
    try:
        return read_regular_file(path, root=root).decode("utf-8", errors="replace")
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
        found = sorted(parent.iterdir())
    except OSError as error:
        raise_unreadable(error, parent)
    if len(found) > MOST_FILES:
        what = f"it holds {len(found):,} files and folders; at most {MOST_FILES:,} are read"
        raise SourceError(str(parent), what, "move some of them out of the store", code="too_many_files")
    return found


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
        if here.count("/") > DEEPEST_FOLDER:
            what = f"its folders are nested more than {DEEPEST_FOLDER} deep"
            raise SourceError(str(folder), what, "move them, or leave the run out", code="too_many_files")
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
    hint = error.hint if isinstance(error, UnsafeFileError) else "check its permissions, or copy it"
    raise SourceError(where, error.strerror or "cannot be read", hint, code="cannot_read") from error
