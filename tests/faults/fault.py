"""A fault that a library lets happen at a call, and the states a folder may be in after it."""

import ctypes
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from errno import errorcode
from hashlib import sha256
from pathlib import Path

_SOURCE = Path(__file__).with_name("shim.c")
CHANGES = ("open", "write", "mkdir", "rename", "link", "unlink", "rmdir", "chmod", "fsync", "truncate", "close")
"""Calls that change files, as the library names them: `open` is one that makes or empties a file."""
READS = ("open_to_read", "read")
_ACTIONS = ("kill", "kill in half", "error", "half")
_NAMED = frozenset({"open", "mkdir", "rename", "link", "unlink", "rmdir"})
_REFUSED = {
    "EIO": frozenset({*CHANGES, *READS}),
    "ENOSPC": frozenset({"open", "write", "mkdir", "rename", "link", "fsync", "close"}),
    "EDQUOT": frozenset({"open", "write", "mkdir", "rename", "link", "fsync", "close"}),
    "EACCES": _NAMED | {"open_to_read"},
    "EROFS": _NAMED | {"chmod", "truncate"},
    "EINTR": frozenset({"open", "write", "fsync", "truncate", "open_to_read", "read"}),
}
"""The calls that each error ends, as the manual pages of Linux list them."""
_ERRORS = {name: number for number, name in errorcode.items()}
_FOR_EVER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that goes wrong at one call, or from one call on."""

    kind: str
    calls: Sequence[str] = CHANGES  # names of the calls that are counted
    at: int = -1  # number of the call, from 0; -1 for none
    action: str = "error"  # or `kill`, `kill in half` (half of the bytes are written), `half` (half are moved)
    error: str = "EIO"
    fails: Sequence[str] = ()  # names of the calls that fail
    lasts: bool = False  # whether those after it fail as well


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that was counted: its name, its path, and whether the fault was there."""

    name: str
    path: str
    is_faulty: bool


def list_faults(name: str, at: int) -> list[Fault]:
    calls = CHANGES if name in CHANGES else READS
    faults = [Fault(kind="kill", calls=calls, at=at, action="kill")] if calls is CHANGES else []
    if name == "write":
        faults.append(Fault(kind="kill in half a write", calls=calls, at=at, action="kill in half"))
    if name in {"write", "read"}:
        faults.append(Fault(kind=f"short {name}", calls=calls, at=at, action="half"))
    for error, refused in _REFUSED.items():
        if name in refused:
            once = Fault(kind=error, calls=calls, at=at, error=error, fails=(name,))
            faults.append(once)
            if calls is CHANGES and error in {"ENOSPC", "EACCES", "EROFS"}:
                fails = sorted(refused)
                faults.append(
                    Fault(kind=f"{error} from then on", calls=calls, at=at, error=error, fails=fails, lasts=True)
                )
    return faults


def build_library(folder: Path) -> Path:
    target = folder / "shim.so"
    subprocess.run([str(shutil.which("cc")), "-shared", "-fPIC", "-O1", "-o", str(target), str(_SOURCE)], check=True)
    return target


def arm_fault(fault: Fault, folder: Path, log: Path) -> None:
    """Let a fault happen in this process, in which the library is loaded."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    end = _FOR_EVER if fault.lasts else fault.at + 1
    ctypes.CDLL(None).arm_fault(
        f"{folder}/".encode(),
        f" {' '.join(fault.calls)} ".encode(),
        f" {' '.join(fault.fails)} ".encode(),
        *(ctypes.c_long(each) for each in (fault.at, end)),
        _ACTIONS.index(fault.action),
        _ERRORS[fault.error],
        descriptor,
    )


def stop_clock(seconds: int) -> None:
    """Let the clock of this process stand still, some seconds after 1970."""
    ctypes.CDLL(None).stop_clock(ctypes.c_longlong(seconds * 10**9))


def set_clock_back(seconds: float, after: int) -> None:
    """Let the clock of this process be set back once it was read so often."""
    ctypes.CDLL(None).set_clock_back(ctypes.c_longlong(round(seconds * 10**9)), ctypes.c_long(after))


def count_readings() -> int:
    """Return how often the clock of this process was read since `set_clock_back`."""
    count = ctypes.CDLL(None).count_readings
    count.restype = ctypes.c_long
    return int(count())


def read_log(log: Path) -> list[Call]:
    calls = []
    for line in log.read_text().splitlines():
        name, _, path = line.removeprefix("*").partition(" ")
        calls.append(Call(name=name, path=path, is_faulty=line.startswith("*")))
    return calls


_LEFTOVER = re.compile(r"(?:^|/)(?:\.tmp-[^/]*|\.[^/]+\.part|run\.part)(?:/|$)|^tmp/")
"""Names of files that are being written; those below `tmp` are temporary files of the system."""

_CACHE = ".gpureport/fleet/"
"""What a fleet keeps so as to be quicker; it lacks runs that could not be read."""

Unit = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a folder holds."""

    units: dict[str, Unit]  # hash of every file, by its name, for each run, baseline or file that stands alone
    leftovers: tuple[str, ...]  # names of files that are half done, without what chance adds to them


def read_state(folder: Path) -> State:
    units: dict[str, list[tuple[str, str]]] = {}
    leftovers = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if name.startswith(_CACHE):
            continue
        if _LEFTOVER.search(name):
            leftovers.append(re.sub(r"-\d+-[0-9a-f]{8}|\.\w{8}\.part", "-", name))
        else:
            units.setdefault(find_unit(name), []).append((name, _hash_file(path)))
    return State(units={name: tuple(files) for name, files in units.items()}, leftovers=tuple(sorted(leftovers)))


def _hash_file(path: Path) -> str:
    content = path.read_bytes()
    if path.name == "run.json":
        said = {key: value for key, value in json.loads(content).items() if key != "sha256"}
        content = json.dumps(said).encode()
    return sha256(content).hexdigest()


def find_unit(name: str) -> str:
    """Return the unit that a file is part of: its baseline or its run, else itself."""
    parts = name.split("/")
    for folder in ("baselines", "runs"):
        if folder in parts[:-2]:
            return "/".join(parts[: parts.index(folder) + 2])
    return name


def age_leftovers(folder: Path) -> None:
    """Let everything half done be years old, so that it is cleared away."""
    for path in folder.rglob("*"):
        if _LEFTOVER.search(path.relative_to(folder).as_posix()):
            os.utime(path, (1, 1), follow_symlinks=False)
