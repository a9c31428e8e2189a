"""Folders of logs, and the files that lie beside a log."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.decoding import compression
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.importer import Importer, Input, TrainingFile
from gpureport.importers.protocol.registry import HOST_IMPORTERS, IMPORTERS
from gpureport.importers.reading.sources import find_runs, identify, read_head, recognise, spool
from gpureport.record_folder import HOST_LOG, read_run_file
from gpureport.recording_advice import RECORDS_ONE

_NO_LOGS = {".md", ".json", ".toml", ".html", ".pdf", ".png", ".svg", ".py", ".parquet"}
_NEPTUNE = ".neptune"
"""Folder in which Neptune's client keeps runs, where it was started."""


def _recognise(folder: Path, importers: Sequence[Importer]) -> Iterator[Input]:
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith("."):
            file, beside = RawFile(path), importers is HOST_IMPORTERS
            found = recognise(file, read_head(file), importers)
            if found is not None and compression.archive_kind(file) is None:
                yield Input(path, found, str(path), beside)


def _find_logs(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Input]:
    """Yield the logs in a folder and below; a link back to a folder above is not followed."""
    above |= {folder.resolve()}
    yield from list(_recognise(folder, IMPORTERS)) or _find_host_recording(folder)
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith(".") and path.resolve() not in above:
            yield from _find_logs(path, above)


def _find_host_recording(folder: Path) -> Iterator[Input]:
    """Yield the host log of a recording without GPUs: it is a run of its own."""
    if read_run_file(folder) is not None:
        for each in _recognise(folder, HOST_IMPORTERS):
            if each.path.name == HOST_LOG:
                yield replace(each, beside=False)


def list_unrecognised_files(source: str | Path) -> list[Path]:
    """Return the files of a folder, not of those below, that look like logs and are not read.

    A host CSV beside several logs is one of them: it may belong to any.
    """
    folder = Path(source)
    if not folder.is_dir():
        return []
    known = {each.path for each in _recognise(folder, IMPORTERS)}
    if len(known) == 1:
        known |= {each.path for each in _recognise(folder, HOST_IMPORTERS)} | set(_training_files(folder))
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    return [path for path in files if path not in known and path.suffix.lower() not in _NO_LOGS]


def find_in_folder(source: Path, named: Sequence[Input]) -> list[list[Input]]:
    """Return the runs of a folder, as `sources.find` does; `named` are the host files that a person named."""
    logs = list(_find_logs(source))
    if not logs:
        hosts = list(_recognise(source, HOST_IMPORTERS))
        if hosts:
            what = f"the folder holds a host log ({hosts[0].path.name}) and no log of GPUs"
            raise SourceError(str(source), what, RECORDS_ONE)
        if (source / _NEPTUNE).is_dir():
            what = "the folder holds runs of Neptune's client and no log"
            raise SourceError(str(source), what, f"give {source / _NEPTUNE}")
        raise SourceError(str(source), "the folder holds no log of a known kind", RECORDS_ONE)
    alone = {log.path.parent for log in logs if sum(log.path.parent == other.path.parent for other in logs) == 1}
    beside = {folder: list(_recognise(folder, HOST_IMPORTERS)) for folder in alone}
    found = {log.path for log in logs}
    # a recorder may write GPUs and machine to one file; a person can name it for both
    own = {folder: [each for each in files if each.path not in found] for folder, files in beside.items()}
    return [[log, *(named or own.get(log.path.parent, []))] for log in logs]


def identify_training_logs(paths: Sequence[str | Path]) -> list[TrainingFile]:
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
        file = Path(path) if Path(path).is_file() else spool(path, Path(path))
        if not TrainingLog().identify(read_head(RawFile(file))):
            raise SourceError(path, "not a known training log", WANTED)
        found.append(TrainingFile(file, path))
    return found


def find_training_logs(source: str | Path, inputs: Sequence[Input]) -> list[TrainingFile]:
    """Return the training logs in the folder of a run's only log.

    Args:
        source: what a person named; only a folder is searched.
        inputs: the log, and the files joined to it already.
    """
    folders = {each.path.parent for each in inputs}
    if not Path(source).is_dir() or len(folders) != 1:
        return []
    (folder,) = folders
    logs = {each.path for each in _recognise(folder, IMPORTERS)} | {each.path for each in inputs}
    alone = len([each for each in inputs if not each.beside]) == 1 == sum(1 for _ in _recognise(folder, IMPORTERS))
    return (
        [TrainingFile(path, str(path), beside=True) for path in _training_files(folder) if path not in logs]
        if alone
        else []
    )


def _training_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are training logs by their content."""
    from gpureport.importers.logs.training import TrainingLog  # noqa: PLC0415 - most runs have none

    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    return [path for path in files if TrainingLog().is_training_log(read_head(RawFile(path)))]


def find_run_logs(
    sources: Sequence[str | Path], host: Sequence[str | Path] = (), kind: str | None = None
) -> list[Input]:
    """Return all logs of several sources, then the files beside them, as the inputs of one run.

    Host files named by a person win over those found; `kind` as in `find`.

    Raises:
        SourceError: when there is no log, a file is of no known kind, or one is named twice.
    """
    logs = [run[0] for source in sources for run in find_runs(source, kind=kind)]
    folders = {log.path.parent: None for log in logs if any(Path(source).is_dir() for source in sources)}
    named = [identify(str(path), HOST_IMPORTERS) for path in host]
    known = {log.path for log in logs}
    beside = named or [
        each for folder in folders for each in _recognise(folder, HOST_IMPORTERS) if each.path not in known
    ]
    seen: set[Path] = set()
    for each in (*logs, *beside):
        if each.path.resolve() in seen:
            raise SourceError(each.locator, "named twice for one run", "name every log once")
        seen.add(each.path.resolve())
    return [*logs, *beside]
