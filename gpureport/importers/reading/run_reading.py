"""One run being read from its log: identity first, then batches, then the run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from gpureport.data_quality import merge_quality
from gpureport.errors import SourceError
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.importer import Extraction, Input, Labels, Outcome, ReadOptions, TrainingFile
from gpureport.importers.protocol.named_models import name_gpu_models
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED
from gpureport.importers.protocol.unused_options import drop_unused_options
from gpureport.importers.reading.joined_files import HostFiles, TrainingFiles
from gpureport.importers.reading.run_files import read_run_files
from gpureport.importers.reading.run_names import name_copies_by_url
from gpureport.importers.reading.sources import compute_run_id, name_after_log
from gpureport.label_tags import merge_pairs, override_pairs
from gpureport.limits import MOST_GPUS
from gpureport.metrics import Scope
from gpureport.recording import Device, Recording, Run, Source
from gpureport.series_table import collect_series, empty_training

if TYPE_CHECKING:
    from gpureport.importers.merging.companion_logs import CompanionLogs
    from gpureport.importers.merging.merged_logs import MergedLogs

IMPORTER_VERSION = "12"
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
        self._inputs = [each for each in inputs if each.companion_of is None]
        self._files = [RawFile(each.path) for each in self._inputs]
        self._merged = as_one_run and len(self._inputs) > 1
        facts = read_run_files(inputs, options)
        self._options = facts.options
        self.labels = labels
        self.file_labels = facts.labels
        self._facts = facts
        self._companions: CompanionLogs | None = None
        if len(self._inputs) < len(inputs):
            from gpureport.importers.merging import companion_logs  # noqa: PLC0415 - most runs have none

            companions = [each for each in inputs if each.companion_of is not None]
            self._companions = companion_logs.CompanionLogs(companions, self._options)
        self._extractions: list[Extraction] = []
        self._several: MergedLogs | None = None
        self._hosts: HostFiles | None = None
        self._training = TrainingFiles(training) if training else None
        self.longer_name = ""

    @property
    def locator(self) -> str:
        """What a person called its first source."""
        return self._inputs[0].locator

    @property
    def name(self) -> str:
        """The name a person gave it, here or in a file beside its log, else one derived from its log."""
        return self.labels.name or self.longer_name or self.file_labels.name or name_after_log(self._inputs)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each source that makes the run's identity."""
        return tuple(file.size for file in self._all_files)

    @property
    def work(self) -> int:
        """Bytes that are read for the batches; several logs of one run are read twice."""
        again = sum(file.size for file in self._files) if self._merged else 0
        return sum(self.sizes) + again

    def watch(self, seen: Callable[[int], None]) -> None:
        """Call `seen` with the number of bytes whenever some were read for the batches."""
        for file in self._all_files:
            file.watch = seen

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where the run comes from; what was not read yet is read to be hashed."""
        return self._log_sources + (self._training.sources if self._training else ())

    @property
    def _log_sources(self) -> tuple[Source, ...]:
        """The logs whose rows are the series, which make the run's identity."""
        return tuple(
            Source(kind=each.importer.kind, locator=each.locator, sha256=file.sha256(), bytes=file.hashed)
            for each, file in zip(self._all_inputs, self._all_files, strict=True)
        )

    @property
    def _all_inputs(self) -> list[Input]:
        """The main logs and files beside them, then the companions."""
        return [*self._inputs, *(self._companions.inputs if self._companions else ())]

    @property
    def _all_files(self) -> list[RawFile]:
        """The bytes of each of these."""
        return [*self._files, *(self._companions.files if self._companions else ())]

    @property
    def run_id(self) -> str:
        """The run's id, from the bytes of its sources and the options that select or place rows."""
        sources = self._log_sources
        if self._merged or self._companions:
            # the order in which logs of one run are named says nothing
            beside = {each.locator: each.beside for each in self._all_inputs}
            sources = tuple(sorted(sources, key=lambda source: (beside[source.locator], source.sha256)))
        options = self._options
        if options.columns is not None or options.interval is not None:
            options = drop_unused_options(self._all_inputs, self._all_files, options)
        return compute_run_id(sources, options)

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one device each.

        Rows of a device come in time order, unless its log has them in another; `series_table.sort_by_time` puts them
        right.

        Raises:
            SourceError: when a source holds nothing usable, changes meanwhile, or has rejected lines and reading is
                strict; when host logs hold the same metric, or their times cannot be compared with those of the log.
        """
        if self._merged:
            from gpureport.importers.merging.merged_logs import MergedLogs  # noqa: PLC0415 - most runs have one log

            self._several = MergedLogs(self._inputs, self._files, self._options)
            yield from self._join_companions(self._read(self._several, None))
        else:
            yield from self._read_each_log()
        if self._training:
            base = self._extractions[0].outcome()
            self._training.read(self._inputs[0], base, self._options, self._refuse_rejected_lines)
            self._training.settle()
        for each, file in zip(self._all_inputs, self._all_files, strict=True):
            with _errors_at(each.locator):
                file.settle()

    def _read_each_log(self) -> Iterator["pa.Table"]:
        """Yield the log, then its host files."""
        yield from self._join_companions(self._read_log(0, self._options))
        if len(self._inputs) == 1:
            return
        # a file that writes no date is dated by the log's local time
        options = self._options.for_companion(self._extractions[0].outcome().span)
        self._hosts = HostFiles(self._inputs, self._options.tz)
        yield from self._hosts.batches(self._extractions, lambda place: self._read_log(place, options))

    def _join_companions(self, batches: Iterator["pa.Table"]) -> Iterator["pa.Table"]:
        """Yield the batches of the main logs, with what their companions add."""
        if self._companions is None:
            return batches
        own_host = any(each.beside for each in self._inputs)
        return self._companions.joined(batches, self._main_outcome, self._read_companion, self._main_gpus, own_host)

    def _main_outcome(self) -> Outcome:
        return self._extractions[0].outcome()

    def _main_gpus(self, place: int) -> Sequence[Device]:
        """Return the GPUs of a main log, as they are called in the run."""
        devices = self._main_outcome().devices
        if self._several is not None:
            own = {device.id for device in self._several.outcomes()[place].devices}
            devices = tuple(device for device in devices if device.id in own)
        return [device for device in devices if device.scope is Scope.GPU]

    def _read_companion(self, extraction: Extraction, locator: str) -> Iterator["pa.Table"]:
        with _errors_at(locator):
            yield from extraction.batches()
        self._refuse_rejected_lines(extraction.outcome(), locator)

    def _read_log(self, place: int, options: ReadOptions) -> Iterator["pa.Table"]:
        each, file = self._inputs[place], self._files[place]
        with _errors_at(each.locator):
            extraction = each.importer.extract(file, options)
        yield from self._read(extraction, each.locator)

    def _read(self, extraction: Extraction, locator: str | None) -> Iterator["pa.Table"]:
        self._extractions.append(extraction)
        with _errors_at(locator):
            yield from extraction.batches()
        self._refuse_rejected_lines(extraction.outcome(), locator or self._inputs[0].locator)

    def _refuse_rejected_lines(self, outcome: Outcome, where: str) -> None:
        """Raise an error where a line was rejected and reading is strict."""
        rejected = [e for e in outcome.quality.rejected if e.reason != NOT_SELECTED]
        if self._strict and rejected:
            reasons = ", ".join(f"{e.rows} {e.reason}{e.at}" for e in rejected)
            raise SourceError(
                where, f"lines were rejected: {reasons}", "mend them or leave out --strict", code="lines_rejected"
            )

    def _outcomes(self) -> list[Outcome]:
        outcomes = [extraction.outcome() for extraction in self._extractions]
        if self._companions:
            outcomes[0] = replace(outcomes[0], devices=self._companions.devices(outcomes[0]))
        if self._merged:
            return outcomes
        if self._hosts is not None:
            outcomes = self._hosts.outcomes(outcomes)
        notes = [file.account.notes() for file in self._files]
        return [outcome.noted(more) if more else outcome for outcome, more in zip(outcomes, notes, strict=True)]

    def run(self) -> Run:
        """Return what is known about the run, after the last batch.

        Raises:
            SourceError: when the host log shares no time with the log, or the log holds series of the host itself.
        """
        outcomes = self._outcomes()
        if self._hosts:
            self._hosts.check_spans(outcomes)
        zones = self._hosts.zone_notes(outcomes) if self._hosts else ()
        spans = [outcomes[0].span]
        if self._companions:
            joined = self._companions.outcomes(self._inputs)
            spans += [outcome.span for outcome in joined if outcome.devices]
            outcomes += joined
        devices = sorted(
            (device for outcome in outcomes for device in outcome.devices),
            key=lambda device: (device.scope is Scope.HOST, device.node or "", device.index or 0),
        )
        gpus = {device.id for device in devices if device.scope is Scope.GPU}
        if len(gpus) > MOST_GPUS:
            what = f"it holds {len(gpus):,} GPUs; at most {MOST_GPUS:,} are read in a run"
            raise SourceError(
                self.locator, what, "give a part of them with --gpus, or a log a node", code="too_many_gpus"
            )
        rates = [rate for outcome in outcomes for device, rate in outcome.intervals.items() if device in gpus]
        trained, unused = (self._training.quality(), self._training.notes) if self._training else ([], ())
        labels, stated = self.labels, self.file_labels
        quality = merge_quality([*(outcome.quality for outcome in outcomes), *trained])
        notes = (*quality.notes, *zones, *unused, *self._facts.notes)
        quality = replace(quality, notes=notes, unfinished=self._facts.unfinished)
        run = Run(
            id=self.run_id,
            name=self.name,
            step=labels.step or stated.step,
            started=min(start for start, _ in spans),
            ended=max(end for _, end in spans),
            timezone=None if quality.synthetic_time else outcomes[0].timezone or self._options.tz,
            interval=sorted(rates)[len(rates) // 2] if rates else None,
            sources=self.sources,
            devices=tuple(devices),
            params=override_pairs(stated.params, labels.params),
            tags=override_pairs(merge_pairs(outcome.tags for outcome in outcomes), stated.tags, labels.tags),
            work=labels.find_work(quality),
            quality=quality,
        )
        run = name_copies_by_url(name_gpu_models(run, labels.gpu_model))
        return labels.look_up(run) if labels.table else run

    def columns(self) -> tuple[tuple[str, str], ...]:
        """Return headings of its tables, and the metric or attribute that each became, after the last batch."""
        return tuple(dict.fromkeys(column for each in self._extractions for column in each.outcome().columns))

    def training(self) -> "pa.Table":
        """Return the training metrics, after the last batch; empty when there are none."""
        tables = self._training.tables() if self._training else []
        return pa.concat_tables(tables).unify_dictionaries().combine_chunks() if tables else empty_training()

    def recording(self) -> Recording:
        """Read the whole run into memory."""
        batches = list(self.batches())
        run = self.run()
        series = collect_series(batches, [device.id for device in run.devices])
        return Recording(run=run, series=series, training=self.training())


@contextmanager
def _errors_at(locator: str | None) -> Iterator[None]:
    """Name the source of an error as a person does: a pipe is read from a spool, whose name means nothing to them."""
    try:
        yield
    except SourceError as error:
        raise error.at(locator or error.where) from error
