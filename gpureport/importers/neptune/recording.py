"""A run of Neptune as a recording: devices, stages, training metrics, labels, and what became of every point."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpureport.data_quality import AbsentCells, ClockStep, Quality, Rejected
from gpureport.errors import SourceError
from gpureport.importers.neptune import hardware
from gpureport.importers.neptune.hardware import DeviceKey, ProcessSamples, RowsByDevice
from gpureport.importers.neptune.local_time import correct_local_times
from gpureport.importers.neptune.names import GIB, MEMORY, POWER, NameMap, Namespace, find_namespaces
from gpureport.importers.neptune.stored import Content
from gpureport.importers.note_text import list_first
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import FORKED, NOT_SELECTED, OTHER_PROCESS, TWICE_AT_ONCE
from gpureport.importers.protocol.tracker import Selection, Tracked
from gpureport.importers.tracker_series import (
    TrainingMetric,
    add_timing,
    build_training_table,
    describe_training,
    measure_work,
    read_clocks,
    usual_interval,
)
from gpureport.recording import Device

_UNSAMPLED_INTERVALS = 3
"""Intervals without samples at the end of a run that are worth a note (pragmatic)."""
_MOST_NAMED = 4
_TOTAL = "gpu_memory_total_bytes"
_COPIED = "recorded the same devices at the same time as others and were left out"
_NUMBERED = "saw one GPU each, without its number: they are numbered as they began"
_BARE = "a process saw a single GPU, and which one it was is not recorded: it is called gpu:0"
_RESERVED = (
    "GPU memory in use holds what the driver reserves (NVML's first interface), "
    "a few hundred MiB that nvidia-smi leaves out"
)
_LARGEST = "memory of each GPU is taken to be that of the largest one of its machine, which is all that is recorded"
_ENDED = "before the run did: nothing is known of that time, its stderr may say why"
_INTEGRATIONS = "source_code/integrations/"
"""Where Neptune's integrations put their version; their names tell the framework."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What was written in one place of the store, its namespaces, and the samples of those that are selected."""

    content: Content
    spaces: Sequence[Namespace]
    samples: Sequence[ProcessSamples]
    back: Sequence[int]

    @property
    def other_points(self) -> int:
        """Number of points of hardware series without a metric here."""
        others = [path for each in self.samples for path in each.space.others]
        return sum(len(self.content.series[path].times) for path in others)

    def training(self) -> Iterator[TrainingMetric]:
        """Yield every series of numbers that is no hardware series; a fractional step counts as not recorded."""
        for path, series in sorted(self.content.series.items()):
            if not any(space.holds(path) for space in self.spaces):
                steps = series.steps // hardware.STEP_UNITS
                known = (steps * hardware.STEP_UNITS == series.steps) & (series.steps != hardware.STEP_NOT_RECORDED)
                yield TrainingMetric(path, series.times, steps, series.values, known)


def record_run(  # noqa: PLR0913, PLR0917 - what a recording depends on
    contents: Sequence[Content], name: str, locator: str, selection: Selection, chosen: NameMap, options: ReadOptions
) -> Tracked:
    """Return a run as a recording.

    Raises:
        SourceError: when it holds no hardware series, or none that was selected.
    """
    places = [_read_place(content, selection.stage, chosen, options.tz) for content in contents]
    samples = [sample for place in places for sample in place.samples]
    if not samples:
        raise _no_hardware_error(places, locator, selection)
    whole = hardware.arrange_by_device(block for sample in samples for block in sample.blocks)
    rows, unselected = hardware.select_gpus(whole, options.gpus)
    if options.gpus is not None and not any(gpu is not None for _, gpu in rows.blocks):
        held = ", ".join(sorted({str(gpu) for _, gpu in whole.blocks if gpu is not None})) or "none"
        raise SourceError(locator, "it holds none of the GPUs asked for", f"it holds {held}", code="gpus_not_held")
    if not rows.blocks:
        raise SourceError(locator, "its hardware series hold no value", "leave the run out", code="no_values")
    series = hardware.build_tables(rows)
    clocks = read_clocks(series.values())
    span = min(each.first or 0 for each in clocks), max(each.last or 0 for each in clocks)
    interval = usual_interval(clocks)
    metrics = [metric for place in places for metric in place.training()]
    training = build_training_table(metrics, span if selection.stage else None)
    work = measure_work(metrics, selection.throughput, span)
    given = selection.gpu_memory_total
    devices = tuple(_describe_device(places, rows, key, given) for key in rows.blocks)
    logged = [int(metric.times.max()) for metric in metrics if len(metric.times)]
    unseen = max([*logged, *(place.content.last or 0 for place in places)]) - span[1]
    notes = [note for place in places for note in place.content.notes]
    notes += _notes(places, rows, devices, given)
    if unseen > _UNSAMPLED_INTERVALS * (interval or 0.0) * 1e6 and unseen > 0:
        notes.append(f"hardware monitoring ended {unseen / 1e6:.0f} s {_ENDED}")
    notes += describe_training([metric.name for metric in metrics], work, selection.throughput)
    return Tracked(
        name=name,
        span=span,
        devices=devices,
        series=series,
        training=training,
        work=None if work is None else work[0],
        quality=add_timing(_account(places, rows, unselected, len(training), tuple(notes)), clocks),
        interval=interval,
        stages=hardware.list_stages(rows),
        params=tuple(_collect_params(places).items()),
        tags=tuple(_collect_tags(places).items()),
        state=" ".join(each.state for each in contents),
        size=sum(each.size for each in contents),
    )


def _read_place(content: Content, stage: str | None, chosen: NameMap, tz: str | None) -> _Place:
    spaces = find_namespaces(content.series, [*content.scalars, *content.moments], chosen)
    back: Sequence[int] = ()
    # exports of Neptune 3 are in UTC, but what the client of Neptune 2 recorded came there with local times
    from_client = any(space.client for space in spaces) or content.scalars.get("sys/id") == content.exported
    if content.exported and spaces and from_client:
        content, back = correct_local_times(content, [tuple(space.leaves) for space in spaces], tz)
    wanted = [space for space in spaces if stage in {None, space.stage}]
    samples = [hardware.sample_process(space, content.series, _find_node(content, space)) for space in wanted]
    return _Place(content=content, spaces=spaces, samples=samples, back=back)


def _no_hardware_error(places: Sequence[_Place], locator: str, selection: Selection) -> SourceError:
    stages = sorted({space.stage or space.path for place in places for space in place.spaces})
    if stages:
        what = f"it has no stage {selection.stage!r}"
        return SourceError(locator, what, f"it has {', '.join(stages)}", code="no_such_stage")
    below = {path.split("/")[0] for each in places for path in (*each.content.series, *each.content.scalars)}
    what = f"the run holds no hardware series, but {', '.join(sorted(below - {'sys', 'source_code'})) or 'nothing'}"
    hint = "the client records none in notebooks, nor with capture_hardware_metrics=False"
    return SourceError(locator, what, hint, code="no_hardware_series")


def _find_node(content: Content, space: Namespace) -> str:
    """Return the name of the machine a process ran on; empty if not recorded."""
    for path in (f"{space.path}/hostname", f"{space.path}/details/hostname", "sys/hostname"):
        if isinstance(said := content.scalars.get(path), str) and said:
            return said
    return ""


def _collect_params(places: Iterable[_Place]) -> dict[str, str]:
    """Return the params of a run: its single values without those of Neptune and of its processes.

    Times are left out: they differ between any two runs and explain no difference.
    """
    found: dict[str, str] = {}
    for place in places:
        described = {
            f"{space.path}/{name}" for space in place.spaces for name in ("hostname", "pid", "tid", "traceback")
        }
        inside = tuple(f"{space.path}/details/" for space in place.spaces)
        for path, value in sorted(place.content.scalars.items()):
            own = path.startswith(("sys/", "source_code/", "monitoring/", *inside)) or path in described
            if not own or path.startswith(_INTEGRATIONS):
                found[path] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _collect_tags(places: Sequence[_Place]) -> dict[str, str]:
    """Return the tags of a run, whose value is `true`: in Neptune a tag is a word; and its user, project and nodes."""
    tags = dict.fromkeys((tag for place in places for tag in place.content.tags), "true")
    labels = {
        "user": [str(place.content.scalars.get("sys/owner") or "") for place in places],
        "project": [place.content.project for place in places],
        "node": [sample.node for place in places for sample in place.samples],
    }
    return tags | {
        name: ", ".join(dict.fromkeys(filter(None, values))) for name, values in labels.items() if any(values)
    }


def _describe_device(places: Sequence[_Place], rows: RowsByDevice, key: DeviceKey, given: int | None) -> Device:
    node, gpu = key
    shown = node if rows.several and node else None
    if gpu is None:
        return Device(id=rows.id(key), node=shown)
    recorded = [float(block.values[_TOTAL][0]) for block in rows.blocks[key] if _TOTAL in block.values]
    # only the recipe records the model
    names = dict.fromkeys(f"{block.space.path}/details/gpu/{gpu}/name" for block in rows.blocks[key])
    models = (place.content.scalars.get(path) for place in places for path in names)
    return Device(
        id=rows.id(key),
        index=gpu,
        node=shown,
        model=next((model for model in models if isinstance(model, str)), None),
        memory_total_bytes=given or round([*recorded, _find_highest(places, node, MEMORY) * GIB][0]) or None,
        power_limit_watts=_find_highest(places, node, POWER) or None,
    )


def _find_highest(places: Sequence[_Place], node: str, metric: str) -> float:
    """Return the maximum that the client stated for a gauge, that of the largest GPU of the machine; 0 if none."""
    found = [
        place.content.highest.get(path, 0.0)
        for place in places
        for sample in place.samples
        for path, meaning in sample.space.leaves.items()
        if sample.node == node and meaning.metric == metric
    ]
    return max(found, default=0.0)


def _notes(places: Sequence[_Place], rows: RowsByDevice, devices: Sequence[Device], given: int | None) -> list[str]:
    """Return what a reader must know of the devices and their series."""
    samples = [sample for place in places for sample in place.samples]
    zeros, of = sum(each.zeros for each in samples), sum(each.restorable for each in samples)
    never, unrestored = (
        ", ".join(f"gpu:{gpu}" for gpu in sorted({gpu for gpus in found for gpu in gpus}))
        for found in ([each.never for each in samples], [each.unrestored for each in samples])
    )
    spread = max(each.spread for each in samples)
    metrics = {meaning.metric for each in samples if each.space.gpus for meaning in each.space.leaves.values()}
    others = [path for each in samples for path in each.space.others]
    bare = [block.gpu or 0 for each in samples if each.space.bare for block in each.blocks]
    gpus = [device for device in devices if device.index is not None]
    largest = given is None and any(_find_highest(places, node, MEMORY) for node, gpu in rows.blocks if gpu is not None)
    unknown = any(device.memory_total_bytes is None for device in gpus)
    said = (
        (zeros, f"Neptune's client drops zeros: {zeros} of {of} values of utilization were 0 and are put back"),
        (never, f"utilization of {never} was never reported: it is unknown, always 0 or not supported"),
        (unrestored, f"memory of {unrestored} was not recorded, so zeros cannot be put back and idle time is missing"),
        (spread, f"points of one sample lie up to {spread / 1000:.0f} ms apart and were joined"),
        (rows.copied, f"{len(rows.copied)} processes {_COPIED}: {list_first(rows.copied, _MOST_NAMED)}"),
        (any(bare), f"{max(bare, default=0) + 1} processes {_NUMBERED}"),
        (bare and not any(bare), _BARE),
        (metrics and POWER not in metrics, "GPU power was not recorded: Neptune's client does so since 1.11.0"),
        (MEMORY in metrics, _RESERVED),
        (
            others,
            f"{sum(each.other_points for each in places)} points of {len(others)} series have no metric here: "
            f"{list_first(others, _MOST_NAMED)}",
        ),
        (given and gpus, "memory of each GPU is what --gpu-memory-total says"),
        (largest, _LARGEST),
        (
            given is None and not largest and unknown,
            "memory of the GPUs is not recorded: --gpu-memory-total GIB says it",
        ),
    )
    return [text for holds, text in said if holds]


def _account(
    places: Sequence[_Place], rows: RowsByDevice, unselected: int, trained: int, notes: tuple[str, ...]
) -> Quality:
    """Return what became of every point; points are counted as the lines of a log are.

    Of a row of several points, the first counts as kept and the others as continued. Points that are not numbers, and
    points of series without a metric here, count as noise.
    """
    samples = [sample for place in places for sample in place.samples]
    blocks = [block for found in rows.blocks.values() for block in found]
    kept, points = sum(len(each.times) for each in blocks), hardware.count_points(blocks)
    absent: Counter[str] = Counter()
    for each in samples:
        absent.update(each.nan)
    counted = {
        OTHER_PROCESS: rows.copies,
        TWICE_AT_ONCE: sum(each.repeated for each in samples),
        FORKED: sum(each.crowded for each in samples),
        NOT_SELECTED: unselected,
    }
    rejected = [entry for place in places for entry in place.content.rejected]
    rejected += [Rejected(reason=why, rows=count, first_line=None) for why, count in counted.items() if count]
    noise = absent.total() + sum(each.other_points for each in places)
    first = rows.id(next(iter(rows.blocks)))
    return Quality(
        lines=points + trained + noise + sum(entry.rows for entry in rejected),
        rows_kept=kept + trained,
        rejected=tuple(rejected),
        noise=noise,
        continued=points - kept,
        absent_cells=tuple(AbsentCells(column=name, reason="NaN", cells=count) for name, count in absent.items()),
        clock_steps=tuple(
            ClockStep(device=first, at=at, step_seconds=-3600.0, shift_seconds=3600.0, cause="daylight saving")
            for at in sorted({at for place in places for at in place.back})
        ),
        imputed_points=sum(int(each.imputed.sum()) for each in blocks),
        notes=notes,
    )
