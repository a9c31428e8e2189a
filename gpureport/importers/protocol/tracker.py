"""What an experiment tracker is asked for, and what it answers. Times are microseconds of UTC."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import DescribedSource, ReadOptions
from gpureport.recording import Device, Source, Stage, Work
from gpureport.series_table import empty_training

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which runs of a tracker are meant, and what a person knows that it did not record; None and empty for any.

    `runs` are ids, beginnings of ids, or names, with `*` for any part; where none is given, every finished run with
    hardware series is meant. `filter` is in the tracker's own words, `stage` the one to keep, `group` the name under
    which several local recordings are one run, `throughput` the training metric that counts work, `map` a file that
    says what series with names of a person's own mean.
    """

    runs: tuple[str, ...] = ()
    experiment: str | None = None
    project: str | None = None
    filter: str | None = None
    latest: int | None = None
    children: bool = False
    stage: str | None = None
    group: str | None = None
    gpu_memory_total: int | None = None
    throughput: str | None = None
    require_hardware: bool = False
    map: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A run as a listing shows it; `status` is the tracker's word, `holds` what else tells runs apart.

    `points` are None where counting them would mean reading them; `fault` says why the run cannot be read; a run that
    `is_deleted` is read by its id alone. `timezone` is None where the start is local time.
    """

    id: str
    name: str
    status: str
    started: int | None
    points: int | None = None
    holds: str = ""
    fault: SourceError | None = None
    is_deleted: bool = False
    timezone: str | None = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRun:
    """A run that was not asked for by name and is not read: what a person calls it, why, and whether it can be read."""

    name: str
    reason: str
    is_readable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRuns:
    """The selected runs of a store, those left out unnamed, and the recordings that a group makes one run."""

    runs: "tuple[TrackerRun, ...]"
    skipped: tuple[SkippedRun, ...] = ()
    grouped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """What a tracker holds of one run; fields without a word here are as those of `Run`.

    `series` holds the rows of each device in the order of time, with columns as in `series_table.SCHEMA`; the `lines`
    of `quality` count points. `state` is another whenever the tracker holds more of the run. `attachments` are files
    kept with the run that may be logs of its hardware, by name; `sources` are those that were used. `lasted` is when
    the tracker says it started and ended, where that is not its span.
    """

    name: str
    span: tuple[int, int]
    devices: tuple[Device, ...]
    series: dict[str, "pa.Table"]
    quality: Quality
    state: str
    training: "pa.Table" = field(default_factory=empty_training)
    interval: float | None = None
    stages: tuple[Stage, ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    work: Work | None = None
    size: int | None = None
    attachments: tuple[tuple[str, Path], ...] = ()
    sources: tuple[Source, ...] = ()
    lasted: tuple[int, int] | None = None
    timezone: str | None = "UTC"


class TrackerRun(Protocol):
    """One run of a tracker, not read yet."""

    @property
    def key(self) -> str:
        """What identifies it among all runs of all trackers of its kind."""

    @property
    def locator(self) -> str:
        """`mlflow:STORE#RUN`, as a person can name it."""

    @property
    def fault(self) -> SourceError | None:
        """Why the run is skipped: it is known to be unreadable, and nobody named it. None where it can be read."""

    def read(self, options: ReadOptions) -> Tracked:
        """Read the run, or raise a `SourceError`."""


class Tracker(DescribedSource, Protocol):
    """Reads the stores of one kind of tracker; its kind stands before the colon of a locator."""

    def claims(self, source: str) -> bool:
        """Return whether a locator, file or folder is a store of this kind, judged by its content."""

    def keeps_files(self, folder: Path) -> bool:
        """Return whether a folder is one in which the tracker keeps the files of one run, which are read with it."""

    def refuse_folder(self, folder: Path) -> None:
        """Raise a `SourceError` for a folder that is no store, in which the tracker keeps something of its runs."""

    def runs(self, source: str, selection: Selection) -> SelectedRuns:
        """Return the runs of a store that are meant, and those left out, or raise a `SourceError`."""

    def listed(self, source: str, selection: Selection) -> list[ListedRun]:
        """Return what a store holds, without reading series."""


def split_readable(runs: Sequence[TrackerRun]) -> tuple[list[TrackerRun], list[SourceError]]:
    """Part the runs that can be read from the reasons why others cannot, the first of which is raised if none can."""
    faults = [run.fault for run in runs if run.fault is not None]
    kept = [run for run in runs if run.fault is None]
    if faults and not kept:
        raise faults[0]
    return kept, faults
