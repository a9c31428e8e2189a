"""One run being read from its logs: its identity first, then batches, then the run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from gpureport.data_quality import merge_quality
from gpureport.errors import SourceError
from gpureport.importers import run_facts
from gpureport.importers.protocol.importer import (
    Input,
    Labels,
    Outcome,
    ReadOptions,
    TrainingFile,
    name_gpu_models,
)
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED
from gpureport.importers.source_text import RawFile
from gpureport.importers.sources import identify
from gpureport.importers.surveys import Log, Tables, check_time_bases, format_span, read_devices, take_survey
from gpureport.label_tags import merge_pairs, override_pairs
from gpureport.limits import MOST_GPUS
from gpureport.metrics import Scope
from gpureport.recording import Recording, Run, Source
from gpureport.regular_files import is_folder
from gpureport.series_table import collect_series, empty_training

if TYPE_CHECKING:
    from gpureport.importers.training import Training

IMPORTER_VERSION = "14"
"""Raised whenever the same source would be read differently."""


def find_runs(
    source: str | Path,
    host: Sequence[str | Path] = (),
    kind: str | None = None,
    options: ReadOptions | None = None,
) -> list[list[Input]]:
    """Return the runs a file, a folder or `-` holds, each as its main logs, its companions and the files beside it.

    In a folder and those below, logs of one machine and the same minutes are one run, and so is a log a node, with the
    host logs of its time. What a person names with `host` wins over what is found; `kind` names the importer that reads
    a file whatever its content looks like.

    Raises:
        SourceError: when there is no log, or a file is of no known kind.
    """
    if not host and not is_folder(source):
        return [[identify(str(source), kind=kind)]]
    from gpureport.importers.runs import find_source_runs  # noqa: PLC0415 - most sources are files

    return find_source_runs([source], host, kind=kind, options=options).runs[0]


class Reading:
    """Reads one run from its logs; the batches must be taken before the run.

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
        """Prepare to read the log, or several that are one run, then files beside it and logs that add to it.

        With `strict`, a line that was not understood is an error; with `as_one_run`, even one log and those beside it
        are joined as logs of one run.
        """
        own = [each for each in inputs if each.companion_of is None]
        self._own, self._mains = len(own), sum(not each.beside for each in own)
        self._inputs = [*own, *(each for each in inputs if each.companion_of is not None)]
        self._files = [RawFile(each.path) for each in self._inputs]
        self._merged = (as_one_run and len(own) > 1) or self._mains > 1
        self._strict = strict
        self._facts = run_facts.read_run_files(inputs, options)
        self._options = self._facts.options
        self.labels, self.file_labels = labels, self._facts.labels
        self.locator, self.longer_name = self._inputs[0].locator, ""
        self._trained = [(each, RawFile(each.path)) for each in training]
        self._outcomes: list[Outcome] = []
        self._joined: list[Outcome] = []
        self._training: list[Training] = []
        self._unused: dict[str, str] = {}
        self._notes: list[str] = []

    @property
    def name(self) -> str:
        """The name a person gave it, here or in a file beside its log, else one derived from its log."""
        stated = self.labels.name or self.longer_name or self.file_labels.name
        return stated or run_facts.name_after_logs(self._inputs)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each source that makes the run's identity; all are read for the batches."""
        return tuple(file.size for file in self._files)

    def watch(self, seen: Callable[[int], None]) -> None:
        """Call `seen` with the number of bytes whenever some were read for the batches."""
        for file in self._files:
            file.watch = seen

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where the run comes from; what was not read yet is read to be hashed."""
        logs = [(each.importer.kind, each.locator, file) for each, file in zip(self._inputs, self._files, strict=True)]
        trained = [("training", each.locator, file) for each, file in self._trained if each.locator not in self._unused]
        return tuple(
            Source(kind=kind, locator=locator, sha256=file.sha256(), bytes=file.hashed)
            for kind, locator, file in (*logs, *trained)
        )

    @property
    def run_id(self) -> str:
        """The run's id, from the bytes of its logs and the options that select or place rows."""
        lines = [
            (each.beside, file.sha256(), each.importer.kind)
            for each, file in zip(self._inputs, self._files, strict=True)
        ]
        if self._merged or self._own < len(self._inputs):
            # the order in which logs of one run are named says nothing
            lines.sort(key=lambda line: line[:2])
        options = self._options
        if options.columns is not None or options.interval is not None:
            options = self._drop_unused_options(options)
        return run_facts.compute_run_id((f"{kind} {sha256}" for _, sha256, kind in lines), options)

    def _drop_unused_options(self, options: ReadOptions) -> ReadOptions:
        """Return the options without those that no log uses, as far as an importer can tell by its beginning."""
        every = [
            drop(file, options) if (drop := getattr(each.importer, "drop_unused_options", None)) else options
            for each, file in zip(self._inputs, self._files, strict=True)
            if not each.beside
        ]
        return replace(
            options,
            columns=options.columns if any(own.columns for own in every) else None,
            interval=options.interval if any(own.interval for own in every) else None,
        )

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one device each.

        Rows of a device come in time order, unless its log has them in another; `series_table.sort_by_time` puts them
        right.

        Raises:
            SourceError: when a source holds nothing usable, changes meanwhile, or has rejected lines and reading is
                strict; when host logs hold the same metric, or their times cannot be compared with those of the log.
        """
        held = None if self._merged else take_survey(self._inputs[0], self._options)
        if self._merged:
            yield from self._join_mains()
        elif held is None and self._own == len(self._inputs):
            yield from self._stream()
        else:
            log = self._read_log(0, self._options, held)
            self._outcomes = [log.outcome.noted(log.file.account.notes())]
            yield from self._add_companions(log.tables, [set(log.tables)])
        if not self._merged and self._own > 1:
            yield from self._read_hosts()
        if self._trained:
            self._read_training()
        read = [(each.locator, file) for each, file in zip(self._inputs, self._files, strict=True)]
        for locator, file in (*read, *((each.locator, file) for each, file in self._trained)):
            with _errors_at(locator):
                file.settle()

    def _stream(self) -> Iterator["pa.Table"]:
        """Yield the only log as it is read."""
        each, file = self._inputs[0], self._files[0]
        with _errors_at(each.locator):
            extraction = each.importer.extract(file, self._options)
            yield from extraction.batches()
        outcome = extraction.outcome()
        self._refuse_rejected_lines(outcome, each.locator)
        self._outcomes = [outcome.noted(file.account.notes())]

    def _read_log(self, place: int, options: ReadOptions, held: Log | None = None) -> Log:
        """Return one log, all of it; one that was read already gives its bytes for those of the source."""
        each = self._inputs[place]
        log = held or take_survey(each, options, held=False) or Log(each, options, self._files[place])
        if log.file is not self._files[place]:
            if (seen := self._files[place].watch) is not None:
                seen(log.file.size)
            self._files[place] = log.file
        if not self._merged or each.companion_of is not None:
            self._refuse_rejected_lines(log.outcome, each.locator)
        return log

    def _join_mains(self) -> Iterator["pa.Table"]:
        """Yield the main logs and those beside them as one, with what companions add."""
        from gpureport.importers.joining import JoinedLogs  # noqa: PLC0415 - most runs have one log

        logs = [self._read_log(place, self._options) for place in range(self._mains)]
        starts, ends = zip(*(log.span for log in logs), strict=True)
        options = self._options.for_companion((min(starts), max(ends)))
        logs += [self._read_log(place, options) for place in range(self._mains, self._own)]
        joined = JoinedLogs(logs, self._options.tz)
        if self._own == len(self._inputs):
            yield from joined.batches()
            self._outcomes = [joined.outcome()]
        else:
            tables = read_devices(joined.batches())
            self._outcomes = [joined.outcome()]
            yield from self._add_companions(tables, [set(own.values()) for own in joined.names])
        self._refuse_rejected_lines(self._outcomes[0], self.locator)

    def _add_companions(self, tables: Tables, owners: Sequence[set[str]]) -> Iterator["pa.Table"]:
        """Yield the tables of the main logs, by devices, with what companions add; `owners` are each log's devices."""
        if self._own < len(self._inputs):
            from gpureport.importers.joining import join_companions  # noqa: PLC0415 - most runs have none

            mains = [each.companion_of or 0 for each in self._inputs[self._own :]]
            logs = [
                (self._read_log(place, self._options), self._inputs[main].locator, owners[main])
                for place, main in enumerate(mains, self._own)
            ]
            has_host = any(each.beside for each in self._inputs)
            self._outcomes[0], self._joined = join_companions(tables, self._outcomes[0], logs, has_host=has_host)
        yield from tables.values()

    def _read_hosts(self) -> Iterator["pa.Table"]:
        """Yield the series of the machine from the host files of a log: one as it is, several as one series."""
        inputs, main = self._inputs[: self._own], self._outcomes[0]
        # a file that writes no date is dated by the log's local time
        options = self._options.for_companion(main.span)
        hosts = [self._read_log(place, options) for place in range(1, self._own)]
        if main.has_host:
            what = "the GPU log holds series of the machine already"
            raise SourceError(inputs[1].locator, what, "leave it out", code="host_in_gpu_log")
        outcomes = [main, *(log.outcome for log in hosts)]
        check_time_bases(inputs, outcomes, self._options.tz)
        for log in hosts:
            _check_shared_time(log.given.locator, log.span, main.span)
        if any(outcome.timezone for outcome in outcomes):
            tz = self._options.tz
            local = "names no zone" if tz is None else f"names none, read as {tz}"
            said = (f"states {outcome.timezone}" if outcome.timezone else local for outcome in outcomes)
            zones = "; ".join(f"{each.locator} {zone}" for each, zone in zip(inputs, said, strict=True))
            self._notes = [f"Zones of the time stamps: {zones}."]
        if len(hosts) == 1:
            yield from hosts[0].tables.values()
        else:
            from gpureport.importers.joining import join_hosts  # noqa: PLC0415 - most runs have one at most

            table, outcomes[1:] = join_hosts(hosts)
            yield table
        notes = (log.file.account.notes() for log in hosts)
        self._outcomes += [outcome.noted(more) for outcome, more in zip(outcomes[1:], notes, strict=True)]

    def _read_training(self) -> None:
        """Read what the training loop wrote; a file found beside the log is left out where it cannot be read."""
        from gpureport.importers.training import TrainingLog  # noqa: PLC0415 - most runs have none

        base, self._training = self._outcomes[0], []
        for each, file in self._trained:
            try:
                read = TrainingLog().read(file, self._options, base.span[0], each.locator)
                if read.dated:
                    check_time_bases([self._inputs[0], each], [base, read.outcome], self._options.tz)
                    _check_shared_time(each.locator, read.outcome.span, base.span)
            except SourceError as error:
                if not each.beside:
                    raise error.at(each.locator) from error
                why = f"{error.what}; {error.hint}"
                self._unused[each.locator] = f"{each.locator} lies beside the log, but is not used: {why}."
                continue
            self._refuse_rejected_lines(read.outcome, each.locator)
            self._training.append(read)

    def _refuse_rejected_lines(self, outcome: Outcome, where: str) -> None:
        """Raise an error where a line was rejected and reading is strict."""
        rejected = [entry for entry in outcome.quality.rejected if entry.reason != NOT_SELECTED]
        if self._strict and rejected:
            reasons = ", ".join(f"{entry.rows} {entry.reason}{entry.at}" for entry in rejected)
            hint = "mend them or leave out --strict"
            raise SourceError(where, f"lines were rejected: {reasons}", hint, code="lines_rejected")

    def run(self) -> Run:
        """Return what is known about the run, after the last batch.

        Raises:
            SourceError: when it holds too many GPUs.
        """
        outcomes = [*self._outcomes, *self._joined]
        spans = [self._outcomes[0].span, *(outcome.span for outcome in self._joined if outcome.devices)]
        devices = sorted(
            (device for outcome in outcomes for device in outcome.devices),
            key=lambda device: (device.scope is Scope.HOST, device.node or "", device.index or 0),
        )
        gpus = {device.id for device in devices if device.scope is Scope.GPU}
        if len(gpus) > MOST_GPUS:
            what = f"it holds {len(gpus):,} GPUs; at most {MOST_GPUS:,} are read in a run"
            hint = "give a part of them with --gpus, or a log a node"
            raise SourceError(self.locator, what, hint, code="too_many_gpus")
        rates = sorted(rate for outcome in outcomes for device, rate in outcome.intervals.items() if device in gpus)
        labels, stated = self.labels, self.file_labels
        quality = merge_quality([each.quality for each in (*outcomes, *(read.outcome for read in self._training))])
        notes = (*quality.notes, *self._notes, *self._unused.values(), *self._facts.notes)
        quality = replace(quality, notes=notes, unfinished=self._facts.unfinished)
        run = Run(
            id=self.run_id,
            name=self.name,
            step=labels.step or stated.step,
            started=min(start for start, _ in spans),
            ended=max(end for _, end in spans),
            timezone=None if quality.synthetic_time else outcomes[0].timezone or self._options.tz,
            interval=rates[len(rates) // 2] if rates else None,
            sources=self.sources,
            devices=tuple(devices),
            params=override_pairs(stated.params, labels.params),
            tags=override_pairs(merge_pairs(outcome.tags for outcome in outcomes), stated.tags, labels.tags),
            work=labels.find_work(quality) or next((read.work for read in self._training if read.work), None),
            quality=quality,
        )
        return labels.look_up(run_facts.name_copies_by_url(name_gpu_models(run, labels.gpu_model)))

    def columns(self) -> tuple[tuple[str, str], ...]:
        """Return headings of its tables, and the metric or attribute that each became, after the last batch."""
        return tuple(dict.fromkeys(column for outcome in self._outcomes for column in outcome.columns))

    def training(self) -> "pa.Table":
        """Return the training metrics, after the last batch; empty when there are none."""
        tables = [read.table for read in self._training]
        return pa.concat_tables(tables).unify_dictionaries().combine_chunks() if tables else empty_training()

    def recording(self) -> Recording:
        """Read the whole run into memory."""
        batches = list(self.batches())
        run = self.run()
        series = collect_series(batches, [device.id for device in run.devices])
        return Recording(run=run, series=series, training=self.training())


def _check_shared_time(locator: str, span: tuple[int, int], main: tuple[int, int]) -> None:
    """Raise an error where a file shares no time with the GPU log that it is joined to."""
    if span[1] < main[0] or span[0] > main[1]:
        what = f"it covers another time than the GPU log ({format_span(span)}; the GPU log: {format_span(main)})"
        raise SourceError(locator, what, "check its clock, give --tz, or leave it out", code="no_shared_time")


@contextmanager
def _errors_at(locator: str) -> Iterator[None]:
    """Name the source of an error as a person does: a pipe is read from a spool, whose name means nothing to them."""
    try:
        yield
    except SourceError as error:
        raise error.at(locator) from error


def lengthen_equal_names(readings: Sequence[Reading]) -> None:
    """Name runs that are called alike after their logs, or by a file of labels, by as much of the path as differs."""
    given = [(run_facts.derive_name(each.locator), each.file_labels.name) for each in readings]
    named = [
        (each.name, each.locator if each.name in names else None) for each, names in zip(readings, given, strict=True)
    ]
    for each, name in zip(readings, run_facts.lengthen_equal_names(named), strict=True):
        each.longer_name = "" if name == each.name else name
