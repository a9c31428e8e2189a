"""Longer names for runs that would have the same one: the part of the paths of their logs that differs is added."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpureport.fetched_copies import name_by_url
from gpureport.importers.reading.sources import count_named_parts, derive_name, split_log_path
from gpureport.recording import Run

if TYPE_CHECKING:
    from gpureport.importers.reading.run_reading import Reading


def make_names_distinct(runs: Sequence[Run]) -> list[Run]:
    """Return runs with distinct names: where logs give the same name, the part of the path that differs is added.

    A name that a person or a tracker gave stays, and so does that of logs whose paths do not differ.
    """
    named = list(runs)
    alike: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        if _has_derived_name(run):
            alike.setdefault(run.name, []).append(place)
    for places in alike.values():
        longer = longer_names([runs[place].sources[0].locator for place in places])
        for place, name in zip(places, longer, strict=True):
            named[place] = replace(runs[place], name=name)
    return named


def longer_names(locators: Sequence[str]) -> list[str]:
    """Return names for logs that would be called alike, with as much of their paths as tells them apart."""
    paths = [split_log_path(locator) for locator in locators]
    tails = list(_tails(paths, min(map(count_named_parts, locators), default=1)))
    # of those that tell the same number apart the first is the shortest
    return max(tails, key=lambda names: len(set(names)), default=[])


def _tails(paths: Sequence[tuple[str, ...]], shortest: int) -> Iterator[list[str]]:
    """Yield the ends of paths, one part longer each time."""
    for length in range(shortest, max(map(len, paths), default=0) + 1):
        yield ["/".join(path[-length:]) for path in paths]


def _has_derived_name(run: Run) -> bool:
    """Return whether a run is called after its log; the name of several logs that are one run is another."""
    if run.tracked or not run.sources:
        return False
    locator = run.sources[0].locator
    return locator != "-" and run.name == derive_name(locator)


def lengthen_equal_names(readings: "Sequence[Reading]") -> None:
    """Name runs that are called alike after their logs, or by a file of labels, by as much of the path as differs."""
    alike: dict[str, list[Reading]] = {}
    for each in readings:
        if (name := each.name) in {derive_name(each.locator), each.file_labels.name}:
            alike.setdefault(name, []).append(each)
    for same in alike.values():
        if len(same) > 1:
            for each, longer in zip(same, longer_names([each.locator for each in same]), strict=True):
                each.longer_name = longer


def name_copies_by_url(run: Run) -> Run:
    """Return a run whose sources and notes name what was fetched from a bucket by its URL, not by its local copy."""
    sources = tuple(replace(each, locator=name_by_url(each.locator)) for each in run.sources)
    quality = replace(run.quality, notes=tuple(map(name_by_url, run.quality.notes)))
    return replace(run, sources=sources, quality=quality)
