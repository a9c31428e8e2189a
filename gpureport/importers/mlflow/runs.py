"""One run of an MLflow store as `Tracked`: devices, training, labels, the account of its points, and notes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import integers
from gpureport.data_quality import AbsentCells, Quality, Rejected
from gpureport.errors import SourceError
from gpureport.importers.mlflow.series import (
    FIRST_VALUE,
    PREFIX,
    Devices,
    Monitor,
    find_monitors,
    find_unused_gpus,
    read_devices,
)
from gpureport.importers.mlflow.stores import HARDWARE_PREFIXES, Points, RunInfo
from gpureport.importers.neptune import hardware
from gpureport.importers.neptune.names import NameMap, find_namespaces
from gpureport.importers.note_text import list_first
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import FORKED, NOT_SELECTED, OTHER_PROCESS, TORN, TWICE_AT_ONCE
from gpureport.importers.protocol.tracker import Attachment, Selection, Tracked
from gpureport.importers.tracker_series import (
    TrainingMetric,
    add_timing,
    build_training_table,
    describe_training,
    measure_work,
    read_clocks,
    usual_interval,
)
from gpureport.record_folder import COMPRESSED_SUFFIXES
from gpureport.recording import Device
from gpureport.units import MOST

if TYPE_CHECKING:
    from gpureport.importers.mlflow.selection import Store

ARTIFACT_FOLDER = "gpureport"
"""Folder of a run's artifacts in which logs are looked for and reports are put."""
PUBLISHED_PREFIX = "gpureport."
"""What the tags and metrics begin with that publishing sets."""
_LOG_SUFFIXES = (".csv", ".log", ".txt", ".out", *COMPRESSED_SUFFIXES)
_KEPT_TAGS = {"mlflow.source.git.commit", "mlflow.note.content", "mlflow.autologging"}
"""Tags of MLflow's own that describe the run; the last one names the framework it logs for."""
_NEPTUNE_PREFIXES = ("sys/", "source_code/", "monitoring/")
_HOW_TO_RECORD = (
    "record with mlflow.enable_system_metrics_logging() after pip install psutil nvidia-ml-py; a run shorter than the "
    "sampling interval of 10 s has none"
)
_NAMED = 3
"""Names that a note lists at most."""


@dataclass(frozen=True, slots=True)
class MlflowRun:
    """A run of a store that is not read yet."""

    store: "Store"
    info: RunInfo
    selection: Selection

    @property
    def key(self) -> str:
        """Its id."""
        return self.info.id

    @property
    def locator(self) -> str:
        """Its store and its id."""
        return f"mlflow:{self.store.where}#{self.info.id}"

    @property
    def fault(self) -> SourceError | None:
        """Why it cannot be read."""
        return self.info.fault

    def read(self, options: ReadOptions) -> Tracked:
        """Read the run, with the logs among its artifacts."""
        info, selection = self.info, self.selection
        points = {
            # figures that were published on the run are no measurements of it
            key: _drop_impossible(each) if key.startswith(HARDWARE_PREFIXES) else each
            for key, each in self.store.series(info).items()
            if not key.startswith(PUBLISHED_PREFIX)
        }
        labels = self.store.labels(info)
        logged = [each for each in points.values() if len(each.times)]
        if not logged:
            hint = "name another one; --list shows the runs"
            raise SourceError(self.locator, "the run has no metrics", hint, code="no_metrics")
        monitors = find_monitors(points, info.started)
        found = read_devices(monitors, options.gpus, as_logged=options.as_logged)
        _add_neptune(found, points, labels.params, options.gpus)
        if selection.require_hardware and not found.tables:
            raise SourceError(self.locator, "no hardware series in this run", _HOW_TO_RECORD, code="no_hardware_series")
        metrics = [
            TrainingMetric(key, each.times * 1000, each.steps, each.values)
            for key, each in points.items()
            if not key.startswith(PREFIX) and key not in found.moved
        ]
        tables = [found.tables[device.id] for device in found.devices]
        clocks = read_clocks(tables)
        times = [integers(each.column("timestamp")) for each in tables] or [each.times * 1000 for each in logged]
        span = min(int(each[0]) for each in times), max(int(each[-1]) for each in times)
        work = measure_work(metrics, selection.throughput, span)
        trained = describe_training([each.name for each in metrics], work, selection.throughput)
        attachments, missing = self._attachments()
        version = self.store.version
        notes = [
            f"Read from a {self.store.kind} of MLflow{version and f' ({version})'}, status {info.status}.",
            *_describe_run(info, found),
            *_describe_times(info, monitors, as_logged=options.as_logged),
            *(f"{note[0].upper()}{note[1:]}." for note in trained),
            *missing,
        ]
        tags = {
            key: text
            for key, text in labels.tags.items()
            if key in _KEPT_TAGS or not key.startswith(("mlflow.", PUBLISHED_PREFIX))
        }
        user = labels.tags.get("mlflow.user", "root")
        ended = info.ended or max(int(each.times[-1]) for each in logged)
        ends = [(key, len(each.times), int(each.times[-1]) if len(each.times) else 0) for key, each in points.items()]
        own = tuple(labels.params.items()), tuple(tags.items())
        return Tracked(
            name=info.name or info.id,
            span=span,
            devices=tuple(found.devices),
            series=found.tables,
            quality=add_timing(_count_points(points, found, notes), clocks),
            state=repr((info.status, info.ended, info.name, ends, own)),
            training=build_training_table(metrics),
            work=None if work is None else work[0],
            interval=usual_interval(clocks),
            stages=found.stages,
            params=tuple(each for each in own[0] if not (found.moved and each[0].startswith(_NEPTUNE_PREFIXES))),
            # root is nobody in particular
            tags=(*(() if user == "root" or "user" in tags else (("user", user),)), *own[1]),
            # for MLflow, a run that came from Neptune starts when it was loaded
            lasted=None if info.started is None or found.moved else (info.started * 1000, ended * 1000),
            attachments=attachments,
        )

    def _attachments(self) -> tuple[tuple[Attachment, ...], list[str]]:
        """Return the logs among its artifacts, or a note why there are none."""
        try:
            logs = self.store.artifacts(self.info, ARTIFACT_FOLDER, _LOG_SUFFIXES)
            return tuple(Attachment(name=name, path=path) for name, path in logs.items()), []
        except SourceError as error:
            return (), [f"Artifacts of the run could not be looked through: {error.what}."]


def _drop_impossible(points: Points) -> Points:
    """Return points with NaN for infinities and for values that no measurement reaches."""
    possible = np.abs(points.values) < MOST
    return points if possible.all() else replace(points, values=np.where(possible, points.values, np.nan))


def _add_neptune(
    found: Devices, points: Mapping[str, Points], params: Mapping[str, str], gpus: tuple[int, ...] | None
) -> None:
    """Add what Neptune's client recorded, which its exporter loads into MLflow under the names it had.

    That client drops zeros, which are put back, and stamps a value when it reads it. Each process becomes a stage.
    """
    spaces = [space for space in find_namespaces(points, params, NameMap()) if space.client]
    if not spaces:
        return
    found.moved = frozenset(path for space in spaces for path in space.leaves)
    moved = {key: points[key] for key in found.moved}
    series = {key: hardware.Series(one.times * 1000, one.values, one.steps) for key, one in moved.items()}
    samples = [hardware.sample_process(space, series, params.get(f"{space.path}/hostname", "")) for space in spaces]
    every = hardware.arrange_by_device(rows for sample in samples for rows in sample.blocks)
    kept, left_out = hardware.select_gpus(every, gpus)
    for key in kept.blocks:
        if (device := kept.id(key)) not in found.tables:
            node = key[0] if kept.several and key[0] else None
            found.devices.append(Device(id=device, index=key[1], node=node))
    found.tables = hardware.build_tables(kept) | found.tables
    found.stages = hardware.list_stages(kept)
    found.zeros = sum(int(rows.imputed.sum()) for blocks in kept.blocks.values() for rows in blocks)
    found.rejected[NOT_SELECTED] += left_out
    found.rejected[TWICE_AT_ONCE] += sum(sample.repeated for sample in samples)
    found.rejected[OTHER_PROCESS] += every.copies
    found.rejected[FORKED] += sum(sample.crowded for sample in samples)
    for space, sample in zip(spaces, samples, strict=True):
        found.never += [f"{space.stage or space.path} gpu:{gpu}" for gpu in sample.never]


def _count_points(points: Mapping[str, Points], found: Devices, notes: Sequence[str]) -> Quality:
    """Return the account of every point of a run, its lines that could not be read among them."""
    torn = sum(each.torn for each in points.values())
    lines = sum(len(each.times) for each in points.values()) + torn
    first = sum(count for (_, reason), count in found.absent.items() if reason == FIRST_VALUE)
    rejected = found.rejected + Counter({TORN: torn})
    absent = found.absent + Counter(
        {(key, "not a number"): int(np.isnan(one.values).sum()) for key, one in points.items()}
    )
    return Quality(
        lines=lines,
        rows_kept=lines - first - rejected.total(),
        noise=first,
        rejected=tuple(Rejected(reason=reason, rows=rows, first_line=None) for reason, rows in rejected.items()),
        absent_cells=tuple(
            AbsentCells(column=key, reason=reason, cells=cells)
            for (key, reason), cells in sorted(absent.items())
            if cells
        ),
        imputed_points=found.zeros,
        notes=tuple(notes),
    )


def _describe_run(info: RunInfo, found: Devices) -> Iterator[str]:
    gpus = [device for device in found.devices if device.index is not None]
    if info.deleted:
        yield "The run was deleted in MLflow; it is read because it was named by its id."
    if not info.finished:
        killed = "it was still running, or its process was killed"
        yield f"The run has no end in MLflow: {killed}; it ends with its last sample."
    if not found.devices:
        yield f"No system metrics in this run: {_HOW_TO_RECORD}."
    elif not gpus and not found.rejected[NOT_SELECTED]:
        yield "Host metrics only: nvidia-ml-py was missing where the run was made."
    if found.moved:
        yield "The run came from Neptune: its hardware series are those of Neptune's client, stamped when read."
        if found.zeros:
            yield f"{found.zeros} values of 0 that Neptune's client drops were put back."
        if found.never:
            never = list_first(found.never, _NAMED)
            yield f"Utilization was never reported and is unknown, always 0 or not supported: {never}."
        yield "Its times may be local time of the machine that exported it, several hours off."
    if found.derived:
        yield f"Derived from a value and its share, not recorded: {list_first(found.derived, _NAMED)}."
    if any("gpu_memory_used_bytes" in found.tables[gpu.id].column_names for gpu in gpus):
        held = "what the driver reserves (NVML's first interface), a few hundred MiB that nvidia-smi leaves out"
        yield f"GPU memory in use holds {held}."
    if idle := list(find_unused_gpus(found)):
        every = "MLflow records every GPU of the machine; --gpus keeps those of the job"
        yield f"{list_first(idle, _NAMED)} never was above 1%: {every}."
    extra = {name for each in found.tables.values() for name in each.column_names if name.startswith("extra_")}
    if extra:
        yield f"System metrics without a place of their own are kept as {list_first(sorted(extra), _NAMED)}."


def _describe_times(info: RunInfo, monitors: Sequence[Monitor], *, as_logged: bool) -> Iterator[str]:
    if not monitors:
        return
    late = float(np.median(np.concatenate([one.logged - one.read for one in monitors]))) / 1e3
    moved = f"all of them were moved back, by {late:.2f} s at the median"
    stays = "as --mlflow-raw-times says, they stay there"
    when = "MLflow stamps a system metric when it logs it, one interval after it was read"
    yield f"{when}: {stays if as_logged else moved}."
    for node, together in dict.fromkeys((one.node, one.together) for one in monitors):
        if together > 1:
            where = "" if node is None else f" on {node}"
            yield (
                f"{together} processes recorded the same names at the same time{where}, each with a clock "
                "of its own: their samples were told apart by their steps and are all kept. Give each a node id."
            )
        elif (node or "").rpartition("/")[2].startswith("writer_"):
            yield f"{node} is one of several machines that recorded under the same names; give each a node id."
    usual = max((float(np.median(np.diff(one.logged))) for one in monitors if len(one.logged) > 1), default=0.0)
    head = min(int(one.read[0]) for one in monitors) - (np.inf if info.started is None else info.started)
    tail = (-np.inf if info.ended is None else info.ended) - max(int(one.logged[-1]) for one in monitors)
    for lacking, end in ((head, "first"), (tail, "last")):
        # three intervals without samples are worth a note
        if usual and lacking > 3 * usual:
            yield f"No hardware samples in the {end} {lacking / 1e3:.0f} s of the run."
