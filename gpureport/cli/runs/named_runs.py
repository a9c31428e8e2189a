"""What a person names on the command line, as recordings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpureport.cli.messages import progress
from gpureport.cli.messages.internal_errors import InternalError, internal_errors, report_internal_error
from gpureport.cli.messages.line_account import summarise_run
from gpureport.cli.messages.styled_text import make_printable
from gpureport.cli.messages.verbosity import print_details, print_note
from gpureport.cli.runs import stored_runs
from gpureport.cli.sources import (
    fetched_sources,
    job_selection,
    label_tables,
    nested_sources,
    source_joining,
    source_names,
    source_readings,
)
from gpureport.errors import SourceError, StoreError
from gpureport.regular_files import path_exists

if TYPE_CHECKING:
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.importers.time_window import RunReading
    from gpureport.recording import Recording

Check = Callable[[str, "Sequence[RunReading]"], None]
"""Takes a source and its runs before they are read."""


def read_recordings(  # noqa: PLR0913 - each option by name
    sources: Sequence[str],
    options: "SourceOptions",
    *,
    tolerant: bool = False,
    steps: bool = False,
    check: Check | None = None,
    named: Sequence[str] = (),
    step: str | None = None,
) -> list["Recording"]:
    """Return every named run, from a file, a folder or the store.

    A run in a folder that is named by itself as well is not read with the folder.

    Args:
        sources: what a person named.
        options: how it is read.
        tolerant: whether a log that cannot be read is reported and left out where another log of its folder can be
            read.
        steps: whether the sources are steps to compare, which stay apart where they would be one run. What is named
            twice for a step counts once.
        check: takes each source and its runs before they are read, and raises an error where they do not fit.
        named: every source of the command, where these are only some of them.
        step: the step that all runs belong to, where a person named it for them.

    Raises:
        SourceError: when a source cannot be read; `StoreError` when there is no such file or run.
    """
    fetched = fetched_sources.fetch_sources(sources)
    if steps and not _has_options_for_each(options):
        fetched = nested_sources.drop_repeated_sources(fetched)
    nesting = _Nesting(named=named or fetched, steps=steps, hidden=options.anonymise)
    read = _read_sources(fetched, options, tolerant=tolerant, nesting=nesting, check=check)
    source_readings.check_single_name(options, len(read))
    if step is not None:
        read = [replace(one, run=replace(one.run, step=step)) for one in read]
    if steps or step is not None:
        # copies of a log are told by their names, which may be hidden now
        read = nested_sources.drop_repeated_runs(read)
    if options.anonymise:
        return hide_names(read)
    return read if options.labels.name else make_run_names_distinct(read)


def _has_options_for_each(options: "SourceOptions") -> bool:
    """Return whether something is said of each source in their order."""
    return max(len(options.labels.step), len(options.labels.work)) > 1 or bool(options.input.training)


def hide_names(found: Sequence["Recording"]) -> list["Recording"]:
    """Return all runs of an output without the names of hosts, users, paths and GPUs."""
    from gpureport.report.runs.anonymisation import anonymise_recordings  # noqa: PLC0415 - loads pyarrow

    return anonymise_recordings(found)


def make_run_names_distinct(found: Sequence["Recording"]) -> list["Recording"]:
    """Return runs, with longer names for those of the same name."""
    from gpureport.importers.runs import make_names_distinct  # noqa: PLC0415 - loads pyarrow

    runs = make_names_distinct([recording.run for recording in found])
    return [replace(recording, run=run) for recording, run in zip(found, runs, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nesting:
    """How sources stand to each other.

    Attributes:
        named: every source of the command.
        steps: whether sources are steps to compare.
        hidden: whether names of folders must not be told.
    """

    named: Sequence[str]
    steps: bool
    hidden: bool

    def place(self, readings: "Sequence[RunReading]", source: str) -> "list[RunReading]":
        """Return the runs of a source that are counted with it, with any step it tells."""
        kept = nested_sources.leave_out_named_runs(readings, source, self.named)
        if self.steps:
            nested_sources.label_repetitions(kept, source, self.named, hidden=self.hidden)
        return kept


def _read_sources(
    sources: Sequence[str], options: "SourceOptions", *, tolerant: bool, nesting: _Nesting, check: Check | None
) -> list["Recording"]:
    """Return every named run, read or from the store."""
    if options.input.as_one_run:
        return _read(sources, options)
    found: list[Recording] = []
    failures: list[InternalError] = []
    for source, own in source_joining.pair_sources(sources, options, steps=nesting.steps):
        try:
            if source_names.is_source(source, own):
                note_stored_namesake(source, own)
                found += _read([source], own, tolerant=tolerant and not own.input.strict, nesting=nesting, check=check)
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
    """Note that a file or folder is read although the store holds a run of its name."""
    if source == "-" or source_names.looks_like_path(source) or not path_exists(source):
        return
    try:
        run = source_names.find_lookup(options).find(source).run
    except StoreError:
        return
    kind = "folder" if Path(source).is_dir() else "file"
    print_note(f"gpureport: {source}: reading the {kind}, not the stored run of the same name; its id is {run.id}")


def _read(
    sources: Sequence[str],
    options: "SourceOptions",
    *,
    tolerant: bool = False,
    nesting: _Nesting | None = None,
    check: Check | None = None,
) -> list["Recording"]:
    """Return the runs of files and folders, and show progress on a terminal."""
    found: list[Recording] = []
    errors: list[SourceError | InternalError] = []
    readings = source_readings.find_readings(sources, options)
    if nesting is not None:
        readings = nesting.place(readings, sources[0])
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
    # one fault may keep several runs from being read
    for text in dict.fromkeys(str(each) for each in errors if isinstance(each, SourceError)):
        click.echo(f"gpureport: left out: {make_printable(text)}", err=True)
    return found


def _try_reading(reading: "RunReading") -> "Recording | SourceError | InternalError":
    """Return a run, or why it cannot be read."""
    try:
        with internal_errors(reading.locator), progress.show_progress(reading):
            recording = reading.recording()
    except (SourceError, InternalError) as error:
        return error
    print_details(summarise_run(recording.run))
    return recording
