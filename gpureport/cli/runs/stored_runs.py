"""The runs of the store that a person names or selects, as recordings."""

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.messages.verbosity import print_note
from gpureport.cli.options.usage_errors import UsageError
from gpureport.cli.sources import source_names
from gpureport.errors import DamagedRunError, SettingsError, StoreError, UnknownRunError
from gpureport.store.run_selection import TIMES, RunSelection, list_baseline_names, select_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.recording import Recording
    from gpureport.store.run_records import StoredRun
    from gpureport.store.store import Store


def select_sources(
    source: tuple[str, ...],
    selection: RunSelection,
    options: "SourceOptions",
    check: "Callable[[Sequence[StoredRun]], None] | None" = None,
) -> tuple[str, ...]:
    """Return what a person named, or the ids of selected runs, oldest first.

    Args:
        source: what a person named.
        selection: which stored runs are wanted.
        options: name the store.
        check: takes the selected runs, and raises an error where they do not fit.

    Raises:
        UsageError: when runs are both named and selected.
        StoreError: when no run is selected.
        SettingsError: when no run at all has a tag or param that is asked for.
    """
    if not selection:
        return source
    if source:
        msg = "name the runs, or select stored runs with --where and --since, and not both"
        raise UsageError(msg, click.get_current_context(), code="named_or_selected")
    place = source_names.find_store(options)
    runs = select_stored_runs(place, selection)
    if check is not None:
        check(runs)
    ids = tuple(dict.fromkeys(stored.run.id for stored in runs))
    if not ids:
        raise StoreError(
            str(place.folder), "no stored run matches", "list runs: gpureport runs", code="nothing_selected"
        )
    print_note(f"gpureport: {len(ids)} stored {'run' if len(ids) == 1 else 'runs'} selected")
    return ids


def select_stored_runs(place: "Store", selection: RunSelection) -> "list[StoredRun]":
    """Return the wanted runs of a store, oldest first; say which cannot be judged.

    Raises:
        SettingsError: when no run at all has a tag or param that is asked for.
    """
    index = place.index()
    for run_id in index.damaged:
        click.echo(f"gpureport: {make_printable(_explain_damage(place, run_id))}", err=True)
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
        print_note(
            f"gpureport: {without_time} stored {'run' if without_time == 1 else 'runs'} without time stamps left out"
        )


def read_stored_runs(name: str, options: "SourceOptions") -> "list[Recording]":
    """Return the stored run of a name, else the runs of that baseline, as repetitions of a step.

    Raises:
        StoreError: when there is neither, or what there is is damaged.
    """
    from gpureport.nightly.history.baselines import read_baseline  # noqa: PLC0415 - loads pyarrow

    place, lookup = source_names.find_store(options), source_names.find_lookup(options)
    baselines = list_baseline_names(place.folder)
    plain = name.removeprefix(source_names.BASELINE)
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
        print_note(f"gpureport: {name}: the stored run, not the baseline; that is {source_names.BASELINE}{name}")
    return [_apply_options(place.read(entry), name, options)]


def _apply_options(recording: "Recording", name: str, options: "SourceOptions") -> "Recording":
    """Return a stored run with the labels and the window of the options."""
    from gpureport.importers.time_window import cut_recording  # noqa: PLC0415 - loads pyarrow

    if options.reading_option:
        raise SettingsError(
            options.reading_option,
            f"{name} is stored, and the option only matters while a log is read",
            "ingest its log again",
            code="only_while_reading",
        )
    if options.window.window is not None:
        recording = cut_recording(recording, options.window.window)
    return replace(recording, run=options.labels.labels().applied(recording.run))
