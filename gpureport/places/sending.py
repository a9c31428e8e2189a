"""Folders of this machine sent to a bucket, where there is no renaming: the order of the objects makes up for it."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from gpureport.places.remote_path import RemotePath
from gpureport.places.urls import Place

_AT_ONCE = 8
"""Objects that are sent at the same time."""


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
        folder = Path(name)
        yield folder
        _send_files(folder, place, [each for each in list_files(folder) if each != last])
        _send_files(folder, place, [last])


def replace_folder(folder: Path, target: RemotePath, last: str) -> None:
    """Send a folder whose content counts from the moment that its last file is there.

    A folder that is there is removed first, its own last file before the others. Whoever reads finds the old content,
    none, or the new, and never a part of both. A writer that is killed, or whose connection drops, may leave none;
    writing again mends it.

    Args:
        folder: the folder with the files, and folders of files.
        target: where to.
        last: name of the file in it that readers look for first.
    """
    (target / last).unlink(missing_ok=True)
    target.remove_folder()
    _send_files(folder, target, [each for each in list_files(folder) if each != last])
    _send_files(folder, target, [last])


def _send_files(folder: Path, target: RemotePath, names: Iterable[str]) -> None:
    """Send files of a folder, several at a time; none is begun after one that fails."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(lambda name: (target / name).write_bytes((folder / name).read_bytes()), names):
            pass


def list_files(folder: Path) -> list[str]:
    """Return the names of the files in a folder and below, with slashes between their parts."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
