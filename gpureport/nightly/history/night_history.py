"""The history: a folder of nights that is only ever added to, so that folders of several jobs merge by copying."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from gpureport.errors import StoreError
from gpureport.nightly.history import record_file
from gpureport.nightly.history.nightly_record import NightlyRecord, NightlyRun
from gpureport.store import atomic_writes

FOLDER = "history"
_SUFFIX = ".parquet"


class History:
    """The nights of a store."""

    def __init__(self, store: Path) -> None:
        """Take the folder of a store; its history is made with the first night."""
        self.folder = store / FOLDER

    def append(self, night: NightlyRecord) -> Path:
        """Add a night: one file that is there whole or not at all, named by what it says; return the file.

        Raises:
            StoreError: when it cannot be written.
        """
        path = self.folder / f"{night.id}{_SUFFIX}"
        with atomic_writes.raise_store_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            atomic_writes.remove_stale_files(self.folder)
            if not path.exists():
                atomic_writes.write_bytes(path, record_file.dump_record(night), self.folder)
        return path

    def recorded(self) -> list[NightlyRecord]:
        """Return every night as it was recorded, by date.

        Raises:
            StoreError: when a file cannot be read.
        """
        return [self._read(path) for path in self._files()]

    def nights(self) -> list[NightlyRecord]:
        """Return every night as it is to be shown, by date: what was recorded again in place of what it replaces.

        Raises:
            StoreError: when a file cannot be read.
        """
        return keep_latest_records(self.recorded())

    def _files(self) -> list[Path]:
        try:
            found = list(self.folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            # a folder that may not be listed is no empty one
            hint = "make it a folder that can be read, or choose another store with --store"
            raise StoreError(str(self.folder), f"cannot be listed ({error.strerror})", hint) from error
        return sorted(path for path in found if path.suffix == _SUFFIX and not path.name.startswith("."))

    @staticmethod
    def _read(path: Path) -> NightlyRecord:
        try:
            return _check_file_name(record_file.load_record(path.read_bytes()), path.stem)
        except (OSError, ValueError, IndexError, KeyError, TypeError, pa.ArrowException) as error:
            what = f"cannot be read as a night ({' '.join(str(error).split())[:120]})"
            raise StoreError(str(path), what, "restore the file, or take it away and record the night again") from error


def _check_file_name(night: NightlyRecord, name: str) -> NightlyRecord:
    """Return a night with the name of its file.

    Raises:
        ValueError: when the name is not that of what the file says.
    """
    if night.id != name:
        msg = "its content is not what its name says"
        raise ValueError(msg)
    return replace(night, file=name)


def keep_latest_records(nights: Iterable[NightlyRecord]) -> list[NightlyRecord]:
    """Return nights with each run once, as recorded last, and without gaps that a later call filled.

    A source without data is filled by a run from a source of the same name and step in the same night that a later
    call found: of files of the same name in one call, the one that is there tells nothing of the other.
    """
    ordered = sorted(nights, key=lambda night: (night.recorded, night.id))
    kept: dict[tuple[str | int, ...], tuple[NightlyRecord, NightlyRun]] = {}
    for night in ordered:
        for part in night.measured:
            kept[night.date, str(part.run_id)] = night, part
        named: Counter[tuple[str, str]] = Counter()
        for part in night.missing:
            named[part.step, part.source] += 1
            if not _is_gap_filled(night, part, ordered):
                kept[night.date, part.step, part.source, named[part.step, part.source]] = night, part
    left = [_keep_runs(night, [part for held, part in kept.values() if held is night]) for night in ordered]
    return sorted((night for night in left if night.parts), key=lambda night: (night.date, night.recorded, night.id))


def _is_gap_filled(night: NightlyRecord, gap: NightlyRun, nights: Sequence[NightlyRecord]) -> bool:
    """Return whether another call, at the same time or later, found what one call did not."""
    wanted = (gap.step, gap.source)
    return any(
        (part.step, part.source) == wanted
        for other in nights
        if other is not night and other.date == night.date and other.recorded >= night.recorded
        for part in other.measured
    )


def _keep_runs(night: NightlyRecord, parts: Sequence[NightlyRun]) -> NightlyRecord:
    """Return a night with some of its parts, and without the checks of runs that are recorded anew."""
    kept = tuple(part for part in night.parts if any(part is one for one in parts))
    gone = {part.name for part in night.measured} - {part.name for part in kept}
    return replace(night, parts=kept, checks=tuple(check for check in night.checks if check.run not in gone))


def first_night_of_run(nights: Iterable[NightlyRecord], run_id: str) -> str | None:
    """Return the night in which a run was recorded first, None where it was not."""
    return min((night.date for night in nights for part in night.measured if part.run_id == run_id), default=None)
