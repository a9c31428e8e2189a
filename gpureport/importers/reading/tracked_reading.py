"""How one run of an experiment tracker is read, as one from logs is."""

from collections.abc import Callable, Iterator
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import Labels, ReadOptions
from gpureport.importers.protocol.reject_reasons import CHOSEN
from gpureport.importers.protocol.tracker import Tracked, TrackerRun
from gpureport.importers.reading.run_names import name_copies_by_url
from gpureport.importers.reading.sources import format_identity_options
from gpureport.importers.timebase import zones
from gpureport.recording import Recording, Run, Source
from gpureport.series_table import arrange_series

if TYPE_CHECKING:
    import pyarrow as pa


JoinLogs = Callable[[Tracked, ReadOptions], Tracked]


class TrackedReading:
    """Reads one run of a tracker, as `Reading` reads one from logs."""

    def __init__(  # noqa: PLR0913 - each is given by name or says what it is
        self, kind: str, run: TrackerRun, options: ReadOptions, labels: Labels, *, strict: bool, join: JoinLogs
    ) -> None:
        """Prepare to read; nothing is read yet.

        Args:
            kind: kind of the tracker.
            run: the run.
            options: how to select and place rows.
            labels: what a person says about the run.
            strict: whether a point that was not understood is an error.
            join: what puts the logs kept with a run in the place of what the tracker recorded.

        Raises:
            SettingsError: when there is no zone of the name given.
        """
        if options.tz:
            zones.load_zone(options.tz)
        self._kind = kind
        self._of = run
        self._options = options
        self.labels = labels
        self.file_labels = Labels()
        self._strict = strict
        self._join = join

    @cached_property
    def _tracked(self) -> Tracked:
        tracked = self._of.read(self._options)
        tracked = self._join(tracked, self._options)
        rejected = [entry for entry in tracked.quality.rejected if entry.reason not in CHOSEN]
        if self._strict and rejected:
            reasons = ", ".join(f"{entry.rows} {entry.reason}{entry.at}" for entry in rejected)
            raise SourceError(
                self.locator, f"points were rejected: {reasons}", "leave out --strict", code="points_rejected"
            )
        return tracked

    @property
    def locator(self) -> str:
        """What a person can call the run."""
        return self._of.locator

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of its sources; none, since they say nothing about what is stored."""
        return ()

    @property
    def work(self) -> int:
        """Bytes that are read; not known."""
        return 0

    def watch(self, seen: Callable[[int], None]) -> None:
        """Take who wants to be told of bytes; none are counted."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where the run comes from, with the state it had."""
        state = sha256(self._tracked.state.encode()).hexdigest()
        own = Source(kind=self._kind, locator=self.locator, sha256=state, bytes=self._tracked.size)
        return (own, *self._tracked.sources)

    @property
    def run_id(self) -> str:
        """The run's id, from that of the tracker and the options that select or place rows."""
        identity = f"{self._kind} {self._of.key}\n{format_identity_options(self._options)}"
        return sha256(identity.encode()).hexdigest()[:16]

    def batches(self) -> Iterator["pa.Table"]:
        """Yield a table of each device."""
        yield from self._tracked.series.values()

    def run(self) -> Run:
        """Return what is known about the run."""
        tracked = self._tracked
        return self.labels.applied(
            name_copies_by_url(
                Run(
                    id=self.run_id,
                    name=tracked.name,
                    started=tracked.span[0],
                    ended=tracked.span[1],
                    timezone=self._options.tz or "UTC",
                    interval=tracked.interval,
                    sources=self.sources,
                    devices=tracked.devices,
                    stages=tracked.stages,
                    params=tracked.params,
                    tags=tracked.tags,
                    work=tracked.work,
                    quality=tracked.quality,
                )
            )
        )

    def training(self) -> "pa.Table":
        """Return its training metrics."""
        return self._tracked.training

    def columns(self) -> tuple[tuple[str, str], ...]:
        """Return nothing: a tracker names its metrics."""
        return ()

    def recording(self) -> Recording:
        """Read the whole run into memory."""
        run = self.run()
        tables = [self._tracked.series[device.id] for device in run.devices if device.id in self._tracked.series]
        return Recording(run=run, series=arrange_series(tables), training=self._tracked.training)
