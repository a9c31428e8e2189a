"""Neptune as a tracker: a store's run, or several local recordings of one, as a recording."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers.neptune import exports, hardware, local
from gpureport.importers.neptune.hardware import DeviceKey, Hardware, Namespace, Stored, read_hardware
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.tracker import (
    RunInfo,
    Selection,
    SkippedRun,
    Tracked,
    Tracker,
    refuse_filter,
    split_locator,
)
from gpureport.importers.tracker_series import Series, build_tracked, list_absent, list_rejected
from gpureport.recording import Device
from gpureport.regular_files import code_system_error, path_exists, walk_folder

_PREFIX, _SERVER = "neptune:", "neptune://"
_WANTED = "give an export of neptune-exporter, or a .neptune folder"
_RECOGNISERS = (exports.is_export_file, local.is_operation_log, local.is_scale_database)
_FINDERS = (exports.find_exported_runs, local.find_local_runs, local.find_scale_runs)
_UNSAMPLED_INTERVALS = 3
"""Intervals without samples at the end of a run that are worth a note (pragmatic)."""
_INTEGRATIONS = "source_code/integrations/"
"""Where Neptune's integrations put their version; their names tell the framework."""


class Process(NamedTuple):
    """A namespace of a run to read, and its node; empty if its name is unknown."""

    run: Stored
    space: Namespace
    node: str


class Recordings(NamedTuple):
    """A locator's runs by id, and what is asked of them; several local recordings may be one run."""

    where: str
    held: dict[str, list[Stored]]
    asked: Selection
    chosen: hardware.NameMap
    grouped: tuple[str, ...]

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return the runs whose names fit a pattern, newest first; a server has applied the filter."""
        del wanted
        found = [self._describe(*item) for item in self.held.items()]
        found.sort(key=lambda each: each.started or 0, reverse=True)
        return [each for each in found if fnmatchcase(each.name, experiment or "*")]

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id; None if there is none."""
        return self._describe(run_id, self.held[run_id]) if run_id in self.held else None

    def _describe(self, run_id: str, runs: Sequence[Stored]) -> RunInfo:
        first, keys, asked = runs[0], " ".join(sorted(run.key for run in runs)), self.asked
        if fault := next((run.fault for run in runs if run.fault is not None), None):
            return RunInfo(id=run_id, key=keys, name=run_id, fault=fault)
        gpus = {each.gpu for run in runs for space in self.find_spaces(run) for each in space.leaves.values()}
        # MLflow's names say what it is of; a run not looked into may hold some
        hardware = ["system/cpu_utilization_percentage" if gpu is None else f"system/gpu_{gpu}_power" for gpu in gpus]
        state = "failed" if first.scalars.get("sys/failed") is True else str(first.scalars.get("sys/state", "")).lower()
        return RunInfo(
            id=run_id,
            key="\n".join(filter(None, [asked.group, keys, asked.stage, str(self.chosen)])),
            name=asked.group or first.name,
            status=state or "status not recorded",
            started=first.started,
            deleted=first.scalars.get("sys/trashed") is True,
            hardware=["runtime"] if first.points is None else hardware,
            lacks="not looked into" if first.points is None else "",
        )

    def find_spaces(self, run: Stored) -> list[Namespace]:
        """Return the namespaces of the processes of a run."""
        return hardware.find_namespaces(run.points or (), run.scalars, self.chosen)


def _claims(source: str) -> bool:
    """Return whether a locator, file or folder holds runs of Neptune; hidden folders count only if named."""
    if source.startswith(_PREFIX):
        return True
    try:
        files = _list_files(Path(source), hidden=False)
        return any(recognise(path) for path in files if path.is_file() for recognise in _RECOGNISERS)
    except OSError:
        return False


def _refuse_folder(folder: Path) -> None:
    if (folder / ".neptune").is_dir():
        what = "the folder holds runs of Neptune's client and no log"
        raise SourceError(str(folder), what, f"give {folder / '.neptune'}", code="folder_of_client")


def _refuse_skipped(source: str, selection: Selection, skipped: list[SkippedRun]) -> None:
    if selection.require_hardware and skipped and selection.group is None:
        what = f"{len(skipped)} runs hold no hardware series, {skipped[0].name} among them"
        raise SourceError(source, what, "leave out --require-hardware", code="no_hardware_series")


def _open(source: str, selection: Selection) -> tuple[Recordings, str | None]:
    """Return what holds a project's runs, and the named one."""
    named = None
    if source.startswith(_SERVER):
        from gpureport.importers.neptune.live import find_live_runs  # noqa: PLC0415 - only here

        runs, store = find_live_runs(source, selection.filter), source.partition("#")[0]
    else:
        refuse_filter(selection.filter, "name runs with --run, * is any")
        store, named = split_locator(source, _PREFIX)
        runs = [run for run in _find_runs(store) if fnmatchcase(run.project, selection.project or "*")]
    if selection.group is not None and selection.runs:
        fits = [(f"{pattern}*", pattern) for pattern in selection.runs]
        runs = [run for run in runs if any(fnmatchcase(run.id, a) or fnmatchcase(run.name, b) for a, b in fits)]
    if not runs:
        project = "" if selection.project is None else f" of project {selection.project}"
        raise SourceError(store, f"it holds no run of Neptune{project}", _WANTED, code="no_runs")
    shared = Counter(run.id for run in runs)
    held = {run.id if shared[run.id] == 1 else run.key.replace(" ", "/"): [run] for run in runs}
    if selection.group is not None:
        held = {selection.group: runs}
    grouped = () if selection.group is None else tuple(run.id for run in runs)
    found = Recordings(store.removeprefix(_PREFIX), held, selection, hardware.read_name_map(selection.map), grouped)
    return found, named


def _find_runs(store: str) -> list[Stored]:
    path = Path(store)
    if not path_exists(path):
        raise SourceError(store, "no such file or folder", _WANTED, code="no_such_file")
    try:
        files = list(_list_files(path, hidden=True))
        return [each for find in _FINDERS for each in find(files, path if path.is_dir() else path.parent)]
    except OSError as error:
        what, hint = error.strerror or "cannot be read", getattr(error, "hint", _WANTED)
        raise SourceError(store, what, hint, code=code_system_error(error, "cannot_read")) from error


def _list_files(source: Path, *, hidden: bool) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    for place, folders, files in walk_folder(source):
        folders[:] = sorted(name for name in folders if hidden or not name.startswith("."))
        yield from (place / name for name in sorted(files))


def _record(store: Recordings, info: RunInfo, asked: Selection, options: ReadOptions) -> Tracked:
    locator = f"{_PREFIX}{store.where}#{info.id}"
    runs, processes, stages = list[Stored](), list[Process](), set[str]()
    metrics, params = dict[str, Series](), dict[str, str]()
    for run in (each.load() if each.load else each for each in store.held[info.id]):
        spaces = store.find_spaces(run)
        # exports of Neptune 3 are in UTC, but data of the Neptune 2 client came there with local times
        if run.files and (any(space.client for space in spaces) or run.scalars.get("sys/id") == run.id):
            paths = [path for space in spaces for path in space.leaves]
            run = exports.correct_local_times(run, paths, options.tz)  # noqa: PLW2901
        runs.append(run)
        for space in spaces:
            stages.add(space.stage or space.path)
            if asked.stage in {None, space.stage}:
                hosts = (f"{space.path}/hostname", f"{space.path}/details/hostname", "sys/hostname")
                node = next((str(run.scalars[name]) for name in hosts if run.scalars.get(name)), "")
                processes.append(Process(run, space, node))
        for path in sorted({*run.series}.difference(*((*space.leaves, *space.others) for space in spaces))):
            parts = [metrics[path], run.series[path]] if path in metrics else [run.series[path]]
            metrics[path] = Series(*map(np.concatenate, zip(*parts, strict=True)))
        params |= _collect_params(run, spaces)
    if not stages:
        what = "the run holds no hardware series"
        raise SourceError(locator, what, "the client records none in notebooks", code="no_hardware_series")
    if not processes:
        hint = f"it has {', '.join(sorted(stages))}"
        raise SourceError(locator, f"it has no stage {asked.stage!r}", hint, code="no_such_stage")
    found = read_hardware([(each.space, each.run.series, each.node) for each in processes], options.gpus)
    if found.gpus and options.gpus is not None and found.gpus.isdisjoint(options.gpus):
        hint = f"--gpus can name {', '.join(map(str, sorted(found.gpus)))}"
        raise SourceError(locator, "it holds none of the GPUs selected", hint, code="gpus_not_held")
    if not found.blocks:
        raise SourceError(locator, "its hardware series hold no value", "leave the run out", code="no_values")
    torn = [entry for run in runs for entry in run.rejected]
    labels = {
        "user": [str(each.run.scalars.get("sys/owner") or "") for each in processes],
        "project": [each.run.project for each in processes],
        "node": [each.node for each in processes],
    }
    joined = {name: ", ".join(dict.fromkeys(filter(None, values))) for name, values in labels.items()}
    # tags of Neptune are words
    tags = dict.fromkeys((tag for each in processes for tag in each.run.tags), "true")
    tracked = build_tracked(
        locator,
        [_describe_device(processes, found, key, asked.gpu_memory_total) for key in found.blocks],
        found.build_tables(),
        metrics,
        name=asked.group or runs[0].name,
        quality=_account(processes, found),
        throughput=asked.throughput,
        state=[(run.size, run.last, *(len(each.times) for each in run.series.values())) for run in runs],
        stage=asked.stage,
        stages=found.list_stages(),
        params=tuple(params.items()),
        tags=tuple((tags | {name: text for name, text in joined.items() if text}).items()),
        more={"size": sum(run.size for run in runs)},
    )
    quality, trained = tracked.run.quality, len(tracked.training)
    notes = [note for run in runs for note in run.notes] + _describe_rows(processes, found, asked) + [*quality.notes]
    last = max(
        [run.last or 0 for run in runs] + [int(each.times.max()) for each in metrics.values() if len(each.times)]
    )
    unseen = (last - tracked.run.ended) / 1e6
    if unseen > max(_UNSAMPLED_INTERVALS * (tracked.run.interval or 0.0), 0):
        what = "before the run did: nothing is known of that time, its stderr may say why"
        notes.append(f"hardware monitoring ended {unseen:.0f} s {what}")
    quality = replace(
        quality,
        lines=quality.lines + trained + sum(entry.rows for entry in torn),
        rows_kept=quality.rows_kept + trained,
        rejected=(*torn, *quality.rejected),
        notes=tuple(notes),
    )
    return replace(tracked, run=replace(tracked.run, quality=quality))


def _collect_params(run: Stored, spaces: Sequence[Namespace]) -> dict[str, str]:
    """Return a run's params: its single values without Neptune's own and its processes'."""
    described = {f"{space.path}/{name}" for space in spaces for name in ("hostname", "pid", "tid", "traceback")}
    inside = ("sys/", "source_code/", "monitoring/", *(f"{space.path}/details/" for space in spaces))
    return {
        path: str(value).lower() if isinstance(value, bool) else str(value)
        for path, value in sorted(run.scalars.items())
        if path.startswith(_INTEGRATIONS) or not (path.startswith(inside) or path in described)
    }


def _describe_device(processes: Sequence[Process], found: Hardware, key: DeviceKey, given: int | None) -> Device:
    (node, gpu), blocks = key, found.blocks[key]
    device = Device(id=found.id(key), index=gpu, node=found.node(key))
    if gpu is None:
        return device
    totals = [block.values[hardware.MEMORY_TOTAL][0] for block in blocks if hardware.MEMORY_TOTAL in block.values]
    total = totals[0] if totals else _find_highest(processes, node, hardware.MEMORY) * hardware.GIB
    # only the recipe records the model
    places = dict.fromkeys(f"{block.space.path}/details/gpu/{gpu}/name" for block in blocks)
    models = (each.run.scalars.get(place) for each in processes for place in places)
    return replace(
        device,
        model=next((model for model in models if isinstance(model, str)), None),
        memory_total_bytes=given or round(total) or None,
        power_limit_watts=_find_highest(processes, node, hardware.POWER) or None,
    )


def _find_highest(processes: Sequence[Process], node: str, metric: str) -> float:
    """Return the client's stated maximum of a gauge, for the machine's largest GPU; 0 if none."""
    found = (
        each.run.highest.get(path, 0.0)
        for each in processes
        for path, meaning in each.space.leaves.items()
        if each.node == node and meaning.metric == metric
    )
    return max(found, default=0.0)


def _describe_rows(processes: Sequence[Process], found: Hardware, asked: Selection) -> list[str]:
    zeros, nodes = found.count("imputed"), {node for node, gpu in found.blocks if gpu is not None}
    never, unrestored = (", ".join(f"gpu:{gpu}" for gpu in sorted(gpus)) for gpus in (found.never, found.unrestored))
    said = {
        f"Neptune's client drops zeros: {zeros} samples with a utilization of 0 are put back": zeros,
        f"utilization of {never} was never reported: it is unknown, always 0 or not supported": never,
        f"memory of {unrestored} was not recorded, so zeros cannot be put back and idle time is missing": unrestored,
        "GPU memory in use holds what the driver reserves (NVML's first interface), "
        "a few hundred MiB that nvidia-smi leaves out": any(
            meaning.metric == hardware.MEMORY for each in processes for meaning in each.space.leaves.values()
        ),
        "memory of each GPU is taken to be that of the largest one of its machine, which is all that is recorded": (
            asked.gpu_memory_total is None and any(_find_highest(processes, node, hardware.MEMORY) for node in nodes)
        ),
    }
    return [text for text, holds in said.items() if holds]


def _account(processes: Sequence[Process], found: Hardware) -> Quality:
    """Return what became of every hardware point; points are counted as lines of a log.

    Of a row's points, the first counts as kept and the others as continued. Points that are not numbers, and
    points of series without a metric, are noise.
    """
    kept, points = sum(len(each.times) for blocks in found.blocks.values() for each in blocks), found.count("points")
    others = [
        (each.run, path) for each in processes for path in each.space.others if not path.endswith(hardware.DERIVED)
    ]
    noise = found.nan.total() + sum(len(run.series[path].times) for run, path in others)
    return Quality(
        lines=points + noise + found.rejected.total(),
        rows_kept=kept,
        rejected=list_rejected(found.rejected),
        noise=noise,
        continued=points - kept,
        absent_cells=list_absent({(name, "NaN"): count for name, count in found.nan.items()}),
        imputed_points=found.count("imputed"),
    )


NEPTUNE = Tracker(
    kind="neptune",
    title="Neptune",
    recognised_by="An export, or a folder of one of Neptune's clients, by its content, or a locator `neptune:PATH`.",
    claims=_claims,
    open=_open,
    record=_record,
    refuse_folder=_refuse_folder,
    refuse_skipped=_refuse_skipped,
)
