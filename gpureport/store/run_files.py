"""The `run.json` files of a store: which there are, and what they say."""

import stat
from contextlib import suppress
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


def list_run_folders(runs: Place) -> list[str]:
    """Return the name of every folder that holds a `run.json`, in their order.

    Args:
        runs: folder of the runs. Folders whose name begins with a dot belong to writers.
    """
    if isinstance(runs, RemotePath):
        return _list_remote_folders(runs)
    found = []
    with suppress(FileNotFoundError):
        for folder in runs.iterdir():
            # not every folder is a run, and one may be removed meanwhile
            with suppress(OSError):
                if not folder.name.startswith(".") and stat.S_ISREG((folder / RUN_FILE).stat().st_mode):
                    found.append(folder.name)
    return sorted(found)


def _list_remote_folders(runs: RemotePath) -> list[str]:
    """Return the same of a bucket, by one listing of all objects: each question for one would wait for its answer."""
    found = []
    for info in runs.list_infos(recursive=True):
        folder, _, name = info.path.removeprefix(f"{runs.path}/").partition("/")
        if info.is_file and name == RUN_FILE and not folder.startswith("."):
            found.append(folder)
    return sorted(found)


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
