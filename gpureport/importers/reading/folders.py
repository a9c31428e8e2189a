"""Folders of logs, and the files that lie beside a log."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpureport import record_folder
from gpureport.errors import SourceError
from gpureport.importers.decoding import compression
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.importer import Importer, Input, TrainingFile
from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS, TRACKERS
from gpureport.importers.reading.piped_sources import spool
from gpureport.importers.reading.sources import find_tracker, read_head, recognise
from gpureport.limits import DEEPEST_FOLDER
from gpureport.recording_advice import RECORDS_ONE
from gpureport.redaction import redact_start
from gpureport.regular_files import is_folder, path_exists

_NO_LOGS = {".md", ".json", ".toml", ".html", ".pdf", ".png", ".svg", ".py", ".parquet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundStore:
    """A store of a tracker: what the tracker is called, and its path."""

    title: str
    path: Path


def find_store(folder: str | Path) -> FoundStore | None:
    """Return the first store of a tracker that lies in a folder, but not further down; None without one."""
    for path in sorted(Path(folder).iterdir()) if is_folder(folder) else ():
        tracker = find_tracker(str(path))
        if tracker is not None:
            return FoundStore(title=tracker.title, path=path)
    return None


def _recognise(folder: Path, importers: Sequence[Importer], without: Collection[Path] = ()) -> Iterator[Input]:
    for path in sorted(folder.iterdir()):
        if path not in without and path.is_file() and not path.name.startswith("."):
            file, beside = RawFile(path), importers is HOST_IMPORTERS
            found = recognise(file, read_head(file), importers)
            if found is not None and compression.archive_kind(file) is None:
                yield Input(path, found, str(path), beside)


def _find_host_recording(folder: Path) -> Iterator[Input]:
    """Yield the host log of a recording without GPUs: it is a run of its own."""
    if record_folder.read_run_file(folder) is not None:
        for each in _recognise(folder, HOST_IMPORTERS):
            if record_folder.name_log(each.path) == record_folder.HOST_LOG:
                yield Input(each.path, each.importer, each.locator)


def _find_logs(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Input]:
    """Yield the logs in a folder and below.

    A link back to a folder above is not followed. The files that a tracker keeps of a run are left out: they are
    read with the run, or when they are named.
    """
    above |= {folder.resolve()}
    if len(above) > DEEPEST_FOLDER + 1:
        what = f"its folders are nested more than {DEEPEST_FOLDER} deep"
        raise SourceError(
            redact_start(str(folder)), what, "give the folder in it that holds the logs", code="nested_too_deeply"
        )
    yield from list(_recognise(folder, IMPORTERS)) or _find_host_recording(folder)
    below = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    for path in below:
        if path.resolve() not in above and not any(tracker.keeps_files(path) for tracker in TRACKERS):
            yield from _find_logs(path, above)


def list_unused_files(source: str | Path, used: Collection[Path]) -> list[Path]:
    """Return the files of a folder, not of those below, that look like logs and are not among those used."""
    folder = Path(source)
    if not folder.is_dir():
        return []
    known = {path.resolve() for path in used}
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    return [path for path in files if path.resolve() not in known and path.suffix.lower() not in _NO_LOGS]


def find_logs_in_folder(source: Path) -> list[Input]:
    """Return the GPU logs in a folder and below.

    Raises:
        SourceError: when there is none.
    """
    logs = list(_find_logs(source))
    if logs:
        return logs
    hosts = find_hosts_in_folder(source)
    if hosts:
        what = f"the folder holds a host log ({hosts[0].path.name}) and no log of GPUs"
        raise SourceError(str(source), what, RECORDS_ONE, code="no_gpu_log")
    for tracker in TRACKERS:
        tracker.refuse_folder(source)
    if (store := find_store(source)) is not None:
        raise SourceError(
            str(source),
            f"the folder holds a store of {store.title} and no log",
            f"give {store.path}",
            code="holds_store",
        )
    raise SourceError(str(source), "the folder holds no log of a known kind", RECORDS_ONE, code="no_log")


def find_hosts_in_folder(folder: Path, without: Collection[Path] = ()) -> list[Input]:
    """Return the host logs in a folder without some files.

    A recorder that writes GPUs and machine to one file makes one of them too.
    """
    return list(_recognise(folder, HOST_IMPORTERS, without))


def recognise_companion(path: Path) -> str | None:
    """Return what a file is that lies beside GPU logs: `host` or `training`; None for anything else."""
    if not path.is_file():
        return None
    from gpureport.importers.training import TrainingLog  # noqa: PLC0415 - most runs have none

    file = RawFile(path)
    head = read_head(file)
    if recognise(file, head, IMPORTERS) is not None:
        return None
    if recognise(file, head, HOST_IMPORTERS) is not None:
        return "host"
    return "training" if TrainingLog().is_training_log(head) else None


def is_readable(path: Path) -> bool:
    """Return whether a file is a log of any kind, or the store of a tracker, by its content."""
    try:
        return find_tracker(str(path)) is not None or _is_log(path)
    except SourceError:
        return False


def _is_log(path: Path) -> bool:
    file = RawFile(path)
    return recognise(file, read_head(file), IMPORTERS) is not None or recognise_companion(path) is not None


def identify_training_logs(paths: Sequence[str | Path]) -> list[TrainingFile]:
    """Return training logs that a person named.

    Raises:
        SourceError: when one is missing, or no training log.
    """
    if not paths:
        return []
    from gpureport.importers.training import WANTED, TrainingLog  # noqa: PLC0415 - most runs have none

    found = []
    for path in map(str, paths):
        if path != "-" and not path_exists(path):
            raise SourceError(path, "no such file", "check the path", code="no_such_file")
        file = Path(path) if Path(path).is_file() else spool(path, Path(path))
        if not TrainingLog().identify(read_head(RawFile(file))):
            raise SourceError(path, "not a known training log", WANTED, code="not_a_training_log")
        found.append(TrainingFile(file, path))
    return found


def find_training_logs(sources: Sequence[str | Path], runs: Sequence[Sequence[Input]]) -> list[list[TrainingFile]]:
    """Return for each run the training logs in its folder, where that holds no other run.

    Args:
        sources: what a person named for each run; only folders are searched.
        runs: the log of each, and the files joined to it already.
    """
    folders = {source: is_folder(source) for source in set(sources)}
    logs: dict[Path, set[Path]] = {}
    for source, inputs in zip(sources, runs, strict=True):
        for each in inputs if folders[source] else ():
            if not each.beside:
                logs.setdefault(each.path.parent, set()).add(each.path)
    return [_find_beside(inputs, logs) if folders[source] else [] for source, inputs in zip(sources, runs, strict=True)]


def _find_beside(inputs: Sequence[Input], logs: Mapping[Path, set[Path]]) -> list[TrainingFile]:
    """Return the training logs in the folder of a run, none where another log lies there.

    Args:
        inputs: the log of the run, and the files joined to it already.
        logs: what is known of the logs in each folder, which spares listing one with many.
    """
    folders, used = {each.path.parent for each in inputs}, {each.path for each in inputs}
    if len(folders) != 1:
        return []
    (folder,) = folders
    if logs.get(folder, set()) - used or any(True for _ in _recognise(folder, IMPORTERS, used)):
        return []
    return [TrainingFile(path, str(path), beside=True) for path in _list_training_logs(folder) if path not in used]


def _list_training_logs(folder: Path) -> list[Path]:
    """Return the files of a folder that are training logs by their content."""
    from gpureport.importers.training import TrainingLog  # noqa: PLC0415 - most runs have none

    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    return [path for path in files if TrainingLog().is_training_log(read_head(RawFile(path)))]
