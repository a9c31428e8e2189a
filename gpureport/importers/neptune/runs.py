"""Turns a Neptune run, or several local recordings of one run, into a recording."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa

from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers import tracker_series
from gpureport.importers.neptune import hardware, stored
from gpureport.importers.neptune.live import find_live_runs
from gpureport.importers.protocol import ReadOptions, RunInfo, Selection, Store, Tracked, Tracker, describe_devices
from gpureport.importers.read_only_sqlite import unreadable
from gpureport.importers.surveys import stack_rows
from gpureport.recording import HOST, Device
from gpureport.regular_files import code_system_error, path_exists, walk_folder

_WANTED = "give an export from neptune-exporter, or a .neptune folder"
_FORMS = {
    stored.is_export_file: stored.find_exported_runs,
    stored.is_operation_log: stored.find_local_runs,
    stored.is_scale_database: stored.find_scale_runs,
}


class Recordings(Store):
    def __init__(self, store: str, named: str | None, asked: Selection) -> None:
        self.where, self.asked, self.chosen, path = store, asked, hardware.read_name_map(asked.map), Path(store)
        if store.startswith("//"):
            runs, self.filters = find_live_runs(store, named, asked.filter), True
        elif not path_exists(path):
            raise SourceError(store, "no such file or folder", _WANTED, code="no_such_file")
        else:
            try:
                files = list(_list_files(path, hidden=True))
                runs = [run for find in _FORMS.values() for run in find(files, path if path.is_dir() else path.parent)]
            except OSError as error:
                raise unreadable(error, path, code_system_error(error, "cannot_read")) from error
            runs = [run for run in runs if fnmatchcase(run.project, asked.project or "*")]
        if asked.group is not None and asked.runs:
            fits = [(f"{pattern}*", pattern) for pattern in asked.runs]
            runs = [run for run in runs if any(fnmatchcase(run.id, a) or fnmatchcase(run.name, b) for a, b in fits)]
        if not runs:
            project = "" if asked.project is None else f" in project {asked.project}"
            raise SourceError(store, f"it contains no Neptune run{project}", _WANTED, code="no_runs")
        shared = Counter(run.id for run in runs)
        self.held = {run.id if shared[run.id] == 1 else run.key.replace(" ", "/"): [run] for run in runs}
        if asked.group is not None:
            self.held, self.grouped = {asked.group: runs}, tuple(run.id for run in runs)
        elif asked.require_hardware and not (named or asked.runs):
            infos = [info for info in self.runs(asked.experiment) if not info.deleted]
            bare = [info.name for info in infos if not (info.hardware or info.fault)]
            if 0 < len(bare) < len(infos):
                what = f"{len(bare)} runs have no hardware series, such as {bare[-1]}"
                raise SourceError(store, what, "leave out --require-hardware", code="no_hardware_series")

    def runs(self, experiment: str | None = None, wanted: str | None = None) -> list[RunInfo]:
        found = sorted((self._describe(*item) for item in self.held.items()), key=lambda run: -(run.started or 0))
        return [each for each in found if fnmatchcase(each.name, experiment or "*")]

    def _describe(self, run_id: str, runs: Sequence[stored.Stored]) -> RunInfo:
        first, keys, asked = runs[0], " ".join(sorted(run.key for run in runs)), self.asked
        if fault := next((run.fault for run in runs if run.fault is not None), None):
            return RunInfo(id=run_id, key=keys, name=run_id, status=fault.code.replace("_", " "), fault=fault)
        processes = (each for run in runs for each in hardware.find_processes(run, self.chosen))
        gpus = {each.gpu for process in processes for each in process.leaves.values()}
        state = "failed" if first.scalars.get("sys/failed") is True else str(first.scalars.get("sys/state", "")).lower()
        return RunInfo(
            id=run_id,
            key="\n".join(filter(None, [asked.group, keys, asked.stage, str(self.chosen)])),
            name=asked.group or first.name,
            status=state or "status not recorded",
            started=first.started,
            deleted=first.scalars.get("sys/trashed") is True,
            hardware="unknown" if first.paths is None else describe_devices(gpus),
            lacks="not examined" if first.paths is None else "",
        )


def _refuse_folder(folder: Path) -> None:
    if (folder / ".neptune").is_dir():
        what = "the folder contains runs recorded by the Neptune client, but no log"
        raise SourceError(str(folder), what, f"give {folder / '.neptune'}", code="folder_of_client")


def _list_files(source: Path, *, hidden: bool) -> Iterator[Path]:
    # walking a file yields nothing
    yield from [source] if source.is_file() else []
    for place, folders, files in walk_folder(source):
        folders[:] = sorted(name for name in folders if hidden or not name.startswith("."))
        yield from (place / name for name in sorted(files))


def _record(store: Recordings, info: RunInfo, asked: Selection, options: ReadOptions) -> Tracked:
    locator = f"neptune:{store.where}#{info.id}"
    runs = [each.load() if each.load else each for each in store.held[info.id]]
    every = list[hardware.Process]()
    parts, params = defaultdict[str, list[tracker_series.Series]](list), dict[str, str]()
    zone: str | None = "UTC"
    for run in runs:
        own = hardware.find_processes(run, store.chosen)
        # exports from Neptune 3 are in UTC, but those of the Neptune 2 client in local time
        if run.files and (any(each.client for each in own) or run.scalars.get("sys/id") == run.id):
            paths = [path for each in own for path in each.leaves]
            zone = None if stored.correct_local_times(run, paths, options.tz) else zone
        for path in sorted({*run.series}.difference(*((*each.leaves, *each.others) for each in own))):
            parts[path].append(run.series[path])
        params |= _collect_params(run, own)
        every += own
    processes = [each for each in every if asked.stage in {None, each.stage}]
    metrics = {path: tracker_series.join_series(each) for path, each in parts.items()}
    if not every:
        what = "the run has no hardware series"
        raise SourceError(locator, what, "Neptune's client records none in notebooks", code="no_hardware_series")
    if not processes:
        hint = f"it has {', '.join(sorted({each.stage or each.path for each in every}))}"
        raise SourceError(locator, f"it has no stage {asked.stage!r}", hint, code="no_such_stage")
    found = hardware.read_hardware(processes, options.gpus)
    if found.gpus and options.gpus is not None and found.gpus.isdisjoint(options.gpus):
        hint = f"--gpus accepts {', '.join(map(str, sorted(found.gpus)))}"
        raise SourceError(locator, "it contains none of the selected GPUs", hint, code="gpus_not_held")
    series = _build_devices(found, asked.gpu_memory_total)
    if not series:
        raise SourceError(locator, "its hardware series have no values", "leave out the run", code="no_values")
    labels = {
        "user": [str(each.run.scalars.get("sys/owner") or "") for each in processes],
        "project": [each.run.project for each in processes],
        "node": [each.node for each in processes],
    }
    # Neptune's tags are single words
    tags = dict.fromkeys((tag for each in processes for tag in each.run.tags), "true")
    tags |= {name: text for name, each in labels.items() if (text := ", ".join(dict.fromkeys(filter(None, each))))}
    lasts = [*(run.last or 0 for run in runs), *(int(each.times.max()) for each in metrics.values() if len(each.times))]
    return tracker_series.build_tracked(
        locator,
        series,
        metrics,
        name=asked.group or runs[0].name,
        quality=_account(runs, found, asked),
        throughput=asked.throughput,
        timezone=zone,
        state=[(run.size, run.last, *(len(each.times) for each in run.series.values())) for run in runs],
        stage=asked.stage,
        last=max(lasts),
        stages=found.list_stages(),
        params=tuple(params.items()),
        tags=tuple(tags.items()),
        size=sum(run.size for run in runs),
    )


def _collect_params(run: stored.Stored, processes: Sequence[hardware.Process]) -> dict[str, str]:
    described = {f"{each.path}/{name}" for each in processes for name in ("hostname", "pid", "tid", "traceback")}
    inside = ("sys/", "source_code/", "monitoring/", *(f"{each.path}/details/" for each in processes))
    return {
        path: str(value).lower() if isinstance(value, bool) else str(value)
        for path, value in sorted(run.scalars.items())
        # the names of Neptune's integrations identify the framework
        if path.startswith("source_code/integrations/") or not (path.startswith(inside) or path in described)
    }


def _find_highest(found: hardware.Hardware, node: str, metric: str) -> float:
    own = [each for each in found.processes if each.node == node]
    paths = ((each, path) for each in own for path, meaning in each.leaves.items() if meaning.metric == metric)
    return max((each.run.highest.get(path, 0.0) for each, path in paths), default=0.0)


def _build_devices(found: hardware.Hardware, given: int | None) -> dict[Device, pa.Table]:
    series = {}
    for (node, gpu), blocks in found.blocks.items():
        named = found.name_node(node)
        own = HOST if gpu is None else f"gpu:{gpu}"
        device = Device(id=own if named is None else f"{named}/{own}", index=gpu, node=named)
        if gpu is not None:
            totals = (
                each.columns[hardware.MEMORY_TOTAL][0] for each in blocks if hardware.MEMORY_TOTAL in each.columns
            )
            total = next(totals, _find_highest(found, node, hardware.MEMORY) * hardware.GIB)
            # only the recipe records the model
            models = (each.run.scalars.get(f"{each.path}/details/gpu/{gpu}/name") for each, *_ in blocks)
            device = replace(
                device,
                model=next((model for model in models if isinstance(model, str)), None),
                memory_total_bytes=given or round(total) or None,
                power_limit_watts=_find_highest(found, node, hardware.POWER) or None,
            )
        parts = []
        for process, _, times, values in blocks:
            known = {name: each for name, each in values.items() if name not in {"points", "imputed"}}
            held = tracker_series.build_device_table(device.id, times, known, values["imputed"], process.stage)
            parts += [held] if len(held) else []
        if parts:
            series[device] = stack_rows(parts, device.id)
    return series


def _describe_rows(found: hardware.Hardware, asked: Selection) -> Iterator[str]:
    never, unrestored = (", ".join(f"gpu:{gpu}" for gpu in sorted(gpus)) for gpus in (found.never, found.unrestored))
    if zeros := found.count("imputed"):
        yield f"Neptune's client drops zeros: {zeros} samples with a utilization of 0 were restored"
    if never:
        yield f"utilization of {never} was never reported, so it is unknown (always 0, or not supported)"
    if unrestored:
        yield f"memory of {unrestored} was not recorded, so zeros cannot be restored and idle time is missing"
    if any(each.metric == hardware.MEMORY for process in found.processes for each in process.leaves.values()):
        yield (
            "GPU memory in use includes what the driver reserves (as in NVML's first interface): "
            "a few hundred MiB, which nvidia-smi excludes"
        )
    nodes = {node for node, gpu in found.blocks if gpu is not None}
    if asked.gpu_memory_total is None and any(_find_highest(found, node, hardware.MEMORY) for node in nodes):
        yield "memory of each GPU is assumed to be that of its machine's largest GPU, since only that was recorded"


def _account(runs: Sequence[stored.Stored], found: hardware.Hardware, asked: Selection) -> Quality:
    # the first point of a row is counted as kept, and other points as continued
    kept = sum(len(each.times) for blocks in found.blocks.values() for each in blocks)
    points = found.count("points")
    others = [(each.run, path) for each in found.processes for path in each.others]
    unused = (run.series[path].times for run, path in others if not path.endswith(hardware.DERIVED))
    noise = found.nan.total() + sum(map(len, unused))
    rejected = (*(entry for run in runs for entry in run.rejected), *tracker_series.list_rejected(found.rejected))
    return Quality(
        lines=points + noise + sum(entry.rows for entry in rejected),
        rows_kept=kept,
        rejected=rejected,
        noise=noise,
        continued=points - kept,
        absent_cells=tracker_series.list_absent({(name, "NaN"): count for name, count in found.nan.items()}),
        imputed_points=found.count("imputed"),
        notes=(*(note for run in runs for note in run.notes), *_describe_rows(found, asked)),
    )


NEPTUNE = Tracker(
    kind="neptune",
    title="Neptune",
    # hidden folders are searched only if the user names them
    holds=lambda path: any(one.is_file() and form(one) for one in _list_files(path, hidden=False) for form in _FORMS),
    open=Recordings,
    record=_record,
    refuse_folder=_refuse_folder,
)
