"""Neptune as a tracker, whose runs are selected as those of MLflow are, and a run, or several, as a recording."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from gpureport.data_quality import AbsentCells, Quality, Rejected
from gpureport.errors import SettingsError, SourceError
from gpureport.importers.mlflow.selection import Mlflow, split_locator
from gpureport.importers.mlflow.stores import RunInfo
from gpureport.importers.neptune import exports, hardware, local, names
from gpureport.importers.neptune.hardware import Stored
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import FORKED, NOT_SELECTED, OTHER_PROCESS, TWICE_AT_ONCE
from gpureport.importers.protocol.tracker import ListedRun, SelectedRuns, Selection, Tracked
from gpureport.importers.tracker_series import TrainingMetric, build_tracked, build_training_table
from gpureport.recording import Device
from gpureport.regular_files import code_system_error, path_exists, walk_folder

_PREFIX, _SERVER = "neptune:", "neptune://"
_WANTED = "give an export of neptune-exporter, or a .neptune folder"
_RECOGNISERS = (exports.is_export_file, local.is_operation_log, local.is_scale_database)
_FINDERS = (exports.find_exported_runs, local.find_local_runs, local.find_scale_runs)
_UNSAMPLED_INTERVALS = 3
"""Intervals without samples at the end of a run that are worth a note (pragmatic)."""
_MOST_STEP = 2**62
_INTEGRATIONS = "source_code/integrations/"
"""Where Neptune's integrations put their version; their names tell the framework."""

Processes = Sequence[tuple[Stored, hardware.ProcessSamples]]
"""What each process recorded, with all that its store holds of the run."""


class _Store(NamedTuple):
    """The runs that a locator names, by id, and what is asked of them; several local recordings may be one run."""

    where: str
    held: dict[str, list[Stored]]
    selection: Selection
    chosen: names.NameMap

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        """Return the runs whose names fit a pattern, the newest first; a server has applied the filter."""
        del wanted
        found = [self._describe(*item) for item in self.held.items()]
        found.sort(key=lambda each: each.started or 0, reverse=True)
        return [each for each in found if fnmatchcase(each.name, experiment or "*")]

    def run(self, run_id: str) -> RunInfo | None:
        """Return the run of an id; None if there is none."""
        return self._describe(run_id, self.held[run_id]) if run_id in self.held else None

    def _describe(self, run_id: str, runs: Sequence[Stored]) -> RunInfo:
        first, keys = runs[0], " ".join(sorted(run.key for run in runs))
        if fault := next((run.fault for run in runs if run.fault is not None), None):
            return RunInfo(id=run_id, key=keys, name=run_id, fault=fault)
        gpus = {each.gpu for run in runs for space in self.find_spaces(run) for each in space.leaves.values()}
        # by the names of MLflow, which say what it is of; a run that nobody has looked into may hold some
        hardware = ["system/cpu_utilization_percentage" if gpu is None else f"system/gpu_{gpu}_power" for gpu in gpus]
        state = "failed" if first.scalars.get("sys/failed") is True else str(first.scalars.get("sys/state", "")).lower()
        asked = self.selection
        return RunInfo(
            id=run_id,
            key="\n".join(filter(None, [asked.group, keys, asked.stage, str(self.chosen)])),
            name=asked.group or first.name,
            status=state or "status not recorded",
            started=None if first.started is None else first.started // 1000,
            deleted=first.scalars.get("sys/trashed") is True,
            hardware=tuple(hardware) if first.points is not None else ("system",),
        )

    def find_spaces(self, run: Stored) -> list[names.Namespace]:
        """Return the namespaces of the processes of a run."""
        return names.find_namespaces(run.points or (), run.scalars, self.chosen)


class Neptune(Mlflow):
    """Reads what is left of runs of Neptune."""

    kind: ClassVar[str] = "neptune"
    title: ClassVar[str] = "Neptune"
    recognised_by: ClassVar[str] = (
        "An export, or a folder of one of Neptune's clients, by its content, or a locator `neptune:PATH`."
    )

    def __init__(self, selection: Selection | None = None) -> None:
        """Take what is asked of the runs of a store."""
        self._selection = selection or Selection()

    def claims(self, source: str) -> bool:
        """Return whether a locator, file or folder holds runs of Neptune; hidden folders count only if named."""
        if source.startswith(_PREFIX):
            return True
        try:
            files = _list_files(Path(source), hidden=False)
            return any(recognise(path) for path in files if path.is_file() for recognise in _RECOGNISERS)
        except OSError:
            return False

    def refuse_folder(self, folder: Path) -> None:
        """Refuse a folder in which Neptune's client was started."""
        if (folder / ".neptune").is_dir():
            what = "the folder holds runs of Neptune's client and no log"
            raise SourceError(str(folder), what, f"give {folder / '.neptune'}", code="folder_of_client")

    def runs(self, source: str, selection: Selection) -> SelectedRuns:
        """Return the runs that are meant, and those left out; those of a group are one."""
        reader = Neptune(selection)
        if selection.group is not None:
            found = Mlflow.runs(reader, source, replace(selection, runs=(), experiment=None))
            return replace(found, grouped=tuple(run.id for runs in reader.held.values() for run in runs))
        found = Mlflow.runs(reader, source, selection)
        if selection.require_hardware and found.skipped:
            what = f"{len(found.skipped)} runs hold no hardware series, {found.skipped[0].name} among them"
            raise SourceError(source, what, "leave out --require-hardware", code="no_hardware_series")
        return found

    def listed(self, source: str, selection: Selection) -> list[ListedRun]:
        """Return what a store holds, with the reason of what cannot be read."""
        found = Mlflow.listed(Neptune(selection), source, selection)
        return [replace(each, holds="not looked into") for each in found] if source.startswith(_SERVER) else found

    def _open(self, source: str) -> tuple[_Store, str | None]:
        asked, named = self._selection, None
        if source.startswith(_SERVER):
            from gpureport.importers.neptune.live import find_live_runs  # noqa: PLC0415 - only here

            runs, store = find_live_runs(source, asked.filter), source.partition("#")[0]
        else:
            if asked.filter is not None:
                hint = "name runs with --run, * is any"
                raise SettingsError("--filter", "only a server filters runs", hint, code="filter_needs_server")
            store, named = split_locator(source.removeprefix(_PREFIX))
            runs = [run for run in _find_runs(store) if fnmatchcase(run.project, asked.project or "*")]
        if asked.group is not None and asked.runs:
            fits = [(f"{pattern}*", pattern) for pattern in asked.runs]
            runs = [run for run in runs if any(fnmatchcase(run.id, a) or fnmatchcase(run.name, b) for a, b in fits)]
        if not runs:
            what = "it holds no run of Neptune" + ("" if asked.project is None else f" of project {asked.project}")
            raise SourceError(store, what, _WANTED, code="no_runs")
        shared = Counter(run.id for run in runs)
        self.held = {run.id if shared[run.id] == 1 else run.key.replace(" ", "/"): [run] for run in runs}
        if asked.group is not None:
            self.held = {asked.group: runs}
        return _Store(store.removeprefix(_PREFIX), self.held, asked, names.read_name_map(asked.map)), named

    def _record(self, store: _Store, selection: Selection, info: RunInfo, options: ReadOptions) -> Tracked:
        del selection
        return _record_run(info.id, store, options)


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


def _record_run(run_id: str, store: _Store, options: ReadOptions) -> Tracked:
    asked, locator = store.selection, f"{_PREFIX}{store.where}#{run_id}"
    runs, processes, stages = list[Stored](), list[tuple[Stored, hardware.ProcessSamples]](), set[str]()
    metrics, params, given = list[TrainingMetric](), dict[str, str](), asked.gpu_memory_total
    for run in (each.load() if each.load else each for each in store.held[run_id]):
        spaces = store.find_spaces(run)
        # exports of Neptune 3 are in UTC, but what the client of Neptune 2 recorded came there with local times
        if run.files and (any(space.client for space in spaces) or run.scalars.get("sys/id") == run.id):
            paths = [path for space in spaces for path in space.leaves]
            run = exports.correct_local_times(run, paths, options.tz)  # noqa: PLW2901
        runs.append(run)
        for space in spaces:
            stages.add(space.stage or space.path)
            if asked.stage in {None, space.stage}:
                hosts = (f"{space.path}/hostname", f"{space.path}/details/hostname", "sys/hostname")
                node = next((str(run.scalars[name]) for name in hosts if run.scalars.get(name)), "")
                processes.append((run, hardware.sample_process(space, run.series, node)))
        metrics += _list_training(run, spaces)
        params |= _collect_params(run, spaces)
    if not stages:
        what = "the run holds no hardware series"
        raise SourceError(locator, what, "the client records none in notebooks", code="no_hardware_series")
    if not processes:
        hint = f"it has {', '.join(sorted(stages))}"
        raise SourceError(locator, f"it has no stage {asked.stage!r}", hint, code="no_such_stage")
    whole = hardware.arrange_by_device(block for _, samples in processes for block in samples.blocks)
    rows, unselected = hardware.select_gpus(whole, options.gpus)
    if unselected and all(gpu is None for _, gpu in rows.blocks):
        held = sorted({gpu for _, gpu in whole.blocks if gpu is not None})
        hint = f"--gpus can name {', '.join(map(str, held))}"
        raise SourceError(locator, "it holds none of the GPUs selected", hint, code="gpus_not_held")
    if not whole.blocks:
        raise SourceError(locator, "its hardware series hold no value", "leave the run out", code="no_values")
    sizes = [(run.size, run.last, *(len(each.times) for each in run.series.values())) for run in runs]
    tracked = build_tracked(
        locator,
        [_describe_device(processes, rows, key, given) for key in rows.blocks],
        hardware.build_tables(rows),
        metrics,
        quality=_account(processes, rows, {NOT_SELECTED: unselected, OTHER_PROCESS: rows.copies}),
        throughput=asked.throughput,
        name=asked.group or runs[0].name,
        stages=hardware.list_stages(rows),
        params=tuple(params.items()),
        tags=tuple(_collect_tags(processes).items()),
        state=repr(sizes),
        size=sum(run.size for run in runs),
    )
    training = build_training_table(metrics, tracked.span) if asked.stage else tracked.training
    quality, torn = tracked.quality, [entry for run in runs for entry in run.rejected]
    notes = [note for run in runs for note in run.notes] + _describe_rows(processes, rows, given) + [*quality.notes]
    last = max([run.last or 0 for run in runs] + [int(each.times.max()) for each in metrics if len(each.times)])
    unseen = (last - tracked.span[1]) / 1e6
    if unseen > max(_UNSAMPLED_INTERVALS * (tracked.interval or 0.0), 0):
        what = "before the run did: nothing is known of that time, its stderr may say why"
        notes.append(f"hardware monitoring ended {unseen:.0f} s {what}")
    quality = replace(
        quality,
        lines=quality.lines + len(training) + sum(entry.rows for entry in torn),
        rows_kept=quality.rows_kept + len(training),
        rejected=(*torn, *quality.rejected),
        notes=tuple(notes),
    )
    return replace(tracked, training=training, quality=quality)


def _list_training(run: Stored, spaces: Sequence[names.Namespace]) -> Iterator[TrainingMetric]:
    """Yield every series of numbers that is no hardware series; a fractional step counts as not recorded."""
    for path in sorted({*run.series}.difference(*((*space.leaves, *space.others) for space in spaces))):
        series = run.series[path]
        known = (np.abs(series.steps) < _MOST_STEP) & (series.steps == np.floor(series.steps))
        steps = np.where(known, series.steps, 0).astype(np.int64)
        yield TrainingMetric(path, series.times, steps, series.values, known)


def _collect_params(run: Stored, spaces: Sequence[names.Namespace]) -> dict[str, str]:
    """Return the params of a run: its single values without those of Neptune and of its processes."""
    described = {f"{space.path}/{name}" for space in spaces for name in ("hostname", "pid", "tid", "traceback")}
    inside = ("sys/", "source_code/", "monitoring/", *(f"{space.path}/details/" for space in spaces))
    return {
        path: str(value).lower() if isinstance(value, bool) else str(value)
        for path, value in sorted(run.scalars.items())
        if path.startswith(_INTEGRATIONS) or not (path.startswith(inside) or path in described)
    }


def _collect_tags(processes: Processes) -> dict[str, str]:
    """Return the tags of a run, whose value is `true`: in Neptune a tag is a word; and its user, project and nodes."""
    labels = {
        "user": [str(run.scalars.get("sys/owner") or "") for run, _ in processes],
        "project": [run.project for run, _ in processes],
        "node": [samples.node for _, samples in processes],
    }
    named = {name: ", ".join(dict.fromkeys(filter(None, values))) for name, values in labels.items()}
    tags = dict.fromkeys((tag for run, _ in processes for tag in run.tags), "true")
    return tags | {name: text for name, text in named.items() if text}


def _describe_device(
    processes: Processes, rows: hardware.RowsByDevice, key: hardware.DeviceKey, given: int | None
) -> Device:
    (node, gpu), blocks = key, rows.blocks[key]
    shown = node if rows.several and node else None
    if gpu is None:
        return Device(id=rows.id(key), node=shown)
    totals = [block.values[names.MEMORY_TOTAL][0] for block in blocks if names.MEMORY_TOTAL in block.values]
    total = totals[0] if totals else _find_highest(processes, node, names.MEMORY) * names.GIB
    # only the recipe records the model
    places = dict.fromkeys(f"{block.space.path}/details/gpu/{gpu}/name" for block in blocks)
    models = (run.scalars.get(place) for run, _ in processes for place in places)
    return Device(
        id=rows.id(key),
        index=gpu,
        node=shown,
        model=next((model for model in models if isinstance(model, str)), None),
        memory_total_bytes=given or round(total) or None,
        power_limit_watts=_find_highest(processes, node, names.POWER) or None,
    )


def _find_highest(processes: Processes, node: str, metric: str) -> float:
    """Return the maximum that the client stated for a gauge, that of the largest GPU of the machine; 0 if none."""
    found = (
        run.highest.get(path, 0.0)
        for run, samples in processes
        for path, meaning in samples.space.leaves.items()
        if samples.node == node and meaning.metric == metric
    )
    return max(found, default=0.0)


def _describe_rows(processes: Processes, rows: hardware.RowsByDevice, given: int | None) -> list[str]:
    samples = [each for _, each in processes]
    zeros = sum(int(block.imputed.sum()) for blocks in rows.blocks.values() for block in blocks)
    never, unrestored = (
        ", ".join(f"gpu:{gpu}" for gpu in sorted({gpu for each in samples for gpu in getattr(each, name)}))
        for name in ("never", "unrestored")
    )
    nodes = {node for node, gpu in rows.blocks if gpu is not None}
    said = {
        f"Neptune's client drops zeros: {zeros} samples with a utilization of 0 are put back": zeros,
        f"utilization of {never} was never reported: it is unknown, always 0 or not supported": never,
        f"memory of {unrestored} was not recorded, so zeros cannot be put back and idle time is missing": unrestored,
        "GPU memory in use holds what the driver reserves (NVML's first interface), "
        "a few hundred MiB that nvidia-smi leaves out": any(
            meaning.metric == names.MEMORY for each in samples for meaning in each.space.leaves.values()
        ),
        "memory of each GPU is taken to be that of the largest one of its machine, which is all that is recorded": not (
            given or not any(_find_highest(processes, node, names.MEMORY) for node in nodes)
        ),
    }
    return [text for text, holds in said.items() if holds]


def _account(processes: Processes, rows: hardware.RowsByDevice, left: Mapping[str, int]) -> Quality:
    """Return what became of every point of hardware; points are counted as the lines of a log are.

    Of a row of several points, the first counts as kept and the others as continued. Points that are not numbers, and
    points of series without a metric here, count as noise.
    """
    samples, blocks = [each for _, each in processes], [block for found in rows.blocks.values() for block in found]
    kept, points = sum(len(each.times) for each in blocks), hardware.count_points(blocks)
    absent = sum((each.nan for each in samples), Counter[str]())
    others = [(run, path) for run, each in processes for path in each.space.others if not path.endswith(names.DERIVED)]
    noise = absent.total() + sum(len(run.series[path].times) for run, path in others)
    repeated, forked = sum(each.repeated for each in samples), sum(each.crowded for each in samples)
    counted = +Counter({**left, TWICE_AT_ONCE: repeated, FORKED: forked})
    return Quality(
        lines=points + noise + counted.total(),
        rows_kept=kept,
        rejected=tuple(Rejected(reason=reason, rows=count, first_line=None) for reason, count in counted.items()),
        noise=noise,
        continued=points - kept,
        absent_cells=tuple(AbsentCells(column=name, reason="NaN", cells=count) for name, count in absent.items()),
        imputed_points=sum(int(each.imputed.sum()) for each in blocks),
    )
