"""Which files are logs, and what reads each: a file, the files of a folder, what comes through a pipe, and a tracker.

A file is told by its content; its name says nothing. What is not read is said to be what it is instead.
"""

import atexit
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Union

from gpureport import record_folder
from gpureport.errors import CodedProblem, SourceError
from gpureport.importers.account import is_driver_message
from gpureport.importers.first_lines import thinned
from gpureport.importers.protocol.importer import HEAD_BYTES, SEARCHED_BYTES, Importer, Input, TrainingFile
from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS, LOCATORS, TRACKERS
from gpureport.importers.source_file import FileState, RawFile, archive_kind
from gpureport.importers.source_text import head as read_text_head
from gpureport.importers.source_text import head_text, is_plain_text
from gpureport.limits import DEEPEST_FOLDER, MOST_PIPE_BYTES
from gpureport.places import is_bucket_url
from gpureport.recording_advice import RECORDS_ONE
from gpureport.redaction import redact_start
from gpureport.regular_files import UnsafeFileError, is_folder, open_pipe, path_exists

if TYPE_CHECKING:
    from gpureport.importers.protocol.tracker import Tracker
    from gpureport.importers.training import TrainingLog

_BINARY = 0.01
"""A file with more than this share of undecodable characters is not treated as text."""
_STORES = (b"SQLite format 3\0", b"PAR1", b'{"obj"', b"JobID|", b"timestamp,project_name,run_id,")
"""What a file begins with that a tracker wrote: a database, Parquet, operations of Neptune's client, tables of runs."""
_NO_LOGS = {".md", ".json", ".toml", ".html", ".pdf", ".png", ".svg", ".py", ".parquet"}


def find_tracker(source: str) -> "Tracker | None":
    """Return the reader of the tracker whose store a source is, None when it is none.

    Args:
        source: a locator, or the path of a store, with or without `#` and a run of it.
    """
    store = _find_store_path(source) or source
    if not source.startswith(LOCATORS):
        try:
            # a pipe can be read only once; an empty file can be a store by its name
            if Path(store).is_file():
                with Path(store).open("rb") as file:
                    head = file.read(4096).lstrip()
                if head and not head.startswith(_STORES):
                    return None
            elif not Path(store).is_dir():
                return None
        except OSError:
            pass
    return next((each for each in TRACKERS if each.claims(store)), None)


def names_run(source: str) -> bool:
    """Return whether a source is the path of a store with `#` and a run of it."""
    return bool(_find_store_path(source)) and find_tracker(source) is not None


def _find_store_path(source: str) -> str:
    """Return the path before `#` and a run; empty where there is none, or the whole is a path or a locator."""
    path, _, run = source.rpartition("#")
    is_path = path and run and not source.startswith(LOCATORS) and path_exists(path) and not path_exists(source)
    return path if is_path else ""


class FoundStore(NamedTuple):
    """A store of a tracker: what the tracker is called, and its path."""

    title: str
    path: Path


def find_store(folder: str | Path) -> FoundStore | None:
    """Return the first store of a tracker that lies in a folder, but not further down; None without one."""
    for path in sorted(Path(folder).iterdir()) if is_folder(folder) else ():
        if (tracker := find_tracker(str(path))) is not None:
            return FoundStore(tracker.title, path)
    return None


def spool(source: str, path: Path) -> Path:
    """Return a file with the content of a pipe or of standard input, which can be read only once.

    Raises:
        SourceError: when nobody writes to the pipe, it does not end, or it is a device, a socket or a folder.
    """
    handle, name = tempfile.mkstemp(prefix="gpureport-")
    atexit.register(Path(name).unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as copy:
        if source == "-":
            if sys.stdin is None:
                what = "standard input is closed"
                raise SourceError(source, what, "give a file, or a pipe", code="no_standard_input")
            # a buffer would go on waiting for more without looking whether the process was asked to end
            _copy(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer).read, copy.write, source)
        else:
            try:
                with open_pipe(path) as pipe:
                    _copy(pipe.read, copy.write, source)
            except UnsafeFileError as error:
                raise SourceError(source, str(error.strerror), error.hint, code="not_a_regular_file") from error
    return Path(name)


def _copy(read: Callable[[int], bytes | None], write: Callable[[bytes], object], source: str) -> None:
    size = 0
    while block := read(2**20):
        size += len(block)
        if size > MOST_PIPE_BYTES:
            what = f"more than {MOST_PIPE_BYTES:,} bytes came through the pipe"
            hint = "end what writes to it, or write a file and give that"
            raise SourceError(source, what, hint, code="pipe_too_large")
        write(block)


def read_head(file: RawFile, length: int = HEAD_BYTES) -> bytes:
    """Return the beginning of a file's text, whatever it is compressed with and encoded in."""
    return read_text_head(file, length)


def _recognise(file: RawFile, head: bytes, importers: Sequence[Importer]) -> Importer | None:
    """Return the importer that recognises a file by its beginning, or by text further down."""
    found = next((each for each in importers if each.identify(head)), None)
    if found or len(head) < HEAD_BYTES or head.decode(errors="replace").count("\ufffd") > _BINARY * len(head):
        return found
    searched = thinned(read_head(file, SEARCHED_BYTES))
    return next((each for each in importers if each.identify(searched)), None)


def identify(source: str, importers: Sequence[Importer] = IMPORTERS, kind: str | None = None) -> Input:
    """Return a file with the importer that recognises it by its content, or with that of the kind a person names.

    Raises:
        SourceError: when it is missing, empty, cannot be read, or is of no known kind.
    """
    path, beside = Path(source), importers is HOST_IMPORTERS
    if source != "-" and not path_exists(path):
        raise SourceError(source, "no such file", _missing_source_hint(source), code="no_such_file")
    if not path.is_file():
        path = spool(source, path)
    file = RawFile(path)
    head = read_head(file)
    if not head and file.account.damage:
        what = f"{file.account.damage} before its first line"
        raise SourceError(source, what, "copy or compress it again", code="damaged_archive")
    if not head or (len(head) < HEAD_BYTES and not head.strip(b"\0\t\r\n ")):
        empty = "the file holds nothing but blank lines or NUL bytes" if head else "the file is empty"
        raise SourceError(source, empty, RECORDS_ONE, code="empty_file")
    found = next((each for each in importers if each.kind == kind), None) if kind else _recognise(file, head, importers)
    packed = None if kind or is_plain_text(file.first_bytes()) else archive_kind(file)
    if packed:
        hint = "unpack it and give the files in it, or leave it out"
        raise SourceError(source, packed, hint, code="archive_of_files")
    if found is None:
        other = _recognise(file, head, IMPORTERS if beside else HOST_IMPORTERS)
        known, advice, code = _explain(path.name, head, beside=beside, is_other=other is not None)
        raise SourceError(source, known, advice, code=code)
    return Input(path, found, source, beside)


def identify_companion(path: str) -> Input:
    """Return a file that `--host` names: a host log, or a GPU log to join.

    Raises:
        SourceError: when it is neither.
    """
    try:
        return identify(path, HOST_IMPORTERS)
    except SourceError as error:
        try:
            return identify(path, IMPORTERS)
        except SourceError:
            raise error from None


def _missing_source_hint(source: str) -> str:
    """Return what to do about a missing source, which may be the address of a tracker."""
    if source.startswith(("sqlite:", "http://", "https://", "file://", "databricks:")):
        return "put mlflow: before the address of a store of MLflow; a log is read from a file"
    if "://" in source and not is_bucket_url(source):
        return "a log is read from a path, s3://, gs:// or az://"
    if path := _find_store_path(source):
        return f"a run after # is one of a store of a tracker, which {path} is not"
    return "check the path"


Reader = Union[Importer, "TrainingLog"]


def _classify(path: Path) -> Reader | None:
    """Return what reads a file: it is a log of GPUs rather than of a machine, and either rather than of training."""
    return _classify_content(path, FileState.from_path(path))


@lru_cache(4096)
def _classify_content(path: Path, _: FileState) -> Reader | None:
    file = RawFile(path)
    head = read_head(file)
    found = _recognise(file, head, IMPORTERS) or _recognise(file, head, HOST_IMPORTERS)
    if found is not None:
        return found if archive_kind(file) is None else None
    from gpureport.importers.training import TrainingLog  # noqa: PLC0415 - most files are logs of hardware

    return TrainingLog() if TrainingLog().is_training_log(head) else None


def recognise_companion(path: Path) -> str | None:
    """Return what a file is that lies beside GPU logs: `host` or `training`; None for anything else."""
    found = _classify(path) if path.is_file() else None
    return {HOST_IMPORTERS.kinds[0]: "host", "training": "training"}.get(found.kind) if found else None


def is_readable(path: Path) -> bool:
    """Return whether a file is a log of any kind, or the store of a tracker, by its content."""
    try:
        return find_tracker(str(path)) is not None or _classify(path) is not None
    except SourceError:
        return False


def _list_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]


def list_in_folder(folder: Path, kinds: Collection[str], without: Collection[Path] = ()) -> Iterator[Input]:
    """Yield the files of a folder that importers of these kinds read, but for some files."""
    for path in _list_files(folder):
        found = None if path in without else _classify(path)
        if found is not None and found.kind in kinds:
            yield Input(path, found, str(path), beside=found.kind in HOST_IMPORTERS.kinds)  # type: ignore[arg-type] # no training log is asked for


def list_training_logs(folder: Path, without: Collection[Path] = ()) -> Iterator[TrainingFile]:
    """Yield the training logs of a folder, but for some files."""
    for path in _list_files(folder):
        found = None if path in without else _classify(path)
        if found is not None and found.kind == "training":
            yield TrainingFile(path, str(path), beside=True)


def list_unused_files(source: str | Path, used: Collection[Path]) -> list[Path]:
    """Return the files of a folder, not of those below, that look like logs and are not among those used."""
    known = {path.resolve() for path in used}
    files = _list_files(Path(source)) if is_folder(source) else []
    return [path for path in files if path.resolve() not in known and path.suffix.lower() not in _NO_LOGS]


def list_gpu_logs(source: Path) -> list[Input]:
    """Return the GPU logs in a folder and below.

    Raises:
        SourceError: when there is none.
    """
    if logs := list(_walk_logs(source, frozenset())):
        return logs
    if hosts := list(list_in_folder(source, HOST_IMPORTERS.kinds)):
        what = f"the folder holds a host log ({hosts[0].path.name}) and no log of GPUs"
        raise SourceError(str(source), what, RECORDS_ONE, code="no_gpu_log")
    for tracker in TRACKERS:
        tracker.refuse_folder(source)
    if (store := find_store(source)) is not None:
        what = f"the folder holds a store of {store.title} and no log"
        raise SourceError(str(source), what, f"give {store.path}", code="holds_store")
    raise SourceError(str(source), "the folder holds no log of a known kind", RECORDS_ONE, code="no_log")


def _walk_logs(folder: Path, above: frozenset[Path]) -> Iterator[Input]:
    """Yield the logs in a folder and below.

    A link back to a folder above is not followed. The files that a tracker keeps of a run are left out: they are
    read with the run, or when they are named.
    """
    above |= {folder.resolve()}
    if len(above) > DEEPEST_FOLDER + 1:
        what = f"its folders are nested more than {DEEPEST_FOLDER} deep"
        hint = "give the folder in it that holds the logs"
        raise SourceError(redact_start(str(folder)), what, hint, code="nested_too_deeply")
    logs = list(list_in_folder(folder, IMPORTERS.kinds))
    if not logs and record_folder.read_run_file(folder) is not None:
        # the host log of a recording without GPUs is a run of its own
        logs = [
            Input(each.path, each.importer, each.locator)
            for each in list_in_folder(folder, HOST_IMPORTERS.kinds)
            if record_folder.name_log(each.path) == record_folder.HOST_LOG
        ]
    yield from logs
    for path in sorted(folder.iterdir()):
        is_new = path.is_dir() and not path.name.startswith(".") and path.resolve() not in above
        if is_new and not any(tracker.keeps_files(path) for tracker in TRACKERS):
            yield from _walk_logs(path, above)


def identify_training_logs(paths: Sequence[str | Path]) -> list[TrainingFile]:
    """Return training logs that a person named.

    Raises:
        SourceError: when one is missing, or no training log.
    """
    found = []
    for path in map(str, paths):
        from gpureport.importers.training import WANTED, TrainingLog  # noqa: PLC0415 - most runs have none

        if path != "-" and not path_exists(path):
            raise SourceError(path, "no such file", "check the path", code="no_such_file")
        file = Path(path) if Path(path).is_file() else spool(path, Path(path))
        if not TrainingLog().identify(read_head(RawFile(file))):
            raise SourceError(path, "not a known training log", WANTED, code="not_a_training_log")
        found.append(TrainingFile(file, path))
    return found


_WANTED_BESIDE = (
    "give what sar, sadf -d, mpstat, vmstat -t, pidstat or top -b print, or a CSV with a timestamp and cpu_percent "
    f"({RECORDS_ONE})"
)
_FIELD_HINT = "leave that field out of the query (nvidia-smi --help-query-gpu lists the fields the driver knows)"
_RECORD_AGAIN = "fix this on the machine until nvidia-smi by itself shows a table, then record again"
_WANDB = (
    "export the recorded values instead of a chart: "
    "wandb.Api().run(...).history(stream='events', samples=100000).to_csv('gpu.csv')"
)
_TRAINING = "give the log of the GPUs as a source, and this one with --training"
_JSON = "write it as a CSV with a header and one column per metric: --source-kind mapped prints a map for that"
_MAP = "--source-kind mapped prints a map to complete and give with --map"
_ABSENT = re.compile(r".*nvidia-smi.*(?:command not found|not found|not recognized)", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?: ?[%A-Za-z]+)?", re.ASCII)
_MOST_CELLS = 50
"""Cells of a line of numbers that may be a query without its header."""


def _explain(name: str, head: bytes, *, beside: bool, is_other: bool) -> CodedProblem:
    """Return what a file is that nothing reads, what to do about it, and the code of this.

    Args:
        name: its name.
        head: the beginning of its text.
        beside: whether a host log is wanted, not one of GPUs.
        is_other: whether it is a log of the other kind.
    """
    from gpureport.importers import first_lines  # noqa: PLC0415 - most files are known

    if is_other and beside:
        hint = f"give it as a source; with --host, {_WANTED_BESIDE}"
        return "a log of GPUs, not of a host", hint, "gpu_log_as_host"
    if is_other:
        what = "a host log, which says nothing of GPUs"
        hint = "give the log of the GPUs as a source, and this one with --host"
        if "gpu" in head_text(head).partition("\n")[0].lower():
            what = "a host log: no column says which GPU a row is of"
            hint = f"{hint}; for what it has of GPUs, {_MAP}"
        return what, hint, "host_log_as_gpu"
    text = head_text(head)
    # the beginning of the first line with words that a terminal can print
    first = head.decode("utf-8", errors="replace").lstrip("\ufeff").lstrip().partition("\n")[0].strip()
    shown = redact_start(first, 60).replace("\t", " ")
    if not shown.isprintable() or "\ufffd" in shown:
        shown = ""
    if not shown and name.startswith("nvstats"):
        what = "unsupported: a log that nvidia-smi daemon keeps in a form of its own"
        return what, f"print it with nvidia-smi replay -f {name} -r log.txt, give log.txt", "daemon_log"
    if before := first_lines.find_line_prefix(text):
        what = f"another program put {before!r} before what nvidia-smi wrote"
        return what, first_lines.HINT, "prefixed_lines"
    if beside:
        what = f"not a recognised host log (first line: {shown})" if shown else "not a text log"
        return what, _WANTED_BESIDE, "not_a_host_log"
    return (_explain_text(text) if shown else None) or _explain_table(text, shown)


def _explain_text(text: str) -> CodedProblem | None:
    """Return what a text is that is known and no log of GPUs."""
    from gpureport.importers.training import TrainingLog  # noqa: PLC0415 - as above

    first = text.lstrip("\ufeff \t\r\n").partition("\n")[0].strip()
    said = f"an error message, not a log ({redact_start(first, 120)})"
    if re.match(r'Field "[^"]*" is not a valid field to query', first):
        return said, _FIELD_HINT, "error_message"
    if is_driver_message(first) or _ABSENT.match(first):
        return said, _RECORD_AGAIN, "error_message"
    if first.startswith("version https://git-lfs.github.com/"):
        return "a Git LFS pointer, not the file itself", "fetch the file with git lfs pull", "git_lfs_pointer"
    if "system/gpu." in first and "," in first:
        return "a chart exported from the W&B website", _WANDB, "exported_chart"
    if TrainingLog().is_training_log(text.encode()):
        return "a training log, which says nothing of GPUs", _TRAINING, "training_log"
    try:
        is_object = isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        is_object = False
    return ("JSON that no known tool writes", _JSON, "unknown_json") if is_object else None


def _explain_table(text: str, shown: str) -> CodedProblem:
    """Return that a text is no known log, and which option reads it where it may be a table."""
    from gpureport.importers.headings import is_time_heading  # noqa: PLC0415 - as above
    from gpureport.importers.note_text import format_columns_option  # noqa: PLC0415 - as above
    from gpureport.importers.tools.mapped import draft_map  # noqa: PLC0415 - few files need it

    if not shown:
        return "not a text log", RECORDS_ONE, "not_a_gpu_log"
    what = f"not a recognised GPU log (first line: {shown})"
    row = [cell.strip() for cell in text.partition("\n")[0].split(",")]
    if hint := _MAP if draft_map(text) else _JSON if len(row) > 1 and any(map(is_time_heading, row)) else "":
        return what, hint, "not_a_gpu_log"
    without = ""
    if 1 < len(row) <= _MOST_CELLS and all(map(_NUMBER.fullmatch, row)):
        names = [f"column_{place + 1}" for place in range(len(row))]
        without = f"; if it is one without its header, {format_columns_option(names)}"
    return what, RECORDS_ONE + without, "not_a_gpu_log"
