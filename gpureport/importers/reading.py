"""One run being read from its log and its host files: identity first, then batches, then the run."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from os.path import commonpath
from pathlib import Path

import pyarrow as pa

from gpureport.errors import SourceError
from gpureport.importers.base import Extraction, Input, Labels, Outcome, Placement, placed_by
from gpureport.importers.merging import Merged, joined
from gpureport.importers.nodes import bare
from gpureport.importers.raw import RawFile
from gpureport.importers.reasons import NOT_SELECTED
from gpureport.importers.source_read import SourceRead
from gpureport.metrics import Scope
from gpureport.recording import HOST, Device, Recording, Run, Source, arranged, in_time_order, no_training

_LOG_AND_HOST = 2
IMPORTER_VERSION = "3"
"""Raised whenever the same source would be read differently."""
_COMPRESSED = {".gz", ".zst", ".bz2", ".xz"}


class Reading:
    """Reads one run; the batches must be taken before the run.

    The sources are hashed while they are read. Whoever asks for the run's id earlier makes the rest be read for it.
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        placement: Placement,
        labels: Labels,
        *,
        strict: bool = False,
        as_one_run: bool = False,
    ) -> None:
        """Prepare to read; nothing is read yet.

        Args:
            inputs: the log, then files beside it.
            placement: options that select or place rows.
            labels: what a person says about the run.
            strict: whether a line that was not understood is an error.
            as_one_run: whether there may be several logs, which are one run.

        Raises:
            SourceError: when two files hold series of the same host.
        """
        if len(inputs) > _LOG_AND_HOST and not as_one_run:
            names = ", ".join(each.locator for each in inputs[1:])
            raise SourceError(names, "several host logs for one run", "give one, or join them before")
        self._strict = strict
        self._inputs = inputs
        self._files = [RawFile(each.path) for each in inputs]
        self._merged = as_one_run and len(inputs) > 1
        self._placement = placement
        self._labels = labels
        self._extractions: list[Extraction] = []
        self._several: Merged | None = None

    @property
    def locator(self) -> str:
        """What a person called its first source."""
        return self._inputs[0].locator

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each source."""
        return tuple(file.size for file in self._files)

    @property
    def work(self) -> int:
        """Bytes that are read for the batches; several logs of one run are read twice."""
        return sum(self.sizes) * (2 if self._merged else 1)

    def watch(self, seen: Callable[[int], None]) -> None:
        """Have the number of bytes told whenever some were read for the batches."""
        for file in self._files:
            file.watch = seen

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where the run comes from; what was not read yet is read to be hashed."""
        return tuple(
            Source(kind=each.importer.kind, locator=each.locator, sha256=file.sha256(), bytes=file.hashed)
            for each, file in zip(self._inputs, self._files, strict=True)
        )

    @property
    def run_id(self) -> str:
        """The run's id, from the bytes of its sources and the options that select or place rows."""
        sources = self.sources
        if self._merged:
            # the order in which logs of one run are named says nothing
            beside = {each.locator: each.beside for each in self._inputs}
            sources = tuple(sorted(sources, key=lambda source: (beside[source.locator], source.sha256)))
        return _identity(sources, self._placement)

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one device each.

        Rows of a device come in time order, unless its log has them in another; `recording.in_time_order` puts them
        right. `renamed` says of which devices the id is another one in the end.

        Raises:
            SourceError: when a source holds nothing that can be used, changed while it was read, or a line of it was
                not understood and reading is strict.
        """
        if self._merged:
            self._several = Merged(self._inputs, self._files, self._placement)
            yield from self._read(self._several, None)
        else:
            for each, file in zip(self._inputs, self._files, strict=True):
                yield from self._read(each.importer.extract(file, self._placement), each.locator)
        for each, file in zip(self._inputs, self._files, strict=True):
            _located(file.settle, each.locator)

    def _read(self, extraction: Extraction, locator: str | None) -> Iterator["pa.Table"]:
        self._extractions.append(extraction)
        try:
            yield from extraction.batches()
        except SourceError as error:
            # a pipe is read from a spool whose name means nothing to a person
            raise SourceError(locator or error.where, error.what, error.hint) from error
        rejected = [e for e in extraction.outcome().quality.rejected if e.reason != NOT_SELECTED]
        if self._strict and rejected:
            reasons = ", ".join(f"{e.rows} {e.reason}{e.at}" for e in rejected)
            where = locator or self._inputs[0].locator
            raise SourceError(where, f"lines were rejected: {reasons}", "mend them or leave out --strict")

    def _outcomes(self) -> list[Outcome]:
        outcomes = [extraction.outcome() for extraction in self._extractions]
        if self._merged:
            return outcomes
        return [outcome.noted(file.account.notes()) for outcome, file in zip(outcomes, self._files, strict=True)]

    def run(self) -> Run:
        """Return what is known about the run, after the last batch.

        Raises:
            SourceError: when the host log shares no time with the log, or the log holds series of the host itself.
        """
        outcomes = self._outcomes()
        if sum(any(device.id == HOST for device in outcome.devices) for outcome in outcomes) > 1:
            what = "the GPU log holds series of the machine already"
            raise SourceError(self._inputs[1].locator, what, "leave it out")
        if _apart(outcomes):
            what = "it covers another time than the GPU log"
            raise SourceError(self._inputs[1].locator, what, "check its clock, give --tz, or leave it out")
        devices = sorted((device for outcome in outcomes for device in outcome.devices), key=_place)
        gpus = {device.id for device in devices if device.scope is Scope.GPU}
        rates = [rate for outcome in outcomes for device, rate in outcome.intervals.items() if device in gpus]
        labels, quality = self._labels, joined([outcome.quality for outcome in outcomes])
        return Run(
            id=self.run_id,
            name=labels.name or _name(self._inputs),
            step=labels.step,
            started=outcomes[0].span[0],
            ended=outcomes[0].span[1],
            timezone=None if quality.synthetic_time else outcomes[0].timezone or self._placement.tz,
            interval=sorted(rates)[len(rates) // 2] if rates else None,
            sources=self.sources,
            devices=tuple(devices),
            params=labels.params,
            tags=labels.tags,
            work=labels.work,
            quality=quality,
        )

    def sources_read(self) -> tuple[SourceRead, ...]:
        """Return each source as given with what is known of it, after the last batch."""
        outcomes = self._outcomes() if self._several is None else self._several.outcomes()
        return tuple(map(SourceRead, self._inputs, self._files, outcomes))

    def renamed(self) -> dict[str, str]:
        """Return by their old ids the devices whose batches were handed on under another one, after the last batch."""
        return {old: new for each in self._extractions for old, new in each.outcome().renamed.items()}

    def training(self) -> "pa.Table":
        """Return training metrics; logs of hardware hold none."""
        return no_training()

    def rejects(self) -> bytes:
        """Return rejected lines of all sources as zstd-compressed JSON lines, after the last batch."""
        return b"".join(extraction.outcome().rejects for extraction in self._extractions)

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
            in_time_order(pa.concat_tables(kept[device.id], promote_options="default"), device.id)
            for device in run.devices
            if device.id in kept
        ]
        return Recording(run=run, series=arranged(tables))


def _identity(sources: Sequence[Source], placement: Placement) -> str:
    """Return the run's id: from the bytes of its sources and the options that select or place rows."""
    hasher = sha256()
    for source in sources:
        hasher.update(f"{source.kind} {source.sha256}\n".encode())
    hasher.update(placed_by(placement).encode())
    return hasher.hexdigest()[:16]


def _name(inputs: Sequence[Input]) -> str:
    """Return a run's name: its log's, or its folder's where the log is called what nvidia-smi logs are called."""
    logs = [each for each in inputs if not each.beside]
    if logs[0].locator == "-":
        return "standard input"
    if len(logs) > 1:
        return Path(commonpath([Path(log.locator).resolve().parent for log in logs])).name or bare(logs[0].path.name)
    path = Path(logs[0].locator)
    folder = path.resolve().parent.name
    name = bare(path.name) if path.suffix in _COMPRESSED else path.stem
    return folder if name in {"nvidia-smi", "nvidia_smi", "gpu"} and folder else name


def _place(device: Device) -> tuple[bool, str, int]:
    """Return where a device comes in its run."""
    return device.scope is Scope.HOST, device.node or "", device.index or 0


def _located(settle: Callable[[], None], locator: str) -> None:
    try:
        settle()
    except SourceError as error:
        raise SourceError(locator, error.what, error.hint) from error


def _apart(outcomes: Sequence[Outcome]) -> bool:
    """Return whether a host log shares no time with the log."""
    (start, end), *others = [outcome.span for outcome in outcomes]
    return any(last < start or first > end for first, last in others)
