"""What lies in a bucket, fetched to this machine to be read; folders of this machine sent there."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from gpureport.errors import PlaceError
from gpureport.fetched_copies import copy_path
from gpureport.places.buckets import Place, RemotePath
from gpureport.regular_files import code_system_error

_AT_ONCE = 8
"""Objects that are sent at the same time."""
_fetched: dict[RemotePath, dict[str, tuple[int, int | None]]] = {}
"""The size and time of each object that was fetched for a place, by its path."""


def fetch(place: RemotePath) -> Path:
    """Return the local copy of an object or folder; nothing lies there where the bucket holds neither.

    What did not change since it was last fetched is not fetched again.

    Raises:
        PlaceError: when it cannot be fetched whole, or an object has a name that leads elsewhere.
    """
    from pyarrow import fs  # noqa: PLC0415 - only where a bucket is named

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
        shutil.rmtree(copy) if copy.is_dir() else copy.unlink(missing_ok=True)
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
        send_folder(Path(name), place, last)


def send_folder(folder: Path, target: RemotePath, last: str) -> None:
    """Send the files of a folder and below, several at a time, and the last one when the others are there."""
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    for group in ([name for name in names if name != last], [last]):
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda name: (target / name).write_bytes((folder / name).read_bytes()), group))
