"""How repetitions are given as one step, said where the folders of single runs look like it."""

import shlex
from collections.abc import Sequence
from pathlib import PurePath

from gpureport.recording import Run
from gpureport.report import display

_LEVELS = 2
"""Folders above a log that are looked at: its own, and the one that holds a folder for each run."""

_NAMED = 2
_LONGEST = 40
"""Folders that are named, and letters of one that a sentence bears."""


def advice(runs: Sequence[Run]) -> str:
    """Return how to give runs as repetitions; empty where they are labelled, or their folders do not suggest it."""
    if any(run.step is not None for run in runs):
        return ""
    found = next((folders for level in range(_LEVELS) if _together(folders := _folders(runs, level), runs)), [])
    if not found:
        return ""
    return (
        f"The runs lie in {len(found)} folders: if those of one folder repeat a step, give the folders and a --step "
        f"for each, so that repetitions count together{_example(found)}."
    )


def _folders(runs: Sequence[Run], level: int) -> list[PurePath | None]:
    """Return each folder of the logs once, so many levels up; None for what is no file in a folder."""
    return list(dict.fromkeys(_folder(run, level) for run in runs))


def _folder(run: Run, level: int) -> PurePath | None:
    locator = run.sources[0].locator if run.sources else ""
    above = PurePath(locator).parents if "#" not in locator else ()
    return above[level] if level < len(above) and above[level].name else None


def _together(folders: Sequence[PurePath | None], runs: Sequence[Run]) -> bool:
    """Return whether there are several folders, and two runs or more in each on average."""
    return None not in folders and 1 < len(folders) <= len(runs) // 2


def _example(folders: Sequence[PurePath | None]) -> str:
    named = [folder for folder in folders if folder is not None][:_NAMED]
    if any(len(str(folder)) > _LONGEST for folder in named):
        return ""
    more = " …" if len(folders) > _NAMED else ""
    given = " ".join(shlex.quote(display.clean(str(folder))) for folder in named)
    labels = " ".join(f"--step {shlex.quote(display.clean(folder.name))}" for folder in named)
    return f" ({given}{more} {labels}{more})"
