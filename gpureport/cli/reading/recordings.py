"""What a person names on the command line, as recordings."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpureport.cli.account import summarise_run
from gpureport.cli.messages import print_details, print_error, report_internal_error
from gpureport.cli.options import Options
from gpureport.cli.reading import given, joining, readings, stored, words
from gpureport.errors import InternalError, SourceError
from gpureport.importers.runs import make_names_distinct
from gpureport.importers.time_window import RunReading, cut_recording
from gpureport.recording import Recording

Check = Callable[[str, Sequence[RunReading]], None]
"""Takes a source and its runs before they are read, and raises an error where they do not fit."""


def read_recordings(  # noqa: PLR0913 - each option by name
    sources: Sequence[str],
    options: Options,
    *,
    tolerant: bool = False,
    steps: bool = False,
    check: Check | None = None,
    named: Sequence[str] = (),
    step: str | None = None,
) -> list[Recording]:
    """Return every named run, from a file, a folder or the store.

    A run in a folder that is named by itself as well is not read with the folder.

    Args:
        sources: what a person named.
        options: how it is read.
        tolerant: whether a log that cannot be read is reported and left out where another log of its folder can be
            read.
        steps: whether the sources are steps to compare, which stay apart where they would be one run. What is named
            twice for a step counts once.
        check: takes each source and its runs before they are read.
        named: every source of the command, where these are only some of them.
        step: the step that all runs belong to, where a person named it for them.
    """
    fetched = words.fetch_sources(sources)
    if steps and max(len(options.step), len(options.work)) <= 1 and not options.training:
        # nothing is said of each source in their order
        fetched = joining.drop_repeated_sources(fetched)

    def find(source: str, own: Options) -> list[RunReading]:
        kept = joining.leave_out_named_runs(readings.find_readings([source], own), source, named or fetched)
        if steps:
            joining.label_repetitions(kept, source, named or fetched, hidden=options.anonymise)
        if check is not None:
            check(source, kept)
        return kept

    if options.as_one_run:
        read = _read_logs(readings.find_readings(fetched, options), tolerant=False)
    else:
        read = _read_each(joining.pair_sources(fetched, options, steps=steps), find, tolerant=tolerant)
    given.check_single_name(options, len(read))
    if step is not None:
        read = [replace(one, run=replace(one.run, step=step)) for one in read]
    if steps or step is not None:
        # copies of a log are told by their names, which may be hidden now
        read = joining.drop_repeated_runs(read)
    if options.anonymise:
        return hide_names(read)
    return read if options.name else make_run_names_distinct(read)


def hide_names(found: Sequence[Recording]) -> list[Recording]:
    """Return all runs of an output without the names of hosts, users, paths and GPUs."""
    from gpureport.report.runs.anonymisation import anonymise_recordings  # noqa: PLC0415 - only with the option

    return anonymise_recordings(found)


def make_run_names_distinct(found: Sequence[Recording]) -> list[Recording]:
    """Return runs, with longer names for those of the same name."""
    runs = make_names_distinct([recording.run for recording in found])
    return [replace(recording, run=run) for recording, run in zip(found, runs, strict=True)]


def read_log(reading: RunReading) -> Recording:
    """Return a run, and say with -v what became of every line of it."""
    recording = reading.recording()
    print_details(summarise_run(recording.run))
    return recording


def read_stored(name: str, options: Options) -> list[Recording]:
    """Return the stored runs of a name, or their jobs that are wanted, with the labels of a table."""
    labels, found = given.build_labels(options), stored.read_stored_runs(name, options)
    if options.job is not None:
        jobs = [(one, readings.find_job_windows(one, options.job)) for one in found]
        found = [cut_recording(one, window) for one, windows in jobs for window in windows]
    return [replace(one, run=labels.look_up(one.run)) for one in found]


def _read_each(
    pairs: Sequence[tuple[str, Options]], find: Callable[[str, Options], list[RunReading]], *, tolerant: bool
) -> list[Recording]:
    """Return every named run, read or from the store; `find` returns the runs that are counted with a source."""
    found: list[Recording] = []
    failures: list[InternalError] = []
    for source, own in pairs:
        try:
            if words.is_source(source, own):
                words.note_stored_namesake(source, own)
                found += _read_logs(find(source, own), tolerant=tolerant and not own.strict)
            else:
                found += read_stored(source, own)
        except InternalError as error:
            if not tolerant:
                raise
            failures.append(error)
    if failures and not found:
        raise failures[0]
    for failure in failures:
        report_internal_error(failure)
    return found


def _read_logs(found: Sequence[RunReading], *, tolerant: bool) -> list[Recording]:
    """Return runs; one that cannot be read is left out where that is tolerated, and others can."""
    read: list[Recording] = []
    errors: list[SourceError | InternalError] = []
    for one in readings.try_each(found, read_log):
        if isinstance(one, Recording):
            read.append(one)
        elif tolerant:
            errors.append(one)
        else:
            raise one
    faults = [each for each in errors if isinstance(each, InternalError)]
    if errors and not read:
        raise (faults or errors)[0]
    for fault in faults:
        report_internal_error(fault)
    # one fault may keep several runs from being read
    for text in dict.fromkeys(str(each) for each in errors if isinstance(each, SourceError)):
        print_error(f"left out: {text}")
    return read
