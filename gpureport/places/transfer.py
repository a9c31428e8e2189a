"""What lies in a bucket, fetched to this machine to be read; folders of this machine sent there."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from gpureport.errors import PlaceError
from gpureport.fetched_copies import copy_path
from gpureport.places.buckets import Place, RemotePath
from gpureport.regular_files import code_system_error

_AT_ONCE = 8
"""Objects that are fetched or sent at the same time."""
_PIECE = 16 * 2**20
"""Bytes of one request, and of a large object in memory."""
_fetched: dict[RemotePath, dict[str, tuple[int, int | None]]] = {}
"""The size and time of each object that was fetched for a place, by its path."""


def fetch(place: RemotePath, watch: Callable[[int, int], None] = lambda _done, _total: None) -> Path:
    """Return the local copy of an object or folder; nothing lies there where the bucket holds neither.

    What did not change since it was last fetched is not fetched again.

    Args:
        place: the object or folder.
        watch: is called with the bytes that were fetched, and the bytes of all.

    Raises:
        PlaceError: when it cannot be fetched whole, or an object has a name that leads elsewhere.
    """
    info = place.find_info()
    objects = [info] if info.is_file else [each for each in place.list_infos(recursive=True) if each.is_file]
    if not objects:
        place.check_bucket()
    states = {each.path: (each.size, each.mtime_ns) for each in objects}
    for path in (place.path, *states):
        if {".", ".."} & {*path.split("/")}:
            url, what = f"{place.scheme}://{path}", "a name with . or .. is not fetched"
            raise PlaceError(url, what, "rename the object", code="unsafe_name")
    copy, total, done = (
        copy_path(place.scheme, place.path),
        sum(size for size, _ in states.values()),
        dict.fromkeys(states, 0),
    )
    if _fetched.get(place) == states:
        return copy

    def copy_object(path: str) -> None:
        source, file = RemotePath(scheme=place.scheme, path=path), copy_path(place.scheme, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with source.reach() as client, client.open_input_file(path) as stream, file.open("wb") as opened:
            while piece := stream.read(_PIECE):
                opened.write(piece)
                done[path] += len(piece)
                watch(sum(done.values()), total)
        if done[path] != states[path][0]:
            what = "it changed while it was fetched"
            raise PlaceError(str(source), what, "run it again when nothing writes to it", code="changed_while_read")

    _fetched.pop(place, None)
    try:
        shutil.rmtree(copy) if copy.is_dir() else copy.unlink(missing_ok=True)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(copy_object, states))
    except OSError as error:
        hint = "free some space, or choose another folder for temporary files with TMPDIR"
        code = code_system_error(error, "cannot_write")
        raise PlaceError(str(place), f"cannot be copied to this machine ({error.strerror})", hint, code=code) from error
    _fetched[place] = states
    return copy


@contextmanager
def stage_folder(place: Place, last: str) -> Iterator[Path]:
    """Give a folder to write files to that belong into a place; on success those for a bucket are sent.

    Args:
        place: a folder of this machine, which is given itself, or of a bucket.
        last: name of the file that leads to the others, sent when they are there.
    """
    if isinstance(place, Path):
        yield place
        return
    with TemporaryDirectory(prefix="gpureport-") as name:
        yield Path(name)
        _send_files(Path(name), place, last)


def replace_folder(folder: Path, target: RemotePath, last: str) -> None:
    """Send a folder whose content counts from the moment that its last file is there; one that is there goes first.

    Without renaming, the order makes up for it: whoever reads finds no mixture of two contents.
    """
    target.remove_folder(last)
    _send_files(folder, target, last)


def _send_files(folder: Path, target: RemotePath, last: str) -> None:
    """Send the files of a folder and below, several at a time, and the last one when the others are there."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    for group in ([name for name in names if name != last], [last]):
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda name: (target / name).write_bytes((folder / name).read_bytes()), group))
