"""Names of runs that nobody named: the log or its folder, extended where two runs would have the same name."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os.path import commonpath
from pathlib import Path

from gpureport.importers.merging.node_names import strip_suffixes
from gpureport.importers.protocol.importer import Input
from gpureport.recording import Run

COMPRESSED = {".gz", ".zst", ".bz2", ".xz"}
USUAL_NAMES = {"nvidia-smi", "nvidia_smi", "gpu"}
"""Common names of logs; the name of the folder says more."""


def derive_name(locator: str) -> str:
    """Return the name of a log, or of its folder where the log is called what logs of nvidia-smi are called."""
    return _parts(locator)[-1]


def name_after_log(inputs: Sequence[Input]) -> str:
    """Return a run's name: its log's, or its folder's where the log is called what nvidia-smi logs are called."""
    logs = [each for each in inputs if not each.beside]
    if logs[0].locator == "-":
        return "standard input"
    if len(logs) > 1:
        return Path(commonpath([Path(log.locator).resolve().parent for log in logs])).name or strip_suffixes(
            logs[0].path.name
        )
    path = Path(logs[0].locator)
    return derive_name(logs[0].locator) if path.suffix in COMPRESSED or path.stem in USUAL_NAMES else path.stem


def make_names_distinct(runs: Sequence[Run]) -> list[Run]:
    """Return runs with distinct names: where logs give the same name, the part of the path that differs is added.

    A name that a person or a tracker gave stays, and so does that of logs whose paths do not differ.
    """
    named = list(runs)
    for name in dict.fromkeys(run.name for run in runs):
        same = [place for place, run in enumerate(runs) if run.name == name and _has_derived_name(run)]
        for place, longer in zip(same, longer_names([runs[place].sources[0].locator for place in same]), strict=True):
            named[place] = replace(runs[place], name=longer)
    return named


def longer_names(locators: Sequence[str]) -> list[str]:
    """Return names for logs that would be called alike, with as much of their paths as tells them apart."""
    paths = [_parts(locator) for locator in locators]
    tails = list(_tails(paths))
    # of those that tell the same number apart the first is the shortest
    return max(tails, key=lambda names: len(set(names)), default=[])


def _tails(paths: Sequence[tuple[str, ...]]) -> Iterator[list[str]]:
    """Yield the ends of paths, one part longer each time."""
    for length in range(1, max(map(len, paths), default=0) + 1):
        yield ["/".join(path[-length:]) for path in paths]


def _has_derived_name(run: Run) -> bool:
    """Return whether a run is called after its log; the name of several logs that are one run is another."""
    if run.tracked or not run.sources:
        return False
    locator = run.sources[0].locator
    return locator != "-" and run.name == derive_name(locator)


def _parts(locator: str) -> tuple[str, ...]:
    """Return the folders above a log and what it is called, which may be the last of them."""
    path = Path(locator)
    folders = path.resolve().parent.parts[1:]
    name = strip_suffixes(path.name) if path.suffix in COMPRESSED else path.stem
    return folders if name in USUAL_NAMES and folders else (*folders, name)
