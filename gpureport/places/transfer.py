"""Files that go between places, and appear whole or not at all; remains of killed writers are removed."""

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from gpureport.errors import PlaceError
from gpureport.places.buckets import Place, RemotePath
from gpureport.regular_files import code_system_error, copy_path

_AT_ONCE = 8
"""Objects that are sent at the same time."""
_STALE = 86_400
"""Age in seconds of a half-written file or folder whose writer can no longer be at it."""
_fetched: dict[RemotePath, dict[str, tuple[int, int | None]]] = {}
"""The size and time of each object that was fetched for a place, by its path."""


def fetch(place: RemotePath) -> Path:
    """Return the local copy of an object or folder, fetched if it changed; it may not exist in the bucket."""
    from pyarrow import fs

    info = place.find_info()
    objects = [info] if info.is_file else [each for each in place.list_infos(recursive=True) if each.is_file]
    if not objects:
        place.check_bucket()
    states = {each.path: (each.size, each.mtime_ns) for each in objects}
    for path in (place.path, *states):
        if {".", ".."} & {*path.split("/")}:
            url, what = f"{place.scheme}://{path}", "a name with . or .. is not fetched"
            raise PlaceError(url, what, "rename the object", code="unsafe_name")
    copy = copy_path(place.scheme, place.path)
    if not states or _fetched.get(place) == states:
        return copy
    _fetched.pop(place, None)
    try:
        remove_entry(copy)
        for path in states:
            copy_path(place.scheme, path).parent.mkdir(parents=True, exist_ok=True)
        with place.reach() as client:
            fs.copy_files(place.path, str(copy), source_filesystem=client, destination_filesystem=fs.LocalFileSystem())
        sizes = {path: copy_path(place.scheme, path).stat().st_size for path in states}
    except OSError as error:
        hint = "free some space, or choose another folder for temporary files with TMPDIR"
        code = code_system_error(error, "cannot_write")
        raise PlaceError(str(place), f"cannot be copied to this machine ({error.strerror})", hint, code=code) from error
    if changed := next((path for path, size in sizes.items() if size != states[path][0]), None):
        url, what = f"{place.scheme}://{changed}", "it changed while it was fetched"
        raise PlaceError(url, what, "run it again when nothing writes to it", code="changed_while_read")
    _fetched[place] = states
    return copy


@contextmanager
def stage_folder(place: Place, last: str) -> Iterator[Path]:
    """Give a folder to write a place's files to; on success those for a bucket are sent, what leads to them `last`."""
    if isinstance(place, Path):
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="gpureport-") as name:
        yield Path(name)
        send_folder(Path(name), place, last)


def send_folder(folder: Path, target: RemotePath, last: str) -> None:
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    for group in ([name for name in names if name != last], [last]):
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda name: (target / name).write_bytes((folder / name).read_bytes()), group))


@contextmanager
def write_part(target: Path) -> Iterator[Path]:
    """Give an empty file beside a target; on success it takes the target's place, otherwise it is removed.

    Files that killed writers of the target left a day ago or longer are removed.
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
    """Remove a writer's files and folders last written a day ago or longer, as far as possible."""
    for left in paths:
        with suppress(OSError):
            inside = left.iterdir() if left.is_dir() and not left.is_symlink() else ()
            if is_own(left) and max(each.lstat().st_mtime for each in (left, *inside)) < time.time() - _STALE:
                remove_entry(left)


def remove_entry(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()
