"""The `run.json` files of a store: which there are, when each was last written, and what they say."""

import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpureport.errors import DamagedRunError, StoreError
from gpureport.limits import MOST_RECORD_BYTES
from gpureport.places import Place, RemotePath
from gpureport.regular_files import UnsafeFileError, check_regular_file, code_system_error
from gpureport.store import run_json

RUN_FILE = "run.json"
"""File that makes a folder a run."""
_DAMAGE = (ValueError, RecursionError, KeyError, TypeError, AttributeError)
"""What reading a damaged `run.json` raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStamp:
    """Size of a file in bytes, and when it was last written, in nanoseconds since 1970."""

    size: int
    modified_ns: int


def list_run_files(runs: Place) -> dict[str, FileStamp]:
    """Return the stamp of every `run.json`, by the name of its folder, in the order of the names.

    Args:
        runs: folder of the runs. Folders whose name begins with a dot belong to writers.
    """
    if isinstance(runs, RemotePath):
        return _list_remote_files(runs)
    found = {}
    with suppress(FileNotFoundError):
        for folder in runs.iterdir():
            # not every folder is a run, and one may be removed meanwhile
            with suppress(OSError):
                status = None if folder.name.startswith(".") else (folder / RUN_FILE).stat()
                if status is not None and stat.S_ISREG(status.st_mode):
                    found[folder.name] = FileStamp(size=status.st_size, modified_ns=status.st_mtime_ns)
    return dict(sorted(found.items()))


def _list_remote_files(runs: RemotePath) -> dict[str, FileStamp]:
    """Return the same of a bucket, by one listing of all objects: each question for one would wait for its answer."""
    found = {}
    for info in runs.list_infos(recursive=True):
        folder, _, name = info.path.removeprefix(f"{runs.path}/").partition("/")
        if info.is_file and name == RUN_FILE and not folder.startswith("."):
            found[folder] = FileStamp(size=info.size, modified_ns=info.mtime_ns or 0)
    return dict(sorted(found.items()))


def read_stored_file(path: Place, most: int | None = None) -> bytes:
    """Return the content of a file of a store.

    Raises:
        OSError: when it cannot be read, is no regular file, or is larger than `most` bytes.
    """
    if isinstance(path, Path):
        check_regular_file(path, most=most)
    return path.read_bytes()


def read_stored_run(folder: Place) -> run_json.StoredRun:
    """Return what the `run.json` of a folder says.

    Raises:
        DamagedRunError: when it is missing or damaged.
        StoreError: when it cannot be read.
    """
    path = folder / RUN_FILE
    try:
        return run_json.load_run(read_stored_file(path, MOST_RECORD_BYTES).decode("utf-8"))
    except (FileNotFoundError, UnsafeFileError, *_DAMAGE) as error:
        raise DamagedRunError(str(path), "damaged", "ingest the run again", code="damaged_run") from error
    except OSError as error:
        what, code = f"cannot be read ({error.strerror})", code_system_error(error, "cannot_read")
        raise StoreError(str(path), what, "check its permissions and the disk", code=code) from error
