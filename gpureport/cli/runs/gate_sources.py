"""The runs that `check` and `nightly` assess. An unreadable source hides no other."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from gpureport.cli.messages.internal_errors import InternalError, internal_errors
from gpureport.cli.messages.progress import show_progress
from gpureport.cli.sources import fetched_sources, source_joining, source_names, source_readings
from gpureport.errors import SourceError, StoreError

if TYPE_CHECKING:
    from gpureport.cli.options.source_options import SourceOptions
    from gpureport.importers.time_window import RunReading
    from gpureport.recording import Recording


def group_sources(sources: Sequence[str], options: "SourceOptions") -> "list[tuple[tuple[str, ...], SourceOptions]]":
    """Return the sources that are read together; an unfetchable one is read as missing."""
    sources = fetched_sources.fetch_readable_sources(sources)
    if options.input.as_one_run and sources:
        return [(tuple(sources), options)]
    return [((source,), own) for source, own in source_joining.pair_sources(sources, options)]


def read_each_run(
    group: Sequence[str],
    options: "SourceOptions",
    read_stored: "Callable[[str], list[Recording]]",
    read_log: "Callable[[RunReading], Recording]",
) -> "Iterator[Recording | SourceError | InternalError]":
    """Yield every run of sources that are read together, or why one of them cannot be read.

    Args:
        group: the sources.
        options: how they are read.
        read_stored: returns the runs of a name that is not a file, a folder or a tracker.
        read_log: reads one run of a file, a folder or a tracker.
    """
    whole = ", ".join(group)
    try:
        if len(group) == 1 and not source_names.is_source(group[0], options):
            yield from read_stored(group[0])
            return
        readings = source_readings.find_readings(group, options)
    except (SourceError, StoreError) as error:
        yield SourceError(whole, error.what, error.hint, code=error.code)
        return
    except InternalError as error:
        yield error
        return
    for reading in readings:
        try:
            with internal_errors(reading.locator), show_progress(reading):
                run = read_log(reading)
        except SourceError as error:
            yield error if len(readings) > 1 else error.at(whole)
        except InternalError as error:
            yield error
        else:
            yield run
