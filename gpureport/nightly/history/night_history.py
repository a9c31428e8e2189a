"""The history: a folder of records that are only added, so that folders merge by copying."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from gpureport.errors import StoreError
from gpureport.nightly.history import record_file
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun
from gpureport.places import Place, map_places
from gpureport.redaction import redact_start
from gpureport.store import atomic_writes

FOLDER = "history"
_SUFFIX = ".parquet"
_DAMAGE = (
    *(OSError, ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, RecursionError),
    pa.ArrowException,
)
"""What reading a damaged night raises."""


class History:
    """The nights of a store."""

    def __init__(self, store: Place) -> None:
        """Take the folder of a store; its history is made with the first night."""
        self.folder = store / FOLDER

    def append(self, night: NightlyRecord) -> Place:
        """Add a record as one file, whole or not at all, named by its content; return the file.

        One that is there already stays as it is, unless its runs were recorded otherwise since then: it is the latest
        of them again.

        Raises:
            StoreError: when it cannot be written, or another cannot be read.
        """
        path = self.folder / f"{night.id}{_SUFFIX}"
        with atomic_writes.raise_store_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            atomic_writes.remove_stale_files(self.folder)
            if not path.exists() or self._is_overtaken(night):
                atomic_writes.write_bytes(path, record_file.dump_record(night), self.folder)
        return path

    def _is_overtaken(self, night: NightlyRecord) -> bool:
        """Return whether a run of a record was recorded again later, otherwise."""
        ids = {run.run_id for run in night.measured_runs}
        latest = [other for other in self.read_latest() if other.date == night.date]
        return any(other.file != night.id and ids & {run.run_id for run in other.measured_runs} for other in latest)

    def read_all(self, known: Iterable[NightlyRecord] = ()) -> list[NightlyRecord]:
        """Return every record, by date; the files of those that are known are not read again.

        Raises:
            StoreError: when a file cannot be read.
        """
        records = {night.file: night for night in known}
        files = self._files()
        unknown = [path for path in files if path.stem not in records]
        records.update(zip((path.stem for path in unknown), map_places(self._read, unknown), strict=True))
        return [records[path.stem] for path in files]

    def read_latest(self) -> list[NightlyRecord]:
        """Return the latest record of each run, by date.

        Raises:
            StoreError: when a file cannot be read.
        """
        return keep_latest_records(self.read_all())

    def _files(self) -> list[Place]:
        try:
            found: list[Place] = list(self.folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            # a folder that may not be listed is not an empty one
            hint = "make it a folder that can be read, or choose another store with --store"
            raise StoreError(
                str(self.folder), f"cannot be listed ({error.strerror})", hint, code="unreadable"
            ) from error
        return sorted(path for path in found if path.suffix == _SUFFIX and not path.name.startswith("."))

    @staticmethod
    def _read(path: Place) -> NightlyRecord:
        try:
            return _check_file_name(record_file.load_record(path.read_bytes()), path.stem)
        except _DAMAGE as error:
            what = f"cannot be read as a night ({redact_start(' '.join(str(error).split()))})"
            hint = "restore the file, or take it away and record the night again"
            raise StoreError(str(path), what, hint, code="damaged_night") from error


def _check_file_name(night: NightlyRecord, name: str) -> NightlyRecord:
    """Return a record with the name of its file, without what has become a secret since it was recorded.

    Raises:
        ValueError: when the file is not named after its content.
    """
    if night.id != name:
        msg = "its content is not what its name says"
        raise ValueError(msg)
    return replace(night.redacted(), file=name)


def keep_latest_records(nights: Iterable[NightlyRecord]) -> list[NightlyRecord]:
    """Return records with each run once, as last recorded, and without gaps that a later call filled.

    A source without data is a gap. A later call fills it with a run from a source of the same name and step in the
    same night. A run of the same call does not: it comes from another file of that name.
    """
    ordered = sorted(nights, key=lambda night: (night.recorded, night.page))
    kept: dict[tuple[str | int, ...], tuple[NightlyRecord, NightlyRun]] = {}
    for night in ordered:
        for run in night.measured_runs:
            kept[night.date, str(run.run_id)] = night, run
        named: Counter[tuple[str, str]] = Counter()
        for run in night.missing_runs:
            named[run.step, run.source] += 1
            if not _is_gap_filled(night, run, ordered):
                kept[night.date, run.step, run.source, named[run.step, run.source]] = night, run
    runs: dict[int, list[NightlyRun]] = {}
    for night, run in kept.values():
        runs.setdefault(id(night), []).append(run)
    left = [_keep_runs(night, runs.get(id(night), [])) for night in ordered]
    return sorted((night for night in left if night.runs), key=lambda night: (night.date, night.recorded, night.id))


def _is_gap_filled(night: NightlyRecord, gap: NightlyRun, nights: Sequence[NightlyRecord]) -> bool:
    """Return whether another call, at the same time or later, found the run that is missing."""
    wanted = (gap.step, gap.source)
    return any(
        (run.step, run.source) == wanted
        for other in nights
        if other is not night and other.date == night.date and other.recorded >= night.recorded
        for run in other.measured_runs
    )


def _keep_runs(night: NightlyRecord, runs: Sequence[NightlyRun]) -> NightlyRecord:
    """Return a record with some of its runs, without checks of those recorded again."""
    kept = tuple(run for run in night.runs if any(run is one for one in runs))
    gone = {run.name for run in night.measured_runs} - {run.name for run in kept}
    return replace(night, runs=kept, checks=tuple(check for check in night.checks if check.run not in gone))


def first_night_of_run(nights: Iterable[NightlyRecord], run_id: str) -> str | None:
    """Return the night in which a run was first recorded; None if it was not."""
    return min((night.date for night in nights for run in night.measured_runs if run.run_id == run_id), default=None)
