"""Finds runs in logs and trackers without reading them, and builds the importers' options."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from gpureport import record_folder
from gpureport.cli.messages import Verbosity, count, internal_errors, list_names, print_note, show_stage
from gpureport.cli.options import FIELDS, Options, list_flags
from gpureport.errors import InternalError, PlaceError, SettingsError, SourceError
from gpureport.importers import reading, runs
from gpureport.importers.labels import NO_ROW, SEVERAL, TIMES, LabelTable
from gpureport.importers.protocol import ReadOptions, Selection, Tracker
from gpureport.importers.sources import (
    Labels,
    describe_stores,
    find_tracker,
    find_training_logs,
    identify_training_logs,
    list_unused_files,
    recognise_companion,
)
from gpureport.importers.time_window import CutReading, RunReading, Window
from gpureport.importers.tools.mapped import read_column_map
from gpureport.importers.tracker_series import TrackedReading
from gpureport.names import group_pairs
from gpureport.places import RemotePath, fetch, is_bucket_url, parse_place
from gpureport.recording import Recording, Work
from gpureport.regular_files import is_folder, path_exists

Result = TypeVar("Result")
READING = (
    *("gpus", "tz", "host", "training", "columns", "interval", "gpus_per_tick", "map", "source_kind", "as_one_run"),
    "mlflow_raw_times",
)
_OF_TRACKERS = ("run", "experiment", "project", "filter", "latest", "children", "group", "require_hardware")


def find_kind(options: Options) -> str | None:
    return options.source_kind or ("mapped" if options.map else "nvidia_smi" if options.columns else None)


def find_given(options: Options, names: Sequence[str]) -> str:
    return next((list_flags(name)[0] for name in names if getattr(options, name) != FIELDS[name].default), "")


def build_read_options(options: Options, *, tracked: bool = False) -> ReadOptions:
    # trackers read the map themselves
    mapping = read_column_map(options.map) if options.map and not tracked else None
    own = {name: getattr(options, name) for name in ("gpus", "columns", "interval", "gpus_per_tick")}
    zone = options.tz or (mapping.zone if mapping else None)
    return ReadOptions(**own, tz=zone, map=mapping, as_logged=options.mlflow_raw_times)


def build_window(options: Options) -> Window | None:
    return Window(start=options.start, end=options.end) if options.start or options.end else None


def build_tracker_selection(options: Options) -> Selection:
    memory = options.gpu_memory_total
    given = {each.name: getattr(options, each.name) for each in fields(Selection) if each.name != "runs"}
    return Selection(**given | {"runs": options.run, "gpu_memory_total": memory and round(memory * 2**30)})


def give_each(sources: Sequence[str], options: Options) -> list[tuple[str, Options]]:
    several, parts = len(sources) > 1, list[Sequence[tuple[Any, ...]]]()
    shared = 0 if several else len(options.training)
    for name, noun, most in (("step", "label", 1), ("work", "amount", 1), ("training", "training log", shared)):
        values = getattr(options, name)
        parts.append([values] * len(sources) if len(values) <= most else [(value,) for value in values])
        if len(parts[-1]) != len(sources):
            what = f"{count(len(values), noun)} for {count(len(sources), 'source')}"
            hint = f"give {'one for all, or ' if most else ''}one for each source, in the same order"
            raise SettingsError(f"--{name}", what, hint, code="wrong_count")
    common = options.is_common or (several and len(options.work) == 1)
    return [
        (source, replace(options, step=step, work=work, training=training, is_common=common))
        for source, step, work, training in zip(sources, *parts, strict=True)
    ]


def refuse_to_hide(options: Options, what: str) -> None:
    if options.anonymise:
        hint = "use --name to give runs other names"
        raise SettingsError("--anonymise", f"{what} keeps the names of runs", hint, code="names_are_kept")


def check_single_name(options: Options, runs: int) -> None:
    if options.name and runs > 1:
        raise SettingsError("--name", f"one name for {runs} runs", "name one source at a time", code="wrong_count")


def build_labels(options: Options, *, several: bool = False) -> Labels:
    for option, pairs in (("--param", options.param), ("--tag", options.tag)):
        if len(dict(pairs)) < len(pairs):
            raise SettingsError(option, "a key is given twice", "give each key once", code="repeated_key")
    for option, values, noun in (("--step", options.step, "labels"), ("--work", options.work, "amounts")):
        if len(values) > 1:
            raise SettingsError(option, f"{len(values)} {noun} for one run", "give one", code="wrong_count")
    labels = Labels(
        name=options.name,
        step=next(iter(options.step), None),
        params=options.param,
        tags=options.tag,
        work=next((Work(amount=amount, unit=unit) for amount, unit in options.work), None),
        gpu_model=options.gpu_model,
        table=open_table(options),
    )
    return labels.of_several() if several or options.is_common else labels


def open_table(options: Options) -> LabelTable | None:
    """Read the label table once per command, and report unmatched rows at the end."""
    if (path := options.label_table) is None:
        return None
    context = click.get_current_context()
    known: dict[object, LabelTable] = context.meta.setdefault(f"{__name__}.tables", {})
    if path not in known:
        known[path] = table = LabelTable(path)
        context.call_on_close(lambda: _report_matches(table))
    return known[path]


def _report_matches(table: LabelTable) -> None:
    if not (found := list(table.matches.values())):
        return
    labelled = [match.rows[0].line for match in found if not match.doubt]
    parts = [f"{len(labelled):,} of {count(len(found), 'run')} labelled"]
    zones = ": give --tz, or print the table with SLURM_TIME_FORMAT=%FT%T%z"
    for doubt, text, hint in (
        (SEVERAL, "not, because several rows fit equally well", ""),
        (TIMES, "not, because log and table times cannot be compared", zones),
        (NO_ROW, "without a row", ""),
    ):
        names = [match.name for match in found if match.doubt == doubt]
        parts += [f"{len(names):,} {text} ({list_names(names, 3)}){hint}"] if names else []
    if unused := len(table.rows) - len({*labelled}):
        parts.append(f"{unused:,} of {count(len(table.rows), 'row')} match no run")
    if table.unread:
        lines = list_names((f"line {line}" for line in table.unread), 3)
        parts.append(f"{count(len(table.unread), 'line')} not read ({lines})")
    print_note(f"gpureport: {table.path}: {'; '.join(parts)}")
    for each in (match for match in found if match.doubt):
        lines = f": lines {', '.join(str(row.line) for row in each.rows)}" if each.rows else ""
        print_note(f"gpureport: {each.name}: {each.doubt}{lines}", least=Verbosity.VERBOSE)


def fetch_sources(sources: Sequence[str], *, tolerant: bool = False) -> list[str]:
    found = list(sources)
    for number, source in enumerate(sources):
        try:
            found[number] = _fetch(source)
        except PlaceError as error:
            if not tolerant:
                raise SourceError(error.where, error.what, error.hint, code=error.code) from error
    return found


def _fetch(source: str) -> str:
    place = parse_place(source) if is_bucket_url(source) else None
    if not isinstance(place, RemotePath):
        return source
    copy = _fetch_watched(place)
    if copy.is_file():
        # also fetch the files that identify the run
        names = {record_folder.RUN_FILE, record_folder.LABEL_FILE, f"{place.name}.json", f"{place.stem}.json"}
        for beside in place.parent.iterdir():
            if beside.name in names - {place.name}:
                _fetch_watched(beside)
    path, _, run = source.rpartition("#")
    if not copy.exists() and is_bucket_url(path) and isinstance(store := parse_place(path), RemotePath):
        return f"{_fetch_watched(store)}#{run}"
    return str(copy)


def _fetch_watched(place: RemotePath) -> Path:
    with show_stage(f"Fetching {place}"):
        return fetch(place)


def pair_sources(sources: Sequence[str], options: Options, *, steps: bool = False) -> list[tuple[str, Options]]:
    """Return the source of each run, with options that list the run's other logs."""
    logs, hosts, training = split_companions(sources, options)
    named = options
    if len(logs) > 1 and len(options.training) not in {0, len(logs)}:
        # if files and logs differ in number, each file belongs to the run that it overlaps
        training, options = [*training, *map(str, options.training)], replace(options, training=())
    every = give_each(logs, options)
    is_read = [
        source != "-" and path_exists(source) and not find_kind(options) and find_tracker(source) is None
        for source in logs
    ]
    files = [source for source, each in zip(logs, is_read, strict=True) if each]
    if len(sources) <= 1 or not files or len(files) + len(hosts) + len(training) <= 1:
        return give_each(logs, named)
    placement = build_read_options(options)
    labelled = max(len(options.step), len(options.work)) > 1
    try:
        found = runs.find_source_runs(files, [*options.host, *hosts], options=placement, steps=steps or labelled).runs
        flat = [inputs for held in found for inputs in held]
        trained = iter(runs.assign_training_logs(identify_training_logs(training), flat, placement))
    except SourceError:
        give_each(logs, named)
        if hosts or training:
            raise
        # errors are reported later, source by source
        return every
    kept, runs_of = list[tuple[str, Options]](), iter(found)
    for (source, own), each in zip(every, is_read, strict=True):
        if not each:
            kept.append((source, own))
        elif held := next(runs_of):
            training_logs = dict.fromkeys(file.locator for _ in held for file in next(trained))
            parts = [each.locator for inputs in held for each in inputs if each.locator != source]
            extra = dict.fromkeys(part for part in parts if Path(source) not in Path(part).parents)
            trained_by = (*own.training, *map(Path, training_logs))
            kept.append((source, replace(own, host=tuple(map(Path, extra)), training=trained_by)))
            if joined := [locator for locator in extra if locator in files]:
                print_note(f"gpureport: read as one run: {', '.join([source, *joined])}")
    # logs of one run share the stated work
    return kept if len(kept) > 1 else [(source, replace(own, is_common=named.is_common)) for source, own in kept]


def split_companions(sources: Sequence[str], options: Options) -> tuple[list[str], list[Path], list[str]]:
    alone = len(sources) <= 1 or find_kind(options)
    parts: dict[str | None, list[str]] = {None: [], "host": [], "training": []}
    for source in sources:
        parts[None if alone or not path_exists(source) else recognise_companion(Path(source))].append(source)
    if not parts[None]:
        return list(sources), [], []
    # the order on the command line does not matter
    return parts[None], sorted(map(Path, parts["host"])), sorted(parts["training"])


def find_readings(sources: Sequence[str], options: Options) -> list[RunReading]:
    sources = fetch_sources(sources)
    window, table = build_window(options), open_table(options)
    is_cut = window is not None or options.job is not None
    with show_stage("Looking for runs"):
        # each part of a log has its own labels
        found = list(_find_whole_runs(sources, replace(options, label_table=None) if is_cut else options))
    if not options.name:
        reading.lengthen_equal_names([each for each in found if isinstance(each, reading.Reading)])
    parts: list[RunReading] = [CutReading(each, window) for each in found] if window is not None else [*found]
    if options.job is not None:
        parts = [part for whole in parts for part in _cut_jobs(whole, options.job)]
    check_single_name(options, len(parts))
    for part in parts:
        if isinstance(part, CutReading):
            part.labels = replace(part.labels, table=table)
    return parts


def try_each(
    readings: Iterable[RunReading], action: Callable[[RunReading], Result]
) -> Iterator[Result | SourceError | InternalError]:
    for each in readings:
        try:
            with internal_errors(each.locator), show_stage(f"Reading {each.locator}"):
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
        yield from _find_tracked_runs(tracking, source, own) if tracking else _find_logged_runs([source], own)


def _find_logged_runs(sources: Sequence[str], options: Options) -> list[reading.Reading]:
    placement, kind = build_read_options(options), find_kind(options)
    if given := find_given(options, _OF_TRACKERS):
        print_note(f"gpureport: {list_names(sources)}: {given} has no effect, since this is not a tracker's store")
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
        raise SettingsError("--training", f"one log for {len(logged)} runs", "name one source", code="wrong_count")
    named = identify_training_logs(options.training)
    training = [named] * len(logged) if named else find_training_logs(logged)
    used = {each.path for _, inputs in logged for each in inputs} | {each.path for files in training for each in files}
    for source in sources:
        unused = ((reasons.get(path, "not a GPU log"), str(path)) for path in list_unused_files(source, used))
        for reason, names in group_pairs(unused).items():
            is_tried = path_exists(f"{source}/../../trial.json")
            print_note(f"Skipped, {reason}: {list_names(names)}", least=Verbosity(is_tried))
    labels = build_labels(options, several=len(logged) > 1)
    return [
        reading.Reading(inputs, placement, labels, strict=options.strict, training=files)
        for (_, inputs), files in zip(logged, training, strict=True)
    ]


def _find_tracked_runs(tracking: Tracker, source: str, options: Options) -> list[TrackedReading]:
    chosen = tracking.runs(source, build_tracker_selection(options))
    labels = build_labels(options, several=len(chosen.runs) > 1)
    placement = build_read_options(options, tracked=True)
    found = [TrackedReading(chosen, run, placement, labels, strict=options.strict) for run in chosen.runs]
    if chosen.skipped:
        groups = group_pairs((reason, run.name or run.id) for run, reason in chosen.skipped)
        reasons = "; ".join(f"{len(names)} {reason}: {list_names(names)}" for reason, names in groups.items())
        hint = "; --run NAME reads one" if any(not run.lacks for run, _ in chosen.skipped) else ""
        print_note(f"gpureport: {source}: {count(len(chosen.skipped), 'run')} skipped ({reasons}){hint}")
    if options.group is not None and len(joined := chosen.store.grouped) > 1:
        read = f"{len(joined)} recordings read as one run called {options.group}: {list_names(joined)}"
        print_note(f"gpureport: {source}: {read}; use --run to read only some")
    return found


def list_tracked_runs(sources: Sequence[str], options: Options) -> tuple[list[str], int]:
    from gpureport.report.formats.analysis_json import iso_time

    lines, unreadable = [], 0
    for source in fetch_sources(sources):
        tracking = find_tracker(source)
        if tracking is None:
            # raises for a path that does not exist
            if not path_exists(source):
                reading.find_runs(source)
            hint = describe_stores(source) or "--list works only with MLflow, Neptune and Trackio stores"
            raise SourceError(source, "this is not a tracker's store", hint, code="not_a_tracker")
        held = tracking.listed(source, build_tracker_selection(options))
        if deleted := [f"{run.name} ({run.id})" for run in held if run.deleted]:
            print_note(f"gpureport: {source}: deleted runs are read only if named by id: {list_names(deleted)}")
        for run in (run for run in held if not run.deleted):
            started = "not recorded" if run.started is None else iso_time(run.started, run.timezone)
            holds = run.holds if run.fault is None else str(run.fault)
            unreadable += run.fault is not None
            lines.append(f"{run.id}  {run.name}  {run.status}  {started}  {holds}".rstrip())
    return lines, unreadable


def _cut_jobs(whole: RunReading, job: int) -> Iterator[RunReading]:
    for read in try_each([whole], lambda each: each.recording()):
        if isinstance(read, InternalError):
            raise read
        if isinstance(read, SourceError):
            yield whole
        else:
            yield from (CutReading(whole, window, read) for window in find_job_windows(read, job))


def find_job_windows(recording: Recording, job: int) -> list[Window]:
    from gpureport.analysis.job.jobs import find_jobs
    from gpureport.report.sections.head.recording_doubts import job_list

    run, found = recording.run, find_jobs(recording)
    if not found:
        raise SettingsError("--job", f"{run.name} has no job, since no GPU was busy", "omit --job", code="no_job")
    wanted = [(each.interval, each.number) for each in found if job in {0, each.number}]
    if not wanted:
        hint = f"it has {count(len(found), 'job')}: {job_list(run, found)}"
        raise SettingsError("--job", f"{run.name} has no job {job}", hint, code="no_such_job")

    def say(time: int) -> str:
        return f"{(time - run.started) / 1e6:.6f}s"

    # the end is inclusive
    ends = [each.end + (each.end == run.ended) for each, _ in wanted]
    return [Window(start=say(each.start), end=say(end), job=job) for (each, job), end in zip(wanted, ends, strict=True)]
