"""The runs that files, folders and trackers hold, found and not yet read.

Sources are named in any order: which of them are one run, lie within another, or are named twice.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gpureport.cli.messages import count, internal_errors, list_names, print_note, show_progress, show_stage
from gpureport.cli.options import Options
from gpureport.cli.reading import given, words
from gpureport.errors import InternalError, SettingsError, SourceError
from gpureport.importers import reading, runs
from gpureport.importers.protocol.tracker import Tracker
from gpureport.importers.sources import (
    find_store,
    find_tracker,
    identify_training_logs,
    list_unused_files,
    recognise_companion,
)
from gpureport.importers.time_window import CutReading, RunReading, Window
from gpureport.importers.tracked import TrackedReading
from gpureport.record_folder import RUN_FILE
from gpureport.recording import Recording
from gpureport.regular_files import is_folder, path_exists

Result = TypeVar("Result")


# --- which sources are one run


def pair_sources(sources: Sequence[str], options: Options, *, steps: bool = False) -> list[tuple[str, Options]]:
    """Return each source that is read as runs; what belongs to these runs is in its options.

    Host logs, training logs and further GPU logs of a run, named beside its main log, become `--host` and
    `--training` of it, whatever order they stand in. Sources that are `steps` to compare stay apart.
    """
    logs, hosts, training = split_companions(sources, options)
    named = options
    if len(logs) > 1 and len(options.training) not in {0, len(logs)}:
        # not one for each source in their order: each goes to the run whose time it shares
        training = [*training, *map(str, options.training)]
        options = replace(options, training=())
    every = given.give_each(logs, options)
    files = [
        place
        for place, (source, own) in enumerate(every)
        if source != "-" and path_exists(source) and not given.find_kind(own) and find_tracker(source) is None
    ]
    if len(sources) < 2 or not files or len(files) + len(hosts) + len(training) < 2:  # noqa: PLR2004 - nothing to join
        return given.give_each(logs, named)
    labelled = max(len(options.step), len(options.work)) > 1
    try:
        joined = _join([every[place] for place in files], hosts, training, steps=steps or labelled)
    except SourceError:
        given.give_each(logs, named)
        if hosts or training:
            raise
        # each source then says itself what is wrong with it
        return every
    found = dict(zip(files, joined, strict=True))
    pairs = [(source, found.get(place, own)) for place, (source, own) in enumerate(every)]
    kept = [(source, own) for source, own in pairs if own is not None]
    # logs of one run, of which its work was stated
    return kept if len(kept) > 1 else [(source, replace(own, is_common=options.is_common)) for source, own in kept]


def split_companions(sources: Sequence[str], options: Options) -> tuple[list[str], list[Path], list[str]]:
    """Return the sources with GPUs or no files, the host logs among them, and the training logs."""
    alone = len(sources) < 2 or given.find_kind(options)  # noqa: PLR2004 - nothing beside it
    parts: dict[str | None, list[str]] = {None: [], "host": [], "training": []}
    for source in sources:
        parts[None if alone or not path_exists(source) else recognise_companion(Path(source))].append(source)
    if not parts[None]:
        return list(sources), [], []
    # the order in which they are named must not matter
    return parts[None], sorted(map(Path, parts["host"])), sorted(parts["training"])


def _join(
    pairs: Sequence[tuple[str, Options]], hosts: Sequence[Path], training: Sequence[str], *, steps: bool
) -> list[Options | None]:
    """Return each source's options with what belongs to its runs; None where it belongs to others."""
    options, sources = pairs[0][1], [source for source, _ in pairs]
    placement = given.build_read_options(options)
    found = runs.find_source_runs(sources, [*options.host, *hosts], options=placement, steps=steps)
    flat = [inputs for held in found.runs for inputs in held]
    trained = iter(runs.assign_training_logs(identify_training_logs(training), flat, placement))
    joined: list[Options | None] = []
    for (source, own), held in zip(pairs, found.runs, strict=True):
        logs = dict.fromkeys(file.locator for _ in held for file in next(trained))
        parts = [each.locator for inputs in held for each in inputs if each.locator != source]
        extra = dict.fromkeys(part for part in parts if Path(source) not in Path(part).parents)
        read = replace(own, host=tuple(map(Path, extra)), training=(*own.training, *map(Path, logs)))
        joined.append(read if held else None)
        if named := [locator for locator in extra if locator in sources]:
            print_note(f"gpureport: read as one run: {', '.join([source, *named])}")
    return joined


def drop_repeated_sources(sources: Sequence[str]) -> list[str]:
    """Return sources without what was named before, however written; say which that is.

    One that is named beside no other stays twice: a person compares it with itself.
    """
    places = [Path(source).resolve() if path_exists(source) else source for source in sources]
    if len({*places}) == 1:
        return list(sources)
    kept = dict(zip(reversed(places), reversed(sources), strict=True))
    for place, source in zip(places, sources, strict=True):
        if isinstance(place, Path) and kept[place] is not source:
            print_note(f"gpureport: {source}: named twice, counted once")
    return [source for place, source in zip(places, sources, strict=True) if kept.get(place) is source]


def drop_repeated_runs(found: Sequence[Recording]) -> list[Recording]:
    """Return runs without those that were named twice for one step; say which these are.

    A copy of a log, whose run has the same id, is a run of its own. A run without a step that stands beside no other
    stays twice: a person compares it with itself.
    """
    kept: dict[tuple[object, ...], Recording] = {}
    repeated = []
    for one in found:
        run = one.run
        logs = tuple(Path(source.locator).resolve() for source in run.sources)
        if kept.setdefault((run.step, run.id, run.started, run.ended, logs), one) is not one:
            repeated.append(run)
    if len(kept) == 1 and found[0].run.step is None:
        return list(found)
    for run in repeated:
        step = "" if run.step is None else f" for {run.step}"
        print_note(f"gpureport: {run.sources[0].locator}: named twice{step}, counted once")
    return list(kept.values())


def leave_out_named_runs(readings: Sequence[RunReading], source: str, named: Sequence[str]) -> list[RunReading]:
    """Return the runs of a source that no other `named` source within its folder names; say which those name."""
    if not is_folder(source):
        return list(readings)
    places = {other: Path(other).resolve() for other in named if path_exists(other)}
    inner = {other: place for other, place in places.items() if Path(source).resolve() in place.parents}
    logs = [Path(reading.locator).resolve() for reading in readings]
    taken = {other: [log == place or place in log.parents for log in logs] for other, place in inner.items()}
    kept = [reading for at, reading in enumerate(readings) if not any(each[at] for each in taken.values())]
    if readings and not kept:
        what, hint = "every run in it is named as well", "leave out the folder, or what lies in it"
        raise SourceError(source, what, hint, code="named_twice")
    if names := [other for other, each in taken.items() if any(each)]:
        print_note(f"gpureport: {source}: counted once, as named: {', '.join(names)}")
    return kept


def label_repetitions(readings: Sequence[RunReading], source: str, named: Sequence[str], *, hidden: bool) -> None:
    """Label the recordings of a folder beside other sources as repetitions of one step, not by its name if `hidden`.

    Folders that `gpureport record` did not write, and runs with a step label, stay as they are.
    """
    folders = {Path(reading.locator).parent for reading in readings}
    sources = {Path(other).resolve() for other in named}
    if min(len(sources), len(folders)) < 2 or not is_folder(source):  # noqa: PLR2004 - several
        return
    if not all((folder / RUN_FILE).is_file() for folder in folders):
        return
    name = Path(source).resolve().name
    is_single = sum(other.name == name for other in sources) == 1
    label = f"step_{named.index(source) + 1}" if hidden else name if is_single else source
    for each in readings:
        if not (each.labels.step or each.file_labels.step):
            each.labels = replace(each.labels, step=label)


# --- runs, not yet read


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
        logs, hosts, training = split_companions(sources, options)
        trained = (*options.training, *map(Path, training))
        yield from _find_logged_runs(logs, replace(options, host=(*options.host, *hosts), training=trained))
        return
    for source, own in pair_sources(sources, options):
        tracking = None if own.source_kind or own.columns else find_tracker(source)
        if tracking is None:
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
        raise SettingsError("--training", what, "name one source at a time", code="wrong_count")
    if named := identify_training_logs(options.training):
        training = [named for _ in logged]
    else:
        training = runs.find_training_logs([source for source, _ in logged], [inputs for _, inputs in logged])
    used = {each.path for _, inputs in logged for each in inputs} | {each.path for files in training for each in files}
    for source in sources:
        unused = ((reasons.get(path, "not a GPU log"), str(path)) for path in list_unused_files(source, used))
        for reason, names in _group(unused).items():
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
        reasons = "; ".join(f"{len(names)} {reason}: {list_names(names)}" for reason, names in groups.items())
        hint = "; --run NAME reads one" if any(not run.lacks for run, _ in chosen.skipped) else ""
        print_note(f"gpureport: {source}: {count(len(chosen.skipped), 'run')} skipped ({reasons}){hint}")
    if options.group is not None and len(joined := chosen.store.grouped) > 1:
        read = f"{len(joined)} recordings read as one run called {options.group}: {list_names(joined)}"
        print_note(f"gpureport: {source}: {read}; --run takes some")
    return found


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for reason, name in pairs:
        groups.setdefault(reason, []).append(name)
    return groups


def list_tracked_runs(sources: Sequence[str], options: Options) -> tuple[list[str], int]:
    """Return a line for each run that trackers hold, and how many of them cannot be read."""
    from gpureport.report.formats.analysis_json import iso_time

    lines, unreadable = [], 0
    for source in words.fetch_sources(sources):
        tracking = find_tracker(source)
        if tracking is None:
            hint = "--list is for stores of MLflow, Neptune and Trackio"
            if store := find_store(source):
                hint = f"give {store[1]}, one of {store[0]}"
            raise SourceError(source, "this is not the store of a tracker", hint, code="not_a_tracker")
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
        raise SettingsError("--job", f"{run.name} holds no job: no GPU worked", "leave out --job", code="no_job")
    wanted = [(each.interval.start, each.interval.end, each.number) for each in found if job in {0, each.number}]
    if not wanted:
        hint = f"it holds {count(len(found), 'job')}: {job_list(run, found)}"
        raise SettingsError("--job", f"{run.name} has no job {job}", hint, code="no_such_job")
    return [
        # the last sample of a log lies at its end, and belongs to it
        Window(
            start=f"{(start - run.started) / 1e6:.6f}s",
            end=f"{(end - run.started + (end == run.ended)) / 1e6:.6f}s",
            job=number,
        )
        for start, end, number in wanted
    ]
