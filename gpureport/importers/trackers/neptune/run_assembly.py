"""A run of Neptune put together: devices, stages, training metrics and an account."""

from collections.abc import Sequence

from gpureport.errors import SourceError
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.tracker import Selection, Tracked
from gpureport.importers.trackers.device_tables import read_clocks, usual_interval
from gpureport.importers.trackers.neptune import notes, run_labels, run_quality
from gpureport.importers.trackers.neptune.device_inventory import build_inventory
from gpureport.importers.trackers.neptune.exports.local_time import correct_local_times
from gpureport.importers.trackers.neptune.process_content import ProcessContent
from gpureport.importers.trackers.neptune.run_content import RunContent
from gpureport.importers.trackers.neptune_hardware import device_rows, namespaces
from gpureport.importers.trackers.neptune_hardware.device_rows import RowsByDevice
from gpureport.importers.trackers.neptune_hardware.name_map import NameMap
from gpureport.importers.trackers.neptune_hardware.process_samples import sample_process
from gpureport.importers.trackers.training_metrics import build_training_table, describe_training, measure_work


def assemble_run(  # noqa: PLR0913 - what a recording depends on, each by name
    contents: Sequence[RunContent],
    *,
    name: str,
    locator: str,
    selection: Selection,
    chosen: NameMap,
    options: ReadOptions,
) -> Tracked:
    """Return a run as a recording.

    Args:
        contents: what its processes wrote, one for each place.
        name: what a person calls the run.
        locator: the locator of the run.
        selection: what a person selects of it, and adds to it.
        chosen: the meaning of names that a person chose.
        options: how to select and place rows.

    Raises:
        SourceError: when it holds no hardware series, or none that was selected.
    """
    processes = [_correct_times(content, selection.stage, chosen, options.tz) for content in contents]
    if not any(each.spaces for each in processes):
        raise _no_hardware_error(contents, locator, selection, chosen)
    taken = [_sample(each) for each in processes]
    arranged, unselected = _arrange(taken, locator, options.gpus)
    series = device_rows.build_tables(arranged)
    clocks = read_clocks(series.values())
    span = min(each.first or 0 for each in clocks), max(each.last or 0 for each in clocks)
    interval = usual_interval(clocks)
    metrics = list(run_labels.training_metrics(taken))
    training = build_training_table(metrics, span if selection.stage else None)
    stock = build_inventory(taken, arranged, selection.gpu_memory_total)
    work = measure_work(metrics, selection.throughput, span)
    said = [
        *notes.collect_notes(taken, arranged, span, interval),
        *notes.note_memory(stock),
        *describe_training([metric.name for metric in metrics], work, selection.throughput),
    ]
    return Tracked(
        name=name,
        span=span,
        devices=stock.devices,
        series=series,
        training=training,
        work=None if work is None else work[0],
        quality=run_quality.build_quality(taken, arranged, unselected, clocks, len(training), tuple(said)),
        interval=interval,
        stages=device_rows.list_stages(arranged),
        params=tuple(run_labels.collect_params(taken).items()),
        tags=tuple(run_labels.collect_tags(taken).items()),
        state=" ".join(each.state for each in contents),
        size=sum(each.size or 0 for each in contents),
    )


def _arrange(
    processes: Sequence[ProcessContent], locator: str, gpus: tuple[int, ...] | None
) -> tuple[RowsByDevice, int]:
    """Return the rows of the selected devices, and the number of points of the other GPUs.

    Raises:
        SourceError: when no selected device has a value.
    """
    whole = device_rows.arrange_by_device(
        block for each in processes for sample in each.samples for block in sample.blocks
    )
    arranged, unselected = device_rows.select_gpus(whole, gpus)
    if not any(gpu is not None for _, gpu in arranged.blocks) and gpus is not None:
        held = ", ".join(sorted({str(gpu) for _, gpu in whole.blocks if gpu is not None})) or "none"
        raise SourceError(locator, "it holds none of the GPUs asked for", f"it holds {held}", code="gpus_not_held")
    if not arranged.blocks:
        raise SourceError(locator, "its hardware series hold no value", "leave the run out", code="no_values")
    return arranged, unselected


def _correct_times(content: RunContent, stage: str | None, chosen: NameMap, tz: str | None) -> ProcessContent:
    """Return what a process wrote, with corrected times and only the selected stage."""
    spaces = namespaces.find_namespaces(content.series, [*content.scalars, *content.moments], chosen)
    # exports of Neptune 3 are in UTC, but what the client of Neptune 2 recorded came there with local times
    local = any(each.client for each in spaces) or content.scalars.get("sys/id") == content.outline.id
    right = correct_local_times(content, [tuple(each.leaves) for each in spaces] if local else [], tz)
    wanted = tuple(each for each in spaces if stage in {None, each.stage})
    return ProcessContent(content=right.content, spaces=wanted, every=tuple(spaces), said=right.notes, back=right.back)


def _sample(process: ProcessContent) -> ProcessContent:
    series = {
        path: points.possible() if process.hardware(path) else points for path, points in process.content.series.items()
    }
    return process.sampled(
        sample_process(each, series, run_labels.find_node(process.content, each)) for each in process.spaces
    )


def _no_hardware_error(
    contents: Sequence[RunContent], locator: str, selection: Selection, chosen: NameMap
) -> SourceError:
    spaces: list[namespaces.Namespace] = []
    for content in contents:
        spaces += namespaces.find_namespaces(content.series, [*content.scalars, *content.moments], chosen)
    if spaces:
        held = ", ".join(sorted({each.stage or each.path for each in spaces}))
        return SourceError(locator, f"it has no stage {selection.stage!r}", f"it has {held}", code="no_such_stage")
    below = {path.split("/")[0] for content in contents for path in (*content.series, *content.scalars)}
    held = ", ".join(sorted(below - {"sys", "source_code"})) or "nothing"
    what = f"the run holds no hardware series, but {held}"
    return SourceError(
        locator,
        what,
        "the client records none in notebooks, nor with capture_hardware_metrics=False",
        code="no_hardware_series",
    )
