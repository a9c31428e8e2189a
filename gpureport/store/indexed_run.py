"""What runs of a store are listed and selected by."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpureport.store.run_json import StoredRun

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedRun:
    """A stored run without its series and its account of lines.

    Attributes:
        id: its id, the name of its folder.
        name: what a person calls it.
        step: its optimization step.
        started: first sample, in microseconds; UTC where there is a time zone, else local time.
        ended: last sample, in the same way.
        timezone: zone name, None when the log has none.
        synthetic_time: whether its log has no time stamps, so that its times mean nothing.
        interval: median seconds between samples of one GPU.
        gpus: number of its GPUs.
        models: models of its GPUs, each once.
        hosts: names of its nodes, each once; empty where only one was recorded.
        uuids: NVML's identities of its GPUs, where logged.
        params: what it was configured with.
        tags: what it was labelled with.
        source_kinds: kind of each source.
        source_sizes: bytes of each source, in the same order; None where not recorded.
        importer_version: version of the importers that read it.
        series_sha256: sha256 of the file of its series; None in what was stored before there was one.
        training_sha256: sha256 of the file of its training metrics; None without training metrics.
        work_amount: work it did in all, where known.
        work_unit: of which unit.
    """

    id: str
    name: str
    step: str | None
    started: int
    ended: int
    timezone: str | None
    synthetic_time: bool
    interval: float | None
    gpus: int
    models: tuple[str, ...]
    hosts: tuple[str, ...]
    uuids: tuple[str, ...]
    params: Pairs
    tags: Pairs
    source_kinds: tuple[str, ...]
    source_sizes: tuple[int | None, ...]
    importer_version: str
    series_sha256: str | None
    training_sha256: str | None = None
    work_amount: float | None = None
    work_unit: str | None = None

    @property
    def seconds(self) -> float:
        """How long it lasted, from its first to its last sample."""
        return (self.ended - self.started) / 1e6


def summarise_stored_run(stored: "StoredRun") -> IndexedRun:
    """Return what a run is listed and selected by."""
    run = stored.run
    return IndexedRun(
        id=run.id,
        name=run.name,
        step=run.step,
        started=run.started,
        ended=run.ended,
        timezone=run.timezone,
        synthetic_time=run.quality.synthetic_time,
        interval=run.interval,
        gpus=len(run.gpus),
        models=tuple(dict.fromkeys(gpu.model for gpu in run.gpus if gpu.model)),
        hosts=tuple(dict.fromkeys(device.node for device in run.devices if device.node)),
        uuids=tuple(gpu.uuid for gpu in run.gpus if gpu.uuid),
        params=run.params,
        tags=run.tags,
        source_kinds=tuple(source.kind for source in run.sources),
        source_sizes=tuple(source.bytes for source in run.sources),
        importer_version=stored.importer_version,
        series_sha256=stored.series_sha256,
        training_sha256=stored.training_sha256,
        work_amount=run.work.amount if run.work else None,
        work_unit=run.work.unit if run.work else None,
    )
