"""Files that belong to the log of a run: host files, joined to it by time, and metrics of its training loop."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.merging.parallel_logs import ParallelLogs
from gpureport.importers.protocol.importer import Extraction, Input, Outcome, ReadOptions, TrainingFile
from gpureport.importers.protocol.time_bases import check_time_bases, describe_time_zones, format_span
from gpureport.recording import HOST, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from gpureport.importers.training import Training


class HostFiles:
    """Host files of one log: one as it is, several as one series."""

    def __init__(self, inputs: Sequence[Input], tz: str | None) -> None:
        """Prepare to read.

        Args:
            inputs: the log, then its host files.
            tz: zone of stamps that name none, None when unknown.
        """
        self._inputs = inputs
        self._tz = tz
        self._joined = ParallelLogs([each.locator for each in inputs[1:]]) if len(inputs) > 2 else None  # noqa: PLR2004 - a log and a host file

    def batches(
        self, extractions: Sequence[Extraction], read: Callable[[int], Iterator["pa.Table"]]
    ) -> Iterator["pa.Table"]:
        """Yield the series of the machine.

        Args:
            extractions: of the log, then of each host file that was read.
            read: yields the batches of the input at a place.

        Raises:
            SourceError: when two host files hold the same metric, the log holds series of the machine itself, or the
                times of a host file cannot be compared with those of the log.
        """
        tables: list[list[pa.Table]] = []
        for place in range(1, len(self._inputs)):
            if self._joined is None:
                yield from read(place)
            else:
                tables.append(list(read(place)))
        outcomes = [extraction.outcome() for extraction in extractions]
        if any(device.id == HOST for device in outcomes[0].devices):
            what = "the GPU log holds series of the machine already"
            raise SourceError(self._inputs[1].locator, what, "leave it out", code="host_in_gpu_log")
        check_time_bases(self._inputs, outcomes, self._tz)
        if self._joined is not None:
            yield from self._joined.joined(tables, outcomes[1:])

    def outcomes(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Return what is known of the log and of each host file, once they are joined."""
        log, *hosts = outcomes
        return [log, *(hosts if self._joined is None else self._joined.outcomes(hosts))]

    def check_spans(self, outcomes: Sequence[Outcome]) -> None:
        """Make sure that each host file shares time with the log.

        Raises:
            SourceError: when one does not.
        """
        (start, end), *others = [outcome.span for outcome in outcomes]
        for each, (first, last) in zip(self._inputs[1:], others, strict=True):
            if last < start or first > end:
                times = f"{format_span((first, last))}; the GPU log: {format_span((start, end))}"
                what = f"it covers another time than the GPU log ({times})"
                raise SourceError(
                    each.locator, what, "check its clock, give --tz, or leave it out", code="no_shared_time"
                )

    def zone_notes(self, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
        """Return which zones the files state."""
        return describe_time_zones(self._inputs, outcomes, self._tz)


class TrainingFiles:
    """What the training loop wrote of its metrics; a file found beside the log is left out where it cannot be read."""

    def __init__(self, given: Sequence[TrainingFile]) -> None:
        self._files = [(each, RawFile(each.path)) for each in given]
        self._unused: dict[str, str] = {}
        self._read: list[Training] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """Why files were left out."""
        return tuple(self._unused.values())

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files that are used; what was not read yet is read to be hashed."""
        return tuple(
            Source(kind="training", locator=each.locator, sha256=file.sha256(), bytes=file.hashed)
            for each, file in self._files
            if each.locator not in self._unused
        )

    def read(self, log: Input, base: Outcome, options: ReadOptions, refuse: Callable[[Outcome, str], None]) -> None:
        """Read the files.

        Args:
            log: the log of the run.
            base: what is known of it.
            options: how to place rows.
            refuse: raises an error where a line was rejected and reading is strict.

        Raises:
            SourceError: when a file that a person named cannot be used.
        """
        from gpureport.importers.training import TrainingLog  # noqa: PLC0415 - most runs have none

        for each, file in self._files:
            try:
                read = TrainingLog().read(file, options, base.span[0], each.locator)
                if read.dated:
                    check_time_bases([log, each], [base, read.outcome], options.tz)
            except SourceError as error:
                if not each.beside:
                    raise error.at(each.locator) from error
                self._unused[each.locator] = (
                    f"{each.locator} lies beside the log, but is not used: {error.what}; {error.hint}."
                )
                continue
            refuse(read.outcome, each.locator)
            self._read.append(read)

    def settle(self) -> None:
        """Make sure that no file changed while it was read."""
        for each, file in self._files:
            try:
                file.settle()
            except SourceError as error:
                raise error.at(each.locator) from error

    def quality(self) -> list[Quality]:
        """Return the account of each file that is used."""
        return [each.outcome.quality for each in self._read]

    def tables(self) -> list["pa.Table"]:
        """Return the metrics of each file that is used."""
        return [each.table for each in self._read]
