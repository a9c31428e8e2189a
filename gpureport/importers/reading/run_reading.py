"""One run being read from its log and its host files: identity first, then batches, then the run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from gpureport.errors import SourceError
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.merging.parallel_logs import ParallelLogs
from gpureport.importers.merging.run_names import derive_name, longer_names, name_after_log
from gpureport.importers.protocol import time_bases
from gpureport.importers.protocol.importer import Extraction, Input, Labels, Outcome, ReadOptions, TrainingFile
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED
from gpureport.importers.protocol.run_identity import compute_run_id, drop_unused_options
from gpureport.metrics import Scope
from gpureport.quality import merge_quality
from gpureport.recording import HOST, Device, Recording, Run, Source
from gpureport.series_table import arrange_series, empty_training, sort_by_time

if TYPE_CHECKING:
    from gpureport.importers.logs.training import Training
    from gpureport.importers.merging.merged_logs import MergedLogs
    from gpureport.importers.protocol.source_summary import SourceSummary

T = TypeVar("T")

_LOG_AND_HOST = 2
IMPORTER_VERSION = "9"
"""Raised whenever the same source would be read differently."""


class Reading:
    """Reads one run; the batches must be taken before the run.

    The sources are hashed while they are read. Asking for the run's id earlier reads the rest of them.
    """

    def __init__(  # noqa: PLR0913 - what is read, how, and what is said of it
        self,
        inputs: Sequence[Input],
        options: ReadOptions,
        labels: Labels,
        *,
        strict: bool = False,
        as_one_run: bool = False,
        training: Sequence[TrainingFile] = (),
    ) -> None:
        """Prepare to read; nothing is read yet.

        Args:
            inputs: the log, then files beside it.
            options: how to select and place rows.
            labels: what a person says about the run.
            strict: whether a line that was not understood is an error.
            as_one_run: whether there may be several logs, which are one run.
            training: what the training loop wrote of its metrics.
        """
        self._strict = strict
        self._inputs = inputs
        self._files = [RawFile(each.path) for each in inputs]
        self._merged = as_one_run and len(inputs) > 1
        self._options = options
        self.labels = labels
        self._extractions: list[Extraction] = []
        self._several: MergedLogs | None = None
        self._hosts: ParallelLogs | None = None
        self._trainings = [(each, RawFile(each.path)) for each in training]
        self._trained: list[Training] = []
        self._unused: dict[str, str] = {}
        self.longer_name = ""

    @property
    def locator(self) -> str:
        """What a person called its first source."""
        return self._inputs[0].locator

    @property
    def name(self) -> str:
        """The name a person gave it, else one derived from its log."""
        return self.labels.name or self.longer_name or name_after_log(self._inputs)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each source that makes the run's identity."""
        return tuple(file.size for file in self._files)

    @property
    def work(self) -> int:
        """Bytes that are read for the batches; several logs of one run are read twice."""
        return sum(self.sizes) * (2 if self._merged else 1)

    def watch(self, seen: Callable[[int], None]) -> None:
        """Call `seen` with the number of bytes whenever some were read for the batches."""
        for file in self._files:
            file.watch = seen

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where the run comes from; what was not read yet is read to be hashed."""
        return self._log_sources + tuple(
            Source(kind="training", locator=each.locator, sha256=file.sha256(), bytes=file.hashed)
            for each, file in self._trainings
            if each.locator not in self._unused
        )

    @property
    def _log_sources(self) -> tuple[Source, ...]:
        """The logs whose rows are the series, which make the run's identity."""
        return tuple(
            Source(kind=each.importer.kind, locator=each.locator, sha256=file.sha256(), bytes=file.hashed)
            for each, file in zip(self._inputs, self._files, strict=True)
        )

    @property
    def run_id(self) -> str:
        """The run's id, from the bytes of its sources and the options that select or place rows."""
        sources = self._log_sources
        if self._merged:
            # the order in which logs of one run are named says nothing
            beside = {each.locator: each.beside for each in self._inputs}
            sources = tuple(sorted(sources, key=lambda source: (beside[source.locator], source.sha256)))
        options = self._options
        if options.columns is not None or options.interval is not None:
            options = drop_unused_options(self._inputs, self._files, options)
        return compute_run_id(sources, options)

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one device each.

        Rows of a device come in time order, unless its log has them in another; `series_table.sort_by_time` puts them
        right. `renamed` says of which devices the id is another one in the end.

        Raises:
            SourceError: when a source holds nothing that can be used, changed while it was read, or a line of it was
                not understood and reading is strict; when two host logs hold the same metric, or the times of one
                cannot be compared with those of the log.
        """
        if self._merged:
            from gpureport.importers.merging.merged_logs import MergedLogs  # noqa: PLC0415 - most runs have one log

            self._several = MergedLogs(self._inputs, self._files, self._options)
            yield from self._read(self._several, None)
        else:
            yield from self._read_each_log()
        self._trained = list(self._read_training_logs())
        for each, file in zip(self._inputs, self._files, strict=True):
            _with_locator(file.settle, each.locator)
        for given, file in self._trainings:
            _with_locator(file.settle, given.locator)

    def _read_each_log(self) -> Iterator["pa.Table"]:
        """Yield the log, then what lies beside it; several logs of the machine as one series."""
        hosts: list[list[pa.Table]] = []
        for each, file in zip(self._inputs, self._files, strict=True):
            options = self._options if not self._extractions else self._companion_options()
            extract = partial(each.importer.extract, file, options)
            batches = self._read(_with_locator(extract, each.locator), each.locator)
            if each is self._inputs[0] or len(self._inputs) <= _LOG_AND_HOST:
                yield from batches
            else:
                hosts.append(list(batches))
        outcomes = [extraction.outcome() for extraction in self._extractions]
        if len(outcomes) > 1 and any(device.id == HOST for device in outcomes[0].devices):
            what = "the GPU log holds series of the machine already"
            raise SourceError(self._inputs[1].locator, what, "leave it out")
        if len(outcomes) > 1:
            time_bases.check_time_bases(self._inputs, outcomes, self._options.tz)
        if hosts:
            self._hosts = ParallelLogs([each.locator for each in self._inputs[1:]])
            yield from self._hosts.joined(hosts, outcomes[1:])

    def _read_training_logs(self) -> Iterator["Training"]:
        """Yield what the training loop wrote."""
        if not self._trainings:
            return
        from gpureport.importers.logs.training import TrainingLog  # noqa: PLC0415 - most runs have none

        base = self._extractions[0].outcome()
        for each, file in self._trainings:
            try:
                read = TrainingLog().read(file, self._options, base.span[0], each.locator)
                if read.dated:
                    time_bases.check_time_bases([self._inputs[0], each], [base, read.outcome], self._options.tz)
            except SourceError as error:
                if not each.beside:
                    raise error.at(each.locator) from error
                self._unused[each.locator] = (
                    f"{each.locator} lies beside the log, but is not used: {error.what}; {error.hint}."
                )
                continue
            self._refuse_rejected_lines(read.outcome, each.locator)
            yield read

    def _companion_options(self) -> ReadOptions:
        """Return how a file beside the log is read: one that writes no date is dated by the log's local time."""
        return self._options.for_companion(self._extractions[0].outcome().span)

    def _read(self, extraction: Extraction, locator: str | None) -> Iterator["pa.Table"]:
        self._extractions.append(extraction)
        try:
            yield from extraction.batches()
        except SourceError as error:
            raise error.at(locator or error.where) from error
        self._refuse_rejected_lines(extraction.outcome(), locator or self._inputs[0].locator)

    def _refuse_rejected_lines(self, outcome: Outcome, where: str) -> None:
        """Raise an error where a line was rejected and reading is strict."""
        rejected = [e for e in outcome.quality.rejected if e.reason != NOT_SELECTED]
        if self._strict and rejected:
            reasons = ", ".join(f"{e.rows} {e.reason}{e.at}" for e in rejected)
            raise SourceError(where, f"lines were rejected: {reasons}", "mend them or leave out --strict")

    def _outcomes(self) -> list[Outcome]:
        outcomes = [extraction.outcome() for extraction in self._extractions]
        if self._merged:
            return outcomes
        if self._hosts is not None:
            outcomes[1:] = self._hosts.outcomes(outcomes[1:])
        notes = [file.account.notes() for file in self._files]
        return [outcome.noted(more) if more else outcome for outcome, more in zip(outcomes, notes, strict=True)]

    def run(self) -> Run:
        """Return what is known about the run, after the last batch.

        Raises:
            SourceError: when the host log shares no time with the log, or the log holds series of the host itself.
        """
        outcomes = self._outcomes()
        if (place := _find_log_of_other_time(outcomes)) is not None:
            what = "it covers another time than the GPU log"
            raise SourceError(self._inputs[place].locator, what, "check its clock, give --tz, or leave it out")
        devices = sorted((device for outcome in outcomes for device in outcome.devices), key=_device_order)
        gpus = {device.id for device in devices if device.scope is Scope.GPU}
        rates = [rate for outcome in outcomes for device, rate in outcome.intervals.items() if device in gpus]
        trained = [each.outcome.quality for each in self._trained]
        labels, quality = self.labels, merge_quality([*(outcome.quality for outcome in outcomes), *trained])
        if len(outcomes) > 1 and not self._merged:
            zones = time_bases.describe_time_zones(self._inputs, outcomes, self._options.tz)
            quality = replace(quality, notes=(*quality.notes, *zones))
        quality = replace(quality, notes=(*quality.notes, *self._unused.values()))
        return Run(
            id=self.run_id,
            name=self.name,
            step=labels.step,
            started=outcomes[0].span[0],
            ended=outcomes[0].span[1],
            timezone=None if quality.synthetic_time else outcomes[0].timezone or self._options.tz,
            interval=sorted(rates)[len(rates) // 2] if rates else None,
            sources=self.sources,
            devices=tuple(devices),
            params=labels.params,
            tags=labels.tags,
            work=labels.work,
            quality=quality,
        )

    def sources_read(self) -> "tuple[SourceSummary, ...]":
        """Return each source as given with what is known of it, after the last batch."""
        from gpureport.importers.protocol.source_summary import SourceSummary  # noqa: PLC0415 - only when asked for

        outcomes = self._outcomes() if self._several is None else self._several.outcomes()
        return tuple(map(SourceSummary, self._inputs, self._files, outcomes))

    def renamed(self) -> dict[str, str]:
        """Return by their old ids the devices whose batches were handed on under another one, after the last batch."""
        return {old: new for each in self._extractions for old, new in each.outcome().renamed.items()}

    def rejects(self) -> bytes:
        """Return rejected lines of all sources as zstd-compressed JSON lines, after the last batch."""
        outcomes = [extraction.outcome() for extraction in self._extractions]
        return b"".join(outcome.rejects for outcome in (*outcomes, *(each.outcome for each in self._trained)))

    def training(self) -> "pa.Table":
        """Return the training metrics, after the last batch; empty when there are none."""
        if not self._trained:
            return empty_training()
        return pa.concat_tables([each.table for each in self._trained]).unify_dictionaries().combine_chunks()

    def recording(self) -> Recording:
        """Read the whole run into memory."""
        batches = list(self.batches())
        kept: dict[str, list[pa.Table]] = {}
        renamed = self.renamed()
        for batch in batches:
            device = batch.column("device")[0].as_py()
            kept.setdefault(renamed.get(device, device), []).append(batch)
        run = self.run()
        tables = [
            sort_by_time(pa.concat_tables(kept[device.id], promote_options="default"), device.id)
            for device in run.devices
            if device.id in kept
        ]
        return Recording(run=run, series=arrange_series(tables), training=self.training())


def lengthen_equal_names(readings: Sequence[Reading]) -> None:
    """Give runs longer names that are called alike after their logs, by as much of the path as differs."""
    unnamed = [each for each in readings if each.name == derive_name(each.locator)]
    for name in dict.fromkeys(each.name for each in unnamed):
        same = [each for each in unnamed if each.name == name]
        for each, longer in zip(same, longer_names([each.locator for each in same]), strict=True):
            each.longer_name = longer


def _device_order(device: Device) -> tuple[bool, str, int]:
    """Return where a device comes in its run."""
    return device.scope is Scope.HOST, device.node or "", device.index or 0


def _with_locator(work: Callable[[], T], locator: str) -> T:
    """Return what some work on a file yields; a pipe is read from a spool, whose name means nothing to a person."""
    try:
        return work()
    except SourceError as error:
        raise error.at(locator) from error


def _find_log_of_other_time(outcomes: Sequence[Outcome]) -> int | None:
    """Return the first host log that shares no time with the log, None where there is none such."""
    (start, end), *others = [outcome.span for outcome in outcomes]
    return next((place for place, (first, last) in enumerate(others, 1) if last < start or first > end), None)
