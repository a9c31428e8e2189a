"""What runs are called on the page of many runs: their names, and sources where names are alike."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from gpureport.fleet.fleet_report import RunName
from gpureport.fleet.page.class_words import shorten_name
from gpureport.importers import LOCATORS
from gpureport.importers.runs import longer_names

_ID, _LONGEST_KEY = 8, 24
"""Characters of an id that tell it from others, and of a key that is told whole."""


def name_runs(runs: Sequence[RunName]) -> list[str]:
    """Return the names of some runs, where they are alike with the source in brackets."""
    alike: defaultdict[str, dict[str, RunName]] = defaultdict(dict)
    for run in runs:
        alike[run.name][run.id] = run
    shown = {name: _describe_sources(same.values()) for name, same in alike.items() if len(same) > 1}
    return [
        f"{shorten_name(run.name)} ({shown[run.name][run.id]})" if run.name in shown else shorten_name(run.name)
        for run in runs
    ]


def _describe_sources(runs: Collection[RunName]) -> dict[str, str]:
    """Return where each of some runs lies, short, by its id: as much of a path as tells it apart."""
    shown = {run.id: _describe_tracked(run.source) if run.source else run.id[:_ID] for run in runs}
    logs = [run for run in runs if run.source and not shown[run.id]]
    paths = longer_names([run.source or "" for run in logs])
    shown |= {run.id: path for run, path in zip(logs, paths, strict=True)}
    texts = Counter(shown.values())
    return {key: shorten_name(text if texts[text] == 1 else f"{text}, {key}") for key, text in shown.items()}


def _describe_tracked(source: str) -> str:
    """Return the store and short id of a run of a tracker: `mlflow.db#84fcdd07`; empty of a log."""
    prefix = next((each for each in LOCATORS if source.startswith(each)), "")
    store, _, key = source.removeprefix(prefix).rpartition("#")
    # keys that people read differ at their ends, such as PROJECT-101; longer ids are random
    return f"{PurePosixPath(store).name}#{key if len(key) <= _LONGEST_KEY else key[:_ID]}" if prefix and store else ""
