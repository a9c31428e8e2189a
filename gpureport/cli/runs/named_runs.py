"""What a person names on the command line, as recordings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages import progress
from gpureport.cli.messages.internal_errors import InternalError, internal_errors, report_internal_error
from gpureport.cli.messages.line_account import summarise_run
from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.messages.verbosity import print_details, print_note
from gpureport.cli.runs import (
    job_selection,
    label_tables,
    skipped_sources,
    source_joining,
    source_names,
    stored_runs,
)
from gpureport.errors import SettingsError, SourceError, StoreError

if TYPE_CHECKING:
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.importers import CutReading, Reading, TrackedReading
    from gpureport.importers.protocol.tracker import Tracker
    from gpureport.recording import Recording

Check = Callable[[str, "Sequence[Reading | TrackedReading | CutReading]"], None]
"""Takes a source and its runs before they are read."""


def find_readings(sources: Sequence[str], options: "SourceOptions") -> "list[Reading | TrackedReading | CutReading]":
    """Return every run the sources hold, or the part of each that is wanted, not yet read.

    Raises:
        SourceError: when a source is missing, or holds no log.
    """
    from gpureport.importers import CutReading, Reading, lengthen_equal_names  # noqa: PLC0415 - loads pyarrow

    window, table = options.window.window, label_tables.open_table(options.labels)
    is_cut = window is not None or options.window.job is not None
    with progress.show_stage("Looking for runs"):
        # a part of a log is labelled by its own time
        found = list(_whole(sources, options.with_labels(label_table=None) if is_cut else options))
    if not options.labels.name:
        lengthen_equal_names([each for each in found if isinstance(each, Reading)])
    _one_name(options, len(found))
    parts: list[Reading | TrackedReading | CutReading] = [*found]
    if window is not None:
        parts = [CutReading(reading, window) for reading in found]
    if options.window.job is not None:
        parts = [part for reading in parts for part in job_selection.select_readings(reading, options.window.job)]
        _one_name(options, len(parts))
    for part in parts:
        if isinstance(part, CutReading):
            part.labels = replace(part.labels, table=table)
    return parts


def _whole(sources: Sequence[str], options: "SourceOptions") -> "Iterator[Reading | TrackedReading]":
    """Yield the runs of logs and of trackers."""
    from gpureport.importers import find_tracker  # noqa: PLC0415 - loads pyarrow

    if options.input.as_one_run:
        logs, hosts, training = source_joining.split_companions(sources, options)
        given = replace(
            options.input,
            host=(*options.input.host, *hosts),
            training=(*options.input.training, *map(Path, training)),
        )
        yield from _logged(logs, replace(options, input=given))
        return
    for source, own in source_joining.pair_sources(sources, options):
        tracking = None if own.input.source_kind or own.placement.columns else find_tracker(source)
        yield from _logged([source], own) if tracking is None else _tracked(tracking, source, own)


def _logged(sources: Sequence[str], options: "SourceOptions") -> "list[Reading]":
    """Return the runs of logs."""
    from gpureport.importers import (  # noqa: PLC0415 - loads pyarrow
        Reading,
        find_run_logs,
        find_runs,
        find_source_runs,
        find_training_logs,
        identify_training_logs,
    )

    placement = options.placement.read_options()
    reasons: dict[Path, str] = {}
    if options.input.as_one_run:
        runs = [("", find_run_logs(sources, options.input.host, options.kind, placement))]
    elif options.input.host or any(Path(source).is_dir() for source in sources):
        found = find_source_runs(sources, options.input.host, kind=options.kind, options=placement)
        reasons = found.unused
        runs = [(source, inputs) for source, own in zip(sources, found.runs, strict=True) for inputs in own]
    else:
        runs = [(source, inputs) for source in sources for inputs in find_runs(source, kind=options.kind)]
    if options.input.training and len(runs) > 1:
        raise SettingsError("--training", f"one training log for {len(runs)} runs", "name one source for each run")
    if named := identify_training_logs(options.input.training):
        training = [named for _ in runs]
    else:
        training = find_training_logs([source for source, _ in runs], [inputs for _, inputs in runs])
    used = {each.path for _, inputs in runs for each in inputs} | {each.path for files in training for each in files}
    for source in sources:
        skipped_sources.report_skipped_files(source, used, reasons)
    return [
        Reading(
            inputs,
            placement,
            label_tables.build_labels(options.labels),
            strict=options.input.strict,
            as_one_run=options.input.as_one_run,
            training=files,
        )
        for (_, inputs), files in zip(runs, training, strict=True)
    ]


def _tracked(tracking: "Tracker", source: str, options: "SourceOptions") -> "list[TrackedReading]":
    """Return the selected runs of a tracker. A run that cannot be read raises its error when it is read."""
    from gpureport.importers import TrackedReading, join_attached_logs  # noqa: PLC0415 - loads pyarrow

    chosen = tracking.runs(source, options.tracker.selection(options.placement.map))
    readings = [
        TrackedReading(
            tracking.kind,
            run,
            options.placement.read_options(tracked=True),
            label_tables.build_labels(options.labels),
            strict=options.input.strict,
            join=join_attached_logs,
        )
        for run in chosen.runs
    ]
    skipped_sources.report_skipped_runs(source, chosen.skipped)
    return readings


def list_tracked_runs(sources: Sequence[str], options: "SourceOptions") -> list[str]:
    """Return a line for each run that trackers hold.

    Raises:
        SourceError: when a source is no tracker, or cannot be read.
    """
    from gpureport.importers import find_tracker  # noqa: PLC0415 - loads pyarrow
    from gpureport.report.formats.json.analysis_json import iso_time  # noqa: PLC0415 - as above

    lines = []
    for source in sources:
        tracking = find_tracker(source)
        if tracking is None:
            raise SourceError(source, "not the store of a tracker", "--list is for stores of MLflow and Neptune")
        for run in tracking.listed(source, options.tracker.selection(options.placement.map)):
            started = "not recorded" if run.started is None else iso_time(run.started, "UTC")
            points = "" if run.points is None else f"  {run.points} points"
            lines.append(f"{run.id}  {run.name}  {run.status}  {started}{points}  {run.holds}".rstrip())
    return lines


def _one_name(options: "SourceOptions", runs: int) -> None:
    if options.labels.name and runs > 1:
        raise SettingsError("--name", f"one name for {runs} runs", "name one source at a time")


def read_recordings(
    sources: Sequence[str],
    options: "SourceOptions",
    *,
    tolerant: bool = False,
    steps: bool = False,
    check: Check | None = None,
) -> list["Recording"]:
    """Return every named run. Files and folders are read; any other name is looked up in the store.

    Args:
        sources: what a person named.
        options: how it is read.
        tolerant: whether a log that cannot be read is reported and left out where another log of its folder can be
            read.
        steps: whether the sources are steps to compare, which stay apart where they would be one run.
        check: takes each source and its runs before they are read, and raises an error where they do not fit.

    Raises:
        SourceError: when a source cannot be read; `StoreError` when there is no such file or run.
    """
    read = _read_sources(sources, options, tolerant=tolerant, steps=steps, check=check)
    _one_name(options, len(read))
    if options.anonymise:
        return [hide_names(recording) for recording in read]
    return read if options.labels.name else make_run_names_distinct(read)


def hide_names(recording: "Recording") -> "Recording":
    """Return a run without the names of hosts, users, paths and GPUs."""
    from gpureport.report.runs.anonymisation import anonymise_recording  # noqa: PLC0415 - loads pyarrow

    return anonymise_recording(recording)


def make_run_names_distinct(found: Sequence["Recording"]) -> list["Recording"]:
    """Return runs, with longer names for those of the same name."""
    from gpureport.importers import make_names_distinct  # noqa: PLC0415 - loads pyarrow

    runs = make_names_distinct([recording.run for recording in found])
    return [replace(recording, run=run) for recording, run in zip(found, runs, strict=True)]


def _read_sources(
    sources: Sequence[str], options: "SourceOptions", *, tolerant: bool, steps: bool, check: Check | None
) -> list["Recording"]:
    """Return every named run, read or from the store."""
    if options.input.as_one_run:
        return _read(sources, options)
    found: list[Recording] = []
    failures: list[InternalError] = []
    for source, own in source_joining.pair_sources(sources, options, steps=steps):
        try:
            if source_names.is_source(source, own):
                note_stored_namesake(source, own)
                found += _read([source], own, tolerant=tolerant and not own.input.strict, check=check)
            else:
                labels = label_tables.build_labels(own.labels)
                for recording in stored_runs.read_stored_runs(source, own):
                    parts = job_selection.select_recordings(recording, own.window.job)
                    found += [replace(part, run=labels.look_up(part.run)) for part in parts]
        except InternalError as error:
            failures.append(error)
            if not tolerant:
                break
    if failures and not (found and tolerant):
        raise failures[0]
    for failure in failures:
        report_internal_error(failure)
    return found


def note_stored_namesake(source: str, options: "SourceOptions") -> None:
    """Note on standard error that a file or folder is read although the store holds a run of its name."""
    if source == "-" or source_names.looks_like_path(source) or not source_names.path_exists(source):
        return
    try:
        run = source_names.find_lookup(options).find(source).run
    except StoreError:
        return
    kind = "folder" if Path(source).is_dir() else "file"
    print_note(f"gpureport: {source}: reading the {kind}, not the stored run of the same name; its id is {run.id}")


def _read(
    sources: Sequence[str], options: "SourceOptions", *, tolerant: bool = False, check: Check | None = None
) -> list["Recording"]:
    """Return the runs that files and folders hold, and show progress on a terminal when that takes long."""
    found: list[Recording] = []
    errors: list[SourceError | InternalError] = []
    readings = find_readings(sources, options)
    if check is not None:
        check(sources[0], readings)
    for reading in readings:
        one = _try_reading(reading)
        if isinstance(one, SourceError | InternalError):
            errors.append(one)
        else:
            found.append(one)
        if errors and not tolerant:
            break
    if errors and not (found and tolerant):
        raise next((each for each in errors if isinstance(each, InternalError)), errors[0])
    for each in errors:
        if isinstance(each, InternalError):
            report_internal_error(each)
        else:
            click.echo(f"gpureport: left out: {make_printable(str(each))}", err=True)
    return found


def _try_reading(reading: "Reading | TrackedReading | CutReading") -> "Recording | SourceError | InternalError":
    """Return a run, or why it cannot be read."""
    try:
        with internal_errors(reading.locator), progress.show_progress(reading):
            recording = reading.recording()
    except (SourceError, InternalError) as error:
        return error
    print_details(summarise_run(recording.run))
    return recording
