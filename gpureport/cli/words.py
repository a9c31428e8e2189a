"""Resolves names to files, trackers, stored runs or baselines, and stores runs."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path, PurePath

import click

from gpureport.cli import sources
from gpureport.cli.messages import UsageError, count, now, print_error, print_note
from gpureport.cli.options import Options
from gpureport.errors import DamagedRunError, SettingsError, StoreError, UnknownRunError
from gpureport.importers import LOCATORS
from gpureport.importers.sources import names_run
from gpureport.importers.time_window import RunReading, cut_recording
from gpureport.recording import Recording, Run
from gpureport.regular_files import path_exists
from gpureport.store import run_selection
from gpureport.store.run_records import StoredRun
from gpureport.store.store import Entry, Store

BASELINE, LIST_RUNS = "baseline:", "list runs: gpureport runs list"
_MOST_STEPS, _SMALL = 40, 16 * 2**20


def find_store(options: Options, *, must_exist: bool = False) -> Store:
    folder, context = options.store, click.get_current_context(silent=True)
    while folder is None and context is not None:
        folder, context = context.params.get("store"), context.parent
    if folder is None:
        return Store.find(Path.cwd())
    if must_exist and not folder.is_dir():
        raise StoreError(str(folder), "no such store", "check the path, or ingest a log first", code="no_such_store")
    return Store(folder)


def find_lookup(options: Options) -> run_selection.RunLookup:
    place = find_store(options)
    context = click.get_current_context(silent=True)
    lookups: dict[str, run_selection.RunLookup] = context.meta.setdefault(f"{__name__}.lookups", {}) if context else {}
    return lookups.setdefault(str(place.folder), place.lookup())


def is_source(source: str, options: Options) -> bool:
    """Return whether a word names a file or tracker, not a stored run named like a path."""
    if source == "-" or path_exists(source) or source.startswith(LOCATORS) or names_run(source):
        return True
    return _looks_like_path(source) and find_stored(source, options) is None


def _looks_like_path(source: str) -> bool:
    return "/" in source or "\\" in source or Path(source).suffix.lower() in {".csv", ".log", ".txt", ".out"}


def note_stored_namesake(source: str, options: Options) -> None:
    is_named = source != "-" and not _looks_like_path(source) and path_exists(source)
    if is_named and (run := find_stored(source, options)):
        kind = "folder" if Path(source).is_dir() else "file"
        print_note(f"gpureport: {source}: reading the {kind}, not the stored run with the same name, id {run.id}")


def find_stored(name: str, options: Options) -> Run | None:
    with suppress(StoreError):
        return find_lookup(options).find(name).run
    return None


def build_selection(options: Options) -> run_selection.RunSelection:
    tags = (run_selection.Condition(key=f"tag:{key}", operator="=", value=value) for key, value in options.tagged)
    times = (run_selection.parse_since(text, round(now().timestamp() * 1e6)) for text in options.since)
    return (*tags, *map(run_selection.parse_condition, options.where), *times)


def select_sources(source: tuple[str, ...], options: Options, *, steps: bool = False) -> tuple[str, ...]:
    if not (selection := build_selection(options)):
        return source
    if source:
        what = "either name the runs or select stored runs with --where or --since; gpureport ingest SOURCE stores them"
        raise UsageError(what, code="named_or_selected")
    place = find_store(options)
    runs = [stored.run for stored in select_stored_runs(place, selection)]
    if steps:
        asked = [word for each in selection for word in ("--where", each.text)]
        refuse_parallel_jobs([run.step for run in runs], "--where", asked, options)
    ids = tuple(dict.fromkeys(run.id for run in runs))
    if not ids:
        raise StoreError(str(place.folder), "no stored run matches", LIST_RUNS, code="nothing_selected")
    print_note(f"gpureport: {count(len(ids), 'stored run')} selected")
    return ids


def refuse_parallel_jobs(steps: Sequence[str | None], where: str, named: Sequence[str], options: Options) -> None:
    is_chain = options.steps is None and all(each.kind == "step" for each in options.by or ())
    if is_chain and steps.count(None) > _MOST_STEPS:
        what = f"{steps.count(None):,} runs without a step label are too many to compare as steps"
        command = shlex.join(["gpureport", "fleet", *named, "-o", "fleet.html"])
        raise SettingsError(where, what, f"see them together: {command}", code="too_many_steps")


def select_stored_runs(place: Store, selection: run_selection.RunSelection) -> list[StoredRun]:
    index = place.index()
    for run_id in index.damaged:
        folder = place.folder / "runs" / run_id
        try:
            place.get(run_id)
            print_error(f"{folder}: left out because it could not be read; check the disk and try again")
        except DamagedRunError:
            print_error(f"{folder}: damaged; ingest the run again, or remove the folder")
        except StoreError as error:
            print_error(str(error))
    note_undated_runs(index.runs, selection)
    return run_selection.select_runs(index.runs, selection)


def note_undated_runs(runs: Sequence[StoredRun], selection: run_selection.RunSelection) -> None:
    without_time = sum(stored.run.quality.synthetic_time for stored in runs)
    if without_time and any(each.key in run_selection.TIMES for each in selection):
        print_note(f"gpureport: left out {count(without_time, 'stored run')} without timestamps")


def read_stored(name: str, options: Options) -> list[Recording]:
    from gpureport.nightly.baselines import read_baseline

    labels, place, lookup = sources.build_labels(options), find_store(options), find_lookup(options)
    baselines = run_selection.list_baseline_names(place.folder)
    plain = name.removeprefix(BASELINE)
    if plain != name or (name in baselines and name not in lookup.names):
        found = [replace(one, run=replace(one.run, step=plain)) for one in read_baseline(place, plain)]
    else:
        try:
            found = [place.read(lookup.find(name))]
        except UnknownRunError as error:
            hint = f"{LIST_RUNS}; set a baseline: gpureport baseline set {name} RUN"
            if close := get_close_matches(name, [*baselines, *lookup.names], n=1):
                is_baseline = close[0] in baselines
                hint = f"did you mean the baseline {close[0]!r}?" if is_baseline else f"did you mean {close[0]!r}?"
            raise UnknownRunError(name, f'no file, run or baseline named "{name}"', hint, code="unknown_run") from error
        if name in baselines:
            print_note(f"gpureport: {name}: reading the stored run, not {BASELINE}{name}")
    _refuse_reading_option(name, options, sources.READING)
    window = sources.build_window(options)
    own = sources.build_labels(replace(options, label_table=None))
    parts = [one if window is None else cut_recording(one, window) for one in found]
    parts = [replace(one, run=own.applied(one.run)) for one in parts]
    if options.job is not None:
        jobs = [(one, sources.find_job_windows(one, options.job)) for one in parts]
        parts = [cut_recording(one, window) for one, windows in jobs for window in windows]
    return [replace(one, run=labels.look_up(one.run)) for one in parts]


def _refuse_reading_option(name: str, options: Options, names: Sequence[str]) -> None:
    if option := sources.find_given(options, names):
        what = f"{name} is a stored run, but this option applies only when a log is read"
        raise SettingsError(option, what, "name its log instead", code="only_while_reading")


def store_run(store: Store, reading: RunReading, *, force: bool) -> tuple[Entry, str]:
    from gpureport.importers.reading import IMPORTER_VERSION

    # check the store before hashing a large log
    may_be_stored = sum(reading.sizes) <= _SMALL or store.may_hold(reading.sizes)
    done, run = "", None
    try:
        known = store.get(reading.run_id) if may_be_stored else None
    except DamagedRunError:
        known, done = None, " again, since it was damaged"
    if known is not None:
        done = " again" if store.intact(known) else " again, since it was damaged"
        labelled = reading.file_labels.applied(known.run) if force else reading.file_labels.filled_in(known.run)
        run = reading.labels.applied(labelled)
        # treat a GPU log that has grown as a new run
        has_grown = bool({each.sha256 for each in reading.sources} - {each.sha256 for each in known.run.sources})
        if done == " again" and known.stored.importer_version == IMPORTER_VERSION and not (has_grown or force):
            if not _is_alike(run, known.run):
                entry = store.relabel(known, run)
                return entry, f"{entry.run.name} is already stored; its labels were changed"
            name = PurePath(reading.locator).name
            is_named = run.tracked or name in {PurePath(each.locator).name for each in known.run.sources}
            other = "" if is_named else f" ({name} has the same content)"
            return known, f"{known.run.name} is already stored{other}"
    entry = store.write(reading, IMPORTER_VERSION, run)
    return entry, f"Stored {entry.run.name}{done}"


def relabel_stored_run(store: Store, name: str, options: Options) -> Entry:
    entry = store.named(name)
    _refuse_reading_option(name, options, [*sources.READING, "start", "end", "job"])
    run = sources.build_labels(options).applied(entry.run)
    return entry if _is_alike(run, entry.run) else store.relabel(entry, run)


def _is_alike(run: Run, stored: Run) -> bool:
    return run == stored and getattr(run.work, "is_common", None) == getattr(stored.work, "is_common", None)
