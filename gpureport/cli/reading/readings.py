"""The runs that files, folders and trackers hold, found and not yet read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gpureport.cli.messages import count, internal_errors, list_names, print_note, show_progress, show_stage
from gpureport.cli.options import Options
from gpureport.cli.reading import given, joining, words
from gpureport.errors import InternalError, SettingsError, SourceError
from gpureport.importers import reading, runs
from gpureport.importers.protocol.tracker import Tracker
from gpureport.importers.sources import find_store, find_tracker, identify_training_logs, list_unused_files
from gpureport.importers.time_window import CutReading, RunReading, Window
from gpureport.importers.tracked import TrackedReading
from gpureport.recording import Recording
from gpureport.regular_files import is_folder

Result = TypeVar("Result")


def find_readings(sources: Sequence[str], options: Options) -> list[RunReading]:
    """Return every run the sources hold, or the part of each that is wanted, not yet read."""
    sources = words.fetch_sources(sources)
    window, table = given.build_window(options), given.open_table(options)
    is_cut = window is not None or options.job is not None
    with show_stage("Looking for runs"):
        # a part of a log is labelled by its own time
        found = list(_find_whole_runs(sources, replace(options, label_table=None) if is_cut else options))
    if not options.name:
        reading.lengthen_equal_names([each for each in found if isinstance(each, reading.Reading)])
    parts: list[RunReading] = [CutReading(each, window) for each in found] if window is not None else [*found]
    given.check_single_name(options, len(parts))
    if options.job is not None:
        parts = [part for whole in parts for part in _cut_jobs(whole, options.job)]
        given.check_single_name(options, len(parts))
    for part in parts:
        if isinstance(part, CutReading):
            part.labels = replace(part.labels, table=table)
    return parts


def try_each(
    readings: Iterable[RunReading], action: Callable[[RunReading], Result]
) -> Iterator[Result | SourceError | InternalError]:
    """Yield what an action makes of each run, or why it cannot; on a terminal show how far it is."""
    for each in readings:
        try:
            with internal_errors(each.locator), show_progress(each):
                done = action(each)
        except (SourceError, InternalError) as error:
            yield error
        else:
            yield done


def _find_whole_runs(sources: Sequence[str], options: Options) -> Iterator[reading.Reading | TrackedReading]:
    if options.as_one_run:
        logs, hosts, training = joining.split_companions(sources, options)
        trained = (*options.training, *map(Path, training))
        yield from _find_logged_runs(logs, replace(options, host=(*options.host, *hosts), training=trained))
        return
    for source, own in joining.pair_sources(sources, options):
        tracking = None if own.source_kind or own.columns else find_tracker(source)
        if tracking is None:
            _note_group(source, own.group, ())
            yield from _find_logged_runs([source], own)
        else:
            yield from _find_tracked_runs(tracking, source, own)


def _find_logged_runs(sources: Sequence[str], options: Options) -> list[reading.Reading]:
    placement, kind = given.build_read_options(options), given.find_kind(options)
    reasons: dict[Path, str] = {}
    if options.as_one_run:
        logged = [("", runs.find_run_logs(sources, options.host, kind, placement))]
    elif options.host or any(map(is_folder, sources)):
        found = runs.find_source_runs(sources, options.host, kind=kind, options=placement)
        reasons = found.unused
        logged = [(source, inputs) for source, own in zip(sources, found.runs, strict=True) for inputs in own]
    else:
        logged = [(source, inputs) for source in sources for inputs in reading.find_runs(source, kind=kind)]
    if options.training and len(logged) > 1:
        what = f"one training log for {len(logged)} runs"
        raise SettingsError("--training", what, "name one source for each run", code="wrong_count")
    if named := identify_training_logs(options.training):
        training = [named for _ in logged]
    else:
        training = runs.find_training_logs([source for source, _ in logged], [inputs for _, inputs in logged])
    used = {each.path for _, inputs in logged for each in inputs} | {each.path for files in training for each in files}
    for source in sources:
        unused = ((reasons.get(path, "no GPU log"), str(path)) for path in list_unused_files(source, used))
        for reason, names in _group(unused):
            print_note(f"Skipped, {reason}: {list_names(names)}")
    labels = given.build_labels(options)
    labels = labels.of_several() if len(logged) > 1 else labels
    return [
        reading.Reading(inputs, placement, labels, strict=options.strict, training=files)
        for (_, inputs), files in zip(logged, training, strict=True)
    ]


def _find_tracked_runs(tracking: Tracker, source: str, options: Options) -> list[TrackedReading]:
    """Return the selected runs of a tracker. A run that cannot be read raises its error when it is read."""
    chosen = tracking.runs(source, given.build_tracker_selection(options))
    labels = given.build_labels(options)
    labels = labels.of_several() if len(chosen.runs) > 1 else labels
    placement = given.build_read_options(options, tracked=True)
    found = [TrackedReading(chosen, run, placement, labels, strict=options.strict) for run in chosen.runs]
    if chosen.skipped:
        groups = _group((reason, run.name or run.id) for run, reason in chosen.skipped)
        reasons = "; ".join(f"{len(names)} {reason}: {list_names(names)}" for reason, names in groups)
        hint = "; --run NAME reads one" if any(not run.lacks for run, _ in chosen.skipped) else ""
        print_note(f"gpureport: {source}: {count(len(chosen.skipped), 'run')} skipped ({reasons}){hint}")
    _note_group(source, options.group, chosen.store.grouped)
    return found


def _group(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for reason, name in pairs:
        groups.setdefault(reason, []).append(name)
    return list(groups.items())


def _note_group(source: str, group: str | None, recordings: Sequence[str]) -> None:
    """Say which recordings `--group` makes one run, by its name, which selects none."""
    if group is not None and not recordings:
        print_note(f"gpureport: {source}: --group is for local recordings of Neptune, and changes nothing here")
    elif group is not None and len(recordings) > 1:
        read = f"{len(recordings)} recordings read as one run called {group}: {list_names(recordings)}"
        print_note(f"gpureport: {source}: {read}; --run takes some")


def list_tracked_runs(sources: Sequence[str], options: Options) -> tuple[list[str], int]:
    """Return a line for each run that trackers hold, and how many of them cannot be read."""
    from gpureport.report.formats.analysis_json import iso_time

    lines, unreadable = [], 0
    for source in words.fetch_sources(sources):
        tracking = find_tracker(source)
        if tracking is None:
            store = find_store(source)
            hint = "--list is for stores of MLflow, Neptune and Trackio"
            if store:
                hint = f"give {store[1]}, one of {store[0]}"
            raise SourceError(source, "not the store of a tracker", hint, code="not_a_tracker")
        held = tracking.listed(source, given.build_tracker_selection(options))
        if deleted := [f"{run.name} ({run.id})" for run in held if run.deleted]:
            said = "1 deleted run is" if len(deleted) == 1 else f"{len(deleted)} deleted runs are"
            print_note(f"gpureport: {source}: {said} not listed: {list_names(deleted)}; give the id to read one")
        for run in (run for run in held if not run.deleted):
            started = "not recorded" if run.started is None else iso_time(run.started, run.timezone)
            holds = run.holds if run.fault is None else str(run.fault)
            unreadable += run.fault is not None
            lines.append(f"{run.id}  {run.name}  {run.status}  {started}  {holds}".rstrip())
    return lines, unreadable


def _cut_jobs(whole: RunReading, job: int) -> Iterator[RunReading]:
    """Yield the wanted jobs of a run; the run itself where it cannot be read, which whoever reads it says."""
    for read in try_each([whole], lambda each: each.recording()):
        if isinstance(read, InternalError):
            raise read
        if isinstance(read, SourceError):
            yield whole
        else:
            yield from (CutReading(whole, window, read) for window in find_job_windows(read, job))


def find_job_windows(recording: Recording, job: int) -> list[Window]:
    """Return when the jobs are that are wanted: one by its number, or with 0 each."""
    from gpureport.analysis.job.jobs import find_jobs
    from gpureport.report.sections.head.recording_doubts import job_list

    run, found = recording.run, find_jobs(recording)
    if not found:
        raise SettingsError("--job", f"{run.name} holds no job: no GPU worked", "leave --job out", code="no_job")
    wanted = [each for each in found if job in {0, each.number}]
    if not wanted:
        held = "one job" if len(found) == 1 else f"{len(found)} jobs"
        what, hint = f"{run.name} has no job {job}", f"it holds {held}: {job_list(run, found)}"
        raise SettingsError("--job", what, hint, code="no_such_job")
    spans = [(each.interval.start - run.started, each.interval.end - run.started, each) for each in wanted]
    return [
        # the last sample of a log lies at its end, and belongs to it
        Window(
            start=f"{start / 1e6:.6f}s", end=f"{(end + (each.interval.end == run.ended)) / 1e6:.6f}s", job=each.number
        )
        for start, end, each in spans
    ]
