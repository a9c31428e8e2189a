"""One run of an MLflow store as `Tracked`: devices, training, labels, the account of its points, and notes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from gpureport.columns import floats
from gpureport.data_quality import AbsentCells, Quality, Rejected
from gpureport.errors import SourceError
from gpureport.importers.mlflow.series import FIRST_VALUE, PREFIX, Devices, Node, read_devices, read_nodes
from gpureport.importers.mlflow.stores import HARDWARE_PREFIXES, Points, RunInfo
from gpureport.importers.neptune import hardware
from gpureport.importers.neptune.names import NameMap, find_namespaces
from gpureport.importers.note_text import list_first
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import FORKED, NOT_SELECTED, OTHER_PROCESS, TORN, TWICE_AT_ONCE
from gpureport.importers.protocol.tracker import Attachment, Selection, Tracked
from gpureport.importers.tracker_series import TrainingMetric, build_tracked
from gpureport.limits import MOST_LABELS
from gpureport.parsing import MOST
from gpureport.record_folder import COMPRESSED_SUFFIXES
from gpureport.recording import Device, Stage

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


def record_run(store: "Store", info: RunInfo, selection: Selection, options: ReadOptions) -> Tracked:
    """Return what a store holds of a run, with the logs among its artifacts."""
    locator = f"mlflow:{store.where}#{info.id}"
    held, params, tags = store.read(info)
    if max(len(params), len(tags)) > MOST_LABELS:
        what = f"it has more than {MOST_LABELS:,} params or tags"
        raise SourceError(locator, what, "leave the run out", code="too_many_labels")
    # figures that were published on the run are no measurements of it
    points = {key: _drop_impossible(key, one) for key, one in held.items() if not key.startswith(PUBLISHED_PREFIX)}
    nodes = read_nodes(points, info.started)
    found = read_devices(nodes, options.gpus, as_logged=options.as_logged)
    moved = _add_neptune(found, points, params, options.gpus)
    if selection.require_hardware and not found.tables:
        raise SourceError(locator, "no hardware series in this run", _HOW_TO_RECORD, code="no_hardware_series")
    metrics = [
        TrainingMetric(key, each.times * 1000, each.steps, each.values)
        for key, each in points.items()
        if not key.startswith(PREFIX) and key not in moved.paths
    ]
    logged = [int(each.times[-1]) for each in points.values() if len(each.times)]
    notes = [
        f"Read from a {store.kind} of MLflow{store.version and f' ({store.version})'}, status {info.status}.",
        *_describe_run(info, found),
        *moved.notes,
        *_describe_times(info, nodes, as_logged=options.as_logged),
    ]
    attachments: tuple[Attachment, ...] = ()
    try:
        logs = store.artifacts(info, ARTIFACT_FOLDER, _LOG_SUFFIXES)
        attachments = tuple(Attachment(name=name, path=path) for name, path in logs.items())
    except SourceError as error:
        notes.append(f"Artifacts of the run could not be looked through: {error.what}.")
    kept = {
        key: text
        for key, text in tags.items()
        if key in _KEPT_TAGS or not key.startswith(("mlflow.", PUBLISHED_PREFIX))
    }
    user = tags.get("mlflow.user", "root")
    ended = info.ended or max(logged, default=0)
    ends = [(key, len(each.times), int(each.times[-1]) if len(each.times) else 0) for key, each in points.items()]
    own = tuple(params.items()), tuple(kept.items())
    return build_tracked(
        locator,
        found.devices,
        found.tables,
        metrics,
        quality=_count_points(points, found, moved.zeros, notes),
        throughput=selection.throughput,
        name=info.name or info.id,
        state=repr((info.status, info.ended, info.name, ends, own)),
        stages=moved.stages,
        params=tuple(each for each in own[0] if not (moved.paths and each[0].startswith(_NEPTUNE_PREFIXES))),
        # root is nobody in particular
        tags=(*(() if user == "root" or "user" in kept else (("user", user),)), *own[1]),
        # for MLflow, a run that came from Neptune starts when it was loaded
        lasted=None if info.started is None or moved.paths else (info.started * 1000, ended * 1000),
        attachments=attachments,
    )


def _drop_impossible(key: str, points: Points) -> Points:
    """Return hardware points with NaN for infinities and for values that no measurement reaches."""
    possible = np.abs(points.values) < MOST
    if possible.all() or not key.startswith(HARDWARE_PREFIXES):
        return points
    return replace(points, values=np.where(possible, points.values, np.nan))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moved:
    """What a run that came from Neptune has besides devices; nothing of any other run."""

    paths: frozenset[str] = frozenset()
    stages: tuple[Stage, ...] = ()
    zeros: int = 0
    notes: list[str] = field(default_factory=list)


def _add_neptune(
    found: Devices, points: Mapping[str, Points], params: Mapping[str, str], gpus: tuple[int, ...] | None
) -> _Moved:
    """Add what Neptune's client recorded, which its exporter loads into MLflow under the names it had.

    That client drops zeros, which are put back, and stamps a value when it reads it. Each process becomes a stage.
    """
    spaces = [space for space in find_namespaces(points, params, NameMap()) if space.client]
    if not spaces:
        return _Moved()
    paths = frozenset(path for space in spaces for path in space.leaves)
    series = {key: hardware.Series(points[key].times * 1000, points[key].values, points[key].steps) for key in paths}
    samples = [hardware.sample_process(space, series, params.get(f"{space.path}/hostname", "")) for space in spaces]
    every = hardware.arrange_by_device(rows for sample in samples for rows in sample.blocks)
    kept, left_out = hardware.select_gpus(every, gpus)
    for key in kept.blocks:
        if (device := kept.id(key)) not in found.tables:
            node = key[0] if kept.several and key[0] else None
            found.devices.append(Device(id=device, index=key[1], node=node))
    found.tables = hardware.build_tables(kept) | found.tables
    found.rejected[NOT_SELECTED] += left_out
    found.rejected[TWICE_AT_ONCE] += sum(sample.repeated for sample in samples)
    found.rejected[OTHER_PROCESS] += every.copies
    found.rejected[FORKED] += sum(sample.crowded for sample in samples)
    zeros = sum(int(rows.imputed.sum()) for blocks in kept.blocks.values() for rows in blocks)
    notes = ["The run came from Neptune: its hardware series are those of Neptune's client, stamped when read."]
    if zeros:
        notes.append(f"{zeros} values of 0 that Neptune's client drops were put back.")
    if never := [f"{sample.space.stage or sample.space.path} gpu:{gpu}" for sample in samples for gpu in sample.never]:
        what = "Utilization was never reported and is unknown, always 0 or not supported"
        notes.append(f"{what}: {list_first(never, _NAMED)}.")
    notes.append("Its times may be local time of the machine that exported it, several hours off.")
    return _Moved(paths=paths, stages=hardware.list_stages(kept), zeros=zeros, notes=notes)


def _count_points(points: Mapping[str, Points], found: Devices, zeros: int, notes: Sequence[str]) -> Quality:
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
            AbsentCells(column=key, reason=reason, cells=cells) for (key, reason), cells in sorted(absent.items())
        ),
        imputed_points=zeros,
        notes=tuple(notes),
    )


def _describe_run(info: RunInfo, found: Devices) -> Iterator[str]:
    gpus = {device.id: found.tables[device.id] for device in found.devices if device.index is not None}
    if info.deleted:
        yield "The run was deleted in MLflow; it is read because it was named by its id."
    if not info.finished:
        killed = "it was still running, or its process was killed"
        yield f"The run has no end in MLflow: {killed}; it ends with its last sample."
    if not found.devices:
        yield f"No system metrics in this run: {_HOW_TO_RECORD}."
    elif not gpus and not found.rejected[NOT_SELECTED]:
        yield "Host metrics only: nvidia-ml-py was missing where the run was made."
    if found.derived:
        yield f"Derived from a value and its share, not recorded: {list_first(found.derived, _NAMED)}."
    if any("gpu_memory_used_bytes" in rows.column_names for rows in gpus.values()):
        held = "what the driver reserves (NVML's first interface), a few hundred MiB that nvidia-smi leaves out"
        yield f"GPU memory in use holds {held}."
    used = "gpu_utilization_ratio"
    peaks = {key: np.nanmax(floats(rows.column(used))) for key, rows in gpus.items() if used in rows.column_names}
    idle = [key for key, peak in peaks.items() if peak <= 0.01]  # noqa: PLR2004 - 1 %
    if 0 < len(idle) < len(peaks):
        every = "MLflow records every GPU of the machine; --gpus keeps those of the job"
        yield f"{list_first(idle, _NAMED)} never was above 1%: {every}."
    extra = {name for each in found.tables.values() for name in each.column_names if name.startswith("extra_")}
    if extra:
        yield f"System metrics without a place of their own are kept as {list_first(sorted(extra), _NAMED)}."


def _describe_times(info: RunInfo, nodes: Sequence[Node], *, as_logged: bool) -> Iterator[str]:
    if not nodes:
        return
    late = float(np.median(np.concatenate([node.logged - node.read for node in nodes]))) / 1e3
    moved = f"all of them were moved back, by {late:.2f} s at the median"
    stays = "as --mlflow-raw-times says, they stay there"
    when = "MLflow stamps a system metric when it logs it, one interval after it was read"
    yield f"{when}: {stays if as_logged else moved}."
    for node in nodes:
        if node.together > 1:
            where = f" on {node.name}" if node.name else ""
            yield (
                f"{node.together} processes recorded the same names at the same time{where}: their samples were told "
                "apart by their steps and are all kept. If they ran on several machines, GPU 0 mixes those of all; "
                "give each a node id."
            )
    usual = max((float(np.median(np.diff(node.logged))) for node in nodes if len(node.logged) > 1), default=0.0)
    head = min(int(node.read.min()) for node in nodes) - (np.inf if info.started is None else info.started)
    tail = (-np.inf if info.ended is None else info.ended) - max(int(node.logged.max()) for node in nodes)
    for lacking, end in ((head, "first"), (tail, "last")):
        # three intervals without samples are worth a note
        if usual and lacking > 3 * usual:
            yield f"No hardware samples in the {end} {lacking / 1e3:.0f} s of the run."
