"""Finds the runs that a source holds: the importer of each file, the tracker of a store; their names and ids."""

from collections.abc import Sequence
from hashlib import sha256
from itertools import takewhile
from os.path import commonpath
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.errors import SourceError
from gpureport.importers.decoding import compression
from gpureport.importers.decoding.pieces import head as text_head
from gpureport.importers.decoding.pieces import is_plain_text
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.merging.node_names import strip_suffixes
from gpureport.importers.protocol.importer import HEAD_BYTES, SEARCHED_BYTES, Importer, Input, ReadOptions
from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS, LOCATORS, TRACKERS
from gpureport.importers.reading.piped_sources import spool
from gpureport.importers.text.distinct_lines import thinned
from gpureport.places import is_bucket_url
from gpureport.record_folder import COMPRESSED_SUFFIXES
from gpureport.recording import Source
from gpureport.recording_advice import RECORDS_ONE
from gpureport.regular_files import is_folder, path_exists

if TYPE_CHECKING:
    from gpureport.importers.protocol.tracker import Tracker

_BINARY = 0.01
"""A file with more than this share of undecodable characters is not treated as text."""
_ADDRESSES = ("sqlite:", "http://", "https://", "file://", "databricks:")
"""How MLflow names its stores."""
_STORES = (b"SQLite format 3\0", b"PAR1", b'{"obj"')
"""What a file begins with that a tracker wrote: a database, Parquet, operations of Neptune's client."""
_LOOKED_AT = 4096
_USUAL_NAMES = {"nvidia-smi", "nvidia_smi", "gpu", "host"}
"""Common names of logs; the name of the folder says more."""


def find_tracker(source: str) -> "Tracker | None":
    """Return the reader of the tracker whose store a source is, None when it is none.

    Args:
        source: a locator, or the path of a store, with or without `#` and a run of it.
    """
    store = _find_store_path(source) or source
    asked = source.startswith(LOCATORS) or _may_be_store(Path(store))
    return next((each for each in TRACKERS if each.claims(store)), None) if asked else None


def names_run(source: str) -> bool:
    """Return whether a source is the path of a store with `#` and a run of it."""
    return bool(_find_store_path(source)) and find_tracker(source) is not None


def _find_store_path(source: str) -> str:
    """Return the path before `#` and a run; empty where there is none, or the whole is a path or a locator."""
    path, _, run = source.rpartition("#")
    if not path or not run or source.startswith(LOCATORS):
        return ""
    try:
        return path if Path(path).exists() and not Path(source).exists() else ""
    except OSError:
        return ""


def _may_be_store(path: Path) -> bool:
    """Return whether a path can be a tracker's store; an empty file can be one by its name."""
    try:
        # a pipe can be read only once
        if not path.is_file():
            return path.is_dir()
        with path.open("rb") as file:
            head = file.read(_LOOKED_AT).lstrip()
    except OSError:
        return True
    return not head or head.startswith(_STORES)


def _missing_source_hint(source: str) -> str:
    """Return what to do about a missing source, which may be the address of a tracker."""
    if source.startswith(_ADDRESSES):
        return "put mlflow: before the address of a store of MLflow; a log is read from a file"
    if "://" in source and not is_bucket_url(source):
        return "a log is read from a path, s3://, gs:// or az://"
    if path := _find_store_path(source):
        return f"a run after # is one of a store of a tracker, which {path} is not"
    return "check the path"


def read_head(file: RawFile, length: int = HEAD_BYTES) -> bytes:
    """Return the beginning of a file's text, whatever it is compressed with and encoded in."""
    return text_head(file, length)


def recognise(file: RawFile, head: bytes, importers: Sequence[Importer]) -> Importer | None:
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
    path = Path(source)
    if source != "-" and not path_exists(path):
        raise SourceError(source, "no such file", _missing_source_hint(source), code="no_such_file")
    if not path.is_file():
        path = spool(source, path)
    file = RawFile(path)
    head = read_head(file)
    if not head and file.account.damage:
        raise SourceError(
            source, f"{file.account.damage} before its first line", "copy or compress it again", code="damaged_archive"
        )
    if head and len(head) < HEAD_BYTES and not head.strip(b"\0\t\r\n "):
        raise SourceError(source, "the file holds nothing but blank lines or NUL bytes", RECORDS_ONE, code="empty_file")
    if not head:
        raise SourceError(source, "the file is empty", RECORDS_ONE, code="empty_file")
    found = next((each for each in importers if each.kind == kind), None) if kind else recognise(file, head, importers)
    packed = None if kind or is_plain_text(file.first_bytes()) else compression.archive_kind(file)
    if packed:
        raise SourceError(
            source, packed, "unpack it and give the files in it, or leave it out", code="archive_of_files"
        )
    if found is None:
        from gpureport.importers.reading import unsupported_files  # noqa: PLC0415 - most files are known

        beside = importers is HOST_IMPORTERS
        other = recognise(file, head, IMPORTERS if beside else HOST_IMPORTERS)
        raise unsupported_files.explain_unsupported_file(source, path.name, head, beside=beside, other=other)
    return Input(path, found, source, beside=importers is HOST_IMPORTERS)


def find_runs(
    source: str | Path,
    host: Sequence[str | Path] = (),
    kind: str | None = None,
    options: ReadOptions | None = None,
) -> list[list[Input]]:
    """Return the runs a source holds, each as its main log followed by its companions and the files beside it.

    A file is one run, and so is `-`, standard input. A folder holds one run for all logs of one machine and the same
    minutes, found in folders below as well, with the host logs of its time. Host logs named by a person win over those
    found.

    Args:
        source: a file, a folder, or `-`.
        host: files with the CPU series of the machine, or further GPU logs of it.
        kind: name of the importer that reads a file whatever its content looks like.
        options: how rows are placed.

    Raises:
        SourceError: when there is no log, or a file is of no known kind.
    """
    if not host and not is_folder(source):
        return [[identify(str(source), kind=kind)]]
    from gpureport.importers.reading.run_sources import find_source_runs  # noqa: PLC0415 - most sources are files

    return find_source_runs([source], host, kind=kind, options=options).runs[0]


def derive_name(locator: str) -> str:
    """Return the name of a log, or of its folder where the log is called what logs of nvidia-smi are called.

    Of a numbered folder the one above comes before it: repetitions in `base/1` and `fast/1` are not both called 1.
    """
    parts = split_log_path(locator)
    return "/".join(parts[-count_named_parts(locator) :])


def count_named_parts(locator: str) -> int:
    """Return how many parts of the path of a log are its name: one, and with a numbered folder those above it."""
    parts = split_log_path(locator)
    names_folder = parts == Path(locator).resolve().parent.parts[1:]
    return _count_parts(parts) if names_folder else 1


def _count_parts(folders: Sequence[str]) -> int:
    numbers = list(takewhile(str.isdecimal, reversed(folders)))
    return min(len(numbers) + 1, len(folders))


def name_after_log(inputs: Sequence[Input]) -> str:
    """Return a run's name: its log's, or its folder's where the log is called what nvidia-smi logs are called."""
    logs = [each for each in inputs if not each.beside and each.companion_of is None]
    if logs[0].locator == "-":
        return "standard input"
    if len(logs) > 1:
        folders = Path(commonpath([Path(log.locator).resolve().parent for log in logs])).parts[1:]
        return "/".join(folders[-_count_parts(folders) :]) if folders else strip_suffixes(logs[0].path.name)
    path = Path(logs[0].locator)
    return (
        derive_name(logs[0].locator) if path.suffix in COMPRESSED_SUFFIXES or path.stem in _USUAL_NAMES else path.stem
    )


def split_log_path(locator: str) -> tuple[str, ...]:
    """Return the folders above a log and what it is called, which may be the last of them."""
    path = Path(locator)
    folders = path.resolve().parent.parts[1:]
    name = strip_suffixes(path.name) if path.suffix in COMPRESSED_SUFFIXES else path.stem
    return folders if name in _USUAL_NAMES and folders else (*folders, name)


def format_identity_options(options: ReadOptions) -> str:
    """Return the options that select or place rows as the text that is part of a run's identity."""
    lines = [f"tz={options.tz or ''} gpus={options.gpus or ''}"]
    names = ("columns", "interval", "gpus_per_tick", "map", "as_logged")
    later = {name: getattr(options, name) or None for name in names}
    lines += [f"{name}={value}" for name, value in later.items() if value is not None]
    return "".join(f"{line}\n" for line in lines)


def compute_run_id(sources: Sequence[Source], options: ReadOptions) -> str:
    """Return the run's id: from the bytes of its sources and the options that select or place rows."""
    hasher = sha256()
    for source in sources:
        hasher.update(f"{source.kind} {source.sha256}\n".encode())
    hasher.update(format_identity_options(options).encode())
    return hasher.hexdigest()[:16]
