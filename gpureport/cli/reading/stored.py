"""The runs of the store: those that a person names or selects, and what puts others there."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import PurePath

from gpureport.cli.clock import now
from gpureport.cli.messages import UsageError, count, print_error, print_note
from gpureport.cli.options import Options
from gpureport.cli.reading import given, words
from gpureport.errors import DamagedRunError, SettingsError, StoreError, UnknownRunError
from gpureport.importers.time_window import RunReading, cut_recording
from gpureport.recording import Recording, Run
from gpureport.store import run_selection
from gpureport.store.run_records import StoredRun
from gpureport.store.store import Entry, Store

_SMALL = 16 * 2**20
"""Bytes up to which hashing a log is faster than searching a store of many runs."""


def build_selection(options: Options) -> run_selection.RunSelection:
    """Return which stored runs `--tag`, `--where` and `--since` select."""
    tags = (run_selection.Condition(key=f"tag:{key}", operator="=", value=value) for key, value in options.tagged)
    times = (run_selection.parse_since(text, now()) for text in options.since)
    return (*tags, *map(run_selection.parse_condition, options.where), *times)


def select_sources(
    source: tuple[str, ...], options: Options, check: Callable[[Sequence[StoredRun]], None] | None = None
) -> tuple[str, ...]:
    """Return what a person named, or the ids of selected runs, oldest first; `check` may refuse these."""
    selection = build_selection(options)
    if not selection:
        return source
    if source:
        msg = "name the runs, or select stored runs with --where and --since, and not both"
        raise UsageError(msg, code="named_or_selected")
    place = words.find_store(options)
    runs = select_stored_runs(place, selection)
    if check is not None:
        check(runs)
    ids = tuple(dict.fromkeys(stored.run.id for stored in runs))
    if not ids:
        hint = "list runs: gpureport runs"
        raise StoreError(str(place.folder), "no stored run matches", hint, code="nothing_selected")
    print_note(f"gpureport: {count(len(ids), 'stored run')} selected")
    return ids


def select_stored_runs(place: Store, selection: run_selection.RunSelection) -> list[StoredRun]:
    """Return the wanted runs of a store, oldest first; say which cannot be judged."""
    index = place.index()
    for run_id in index.damaged:
        folder = place.folder / "runs" / run_id
        why = f"{folder}: it could not be read at first; try again, and check the disk"
        try:
            place.get(run_id)
        except DamagedRunError:
            why = f"{folder}: damaged; ingest the run again, or remove the folder"
        except StoreError as error:
            why = str(error)
        print_error(why)
    note_undated_runs(index.runs, selection)
    return run_selection.select_runs(index.runs, selection)


def note_undated_runs(runs: Sequence[StoredRun], selection: run_selection.RunSelection) -> None:
    """Say how many runs a selection by time leaves out for want of time stamps."""
    without_time = sum(stored.run.quality.synthetic_time for stored in runs)
    if without_time and any(each.key in run_selection.TIMES for each in selection):
        print_note(f"gpureport: {count(without_time, 'stored run')} without time stamps left out")


def read_stored_runs(name: str, options: Options) -> list[Recording]:
    """Return the stored run of a name, else the runs of that baseline, as repetitions of a step.

    They get the labels of the options, and are cut to their window.
    """
    from gpureport.nightly.baselines import read_baseline  # noqa: PLC0415 - most runs are no baseline

    place, lookup = words.find_store(options), words.find_lookup(options)
    baselines = run_selection.list_baseline_names(place.folder)
    plain = name.removeprefix(words.BASELINE)
    if plain != name or (name in baselines and name not in lookup.names):
        found = [replace(one, run=replace(one.run, step=plain)) for one in read_baseline(place, plain)]
    else:
        found = [place.read(_find_entry(name, options, baselines))]
        if name in baselines:
            print_note(f"gpureport: {name}: the stored run, not the baseline; that is {words.BASELINE}{name}")
    _refuse_reading_option(name, options, given.READING)
    window, labels = given.build_window(options), given.build_labels(replace(options, label_table=None))
    parts = [one if window is None else cut_recording(one, window) for one in found]
    return [replace(one, run=labels.applied(one.run)) for one in parts]


def _find_entry(name: str, options: Options, baselines: Sequence[str]) -> Entry:
    """Return the stored run of a name; where there is none, suggest what has nearly this name."""
    lookup = words.find_lookup(options)
    try:
        return lookup.find(name)
    except UnknownRunError as error:
        close = get_close_matches(name, [*baselines, *lookup.names], n=1)
        hint = f"list runs: gpureport runs; set a baseline: gpureport baseline set {name} RUN"
        if close:
            hint = f"did you mean {close[0]!r}?"
        if close and close[0] in baselines:
            hint = f"did you mean the baseline {close[0]!r}?"
        what = f'no file, stored run or baseline named "{name}"'
        raise UnknownRunError(name, what, hint, code="unknown_run") from error


def _refuse_reading_option(name: str, options: Options, names: Sequence[str]) -> None:
    if option := given.find_given(options, names):
        what = f"{name} is stored, and the option only matters while a log is read"
        raise SettingsError(option, what, "name its log instead", code="only_while_reading")


def store_run(store: Store, reading: RunReading, *, force: bool) -> tuple[Entry, str]:
    """Store a run unless the store holds it; return it with the begin of a sentence on that.

    A run that the store holds keeps its labels unless the options give others. What a file beside its log says besides
    is added, and with `force` wins.
    """
    from gpureport.importers.reading import IMPORTER_VERSION  # noqa: PLC0415 - what lists runs reads none

    # finding the id of a large log means reading all of it, in vain if the store cannot hold the run
    may_be_stored = sum(reading.sizes) <= _SMALL or store.may_hold(reading.sizes)
    done, run, is_intact = "Stored {}", None, True
    try:
        known = store.get(reading.run_id) if may_be_stored else None
    except DamagedRunError:
        known, is_intact = None, False
    if known is not None:
        is_intact = store.intact(known)
        labelled = reading.file_labels.applied(known.run) if force else reading.file_labels.filled_in(known.run)
        run = reading.labels.applied(labelled)
        # a GPU log that has grown is another run; a stored training log stays where none is named
        has_grown = bool({each.sha256 for each in reading.sources} - {each.sha256 for each in known.run.sources})
        is_current = known.stored.importer_version == IMPORTER_VERSION and not has_grown
        if is_intact and is_current and not force:
            if _is_alike(run, known.run):
                return known, f"{known.run.name} is stored already{_name_other(known, reading)}"
            entry = store.relabel(known, run)
            return entry, f"{entry.run.name} is stored already, labels changed"
        done = "Stored {} again"
    entry = store.write(reading, IMPORTER_VERSION, run)
    done = done if is_intact else "Stored {} again, since it was damaged"
    return entry, done.replace("{}", entry.run.name, 1)


def relabel_stored_run(store: Store, name: str, options: Options) -> Entry:
    """Return a run of the store, which keeps the labels that the options give."""
    entry = store.named(name)
    _refuse_reading_option(name, options, [*given.READING, "start", "end", "job"])
    run = given.build_labels(options).applied(entry.run)
    return entry if _is_alike(run, entry.run) else store.relabel(entry, run)


def _is_alike(run: Run, stored: Run) -> bool:
    """Return whether a run is as stored, with its work stated of it alone, or of several, as there."""
    common = [each.work is not None and each.work.is_common for each in (run, stored)]
    return run == stored and common[0] == common[1]


def _name_other(known: Entry, reading: RunReading) -> str:
    """Return a note where the store knows the same bytes by another name."""
    name = PurePath(reading.locator).name
    if known.run.tracked or name in {PurePath(each.locator).name for each in known.run.sources}:
        return ""
    return f" ({name} holds the same bytes)"
