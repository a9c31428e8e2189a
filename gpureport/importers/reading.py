"""Reads one run from its logs: first its identity, then its batches, then the run itself."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from os.path import commonpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpureport.data_quality import merge_quality
from gpureport.errors import SettingsError, SourceError
from gpureport.importers import TRAINING
from gpureport.importers.account import NOT_SELECTED
from gpureport.importers.clock import load_zone
from gpureport.importers.protocol import Input, Outcome, ReadOptions
from gpureport.importers.source_text import FileState, RawFile, find_state
from gpureport.importers.sources import Labels, derive_name, identify, read_label_files
from gpureport.metrics import Scope
from gpureport.names import merge_pairs, override_pairs, read_environment_labels
from gpureport.parsing import MOST_GPUS
from gpureport.record_folder import RUN_FILE, RecordedRun, name_log, read_run_file
from gpureport.recording import Recording, Run, Source, collect_series, empty_training
from gpureport.regular_files import is_folder, name_by_url

if TYPE_CHECKING:
    from gpureport.importers.surveys import Log
    from gpureport.importers.training import Training

IMPORTER_VERSION = "16"
"""Increase this version whenever a change affects how a source is read."""
surveyed: "dict[tuple[Path, FileState, str, str], Log | None]" = {}
"""Logs that were read to find their runs, kept until they are read as part of a run."""


def survey_key(given: Input, options: ReadOptions) -> tuple[Path, FileState, str, str]:
    return given.path.resolve(), find_state(given.path), given.importer.kind, repr(options)


def find_runs(
    source: str | Path, host: Sequence[str | Path] = (), kind: str | None = None, options: ReadOptions | None = None
) -> list[list[Input]]:
    if not host and not is_folder(source):
        return [[identify(str(source), kind)]]
    from gpureport.importers.runs import find_source_runs

    return find_source_runs([source], host, kind=kind, options=options).runs[0]


class Reading:
    """Reads a run from its logs and hashes them; all batches must be read before the run."""

    def __init__(
        self,
        inputs: Sequence[Input],
        options: ReadOptions,
        labels: Labels,
        *,
        strict: bool = False,
        training: Sequence[Input] = (),
    ) -> None:
        self._inputs = sorted(inputs, key=lambda each: each.companion_of is not None)
        self._files = {each: RawFile(each.path) for each in self._inputs}
        self._several, self._strict = sum(not each.beside for each in inputs) > 1, strict
        self._options, self.file_labels, self._notes, self._unfinished = read_run_files(inputs, options)
        self.labels, self.locator, self.longer_name = labels, self._inputs[0].locator, ""
        self._trained = {each: RawFile(each.path) for each in training}
        self._outcomes: list[Outcome] = []
        self._training: dict[Input, Training] = {}

    @property
    def name(self) -> str:
        return self.labels.name or self.longer_name or self.file_labels.name or _name_after_logs(self._inputs)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(file.size for file in self._files.values())

    @property
    def sources(self) -> tuple[Source, ...]:
        read = self._training if self._outcomes else self._trained
        return tuple(
            Source(kind=each.importer.kind, locator=each.locator, sha256=file.sha256(), bytes=file.hashed)
            for each, file in (self._files | {each: self._trained[each] for each in read}).items()
        )

    @property
    def run_id(self) -> str:
        # the order in which the user names the logs of one run does not matter
        lines = sorted((each.beside, file.sha256(), each.importer.kind) for each, file in self._files.items())
        return compute_run_id((f"{kind} {digest}" for _, digest, kind in lines), self._options)

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables, each for one device, in time order if the log is in time order."""
        self._outcomes, self._training = [], {}
        first, *others = self._inputs
        held = surveyed.get(survey_key(first, self._options)) if surveyed else None
        if self._several or (held is not None and held.held):
            yield from self._read_logs(self._inputs if self._several else [first])
        else:
            with errors_at(self.locator):
                extraction = first.importer.extract(self._files[first], self._options)
                yield from extraction.batches()
            self._outcomes = [extraction.outcome()]
            self._refuse_rejected_lines(self._outcomes[0], self.locator)
        if others and not self._several:
            if self._outcomes[0].has_host:
                what = "the GPU log already contains series about the machine"
                raise SourceError(others[0].locator, what, "leave it out", code="host_in_gpu_log")
            yield from self._read_logs(others)
        for each in self._trained:
            self._read_training(each)
        for given, file in (self._files | self._trained).items():
            with errors_at(given.locator):
                file.settle()

    def _read_logs(self, inputs: Sequence[Input]) -> Iterator["pa.Table"]:
        logs = [self._read_log(each, self._options) for each in inputs if not each.beside]
        spans = [log.span for log in logs] or [self._outcomes[0].span]
        # a file without dates gets its dates from the local time of the GPU logs
        options = self._options.for_companion((min(start for start, _ in spans), max(end for _, end in spans)))
        logs += [self._read_log(each, options) for each in inputs if each.beside]
        from gpureport.importers.joining import join_logs

        tables, outcomes = join_logs(logs, self._options.tz)
        self._outcomes += outcomes
        yield from tables.values()

    def _read_log(self, each: Input, options: ReadOptions) -> "Log":
        from gpureport.importers.surveys import Log

        log = surveyed.pop(survey_key(each, options), None) or Log(each, options, self._files[each])
        log.given, self._files[each] = each, log.file
        self._refuse_rejected_lines(log.outcome, each.locator)
        if self._outcomes:
            self._check_times(each, log.outcome)
            zones = [(self.locator, self._outcomes[0].timezone), (each.locator, log.outcome.timezone)]
            if any(zone for _, zone in zones):
                told = "; ".join(f"{where} {zone or self._options.tz or 'local time'}" for where, zone in zones)
                self._notes.append(f"Zones of the timestamps: {told}.")
        return log

    def _check_times(self, each: Input, outcome: Outcome) -> None:
        from gpureport.importers.surveys import check_clocks, check_shared_time

        check_clocks(self.locator, self._outcomes[0], each.locator, outcome, self._options.tz)
        check_shared_time(each.locator, outcome.span, self._outcomes[0].span)

    def _read_training(self, each: Input) -> None:
        try:
            start = self._outcomes[0].span[0]
            read = TRAINING["training"].read(self._trained[each], self._options, start, each.locator)
            if read.dated:
                self._check_times(each, read.outcome)
        except SourceError as error:
            if not each.beside:
                raise error.at(each.locator) from error
            self._notes.append(f"{each.locator} is next to the log, but was not used: {error.what}; {error.hint}.")
            return
        self._refuse_rejected_lines(read.outcome, each.locator)
        self._training[each] = read

    def _refuse_rejected_lines(self, outcome: Outcome, where: str) -> None:
        rejected = [entry for entry in outcome.quality.rejected if entry.reason != NOT_SELECTED]
        if self._strict and rejected:
            reasons = ", ".join(f"{entry.rows} {entry.reason}{entry.at}" for entry in rejected)
            hint = "correct them, or leave out --strict"
            raise SourceError(where, f"lines were rejected: {reasons}", hint, code="lines_rejected")

    def run(self) -> Run:
        outcomes, logs = self._outcomes, self._training.values()
        devices = sorted(
            (device for outcome in outcomes for device in outcome.devices),
            key=lambda device: (device.scope is Scope.HOST, device.node or "", device.index or 0),
        )
        gpus = {device.id for device in devices if device.scope is Scope.GPU}
        added = [each.span for each in outcomes[1:] if any(device.id in gpus for device in each.devices)]
        spans = [outcomes[0].span, *added]
        if len(gpus) > MOST_GPUS:
            what = f"it has {len(gpus):,} GPUs, but a run may have at most {MOST_GPUS:,}"
            raise SourceError(
                self.locator, what, "select some with --gpus, or give one log per node", code="too_many_gpus"
            )
        rates = sorted(rate for outcome in outcomes for device, rate in outcome.intervals.items() if device in gpus)
        quality = merge_quality([each.quality for each in (*outcomes, *(read.outcome for read in logs))])
        # objects in a bucket are named by their URL, not by the local copy
        notes = map(name_by_url, (*quality.notes, *dict.fromkeys(self._notes)))
        quality = replace(quality, notes=tuple(notes), unfinished=self._unfinished)
        run = Run(
            id=self.run_id,
            name=self.name,
            step=self.file_labels.step,
            started=min(start for start, _ in spans),
            ended=max(end for _, end in spans),
            timezone=None if quality.synthetic_time else outcomes[0].timezone or self._options.tz,
            interval=rates[len(rates) // 2] if rates else None,
            sources=tuple(replace(each, locator=name_by_url(each.locator)) for each in self.sources),
            devices=tuple(devices),
            params=self.file_labels.params,
            tags=override_pairs(merge_pairs(outcome.tags for outcome in outcomes), self.file_labels.tags),
            work=None if any(read.is_timed for read in logs) else next((read.work for read in logs if read.work), None),
            quality=quality,
        )
        return self.labels.applied(run)

    def columns(self) -> tuple[tuple[str, str], ...]:
        return tuple(dict.fromkeys(column for outcome in self._outcomes for column in outcome.columns))

    def training(self) -> "pa.Table":
        tables = [read.table for read in self._training.values()]
        return pa.concat_tables(tables).unify_dictionaries().combine_chunks() if tables else empty_training()

    def recording(self: Any) -> Recording:
        batches = list(self.batches())
        run = self.run()
        series = collect_series(batches, [device.id for device in run.devices])
        return Recording(run=run, series=series, training=self.training())


@contextmanager
def errors_at(locator: str) -> Iterator[None]:
    """In errors, name sources as the user did: a pipe's spooled copy has a meaningless name."""
    try:
        yield
    except SourceError as error:
        raise error.at(locator) from error


def lengthen_equal_names(readings: Sequence[Reading]) -> None:
    from gpureport.importers import runs

    names = runs.lengthen_equal_names([(each.name, each.locator) for each in readings])
    for each, name in zip(readings, names, strict=True):
        each.longer_name = name


def _name_after_logs(inputs: Sequence[Input]) -> str:
    logs = [each.locator for each in inputs if not each.beside and each.companion_of is None]
    if logs[0] == "-":
        return "standard input"
    # several logs are named after their common folder
    folder = Path(commonpath([Path(log).resolve().parent for log in logs]))
    return derive_name(logs[0] if len(logs) == 1 or not folder.name else f"{folder}/gpu")


def compute_run_id(sources: Iterable[str], options: ReadOptions) -> str:
    later = {name: getattr(options, name) for name in ("columns", "interval", "gpus_per_tick", "map", "as_logged")}
    placed = [f"tz={options.tz or ''} gpus={options.gpus or ''}"]
    placed += [f"{name}={value}" for name, value in later.items() if value]
    return sha256("".join(f"{line}\n" for line in (*sources, *placed)).encode()).hexdigest()[:16]


def read_run_files(inputs: Sequence[Input], options: ReadOptions) -> tuple[ReadOptions, Labels, list[str], bool]:
    """Return options, labels and notes from files beside a run's logs, and whether the run is unfinished."""
    recorded = dict.fromkeys(each.path.parent for each in inputs if name_log(each.path) and each.locator != "-")
    found = {folder: read_run_file(folder) for folder in recorded if (folder / RUN_FILE).is_file()}
    runs = [run for run in found.values() if run is not None]
    damaged = "is damaged, so its params, zone and exit code are unknown."
    notes = [f"{folder / RUN_FILE} {damaged}" for folder, run in found.items() if run is None]
    for run in runs:
        notes += run.notes
        if run.ended is None:
            notes.append("The recorder ended before the job, or is still recording, so the exit code is unknown.")
        elif run.exit_code:
            notes.append(f"The job ended with exit code {run.exit_code}.")
    if runs and options.tz is None:
        zone, note = _choose_zone(list(dict.fromkeys(run.timezone for run in runs)))
        notes += [note] if note else []
        # a log from another origin has no zone
        if all(each.path.parent in found for each in inputs if not each.beside):
            options = replace(options, tz=zone)
    # a temporary folder with data from a pipe contains no labels
    logs = [each.path for each in inputs if not each.beside and Path(each.locator) == each.path]
    labels = [read_label_files(log, notes) for log in logs]
    # use the name that all logs agree on, or none if two logs have different names
    names, steps = ({getattr(each, key) for each in labels} or {None} for key in ("name", "step"))
    stated = Labels(
        name=names.pop() if len(names) == 1 else None,
        step=steps.pop() if len(steps) == 1 else None,
        params=override_pairs(merge_pairs(run.params for run in runs), merge_pairs(each.params for each in labels)),
        tags=override_pairs(merge_pairs(map(_list_tags, runs)), merge_pairs(each.tags for each in labels)),
    )
    return options, stated, list(dict.fromkeys(notes)), any(run.ended is None for run in runs)


def _choose_zone(named: Sequence[str]) -> tuple[str | None, str]:
    if len(named) > 1:
        return None, f"Recordings were made in different time zones ({', '.join(named)}), so times are not converted."
    # the official names of whole-hour zones have inverted signs
    if hours := re.fullmatch(r"([+-])(\d\d):00", zone := named[0]):
        zone = f"Etc/GMT{'-' if hours[1] == '+' else '+'}{int(hours[2])}" if int(hours[2]) else "UTC"
    try:
        if zone:
            load_zone(zone)
    except SettingsError:
        return None, f"{RUN_FILE} names the zone {named[0]}, which is unknown here; give --tz."
    return zone or None, ""


def _list_tags(run: RecordedRun) -> Iterable[tuple[str, str]]:
    code = "" if run.exit_code is None else str(run.exit_code)
    pairs = (("command", shlex.join(run.command).replace("'***'", "***")), ("exit_code", code), ("host", run.host))
    yield from (pair for pair in pairs if pair[1])
    # older recordings contain Slurm's variables as params instead of tags
    yield from (dict(read_environment_labels(dict(run.params))) | dict(run.tags)).items()
