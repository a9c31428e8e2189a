"""What runs are called on the page of many runs: by their names, and where some are alike also by where they lie."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePosixPath

from gpureport.fleet.fleet_report import RunName
from gpureport.fleet.page.class_words import shorten_name
from gpureport.importers import LOCATORS

_ID = 8
"""Characters of an id that tell it from others."""
_PARTS = 2
"""Parts of the path of a log that are shown: the last ones."""


def name_runs(runs: Sequence[RunName]) -> list[str]:
    """Return the names of some runs; where different ones share a name, each is followed by its source in brackets."""
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for run in runs:
        alike[run.name].add(run.id)
    return [
        f"{shorten_name(run.name)} ({describe_source(run)})" if len(alike[run.name]) > 1 else shorten_name(run.name)
        for run in runs
    ]


def describe_source(run: RunName) -> str:
    """Return where a run lies, short: `mlflow.db#84fcdd07` of a tracker, the end of the path of a log, else its id."""
    if run.source is None:
        return shorten_name(run.id[:_ID])
    store, _, key = run.source.rpartition("#")
    if not store:
        return shorten_name("/".join(PurePosixPath(run.source).parts[-_PARTS:]))
    prefix = next((each for each in LOCATORS if store.startswith(each)), "")
    return shorten_name(f"{PurePosixPath(store.removeprefix(prefix)).name}#{key[:_ID]}")


def locate_run(run: RunName) -> str:
    """Return where a run lies in full, its id where that is not known."""
    return shorten_name(run.source or run.id)
