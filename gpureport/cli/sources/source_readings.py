"""The runs that files, folders and trackers hold, found and not yet read."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.cli.messages import progress
from gpureport.cli.sources import fetched_sources, job_selection, label_tables, skipped_sources, source_joining
from gpureport.errors import SettingsError, SourceError
from gpureport.regular_files import is_folder

if TYPE_CHECKING:
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.importers.protocol.tracker import Tracker
    from gpureport.importers.reading import Reading
    from gpureport.importers.time_window import RunReading
    from gpureport.importers.tracked import TrackedReading


def find_readings(sources: Sequence[str], options: "SourceOptions") -> "list[RunReading]":
    """Return every run the sources hold, or the part of each that is wanted, not yet read.

    Raises:
        SourceError: when a source is missing, or holds no log.
    """
    from gpureport.importers.reading import Reading, lengthen_equal_names  # noqa: PLC0415 - loads pyarrow
    from gpureport.importers.time_window import CutReading  # noqa: PLC0415 - as above

    sources = fetched_sources.fetch_sources(sources)
    window, table = options.window.window, label_tables.open_table(options.labels)
    is_cut = window is not None or options.window.job is not None
    with progress.show_stage("Looking for runs"):
        # a part of a log is labelled by its own time
        found = list(_find_whole_runs(sources, options.with_labels(label_table=None) if is_cut else options))
    if not options.labels.name:
        lengthen_equal_names([each for each in found if isinstance(each, Reading)])
    check_single_name(options, len(found))
    parts: list[RunReading] = [*found]
    if window is not None:
        parts = [CutReading(reading, window) for reading in found]
    if options.window.job is not None:
        parts = [part for reading in parts for part in job_selection.select_readings(reading, options.window.job)]
        check_single_name(options, len(parts))
    for part in parts:
        if isinstance(part, CutReading):
            part.labels = replace(part.labels, table=table)
    return parts


def _find_whole_runs(sources: Sequence[str], options: "SourceOptions") -> "Iterator[Reading | TrackedReading]":
    from gpureport.importers.sources import find_tracker  # noqa: PLC0415 - loads pyarrow

    if options.input.as_one_run:
        logs, hosts, training = source_joining.split_companions(sources, options)
        given = replace(
            options.input,
            host=(*options.input.host, *hosts),
            training=(*options.input.training, *map(Path, training)),
        )
        yield from _find_logged_runs(logs, replace(options, input=given))
        return
    for source, own in source_joining.pair_sources(sources, options):
        tracking = None if own.input.source_kind or own.placement.columns else find_tracker(source)
        if tracking is None:
            skipped_sources.report_group(source, own.tracker.group, ())
            yield from _find_logged_runs([source], own)
        else:
            yield from _find_tracked_runs(tracking, source, own)


def _find_logged_runs(sources: Sequence[str], options: "SourceOptions") -> "list[Reading]":
    from gpureport.importers.reading import Reading, find_runs  # noqa: PLC0415 - loads pyarrow
    from gpureport.importers.runs import find_run_logs, find_source_runs, find_training_logs  # noqa: PLC0415 - as above
    from gpureport.importers.sources import identify_training_logs  # noqa: PLC0415 - as above

    placement = options.placement.read_options()
    reasons: dict[Path, str] = {}
    if options.input.as_one_run:
        runs = [("", find_run_logs(sources, options.input.host, options.kind, placement))]
    elif options.input.host or any(map(is_folder, sources)):
        found = find_source_runs(sources, options.input.host, kind=options.kind, options=placement)
        reasons = found.unused
        runs = [(source, inputs) for source, own in zip(sources, found.runs, strict=True) for inputs in own]
    else:
        runs = [(source, inputs) for source in sources for inputs in find_runs(source, kind=options.kind)]
    if options.input.training and len(runs) > 1:
        raise SettingsError(
            "--training", f"one training log for {len(runs)} runs", "name one source for each run", code="wrong_count"
        )
    if named := identify_training_logs(options.input.training):
        training = [named for _ in runs]
    else:
        training = find_training_logs([source for source, _ in runs], [inputs for _, inputs in runs])
    used = {each.path for _, inputs in runs for each in inputs} | {each.path for files in training for each in files}
    for source in sources:
        skipped_sources.report_skipped_files(source, used, reasons)
    labels = label_tables.build_labels(options.labels)
    return [
        Reading(
            inputs,
            placement,
            labels.of_several() if len(runs) > 1 else labels,
            strict=options.input.strict,
            training=files,
        )
        for (_, inputs), files in zip(runs, training, strict=True)
    ]


def _find_tracked_runs(tracking: "Tracker", source: str, options: "SourceOptions") -> "list[TrackedReading]":
    """Return the selected runs of a tracker. A run that cannot be read raises its error when it is read."""
    from gpureport.importers.tracked import TrackedReading  # noqa: PLC0415 - loads pyarrow

    chosen = tracking.runs(source, options.tracker.selection(options.placement.map))
    labels = label_tables.build_labels(options.labels)
    readings = [
        TrackedReading(
            tracking.kind,
            run,
            options.placement.read_options(tracked=True),
            labels.of_several() if len(chosen.runs) > 1 else labels,
            strict=options.input.strict,
        )
        for run in chosen.runs
    ]
    skipped_sources.report_skipped_runs(source, chosen.skipped)
    skipped_sources.report_group(source, options.tracker.group, chosen.grouped)
    return readings


def list_tracked_runs(sources: Sequence[str], options: "SourceOptions") -> tuple[list[str], int]:
    """Return a line for each run that trackers hold, and how many of them cannot be read.

    Raises:
        SourceError: when a source is no tracker, or cannot be read.
    """
    from gpureport.importers.sources import find_store, find_tracker  # noqa: PLC0415 - loads pyarrow
    from gpureport.report.formats.analysis_json import iso_time  # noqa: PLC0415 - as above

    lines, unreadable = [], 0
    for source in fetched_sources.fetch_sources(sources):
        tracking = find_tracker(source)
        if tracking is None:
            store = find_store(source)
            hint = (
                f"give {store[1]}, one of {store[0]}"
                if store
                else "--list is for stores of MLflow, Neptune and Trackio"
            )
            raise SourceError(source, "not the store of a tracker", hint, code="not_a_tracker")
        held = tracking.listed(source, options.tracker.selection(options.placement.map))
        skipped_sources.report_deleted_runs(source, [f"{run.name} ({run.id})" for run in held if run.deleted])
        for run in (run for run in held if not run.deleted):
            started = "not recorded" if run.started is None else iso_time(run.started, run.timezone)
            holds = run.holds if run.fault is None else str(run.fault)
            unreadable += run.fault is not None
            lines.append(f"{run.id}  {run.name}  {run.status}  {started}  {holds}".rstrip())
    return lines, unreadable


def check_single_name(options: "SourceOptions", runs: int) -> None:
    """Refuse one name for several runs.

    Raises:
        SettingsError: when there are several.
    """
    if options.labels.name and runs > 1:
        raise SettingsError("--name", f"one name for {runs} runs", "name one source at a time", code="wrong_count")
