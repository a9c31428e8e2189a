"""What lies in a bucket, fetched to this machine to be read."""

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from gpureport.errors import PlaceError
from gpureport.fetched_copies import copy_path
from gpureport.places.remote_path import RemotePath
from gpureport.regular_files import code_system_error

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import fs

_AT_ONCE = 8
"""Objects that are fetched at the same time."""
_PIECE = 16 * 2**20
"""Bytes of one request, and of a large object in memory."""
_fetched: dict[RemotePath, list[tuple[str, int, int | None]]] = {}
"""The path, size and time of each object that was fetched for a place."""

Watch = Callable[[int, int], None]
"""Is called with the bytes that were fetched, and the bytes of all."""


def fetch(place: RemotePath, watch: Watch = lambda _done, _total: None) -> Path:
    """Return the local copy of an object or folder; nothing lies there where the bucket holds neither.

    What did not change since it was last fetched is not fetched again.

    Raises:
        PlaceError: when it cannot be fetched whole.
    """
    copy, objects = copy_path(place.scheme, place.path), _find_objects(place)
    states = [(each.path, each.size, each.mtime_ns) for each in objects]
    if _fetched.get(place) == states:
        return copy
    _fetched.pop(place, None)
    try:
        _remove(copy)
        _copy_objects(place.scheme, objects, watch)
    except OSError as error:
        hint = "free some space, or choose another folder for temporary files with TMPDIR"
        code = code_system_error(error, "cannot_write")
        raise PlaceError(str(place), f"cannot be copied to this machine ({error.strerror})", hint, code=code) from error
    _fetched[place] = states
    return copy


def _find_objects(place: RemotePath) -> "list[fs.FileInfo]":
    """Return the objects to fetch.

    Raises:
        PlaceError: when the name of one would lead out of the folder of the copies.
    """
    with place.reach() as client:
        (info,) = client.get_file_info([place.path])
    objects = [info] if info.is_file else [each for each in place.list_infos(recursive=True) if each.is_file]
    if not objects:
        place.check_bucket()
    for each in objects:
        if {".", ".."} & {*each.path.split("/")}:
            what = "a name with . or .. is not fetched"
            raise PlaceError(f"{place.scheme}://{each.path}", what, "rename the object", code="unsafe_name")
    return objects


def _remove(copy: Path) -> None:
    if copy.is_dir():
        shutil.rmtree(copy)
    else:
        copy.unlink(missing_ok=True)


def _copy_objects(scheme: str, objects: "Sequence[fs.FileInfo]", watch: Watch) -> None:
    """Copy objects to where their copies lie, several at a time; none is begun after one that fails."""
    total, done, lock = sum(each.size for each in objects), 0, Lock()

    def count(size: int) -> None:
        nonlocal done
        with lock:
            done += size
            watch(done, total)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(partial(_copy_object, scheme, count), objects):
            pass


def _copy_object(scheme: str, count: Callable[[int], None], info: "fs.FileInfo") -> None:
    """Copy one object piece by piece.

    Raises:
        FileNotFoundError, PlaceError: when it is no longer what was listed.
    """
    place, file = RemotePath(scheme=scheme, path=info.path), copy_path(scheme, info.path)
    file.parent.mkdir(parents=True, exist_ok=True)
    with place.reach() as client:
        stream = client.open_input_file(info.path)
    with stream, file.open("wb") as copy:
        while piece := _read_piece(place, stream):
            copy.write(piece)
            count(len(piece))
    if file.stat().st_size != info.size:
        what = "it changed while it was fetched"
        raise PlaceError(str(place), what, "run it again when nothing writes to it", code="changed_while_read")


def _read_piece(place: RemotePath, stream: "pa.NativeFile") -> bytes:
    """Return the next bytes; nothing at the end. Only errors of the bucket are to become those of the place."""
    with place.reach():
        return stream.read(_PIECE)
