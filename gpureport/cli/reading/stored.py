"""The runs of the store: those that a person names or selects, and what puts others there."""

from dataclasses import replace
from difflib import get_close_matches
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpureport.cli.clock import now
from gpureport.cli.messages import UsageError, count, print_error, print_note
from gpureport.cli.options import Options
from gpureport.cli.reading import words
from gpureport.cli.reading.given import build_labels, build_window, find_reading_option
from gpureport.errors import DamagedRunError, SettingsError, StoreError, UnknownRunError
from gpureport.store.run_selection import (
    TIMES,
    Condition,
    RunSelection,
    list_baseline_names,
    parse_condition,
    parse_since,
    select_runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpureport.importers.time_window import RunReading
    from gpureport.recording import Recording, Run
    from gpureport.store.run_records import StoredRun
    from gpureport.store.store import Entry, Store

_MENDED = "Stored {} again, since it was damaged"
_SMALL = 16 * 2**20
"""Bytes up to which hashing a log is faster than searching a store of many runs."""


def build_selection(options: Options) -> RunSelection:
    """Return which stored runs `--tag`, `--where` and `--since` select.

    Raises:
        SettingsError: when a comparison or the time is not understood.
    """
    tags = (Condition(key=f"tag:{key}", operator="=", value=value) for key, value in options.tagged)
    times = (parse_since(text, now()) for text in options.since)
    return (*tags, *map(parse_condition, options.where), *times)


def select_sources(
    source: tuple[str, ...],
    options: Options,
    check: "Callable[[Sequence[StoredRun]], None] | None" = None,
) -> tuple[str, ...]:
    """Return what a person named, or the ids of selected runs, oldest first.

    Args:
        source: what a person named.
        options: name the store, and which of its runs are wanted.
        check: takes the selected runs, and raises an error where they do not fit.

    Raises:
        UsageError: when runs are both named and selected.
        StoreError: when no run is selected.
        SettingsError: when no run at all has a tag or param that is asked for.
    """
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
        raise StoreError(
            str(place.folder), "no stored run matches", "list runs: gpureport runs", code="nothing_selected"
        )
    print_note(f"gpureport: {count(len(ids), 'stored run')} selected")
    return ids


def select_stored_runs(place: "Store", selection: RunSelection) -> "list[StoredRun]":
    """Return the wanted runs of a store, oldest first; say which cannot be judged.

    Raises:
        SettingsError: when no run at all has a tag or param that is asked for.
    """
    index = place.index()
    for run_id in index.damaged:
        print_error(_explain_damage(place, run_id))
    note_undated_runs(index.runs, selection)
    return select_runs(index.runs, selection)


def _explain_damage(place: "Store", run_id: str) -> str:
    """Return why a run is left out, and what to do."""
    folder = place.folder / "runs" / run_id
    try:
        place.get(run_id)
    except DamagedRunError:
        return f"{folder}: damaged; ingest the run again, or remove the folder"
    except StoreError as error:
        return str(error)
    return f"{folder}: it could not be read at first; try again, and check the disk"


def note_undated_runs(runs: "Sequence[StoredRun]", selection: RunSelection) -> None:
    """Say how many runs a selection by time leaves out for want of time stamps."""
    without_time = sum(stored.run.quality.synthetic_time for stored in runs)
    if without_time and any(each.key in TIMES for each in selection):
        print_note(f"gpureport: {count(without_time, 'stored run')} without time stamps left out")


def read_stored_runs(name: str, options: Options) -> "list[Recording]":
    """Return the stored run of a name, else the runs of that baseline, as repetitions of a step.

    Raises:
        StoreError: when there is neither, or what there is is damaged.
    """
    from gpureport.nightly.baselines import read_baseline  # noqa: PLC0415 - loads pyarrow

    place, lookup = words.find_store(options), words.find_lookup(options)
    baselines = list_baseline_names(place.folder)
    plain = name.removeprefix(words.BASELINE)
    is_run = plain == name and (name not in baselines or name in lookup.names)
    if not is_run:
        found = read_baseline(place, plain)
        labelled = [replace(one, run=replace(one.run, step=plain)) for one in found]
        return [_apply_options(one, name, options) for one in labelled]
    try:
        entry = lookup.find(name)
    except UnknownRunError as error:
        close = get_close_matches(name, [*baselines, *lookup.names], n=1)
        hint = f"list runs: gpureport runs; set a baseline: gpureport baseline set {name} RUN"
        if close:
            hint = f"did you mean {close[0]!r}?"
        if close and close[0] in baselines:
            hint = f"did you mean the baseline {close[0]!r}?"
        raise UnknownRunError(
            name, f'no file, stored run or baseline named "{name}"', hint, code="unknown_run"
        ) from error
    if name in baselines:
        print_note(f"gpureport: {name}: the stored run, not the baseline; that is {words.BASELINE}{name}")
    return [_apply_options(place.read(entry), name, options)]


def _apply_options(recording: "Recording", name: str, options: Options) -> "Recording":
    """Return a stored run with the labels and the window of the options."""
    from gpureport.importers.time_window import cut_recording  # noqa: PLC0415 - loads pyarrow

    if option := find_reading_option(options):
        raise _only_while_reading(option, name)
    window = build_window(options)
    recording = recording if window is None else cut_recording(recording, window)
    labels = build_labels(replace(options, label_table=None))
    return replace(recording, run=labels.applied(recording.run))


def _only_while_reading(option: str, name: str) -> SettingsError:
    what = f"{name} is stored, and the option only matters while a log is read"
    return SettingsError(option, what, "name its log instead", code="only_while_reading")


def store_run(store: "Store", reading: "RunReading", *, force: bool) -> tuple["Entry", str]:
    """Store a run unless the store holds it; return it with the begin of a sentence on that.

    A run that the store holds keeps its labels unless the options give others. What a file beside its log says besides
    is added, and with `force` wins.
    """
    from gpureport.importers.reading import IMPORTER_VERSION  # noqa: PLC0415 - loads pyarrow

    # finding the id of a large log means reading all of it, in vain if the store cannot hold the run
    may_be_stored = sum(reading.sizes) <= _SMALL or store.may_hold(reading.sizes)
    try:
        known = store.get(reading.run_id) if may_be_stored else None
    except DamagedRunError:
        return _describe(store.write(reading, IMPORTER_VERSION), _MENDED)
    if known is None:
        return _describe(store.write(reading, IMPORTER_VERSION), "Stored {}")
    stored = reading.file_labels.applied(known.run) if force else reading.file_labels.filled_in(known.run)
    run = reading.labels.applied(stored)
    if not store.intact(known):
        return _describe(store.write(reading, IMPORTER_VERSION, run), _MENDED)
    if force or known.stored.importer_version != IMPORTER_VERSION or _has_grown(known, reading):
        return _describe(store.write(reading, IMPORTER_VERSION, run), "Stored {} again")
    if _is_alike(run, known.run):
        return _describe(known, f"{{}} is stored already{_name_other(known, reading)}")
    return _describe(store.relabel(known, run), "{} is stored already, labels changed")


def relabel_stored_run(store: "Store", name: str, options: Options) -> "Entry":
    """Return a run of the store, which keeps the labels that the options give.

    Raises:
        SettingsError: when an option only matters while a log is read.
        StoreError: when there is no such run.
    """
    entry = store.named(name)
    if option := find_reading_option(options, is_cut=True):
        raise _only_while_reading(option, name)
    run = build_labels(options).applied(entry.run)
    return entry if _is_alike(run, entry.run) else store.relabel(entry, run)


def _is_alike(run: "Run", stored: "Run") -> bool:
    """Return whether a run is as stored, with its work stated of it alone, or of several, as there."""
    common = [each.work is not None and each.work.is_common for each in (run, stored)]
    return run == stored and common[0] == common[1]


def _describe(entry: "Entry", done: str) -> tuple["Entry", str]:
    """Return a run with what was done with it; `{}` is its name."""
    return entry, done.replace("{}", entry.run.name, 1)


def _name_other(known: "Entry", reading: "RunReading") -> str:
    """Return a note where the store knows the same bytes by another name."""
    name = PurePath(reading.locator).name
    if known.run.tracked or name in {PurePath(each.locator).name for each in known.run.sources}:
        return ""
    return f" ({name} holds the same bytes)"


def _has_grown(known: "Entry", reading: "RunReading") -> bool:
    """Return whether a source, or the training log beside it, has grown since the run was stored.

    A GPU log that has grown is another run. A stored training log stays where none is named.
    """
    return bool({each.sha256 for each in reading.sources} - {each.sha256 for each in known.run.sources})
