"""Defines importers, which recognise a source by its content and yield series in batches."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from gpureport.data_quality import Quality
from gpureport.importers.clock import load_zone, local_span
from gpureport.importers.source_text import RawFile
from gpureport.metrics import find_gpu
from gpureport.names import override_pairs
from gpureport.recording import HOST, Device, Run, Work

if TYPE_CHECKING:
    from gpureport.importers.extraction import Extraction
    from gpureport.importers.labels import LabelTable
    from gpureport.importers.tools.mapped import Mapping

HEAD_BYTES = 64 * 1024
"""How much of a source an importer sees to recognise it."""
SEARCHED_BYTES = 4 * 2**20
"""How much it sees if that is not enough, since the output of a job may precede a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options that select rows or affect their times, and are therefore part of the identity of a run.

    `columns` has the query fields of a log without a header, `interval` the seconds between ticks in a log without
    stamps. `around` is not an option but the local time span of the GPU log beside a file without dates.
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
class Labels:
    """Facts about a run from a user or a file beside the logs; not part of its identity."""

    name: str | None = None
    step: str | None = None
    params: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    work: Work | None = None
    gpu_model: str | None = None
    table: "LabelTable | None" = None

    def applied(self, run: Run) -> Run:
        params = override_pairs(run.params, self.params)
        tags = override_pairs(run.tags, self.tags)
        name, step, work = self.name or run.name, self.step or run.step, self.find_work(run.quality) or run.work
        named = name_gpu_models(run, self.gpu_model)
        return self.look_up(replace(named, name=name, step=step, params=params, tags=tags, work=work))

    def find_work(self, quality: Quality) -> Work | None:
        # work stated for several runs does not apply to an unfinished one
        return None if self.work is not None and self.work.is_common and quality.unfinished else self.work

    def of_several(self) -> "Labels":
        return replace(self, work=self.work and replace(self.work, is_common=True))

    def look_up(self, run: Run) -> Run:
        if self.table is None:
            return run
        return replace(run, tags=override_pairs(run.tags, self.table.find_tags(run), self.tags))

    def filled_in(self, run: Run) -> Run:
        params = override_pairs(self.params, run.params)
        tags = override_pairs(self.tags, run.tags)
        return replace(run, step=run.step or self.step, params=params, tags=tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The facts that are known after all batches of a source: `span` in microseconds, `intervals` in seconds.

    If the source states its `timezone`, times are UTC. `tags` have the names in `LABEL_TAGS`.
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
    """Recognises and reads sources of one `kind`, the value of `Source.kind`."""

    kind: ClassVar[str]

    def identify(self, head: bytes) -> bool:
        """Return whether a source with this beginning is of this kind."""

    def extract(self, file: RawFile, options: ReadOptions) -> "Extraction":
        """Begin to read a source. Raises SourceError if nothing in it is usable."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file of a run: a log, a file `beside` it, or a log with further metrics for the log `companion_of`."""

    path: Path
    importer: Importer
    locator: str
    beside: bool = False
    companion_of: int | None = None


@dataclass(frozen=True, slots=True)
class TrainingFile:
    """A file with training metrics; a file found `beside` the log need not be readable."""

    path: Path
    locator: str
    beside: bool = False


def name_gpu_models(run: Run, model: str | None) -> Run:
    if model is None:
        return run
    known, devices, notes = find_gpu(model), list(run.devices), dict.fromkeys(run.quality.notes)
    for place, device in enumerate(devices):
        if device not in run.gpus:
            continue
        if device.model is None:
            window = known.power_window if known and device.power_window == "unknown" else device.power_window
            devices[place] = replace(device, model=model, power_window=window)
            notes[f"the GPU model {model} was given by --gpu-model: the log names none"] = None
        elif device.model.casefold() != model.casefold() and (not known or find_gpu(device.model) is not known):
            notes[f"{device.id} is known as {device.model}: --gpu-model {model} is not used for it"] = None
    return replace(run, devices=tuple(devices), quality=replace(run.quality, notes=tuple(notes)))
