"""Which paths a command may write: the one place that holds them against what is read and what is not ours."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpureport.errors import RenderError
from gpureport.places.remote_path import RemotePath
from gpureport.places.urls import Place

STORE, STORE_MARKER = ".gpureport", "store.json"
"""Name of a store that is called nothing else, and the file that makes a folder one."""
STORE_PARTS = (STORE_MARKER, "runs", "baselines", "history", "fleet", "index.parquet")
"""What a store keeps in its folder; other names are free, such as `site` in a history that jobs share."""
_PARTS = {(name,) for name in STORE_PARTS}
_NEPTUNE = ".neptune"
"""Folder in which Neptune's client keeps runs."""
_TRACKED = {"meta.yaml": b"lifecycle_stage:"}
"""File in each folder of an MLflow store, and what it says."""
_HEAD = 4096
_ANOTHER = "choose another name"
_ELSEWHERE = "choose a folder that can be written, or another name"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPath:
    """What a command is to write: a file, or a folder that it puts files into."""

    place: Place
    is_folder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPath:
    """What a command reads, and what is called so in a message.

    Attributes:
        place: the file or folder.
        name: what it is, such as `a source` or `the file of --labels`.
        is_closed: whether nothing may be written into the folder.
        suffixes: endings of files that may be written over in the folder: none of them is read from it.
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
    """Refuse to write what is read, what another output is, and what lies in a store, a tracker or another's folder.

    Nothing is written or changed. Paths are the same when the system says that they are one file, or lead to one place.

    Args:
        written: what is to be written.
        read: what is read.
        holds_data: returns whether a file that is there is a log or a database, which nobody wants to lose.

    Raises:
        RenderError: naming the first path that may not be written, why, and what to do.
    """
    for at, target in enumerate(written):
        if str(target.place) == "-":
            continue
        for code, what, hint in _find_obstacles(target, written[:at], read, holds_data):
            raise RenderError(str(target.place), what, hint, code=code)


def _find_obstacles(
    target: WrittenPath, others: Sequence[WrittenPath], read: Sequence[ReadPath], holds_data: Callable[[Path], bool]
) -> Iterator[tuple[str, str, str]]:
    """Yield the code of why a path may not be written, why, and what to do."""
    for each in read:
        if what := _describe_clash(target, each):
            yield "is_read", what, _ANOTHER
    if any(_is_same_output(target.place, other.place) for other in others):
        yield "same_output", "two outputs of this command are this file", "give each a name of its own"
    if isinstance(target.place, RemotePath):
        return
    if owner := _find_owner(target.place, is_folder=target.is_folder):
        yield "foreign_folder", f"it lies in {owner}", "choose a folder of your own"
    if what := find_file_obstacle(target.place, is_folder=target.is_folder):
        yield "not_a_regular_file", what, _ANOTHER
    if not target.is_folder and target.place.is_file() and holds_data(target.place):
        yield "holds_data", "this is a log or a database, not a place to write to", _ANOTHER
    if what := find_folder_obstacle(target.place, is_folder=target.is_folder):
        yield "cannot_write", f"cannot be written ({what})", _ELSEWHERE


def _describe_clash(target: WrittenPath, read: ReadPath) -> str:
    """Return why a path clashes with one that is read; empty where it does not."""
    is_dir = isinstance(read.place, Path) and read.place.is_dir()
    if _is_same(target.place, read.place) and not (target.is_folder and is_dir and not read.is_closed):
        return f"this is {read.name}, not a place to write to"
    if not _lies_in(target.place, read.place):
        return ""
    if read.is_closed:
        return f"it lies in {read.name}"
    if target.is_folder or target.place.suffix.lower() in read.suffixes:
        return ""
    # a bucket is not asked: what it may hold under this name is a log
    is_there = isinstance(target.place, RemotePath) or target.place.exists()
    return f"it lies in {read.name}, which may need it" if is_there else ""


def _is_same(one: Place, other: Place) -> bool:
    """Return whether two places are one: by their URLs, as the system says, or by where their links lead."""
    if isinstance(one, RemotePath) or isinstance(other, RemotePath):
        return str(one) == str(other)
    try:
        if one.samefile(other):
            return True
    except OSError:
        pass
    return os.path.realpath(one) == os.path.realpath(other)


def _is_same_output(one: Place, other: Place) -> bool:
    """Return whether two outputs are one; some disks take names that differ by case for one."""
    return _is_same(one, other) or (
        isinstance(one, Path)
        and isinstance(other, Path)
        and os.path.realpath(one).casefold() == os.path.realpath(other).casefold()
    )


def _lies_in(place: Place, folder: Place) -> bool:
    """Return whether a place lies below a folder, once links are followed."""
    if isinstance(place, RemotePath) or isinstance(folder, RemotePath):
        return str(place).startswith(f"{folder}/")
    return Path(os.path.realpath(folder)) in Path(os.path.realpath(place)).parents


def _find_owner(place: Path, *, is_folder: bool) -> str:
    """Return whose folder a path lies in; empty where it is nobody's but the person's."""
    resolved = Path(os.path.realpath(place))
    for folder in (resolved, *resolved.parents) if is_folder else resolved.parents:
        is_part = resolved.relative_to(folder).parts[:1] in _PARTS
        if is_part and (folder.name == STORE or _is_store(folder)):
            return f"a store of gpureport ({folder})"
        if folder.name == _NEPTUNE:
            return f"a store of Neptune ({folder})"
        if any(words in _read_head(folder / name) for name, words in _TRACKED.items()):
            return f"an MLflow store ({folder})"
    return ""


def _is_store(folder: Path) -> bool:
    try:
        return isinstance(json.loads(_read_head(folder / STORE_MARKER)).get("format"), int)
    except (ValueError, AttributeError):
        return False


def _read_head(path: Path) -> bytes:
    """Return the beginning of a regular file; nothing where there is none."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def find_file_obstacle(path: Path, *, is_folder: bool = False) -> str:
    """Return why what is there cannot be replaced by a file, or hold files; empty where it can or nothing is there."""
    if path.is_dir():
        return "" if is_folder else "this is a folder, not a file"
    if is_folder:
        return "this is no folder" if path.exists() else ""
    return "this is no regular file" if path.exists() and not path.is_file() else ""


def find_folder_obstacle(path: Path, *, is_folder: bool = False) -> str:
    """Return why the folder of a file, or a folder, cannot be written or made; empty where it can."""
    above = path.absolute()
    folders = (above, *above.parents) if is_folder else above.parents
    folder = next((each for each in folders if each.exists()), Path("/"))
    if not folder.is_dir():
        return f"{folder}: no folder"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"{folder}: no permission to write there"
