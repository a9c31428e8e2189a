"""Writes and reads `run.json`, which contains a run and its quality, and lists the runs in a store.

Since a flipped bit often yields another valid number, the file contains the SHA-256 of its content. The hash is
computed from values rather than bytes, since a change in white space is not damage.
"""

import json
import marshal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from os.path import isfile
from pathlib import Path
from typing import Any

from gpureport.errors import DamagedRunError, StoreError
from gpureport.parsing import LAST_MICROSECOND, MOST_RECORD_BYTES
from gpureport.places import Place, RemotePath, map_places
from gpureport.recording import Device, Run
from gpureport.redaction import OwnSecrets, get_own_secrets
from gpureport.regular_files import UnsafeFileError, check_regular_file, code_system_error

RUN_FILE = "run.json"
"""The file that marks a folder as a run."""
_FIRST_KEYS = {"importer_version", "columns", "run"}
"""Keys of runs stored before checksums existed."""
_DAMAGE = (ValueError, RecursionError, KeyError, TypeError, AttributeError)
"""Errors from reading a damaged `run.json`; msgspec raises ValueErrors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    run: Run
    columns: tuple[str, ...]
    importer_version: str
    series_sha256: str | None = None
    training_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIndex:
    """A store's runs, oldest first, and the folders with an unreadable `run.json`."""

    runs: tuple[StoredRun, ...]
    damaged: tuple[str, ...]


def dump_run(stored: StoredRun) -> str:
    run = asdict(stored.run)
    run["params"], run["tags"] = dict(stored.run.params), dict(stored.run.tags)
    if run["work"] is not None and not run["work"]["is_common"]:
        # left out, as in runs stored before work could be shared
        del run["work"]["is_common"]
    content: dict[str, Any] = {"importer_version": stored.importer_version, "columns": stored.columns, "run": run}
    hashes = {"series_sha256": stored.series_sha256, "training_sha256": stored.training_sha256}
    content |= {name: value for name, value in hashes.items() if value is not None}
    return json.dumps({**content, "sha256": _hash_content(content)}, indent=1) + "\n"


def _load_run(text: str) -> StoredRun:
    import msgspec

    content = json.loads(text)
    written = content.pop("sha256", None)
    if written != _hash_content(content) and (written is not None or content.keys() != _FIRST_KEYS):
        raise ValueError("its content has changed since it was written")
    run = {**content["run"], **{name: tuple(content["run"][name].items()) for name in ("params", "tags")}}
    # version 0 of marshal writes equal values identically
    run["devices"] = _share_devices(marshal.dumps(run["devices"], 0), get_own_secrets())
    stored = msgspec.convert({**content, "run": run}, StoredRun)
    if max(abs(stored.run.started), abs(stored.run.ended)) >= LAST_MICROSECOND:
        raise ValueError("a time is outside the supported years")
    return stored


@lru_cache(maxsize=512)
def _share_devices(dumped: bytes, _own: OwnSecrets) -> tuple[Device, ...]:
    import msgspec

    return msgspec.convert(marshal.loads(dumped), tuple[Device, ...])  # noqa: S302 - dumped just before


def _hash_content(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content).encode()).hexdigest()


def read_stored_file(path: Place, most: int) -> bytes:
    if isinstance(path, Path):
        check_regular_file(path, most=most)
    return path.read_bytes()


def read_stored_run(folder: Place) -> StoredRun:
    path = folder / RUN_FILE
    try:
        return _load_run(read_stored_file(path, MOST_RECORD_BYTES).decode("utf-8"))
    except (FileNotFoundError, UnsafeFileError, *_DAMAGE) as error:
        raise DamagedRunError(str(path), "damaged", "ingest the run again", code="damaged_run") from error
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        code = code_system_error(error, "cannot_read")
        raise StoreError(str(path), what, "check its permissions and the disk", code=code) from error


def list_run_folders(runs: Place) -> list[str]:
    found = []
    if isinstance(runs, RemotePath):
        # listing all objects at once is faster than a request for each folder
        paths = [info.path.removeprefix(f"{runs.path}/") for info in runs.list_infos(recursive=True) if info.is_file]
        found = [folder for folder, *names in (path.split("/") for path in paths) if names == [RUN_FILE]]
    else:
        with suppress(FileNotFoundError):
            # not every folder is a run, and a folder may vanish at any time
            found = [folder.name for folder in runs.iterdir() if isfile(folder / RUN_FILE)]
    return sorted(name for name in found if not name.startswith("."))


def read_index(runs: Place) -> RunIndex:
    folders = [runs / name for name in list_run_folders(runs)]
    found = list(zip(folders, map_places(_try_stored_run, folders), strict=True))
    # a folder without the file was removed in the meantime
    damaged = tuple(folder.name for folder, stored in found if stored is None and (folder / RUN_FILE).is_file())
    known = [stored for _, stored in found if stored is not None]
    return RunIndex(runs=tuple(sorted(known, key=lambda stored: (stored.run.started, stored.run.id))), damaged=damaged)


def _try_stored_run(folder: Place) -> StoredRun | None:
    with suppress(StoreError):
        return read_stored_run(folder)
    return None
