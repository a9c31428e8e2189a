"""Finding out what a path holds: which importer reads it, and which files belong together."""

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.errors import SourceError
from gpureport.importers.count_text import columns_option
from gpureport.importers.decoding import compression
from gpureport.importers.decoding.pieces import head as text_head
from gpureport.importers.decoding.pieces import head_text, is_plain_text
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.importer import HEAD_BYTES, SEARCHED_BYTES, Given, Importer, Input
from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS, LOCATORS, TRACKERS
from gpureport.importers.text import line_prefixes
from gpureport.importers.text.distinct_lines import thinned

if TYPE_CHECKING:
    from gpureport.importers.protocol.tracker import Tracker

_STORES = (b"SQLite format 3\0", b"PAR1", b'{"obj"')
"""What a file begins with that a tracker wrote: a database, Parquet, operations of Neptune's client."""
_NO_LOGS = {".md", ".json", ".toml", ".html", ".pdf", ".png", ".svg", ".py", ".parquet"}
_WANTED_BESIDE = (
    "give what sar, sadf -d, mpstat, vmstat -t, pidstat or top -b print, or a CSV with a timestamp and cpu_percent "
    "(gpureport explain recording prints what logs it)"
)
_NEPTUNE = ".neptune"
"""Folder in which Neptune's client keeps runs, where it was started."""
_BESIDE_WANTED = "give the log of the GPUs as a source, and this one with --host"
_WANTED = "give a log of nvidia-smi --query-gpu=timestamp,index,utilization.gpu,... --format=csv -l 1"


_ADDRESSES = ("sqlite:", "http://", "https://", "file://", "databricks:")
"""How MLflow names its stores."""

_LOOKED_AT = 4096
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?: ?[%A-Za-z]+)?", re.ASCII)
_MOST_CELLS = 50
"""Cells of a line of numbers that may be a query without its header."""
_BINARY = 0.01
"""Share of characters of no text from which on a file is none."""


def tracker(source: str) -> "Tracker | None":
    """Return the reader of the tracker whose store a source is, None when it is none.

    Args:
        source: a locator, or the path of a store, with or without `#` and a run of it.
    """
    store = _before_run(source) or source
    asked = source.startswith(LOCATORS) or _may_be_store(Path(store))
    return next((each for each in TRACKERS if each.claims(store)), None) if asked else None


def names_run(source: str) -> bool:
    """Return whether a source is the path of a store with `#` and a run of it."""
    return bool(_before_run(source)) and tracker(source) is not None


def _before_run(source: str) -> str:
    """Return the path before `#` and a run; empty where there is none, or the whole is a path or a locator."""
    path, _, run = source.rpartition("#")
    if not path or not run or source.startswith(LOCATORS):
        return ""
    try:
        return path if Path(path).exists() and not Path(source).exists() else ""
    except OSError:
        return ""


def _may_be_store(path: Path) -> bool:
    """Return whether a path can be what a tracker keeps; of an empty file only its name tells."""
    try:
        # a pipe can be read only once
        if not path.is_file():
            return path.is_dir()
        with path.open("rb") as file:
            head = file.read(_LOOKED_AT).lstrip()
    except OSError:
        return True
    return not head or head.startswith(_STORES)


def _head(file: RawFile, length: int = HEAD_BYTES) -> bytes:
    """Return the beginning of a file's text, whatever it is compressed with and encoded in."""
    path = file.path
    try:
        return text_head(file, length)
    except PermissionError as error:
        raise SourceError(str(path), "no permission to read it", "change its permissions or copy it") from error
    except OSError as error:
        raise SourceError(str(path), error.strerror or "cannot be read", "check the path") from error


def _reader(file: RawFile, head: bytes, importers: Sequence[Importer]) -> Importer | None:
    """Return the importer that recognises a file by its beginning, or further down by what stands below other text."""
    found = next((each for each in importers if each.identify(head)), None)
    if found or len(head) < HEAD_BYTES or head.decode(errors="replace").count("\ufffd") > _BINARY * len(head):
        return found
    searched = thinned(_head(file, SEARCHED_BYTES))
    return next((each for each in importers if each.identify(searched)), None)


def _swapped(source: str, file: RawFile, head: bytes, importers: Sequence[Importer]) -> None:
    """Refuse a log of GPUs where one of a host is meant, and the other way round.

    Raises:
        SourceError: saying what the file is.
    """
    if importers is HOST_IMPORTERS and _reader(file, head, IMPORTERS):
        raise SourceError(source, "a log of GPUs, not of a host", f"give it as a source; with --host, {_WANTED_BESIDE}")
    if importers is IMPORTERS and _reader(file, head, HOST_IMPORTERS):
        raise SourceError(source, "a host log, which says nothing of GPUs", _BESIDE_WANTED)


def _first_line(head: bytes) -> str:
    """Return the beginning of the first line with words that a terminal can print, empty for binary data."""
    text = head.decode("utf-8", errors="replace").lstrip("\ufeff").lstrip()
    line = text.partition("\n")[0].strip()[:60].replace("\t", " ")
    return line if line.isprintable() and "\ufffd" not in line else ""


def _where(source: str) -> str:
    """Return what to do about a source that is not there: a tracker's address is no path."""
    if source.startswith(_ADDRESSES):
        return "put mlflow: before the address of a store of MLflow; a log is read from a file"
    if path := _before_run(source):
        return f"a run after # is one of a store of a tracker, which {path} is not"
    return "check the path"


def _spooled(source: str, path: Path) -> Path:
    """Return a file with the content of a pipe or of standard input, which can be read only once."""
    handle, name = tempfile.mkstemp(prefix="gpureport-")
    atexit.register(Path(name).unlink, missing_ok=True)
    # a buffer would go on waiting for more without looking whether the process was asked to end
    with os.fdopen(handle, "wb") as spool:
        if source == "-":
            shutil.copyfileobj(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer), spool)
        else:
            with path.open("rb", buffering=0) as pipe:
                shutil.copyfileobj(pipe, spool)
    return Path(name)


def identify(source: str, importers: Sequence[Importer] = IMPORTERS, kind: str | None = None) -> Input:
    """Return a file with the importer that recognises it by its content, or with that of the kind a person names.

    Raises:
        SourceError: when it is missing, empty, cannot be read, or is of no known kind.
    """
    path = Path(source)
    if source != "-" and not path.exists():
        raise SourceError(source, "no such file", _where(source))
    if not path.is_file():
        path = _spooled(source, path)
    file = RawFile(path)
    head = _head(file)
    if not head and file.account.damage:
        raise SourceError(source, f"{file.account.damage} before its first line", "copy or compress it again")
    if head and len(head) < HEAD_BYTES and not head.strip(b"\0\t\r\n "):
        raise SourceError(source, "the file holds nothing but blank lines or NUL bytes", "record again")
    if not head:
        raise SourceError(source, "the file is empty", "record again, with --format=csv and no output buffering")
    found = next((each for each in importers if each.kind == kind), None) if kind else _reader(file, head, importers)
    packed = None if kind or is_plain_text(file.begins()) else compression.archive(file)
    if packed:
        raise SourceError(source, packed, "unpack it and give the files in it, or leave it out")
    if found is None:
        _swapped(source, file, head, importers)
        raise _unknown(source, path.name, head, importers)
    return Input(path, found, source, beside=importers is HOST_IMPORTERS)


def _unknown(source: str, name: str, head: bytes, importers: Sequence[Importer]) -> SourceError:
    """Return why a file is no known log; of a table with columns of GPUs, with a map to start from."""
    first = _first_line(head)
    if not first and name.startswith("nvstats"):
        what = "unsupported: a log that nvidia-smi daemon keeps in a form of its own"
        return SourceError(source, what, f"print it with nvidia-smi replay -f {name} -r log.txt, give log.txt")
    if before := line_prefixes.prefix(head_text(head)):
        return SourceError(source, f"another program put {before!r} before what nvidia-smi wrote", line_prefixes.HINT)
    from gpureport.importers.reading.unsupported_files import describe_other_file  # noqa: PLC0415 - most are known

    if importers is IMPORTERS and first and (known := describe_other_file(head_text(head))):
        return SourceError(source, *known)
    what = f"not a known log (it begins {first!r})" if first else "not a text log"
    if importers is HOST_IMPORTERS:
        return SourceError(source, what, _WANTED_BESIDE)
    return _unmapped(source, what, head) if first else SourceError(source, what, _WANTED)


def _unmapped(source: str, what: str, head: bytes) -> SourceError:
    """Return that a text is no known log, with a map or an option where it may be a table."""
    from gpureport.importers.logs.mapped.suggestion import suggestion  # noqa: PLC0415 - most are known

    found = suggestion(head_text(head))
    if found.problem:
        return SourceError(source, f"{what}: {found.problem}", "mend its header")
    if found.text:
        return SourceError(
            source, what, "save what stands below as map.toml, correct it, then give --map map.toml", found.text
        )
    names = [f"column_{place + 1}" for place in range(_number_cells(head))]
    without = f"; if it is one without its header, {columns_option(names)}" if names else ""
    return SourceError(source, what, _WANTED + without)


def _number_cells(head: bytes) -> int:
    """Return how many cells the first line has where all are numbers, with a unit or without; else 0."""
    row = [cell.strip() for cell in head_text(head).partition("\n")[0].split(",")]
    return len(row) if 1 < len(row) <= _MOST_CELLS and all(map(_NUMBER.fullmatch, row)) else 0


def _recognised(folder: Path, importers: Sequence[Importer]) -> Iterator[Input]:
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith("."):
            file, beside = RawFile(path), importers is HOST_IMPORTERS
            found = _reader(file, _head(file), importers)
            if found is not None and compression.archive(file) is None:
                yield Input(path, found, str(path), beside)


def _logs(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Input]:
    """Yield the logs in a folder and below; a link back to a folder above is not followed."""
    above |= {folder.resolve()}
    yield from _recognised(folder, IMPORTERS)
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith(".") and path.resolve() not in above:
            yield from _logs(path, above)


def unrecognised(source: str | Path) -> list[Path]:
    """Return the files right in a folder that are not read, those that are plainly no logs aside.

    A host CSV beside several logs is one: nobody can say whose it is.
    """
    folder = Path(source)
    if not folder.is_dir():
        return []
    known = {each.path for each in _recognised(folder, IMPORTERS)}
    if len(known) == 1:
        known |= {each.path for each in _recognised(folder, HOST_IMPORTERS)} | set(_training_files(folder))
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    return [path for path in files if path not in known and path.suffix.lower() not in _NO_LOGS]


def find(source: str | Path, host: Sequence[str | Path] = (), kind: str | None = None) -> list[list[Input]]:
    """Return the runs a source holds, each as its log followed by the files beside it.

    A file is one run, and so is `-`, standard input. A folder holds a run a log, found in folders below as well; a
    host CSV in the folder of a single log belongs to it. Host files named by a person win over those found.

    Args:
        source: a file, a folder, or `-`.
        host: files with the CPU series of the machine.
        kind: name of the importer that reads a file whatever its content looks like.

    Raises:
        SourceError: when there is no log, or a file is of no known kind.
    """
    named = [identify(str(path), HOST_IMPORTERS) for path in host]
    if not Path(source).is_dir():
        return [[identify(str(source), kind=kind), *named]]
    logs = list(_logs(Path(source)))
    if not logs:
        hosts = list(_recognised(Path(source), HOST_IMPORTERS))
        if hosts:
            what = f"the folder holds a host log ({hosts[0].path.name}) and no log of GPUs"
            raise SourceError(str(source), what, _WANTED)
        if (Path(source) / _NEPTUNE).is_dir():
            what = "the folder holds runs of Neptune's client and no log"
            raise SourceError(str(source), what, f"give {Path(source) / _NEPTUNE}")
        raise SourceError(str(source), "the folder holds no log of a known kind", _WANTED)
    alone = {log.path.parent for log in logs if sum(log.path.parent == other.path.parent for other in logs) == 1}
    beside = {folder: list(_recognised(folder, HOST_IMPORTERS)) for folder in alone}
    found = {log.path for log in logs}
    # a recorder may write GPUs and machine to one file; a person can name it for both
    own = {folder: [each for each in files if each.path not in found] for folder, files in beside.items()}
    return [[log, *(named or own.get(log.path.parent, []))] for log in logs]


def training_logs(paths: Sequence[str | Path]) -> list[Given]:
    """Return training logs that a person named.

    Raises:
        SourceError: when one is missing, or no training log.
    """
    if not paths:
        return []
    from gpureport.importers.logs.training import WANTED, TrainingLog  # noqa: PLC0415 - most runs have none

    found = []
    for path in map(str, paths):
        if path != "-" and not Path(path).exists():
            raise SourceError(path, "no such file", "check the path")
        file = Path(path) if Path(path).is_file() else _spooled(path, Path(path))
        if not TrainingLog().identify(_head(RawFile(file))):
            raise SourceError(path, "not a known training log", WANTED)
        found.append(Given(file, path))
    return found


def training_logs_in_folder(source: str | Path, inputs: Sequence[Input]) -> list[Given]:
    """Return the training logs that lie in the folder of a run's only log, as a host log does.

    Args:
        source: what a person named; beside a log that is named itself, nothing is looked for.
        inputs: the log, and the files joined to it already.
    """
    folders = {each.path.parent for each in inputs}
    if not Path(source).is_dir() or len(folders) != 1:
        return []
    (folder,) = folders
    logs = {each.path for each in _recognised(folder, IMPORTERS)} | {each.path for each in inputs}
    alone = len([each for each in inputs if not each.beside]) == 1 == sum(1 for _ in _recognised(folder, IMPORTERS))
    return (
        [Given(path, str(path), beside=True) for path in _training_files(folder) if path not in logs] if alone else []
    )


def _training_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are training logs by their content."""
    from gpureport.importers.logs.training import TrainingLog  # noqa: PLC0415 - most runs have none

    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    return [path for path in files if TrainingLog().is_training_log(_head(RawFile(path)))]


def together(sources: Sequence[str | Path], host: Sequence[str | Path] = (), kind: str | None = None) -> list[Input]:
    """Return all logs of several sources, then the files beside them, as the inputs of one run.

    Host files named by a person win over those found; `kind` as in `find`.

    Raises:
        SourceError: when there is no log, a file is of no known kind, or one is named twice.
    """
    logs = [run[0] for source in sources for run in find(source, kind=kind)]
    folders = {log.path.parent: None for log in logs if any(Path(source).is_dir() for source in sources)}
    named = [identify(str(path), HOST_IMPORTERS) for path in host]
    known = {log.path for log in logs}
    beside = named or [
        each for folder in folders for each in _recognised(folder, HOST_IMPORTERS) if each.path not in known
    ]
    seen: set[Path] = set()
    for each in (*logs, *beside):
        if each.path.resolve() in seen:
            raise SourceError(each.locator, "named twice for one run", "name every log once")
        seen.add(each.path.resolve())
    return [*logs, *beside]
