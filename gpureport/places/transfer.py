"""Files that go between places, and appear whole or not at all; remains of killed writers are removed."""

import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from gpureport.errors import PlaceError
from gpureport.places.buckets import Place, RemotePath
from gpureport.regular_files import code_system_error, copy_path

_AT_ONCE = 8  # objects that are sent at the same time
_STALE = 86_400  # seconds after which nobody writes a half-written file or folder any more


def fetch(place: RemotePath) -> Path:
    """Return the local copy of an object or folder, fetched if it changed; it may not exist in the bucket."""
    info = place.find_info()
    objects = [info] if info.is_file else place.list_infos(recursive=True)
    states = tuple((each.path, each.size, each.mtime_ns) for each in objects if each.is_file)
    for path in (place.path, *(path for path, _, _ in states)):
        if {".", ".."} & {*path.split("/")}:
            url, what = f"{place.scheme}://{path}", "a name with . or .. is not fetched"
            raise PlaceError(url, what, "rename the object", code="unsafe_name")
    if not states:
        place.check_bucket()
        return copy_path(place.scheme, place.path)
    return _copy(place, states)


@cache
def _copy(place: RemotePath, states: tuple[tuple[str, int, int | None], ...]) -> Path:
    from pyarrow import fs

    target, copies = copy_path(place.scheme, place.path), {copy_path(place.scheme, path): n for path, n, _ in states}
    try:
        remove_entry(target)
        for copy in copies:
            copy.parent.mkdir(parents=True, exist_ok=True)
        with place.reach() as client:
            fs.copy_files(
                place.path, str(target), source_filesystem=client, destination_filesystem=fs.LocalFileSystem()
            )
        changed = [copy for copy, size in copies.items() if copy.stat().st_size != size]
    except OSError as error:
        hint = "free some space, or choose another folder for temporary files with TMPDIR"
        code = code_system_error(error, "cannot_write")
        raise PlaceError(str(place), f"cannot be copied to this machine ({error.strerror})", hint, code=code) from error
    for copy in changed:
        what, hint = "it changed while it was fetched", "run it again when nothing writes to it"
        raise PlaceError(str(copy), what, hint, code="changed_while_read")
    return target


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


def write_file(target: Place, content: bytes) -> None:
    """Write a file, which appears whole or not at all; its folder is made where it is missing.

    Files that killed writers of the target left a day ago or longer are removed.
    """
    if isinstance(target, RemotePath):
        target.write_bytes(content)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    own = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}\.part")
    with suppress(OSError):
        beside = [each for each in target.parent.iterdir() if own.fullmatch(each.name)]
        remove_stale(beside, lambda left: stat.S_ISREG(left.lstat().st_mode))
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(content)
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
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
