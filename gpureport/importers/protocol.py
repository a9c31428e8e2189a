"""Defines the interfaces of importers and trackers.

An importer yields the series of a log in batches. To add a tracker `acme`, define `ACME = Tracker(...)`
in a module of `importers`: `holds` recognises a store, `open` returns a `Store`, and `record` turns a
run into a `Tracked` with `tracker_series.build_tracked`. Add `acme="module:ACME"` to `TRACKERS` in
`importers/__init__.py`, so that `acme:STORE#RUN` is a locator, and `acme` to `TRACKER_KINDS` in
`recording.py`. The shortest trackers are in `file_trackers.py`. Times are UTC, in microseconds.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import pyarrow as pa

from gpureport.data_quality import Quality
from gpureport.errors import SettingsError, SourceError
from gpureport.importers.account import format_count, list_first
from gpureport.importers.clock import load_zone, local_span
from gpureport.importers.source_text import RawFile
from gpureport.parsing import split_numbers
from gpureport.recording import HOST, Device, Run, Source, empty_training
from gpureport.regular_files import path_exists

if TYPE_CHECKING:
    from gpureport.importers.extraction import Extraction
    from gpureport.importers.tools.mapped import Mapping

RUN_ID = re.compile(r"[0-9a-f]{32}")
"""A complete MLflow run id."""
HEAD_BYTES = 64 * 1024
"""Number of bytes read to recognise a source."""
SEARCHED_BYTES = 4 * 2**20
"""Number of bytes read if a job's output may precede the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options that are part of a run's identity, since they select rows or affect times.

    `columns` are the query fields of a log without a header, and `interval` is for logs without timestamps. `around` is
    the local time span of the GPU log, used for files without dates.
    """

    tz: str | None = None
    gpus: tuple[int, ...] | None = None
    columns: tuple[str, ...] | None = None
    interval: float | None = None
    gpus_per_tick: int | None = None
    map: "Mapping | None" = None
    around: tuple[int, int] | None = None
    as_logged: bool = False

    def for_companion(self, span: tuple[int, int]) -> "ReadOptions":
        return replace(self, around=span if self.tz is None else local_span(span, load_zone(self.tz)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Facts known after reading a source, with `span` in microseconds and `intervals` in seconds.

    If the source specifies its `timezone`, times are in UTC. The names of `tags` are in `LABEL_TAGS`.
    """

    devices: tuple[Device, ...]
    quality: Quality
    span: tuple[int, int]
    intervals: dict[str, float] = field(default_factory=dict)
    columns: tuple[tuple[str, str], ...] = ()
    timezone: str | None = None
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def has_host(self) -> bool:
        return any(device.id == HOST for device in self.devices)


class Importer(Protocol):
    """Recognises and reads sources of one `kind`, which is stored in `Source.kind`."""

    kind: ClassVar[str]

    def identify(self, head: bytes) -> bool:
        """Return whether a source with this beginning is of this kind."""

    def extract(self, file: RawFile, options: ReadOptions) -> "Extraction":
        """Start reading a source. Raises SourceError if nothing in it is usable."""


@dataclass(frozen=True, slots=True)
class Input:
    """One of a run's files: a log, a file `beside` it, or a log that adds metrics to the log `companion_of`."""

    path: Path
    importer: Importer
    locator: str
    beside: bool = False
    companion_of: int | None = None


# trackers

_SHORTEST, _SHOWN = 6, 5
"""Minimum length of an id prefix that selects a run, and how many runs to list."""

_AT_ONCE = 5_000_000
"""Starts within this many microseconds are treated as equal, since no run is that short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selects a tracker's runs, and adds facts to them. None or an empty value selects all runs.

    `filter` is in the tracker's query language, `group` is the common name for local recordings of
    one run, and `map` is a file that explains series names.
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
class RunInfo:
    """A run as listed by a store, before it is read; `status` is in the tracker's terms.

    `key` identifies the run among all stores if its id does not. `lacks` explains why there is no
    hardware series, and `fault` why the run cannot be read. `timezone` is None if the start is local.
    """

    id: str
    key: str = ""
    name: str = ""
    status: str = "cannot be read"
    started: int | None = None
    ended: int | None = None
    experiment_id: str = ""
    artifact_uri: str = ""
    deleted: bool = False
    parent: str | None = None
    hardware: str = ""
    fault: SourceError | None = None
    lacks: str = ""
    timezone: str | None = "UTC"

    @property
    def finished(self) -> bool:
        return self.status not in {"RUNNING", "SCHEDULED"}

    @property
    def holds(self) -> str:
        parts = (self.hardware, f"nested in {self.parent}" if self.parent else "")
        return self.lacks or ", ".join(filter(None, parts)) or "no hardware series"


def describe_devices(devices: Set[object]) -> str:
    """Return devices in words, as in `2 GPUs, host`; None is the machine."""
    gpus = len(devices - {None})
    return ", ".join([format_count(gpus, "GPU")] * bool(gpus) + ["host"] * (None in devices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """One run from a tracker, without an id yet; its account counts points as lines.

    `state` changes when the tracker has new data about the run. `sources` are attached logs that were read.
    """

    run: Run
    series: dict[str, pa.Table]
    state: str
    training: pa.Table = field(default_factory=empty_training)
    size: int | None = None
    sources: tuple[Source, ...] = ()


class Store(ABC):
    """A store of runs; `grouped` contains the recordings that are joined into one run."""

    kind = version = where = ""
    grouped: tuple[str, ...] = ()
    filters = False

    @abstractmethod
    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return an experiment's runs (None for all) that match a filter, newest first."""

    def run(self, run_id: str) -> RunInfo | None:
        return next((run for run in self.runs() if run.id == run_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracker:
    """Reads the stores of one kind of tracker; `kind` is also the prefix of its locators.

    `refuse_folder` raises an error if a folder contains data about runs but is not a store.
    """

    kind: str
    title: str
    holds: Callable[[Path], object]
    open: Callable[[str, str | None, Selection], Any]
    record: Callable[[Any, RunInfo, Selection, ReadOptions], Tracked]
    refuse_folder: Callable[[Path], None] = lambda _: None

    def claims(self, source: str) -> bool:
        with suppress(OSError):
            return source.startswith(f"{self.kind}:") or bool(self.holds(Path(source)))
        return False

    def runs(self, source: str, selection: Selection) -> "SelectedRuns":
        store, named = self._open(source, selection)
        if store.grouped:
            selection = replace(selection, runs=(), experiment=None)
        return SelectedRuns(self, store, selection, *select_runs(store, named, selection))

    def listed(self, source: str, selection: Selection) -> list[RunInfo]:
        runs = self._open(source, selection)[0].runs(selection.experiment, selection.filter)
        kept = [run for run in runs if not run.deleted][: selection.latest]
        return kept if selection.latest else [*kept, *(run for run in runs if run.deleted)]

    def _open(self, source: str, selection: Selection) -> tuple[Any, str | None]:
        place, named = split_locator(source, f"{self.kind}:")
        store = self.open(place, named, selection)
        if selection.filter is not None and not store.filters:
            hint = f"use --run or --experiment, or gpureport ingest {source}, then analyze --where param:KEY=VALUE"
            raise SettingsError("--filter", "only servers can filter runs", hint, code="filter_needs_server")
        return store, named


class SelectedRuns(NamedTuple):
    tracker: Tracker
    store: Store
    selection: Selection
    runs: list[RunInfo]
    skipped: list[tuple[RunInfo, str]]


def split_locator(source: str, prefix: str) -> tuple[str, str | None]:
    store = source.removeprefix(prefix)
    if "#" not in store or path_exists(store):
        return store, None
    store, _, run = store.rpartition("#")
    return store, run or None


def select_runs(
    store: Store, named: str | None, selection: Selection
) -> tuple[list[RunInfo], list[tuple[RunInfo, str]]]:
    """Return the selected runs, earliest first, and the other runs with the reason for leaving them out.

    Runs selected by name keep the order of the names; otherwise, unreadable runs come last.
    """
    wanted = (*(() if named is None else (named,)), *selection.runs)
    if wanted and not selection.children and all(map(RUN_ID.fullmatch, wanted)):
        # runs with complete ids are found without a list of all runs
        direct = [store.run(name) for name in dict.fromkeys(wanted)]
        if None not in direct:
            return _take_newest([run for run in direct if run], selection.latest), []
    runs = _sort_by_start(store.runs(selection.experiment, selection.filter))
    waiting = [run for name in wanted for run in _find_named(store.where, runs, name)]
    waiting = waiting or _find_finished(store.where, runs, selection)
    found: dict[str, RunInfo] = {}
    while waiting:
        run = waiting.pop(0)
        if run.id not in found and selection.children:
            waiting = [each for each in runs if each.parent == run.id and not each.deleted] + waiting
        found.setdefault(run.id, run)
    skipped = []
    for run in (each for each in runs if not (wanted or each.id in found or each.deleted)):
        reason = "nested in another" if run.parent in found else run.lacks or "without hardware series"
        skipped.append((run, reason if run.finished else f"still {run.status}"))
    return _take_newest([*found.values()], selection.latest), skipped


def _sort_by_start(runs: Sequence[RunInfo]) -> list[RunInfo]:
    """Sort runs by start, then by name with numbers in numeric order; runs without a start come last."""
    known = sorted((run for run in runs if run.started), key=_read_start)
    begun = [_read_start(run) for run in known]
    starts: Iterable[int] = accumulate(begun, lambda first, at: first if at - first <= _AT_ONCE else at)
    order = sorted(zip(starts, known, strict=True), key=lambda pair: (pair[0], split_numbers(pair[1].name)))
    return [*(run for _, run in order), *(run for run in runs if not run.started)]


def _read_start(run: RunInfo) -> int:
    return run.started or 0


def _take_newest(runs: list[RunInfo], latest: int | None) -> list[RunInfo]:
    sound = sorted((run for run in runs if run.fault is None), key=_read_start, reverse=True)
    newest = {run.id for run in sound[:latest]}
    return [run for run in runs if run.fault is not None or run.id in newest]


def _find_named(where: str, runs: Sequence[RunInfo], name: str) -> list[RunInfo]:
    active = [run for run in runs if not run.deleted]
    found = [run for run in runs if run.id == name] or [run for run in active if run.name == name]
    if not found and "*" in name:
        # only `*` is a wildcard
        pattern = name.replace("[", "[[]").replace("?", "[?]")
        if fitting := [run for run in active if fnmatchcase(run.name, pattern) or fnmatchcase(run.id, pattern)]:
            return fitting
    if not found and len(name) >= _SHORTEST:
        found = [run for run in runs if run.id.startswith(name)]
    if not found:
        raise SourceError(where, f"no run {name!r}", "--list shows the runs", code="unknown_run")
    if len(found) > 1:
        hint = f"name one by its id: {list_first([f'{run.id} ({run.name}, {run.status})' for run in found], _SHOWN)}"
        raise SourceError(where, f"{len(found)} runs are called {name!r}", hint, code="several_runs")
    if found[0].fault is not None:
        raise found[0].fault
    return found


def _find_finished(where: str, runs: Sequence[RunInfo], selection: Selection) -> list[RunInfo]:
    """Return unreadable runs, and finished runs with hardware series that are not nested."""
    ended = [run for run in runs if not run.deleted and (run.finished or "status" in (selection.filter or ""))]
    found = [run for run in ended if run.hardware or run.fault is not None]
    if not runs:
        raise SourceError(where, "it contains no runs", "name another store or experiment", code="no_finished_run")
    if not found:
        lacking = "; ".join(dict.fromkeys(run.lacks for run in runs if run.lacks))
        what = f"none of its {len(runs)} runs has finished with hardware series{lacking and f': {lacking}'}"
        hint = f"--list shows the runs{'' if lacking else '; --run reads one regardless'}"
        raise SourceError(where, what, hint, code="no_finished_run")
    ids = {run.id for run in found}
    return [run for run in found if run.parent not in ids]
