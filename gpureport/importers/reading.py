"""One run being read from its log and its host files: identity first, then batches, then the run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.errors import SourceError
from gpureport.importers.base import NOT_SELECTED, Extraction, Importer, Labels, Outcome, Placement
from gpureport.importers.delimited.pieces import digest
from gpureport.metrics import Scope
from gpureport.quality import Quality
from gpureport.recording import Recording, Run, Source, arranged

if TYPE_CHECKING:
    import pyarrow as pa

_LOG_AND_HOST = 2
IMPORTER_VERSION = "1"
"""Raised whenever the same source would be read differently."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file, the importer that recognised it, and what a person called it (`-` for standard input)."""

    path: Path
    importer: Importer
    locator: str


class Reading:
    """Reads one run; the batches must be taken before the run."""

    def __init__(self, inputs: Sequence[Input], placement: Placement, labels: Labels, *, strict: bool = False) -> None:
        """Hash the sources; nothing is parsed yet.

        Args:
            inputs: the log, then files beside it.
            placement: options that select or place rows.
            labels: what a person says about the run.
            strict: whether a line that was not understood is an error.

        Raises:
            SourceError: when two files hold series of the same host.
        """
        if len(inputs) > _LOG_AND_HOST:
            names = ", ".join(each.locator for each in inputs[1:])
            raise SourceError(names, "several host logs for one run", "give one, or join them before")
        self._strict = strict
        self._inputs = inputs
        self._placement = placement
        self._labels = labels
        self.sources = tuple(
            Source(kind=each.importer.kind, locator=each.locator, sha256=digest(each.path)) for each in inputs
        )
        self.run_id = _identity(self.sources, placement)
        self._extractions: list[Extraction] = []
        self._columns: dict[str, None] = {}

    def batches(self) -> Iterator["pa.Table"]:
        """Yield tables of one device each, in time order within a device.

        Raises:
            SourceError: when a source holds nothing that can be used, or a line of it was not understood and
                reading is strict.
        """
        for each in self._inputs:
            extraction = each.importer.extract(each.path, self._placement)
            self._extractions.append(extraction)
            try:
                yield from extraction.batches()
            except SourceError as error:
                # a pipe is read from a spool whose name means nothing to a person
                raise SourceError(each.locator, error.what, error.hint) from error
            rejected = [e for e in extraction.outcome().quality.rejected if e.reason != NOT_SELECTED]
            if self._strict and rejected:
                reasons = ", ".join(f"{e.rows} {e.reason} (first at line {e.first_line})" for e in rejected)
                raise SourceError(each.locator, f"lines were rejected: {reasons}", "mend them or leave out --strict")

    def run(self) -> Run:
        """Return what is known about the run, after the last batch.

        Raises:
            SourceError: when the host log shares no time with the log.
        """
        outcomes = [extraction.outcome() for extraction in self._extractions]
        if _apart(outcomes):
            what = "it covers another time than the GPU log"
            raise SourceError(self._inputs[1].locator, what, "check its clock, give --tz, or leave it out")
        gpus = [rate for outcome in outcomes for device, rate in outcome.intervals.items() if device.startswith("gpu:")]
        labels = self._labels
        devices = sorted((d for o in outcomes for d in o.devices), key=lambda d: (d.scope is Scope.HOST, d.index or 0))
        return Run(
            id=self.run_id,
            name=labels.name or _name(self._inputs[0]),
            step=labels.step,
            started=outcomes[0].span[0],
            ended=outcomes[0].span[1],
            timezone=self._placement.tz,
            interval=sorted(gpus)[len(gpus) // 2] if gpus else None,
            sources=self.sources,
            devices=tuple(devices),
            params=labels.params,
            tags=labels.tags,
            work=labels.work,
            quality=_joined([outcome.quality for outcome in outcomes]),
        )

    def rejects(self) -> bytes:
        """Return rejected lines of all sources as zstd-compressed JSON lines, after the last batch."""
        return b"".join(extraction.outcome().rejects for extraction in self._extractions)

    def recording(self) -> Recording:
        """Read the whole run into memory."""
        kept: dict[str, list[pa.Table]] = {}
        for batch in self.batches():
            kept.setdefault(batch.column("device")[0].as_py(), []).append(batch)
        run = self.run()
        tables = [table for device in run.devices for table in kept.get(device.id, [])]
        return Recording(run=run, series=arranged(tables))


def _identity(sources: Sequence[Source], placement: Placement) -> str:
    """Return the run's id: from the bytes of its sources and the options that select or place rows."""
    hasher = sha256()
    for source in sources:
        hasher.update(f"{source.kind} {source.sha256}\n".encode())
    hasher.update(f"tz={placement.tz or ''} gpus={placement.gpus or ''}\n".encode())
    for name in ("columns", "interval", "gpus_per_tick"):
        value = getattr(placement, name)
        if value is not None:
            hasher.update(f"{name}={value}\n".encode())
    return hasher.hexdigest()[:16]


def _name(log: Input) -> str:
    """Return a run's name: its log's, or its folder's where the log is called what nvidia-smi logs are called."""
    if log.locator == "-":
        return "standard input"
    path = Path(log.locator)
    folder = path.resolve().parent.name
    return folder if path.stem in {"nvidia-smi", "nvidia_smi", "gpu"} and folder else path.stem


def _apart(outcomes: Sequence[Outcome]) -> bool:
    """Return whether a host log shares no time with the log."""
    (start, end), *others = [outcome.span for outcome in outcomes]
    return any(last < start or first > end for first, last in others)


def _joined(qualities: Sequence[Quality]) -> Quality:
    """Return the account of all sources of a run together; gaps and coverage are those of the log."""
    first = qualities[0]
    return replace(
        first,
        lines=sum(quality.lines for quality in qualities),
        rows_kept=sum(quality.rows_kept for quality in qualities),
        rejected=tuple(entry for quality in qualities for entry in quality.rejected),
        headers=sum(quality.headers for quality in qualities),
        noise=sum(quality.noise for quality in qualities),
        events=sum(quality.events for quality in qualities),
        absent_cells=tuple(entry for quality in qualities for entry in quality.absent_cells),
        gaps=tuple(gap for quality in qualities for gap in quality.gaps),
        duplicates=sum(quality.duplicates for quality in qualities),
        clock_steps=tuple(step for quality in qualities for step in quality.clock_steps),
        notes=tuple(note for quality in qualities for note in quality.notes),
    )
