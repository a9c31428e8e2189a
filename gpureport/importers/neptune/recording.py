"""A run of Neptune as a recording: devices, stages, training metrics, labels, and what became of every point."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpureport.data_quality import AbsentCells, ClockStep, Quality, Rejected
from gpureport.errors import SourceError
from gpureport.importers.account import list_first
from gpureport.importers.neptune import hardware
from gpureport.importers.neptune.exports import correct_local_times
from gpureport.importers.neptune.hardware import DeviceKey, ProcessSamples, RowsByDevice
from gpureport.importers.neptune.names import GIB, MEMORY, POWER, NameMap, Namespace, find_namespaces
from gpureport.importers.neptune.stored import Stored
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import FORKED, NOT_SELECTED, OTHER_PROCESS, TWICE_AT_ONCE
from gpureport.importers.protocol.tracker import Selection, Tracked
from gpureport.importers.tracker_series import TrainingMetric, build_tracked, build_training_table
from gpureport.recording import Device

_UNSAMPLED_INTERVALS = 3
"""Intervals without samples at the end of a run that are worth a note (pragmatic)."""
_MOST_NAMED, _MOST_STEP = 4, 2**62
_TOTAL = "gpu_memory_total_bytes"
_INTEGRATIONS = "source_code/integrations/"
"""Where Neptune's integrations put their version; their names tell the framework."""


Processes = Sequence[tuple[Stored, ProcessSamples]]
"""What each process recorded, with all that its store holds of the run."""


def record_run(  # noqa: PLR0913, PLR0917 - what a recording depends on
    runs: Sequence[Stored], name: str, locator: str, selection: Selection, chosen: NameMap, options: ReadOptions
) -> Tracked:
    """Return a run, or several that are one, as a recording.

    Raises:
        SourceError: when it holds no hardware series, or none that was selected.
    """
    processes: list[tuple[Stored, ProcessSamples]] = []
    metrics: list[TrainingMetric] = []
    params: dict[str, str] = {}
    stages: set[str] = set()
    back: set[int] = set()
    notes: list[str] = []
    for stored in runs:
        run, spaces = stored, find_namespaces(stored.series, [*stored.scalars, *stored.moments], chosen)
        # exports of Neptune 3 are in UTC, but what the client of Neptune 2 recorded came there with local times
        if run.exported and (any(space.client for space in spaces) or run.scalars.get("sys/id") == run.id):
            run, steps = correct_local_times(run, [tuple(space.leaves) for space in spaces], options.tz)
            back.update(steps)
        for space in spaces:
            stages.add(space.stage or space.path)
            if selection.stage in {None, space.stage}:
                processes.append((run, hardware.sample_process(space, run.series, _find_node(run, space))))
        metrics += _list_training(run, spaces)
        params |= _collect_params(run, spaces)
        notes += run.notes
    if not processes and stages:
        hint = f"it has {', '.join(sorted(stages))}"
        raise SourceError(locator, f"it has no stage {selection.stage!r}", hint, code="no_such_stage")
    if not processes:
        below = {path.split("/")[0] for run in runs for path in (*run.series, *run.scalars)} - {"sys", "source_code"}
        what = f"the run holds no hardware series, but {', '.join(sorted(below)) or 'nothing'}"
        hint = "the client records none in notebooks, nor with capture_hardware_metrics=False"
        raise SourceError(locator, what, hint, code="no_hardware_series")
    whole = hardware.arrange_by_device(block for _, samples in processes for block in samples.blocks)
    rows, unselected = hardware.select_gpus(whole, options.gpus)
    if not whole.blocks:
        raise SourceError(locator, "its hardware series hold no value", "leave the run out", code="no_values")
    tracked = build_tracked(
        locator,
        [_describe_device(processes, rows, key, selection.gpu_memory_total) for key in rows.blocks],
        hardware.build_tables(rows),
        metrics,
        quality=_account(processes, rows, {NOT_SELECTED: unselected, OTHER_PROCESS: rows.copies}),
        throughput=selection.throughput,
        name=name,
        stages=hardware.list_stages(rows),
        params=tuple(params.items()),
        tags=tuple(_collect_tags(processes).items()),
        state=" ".join(run.state for run in runs),
        size=sum(run.size for run in runs),
    )
    training = build_training_table(metrics, tracked.span) if selection.stage else tracked.training
    quality, left = tracked.quality, [entry for run in runs for entry in run.rejected]
    notes += [*_describe_rows(processes, rows, selection.gpu_memory_total), *quality.notes]
    logged = [int(metric.times.max()) for metric in metrics if len(metric.times)]
    unseen = max([*logged, *(run.last or 0 for run in runs)]) - tracked.span[1]
    if unseen > max(_UNSAMPLED_INTERVALS * (tracked.interval or 0.0) * 1e6, 0):
        what = "before the run did: nothing is known of that time, its stderr may say why"
        notes.append(f"hardware monitoring ended {unseen / 1e6:.0f} s {what}")
    step = ClockStep(
        device=tracked.devices[0].id, at=0, step_seconds=-3600.0, shift_seconds=3600.0, cause="daylight saving"
    )
    quality = replace(
        quality,
        lines=quality.lines + len(training) + sum(entry.rows for entry in left),
        rows_kept=quality.rows_kept + len(training),
        rejected=(*left, *quality.rejected),
        clock_steps=tuple(replace(step, at=at) for at in sorted(back)),
        notes=tuple(notes),
    )
    return replace(tracked, training=training, quality=quality)


def _list_training(run: Stored, spaces: Sequence[Namespace]) -> Iterator[TrainingMetric]:
    """Yield every series of numbers that is no hardware series; a fractional step counts as not recorded."""
    own = {path for space in spaces for path in space.paths}
    for path, series in sorted(run.series.items()):
        if path not in own:
            known = (np.abs(series.steps) < _MOST_STEP) & (series.steps == np.floor(series.steps))
            steps = np.where(known, series.steps, 0).astype(np.int64)
            yield TrainingMetric(path, series.times, steps, series.values, known)


def _find_node(run: Stored, space: Namespace) -> str:
    """Return the name of the machine a process ran on; empty if not recorded."""
    names = (f"{space.path}/hostname", f"{space.path}/details/hostname", "sys/hostname")
    said = (run.scalars.get(name) for name in names)
    return next((name for name in said if isinstance(name, str) and name), "")


def _collect_params(run: Stored, spaces: Iterable[Namespace]) -> dict[str, str]:
    """Return the params of a run: its single values without those of Neptune and of its processes.

    Times are left out: they differ between any two runs and explain no difference.
    """
    paths = [space.path for space in spaces]
    described = {f"{path}/{name}" for path in paths for name in ("hostname", "pid", "tid", "traceback")}
    inside = ("sys/", "source_code/", "monitoring/", *(f"{path}/details/" for path in paths))
    return {
        path: str(value).lower() if isinstance(value, bool) else str(value)
        for path, value in sorted(run.scalars.items())
        if path.startswith(_INTEGRATIONS) or not (path.startswith(inside) or path in described)
    }


def _collect_tags(processes: Processes) -> dict[str, str]:
    """Return the tags of a run, whose value is `true`: in Neptune a tag is a word; and its user, project and nodes."""
    tags = dict.fromkeys((tag for run, _ in processes for tag in run.tags), "true")
    labels = {
        "user": [str(run.scalars.get("sys/owner") or "") for run, _ in processes],
        "project": [run.project for run, _ in processes],
        "node": [samples.node for _, samples in processes],
    }
    named = {name: ", ".join(dict.fromkeys(filter(None, values))) for name, values in labels.items()}
    return tags | {name: text for name, text in named.items() if text}


def _describe_device(processes: Processes, rows: RowsByDevice, key: DeviceKey, given: int | None) -> Device:
    node, gpu = key
    shown = node if rows.several and node else None
    if gpu is None:
        return Device(id=rows.id(key), node=shown)
    recorded = [float(block.values[_TOTAL][0]) for block in rows.blocks[key] if _TOTAL in block.values]
    # only the recipe records the model
    names = dict.fromkeys(f"{block.space.path}/details/gpu/{gpu}/name" for block in rows.blocks[key])
    models = (run.scalars.get(name) for run, _ in processes for name in names)
    total = recorded[0] if recorded else _find_highest(processes, node, MEMORY) * GIB
    return Device(
        id=rows.id(key),
        index=gpu,
        node=shown,
        model=next((model for model in models if isinstance(model, str)), None),
        memory_total_bytes=given or round(total) or None,
        power_limit_watts=_find_highest(processes, node, POWER) or None,
    )


def _find_highest(processes: Processes, node: str, metric: str) -> float:
    """Return the maximum that the client stated for a gauge, that of the largest GPU of the machine; 0 if none."""
    found = [
        run.highest.get(path, 0.0)
        for run, samples in processes
        for path, meaning in samples.space.leaves.items()
        if samples.node == node and meaning.metric == metric
    ]
    return max(found, default=0.0)


def _describe_rows(processes: Processes, rows: RowsByDevice, given: int | None) -> list[str]:
    """Return what a reader must know of the devices and their series."""
    samples = [each for _, each in processes]
    zeros = sum(int(block.imputed.sum()) for blocks in rows.blocks.values() for block in blocks)
    never, unrestored = (
        ", ".join(f"gpu:{gpu}" for gpu in sorted({gpu for each in samples for gpu in getattr(each, name)}))
        for name in ("never", "unrestored")
    )
    metrics = {meaning.metric for each in samples if each.space.gpus for meaning in each.space.leaves.values()}
    others = [path for each in samples for path in each.space.others]
    bare = [block.gpu or 0 for each in samples if each.space.bare for block in each.blocks]
    nodes = {node for node, gpu in rows.blocks if gpu is not None}
    largest = any(_find_highest(processes, node, MEMORY) for node in nodes)
    known = all(any(_TOTAL in block.values for block in rows.blocks[key]) for key in rows.blocks if key[1] is not None)
    said = {
        f"Neptune's client drops zeros: {zeros} samples with a utilization of 0 are put back": zeros,
        f"utilization of {never} was never reported: it is unknown, always 0 or not supported": never,
        f"memory of {unrestored} was not recorded, so zeros cannot be put back and idle time is missing": unrestored,
        f"{max(bare, default=0) + 1} processes saw one GPU each, without its number: "
        "they are numbered as they began": any(bare),
        "a process saw a single GPU, and which one it was is not recorded: it is called gpu:0": bare and not any(bare),
        "GPU power was not recorded: Neptune's client does so since 1.11.0": metrics and POWER not in metrics,
        "GPU memory in use holds what the driver reserves (NVML's first interface), "
        "a few hundred MiB that nvidia-smi leaves out": MEMORY in metrics,
        f"{_count_others(processes)} points of {len(others)} series have no metric here: "
        f"{list_first(others, _MOST_NAMED)}": others,
        "memory of each GPU is what --gpu-memory-total says": given and nodes,
        "memory of each GPU is taken to be that of the largest one of its machine, "
        "which is all that is recorded": largest and not given,
        "memory of the GPUs is not recorded: --gpu-memory-total GIB says it": not (given or largest or known),
    }
    return [text for text, holds in said.items() if holds]


def _count_others(processes: Processes) -> int:
    """Return the number of points of hardware series without a metric here."""
    return sum(len(run.series[path].times) for run, samples in processes for path in samples.space.others)


def _account(processes: Processes, rows: RowsByDevice, left: Mapping[str, int]) -> Quality:
    """Return what became of every point of hardware; points are counted as the lines of a log are.

    Of a row of several points, the first counts as kept and the others as continued. Points that are not numbers, and
    points of series without a metric here, count as noise.
    """
    samples = [each for _, each in processes]
    blocks = [block for found in rows.blocks.values() for block in found]
    kept, points = sum(len(each.times) for each in blocks), hardware.count_points(blocks)
    absent = sum((each.nan for each in samples), Counter[str]())
    counted = Counter(left) + Counter(
        {TWICE_AT_ONCE: sum(each.repeated for each in samples), FORKED: sum(each.crowded for each in samples)}
    )
    noise = absent.total() + _count_others(processes)
    return Quality(
        lines=points + noise + counted.total(),
        rows_kept=kept,
        rejected=tuple(Rejected(reason=reason, rows=count, first_line=None) for reason, count in counted.items()),
        noise=noise,
        continued=points - kept,
        absent_cells=tuple(AbsentCells(column=name, reason="NaN", cells=count) for name, count in absent.items()),
        imputed_points=sum(int(each.imputed.sum()) for each in blocks),
    )
