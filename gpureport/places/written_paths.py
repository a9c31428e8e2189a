"""Checks that a command writes to neither its inputs nor other programs' paths."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple

from gpureport.errors import CodedProblem, RenderError
from gpureport.places import Place, RemotePath
from gpureport.regular_files import read_regular_file

STORE, STORE_MARKER = ".gpureport", "store.json"
STORE_PARTS = (STORE_MARKER, "runs", "baselines", "decisions", "history", "fleet", "index.parquet")
"""Names that a store uses in its folder."""
_TRACKED = "meta.yaml"
_SAYS = b"lifecycle_stage:"
_ANOTHER = "choose another name"


class WrittenPath(NamedTuple):
    """An output of a command: a file, or a folder to which it writes files."""

    place: Place
    is_folder: bool = False


class ReadPath(NamedTuple):
    """An input of a command, with its `name` in messages. If it `is_closed`, nothing may be written into the folder.

    Files with one of the `suffixes` may be overwritten, since the command does not read them.
    """

    place: Place
    name: str
    is_closed: bool = False
    suffixes: frozenset[str] = frozenset()


def refuse_taken_paths(
    written: Sequence[WrittenPath],
    read: Sequence[ReadPath] = (),
    holds_data: Callable[[Path], bool] = lambda _: False,
) -> None:
    """Raise `RenderError` if an output is an input or another output, or is in a store or a tracker's folder.

    `holds_data` returns whether an existing file is a log or database, which must not be lost.
    """
    for at, target in enumerate(written):
        obstacles = () if str(target.place) == "-" else _find_obstacles(target, written[:at], read, holds_data)
        for what, hint, code in obstacles:
            raise RenderError(str(target.place), what, hint, code=code)


def _find_obstacles(
    target: WrittenPath, others: Sequence[WrittenPath], read: Sequence[ReadPath], holds_data: Callable[[Path], bool]
) -> Iterator[CodedProblem]:
    place, is_folder = target
    for each in read:
        if what := _describe_clash(target, each):
            yield what, _ANOTHER, "is_read"
    # some file systems ignore the case of names, whereas buckets do not
    if any(_is_same(place, each) or _fold(place) == _fold(each) for each, _ in others):
        yield "two outputs of this command have this path", "give each its own name", "same_output"
    if isinstance(place, RemotePath):
        return
    if owner := _find_owner(place, is_folder=is_folder):
        yield f"it is in {owner}", "choose another folder", "foreign_folder"
    if place.exists() and not (place.is_dir() if is_folder else place.is_file()):
        kind = "is a folder, not a file" if place.is_dir() else f"is not a {'folder' if is_folder else 'regular file'}"
        yield f"this {kind}", _ANOTHER, "not_a_regular_file"
    if not is_folder and place.is_file() and holds_data(place):
        yield "this is a log or database, which must not be overwritten", _ANOTHER, "holds_data"
    if what := find_folder_obstacle(place, is_folder=is_folder):
        yield f"cannot be written ({what})", "choose a writable folder, or another name", "cannot_write"


def _describe_clash(target: WrittenPath, read: ReadPath) -> str:
    place, is_local = target.place, isinstance(read.place, Path)
    if _is_same(place, read.place) and not (
        target.is_folder and is_local and read.place.is_dir() and not read.is_closed
    ):
        return f"this is {read.name}, which must not be overwritten"
    if _resolve(read.place) not in _resolve(place).parents:
        return ""
    if read.is_closed:
        return f"it is in {read.name}"
    # the bucket is not queried, so any object with this name may be a log
    free = target.is_folder or place.suffix.lower() in read.suffixes or (isinstance(place, Path) and not place.exists())
    return "" if free else f"it is in {read.name}, which may need it"


def _resolve(place: Place) -> PurePath:
    return Path(os.path.realpath(place)) if isinstance(place, Path) else place


def _fold(place: Place) -> str:
    return str(_resolve(place)).casefold() if isinstance(place, Path) else str(place)


def _is_same(one: Place, other: Place) -> bool:
    with suppress(OSError):
        if isinstance(one, Path) and isinstance(other, Path):
            return one.samefile(other)
    return _resolve(one) == _resolve(other)


def _find_owner(place: Path, *, is_folder: bool) -> str:
    resolved = Path(os.path.realpath(place))
    for folder in (resolved, *resolved.parents) if is_folder else resolved.parents:
        if {*resolved.relative_to(folder).parts[:1]} & {*STORE_PARTS}:
            is_store = folder.name == STORE
            with suppress(ValueError, AttributeError):
                is_store |= isinstance(json.loads(_read(folder / STORE_MARKER)).get("format"), int)
            if is_store:
                return f"a gpureport store ({folder})"
        # Neptune's client stores runs in this folder
        if folder.name == ".neptune":
            return f"a Neptune store ({folder})"
        if _SAYS in _read(folder / _TRACKED):
            return f"an MLflow store ({folder})"
    return ""


def _read(path: Path) -> bytes:
    with suppress(OSError):
        return read_regular_file(path)
    return b""


def find_folder_obstacle(path: Path, *, is_folder: bool = False) -> str:
    """Return why a folder, or a file's folder, cannot be created or written to, or ""."""
    above = path.absolute()
    folder = next((each for each in (above, *above.parents)[not is_folder :] if os.path.lexists(each)), Path("/"))
    if not folder.is_dir():
        return f"{folder} is {'not a folder' if folder.exists() else 'a link to nothing'}"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"no permission to write to {folder}"
