"""Which folder the log of each run lies in, where folders hold the repetitions of a step."""

import os
from collections.abc import Sequence
from pathlib import PurePath

from gpureport.recording import Run


def step_folders(runs: Sequence[Run]) -> list[str | None]:
    """Return for each run the folder that holds its log, the first one below those that all logs share.

    None stands for a run whose log lies in no such folder, or that is no file: what a tracker stored, what came by a
    pipe.
    """
    places = [_place(run) for run in runs]
    known = [place for place in places if place is not None]
    try:
        shared = len(PurePath(os.path.commonpath(known)).parts) if known else 0
    except ValueError:
        # folders on different drives share nothing, not even the drive
        shared = 0
    return [next(iter(PurePath(place).parts[shared:]), None) if place else None for place in places]


def _place(run: Run) -> str | None:
    """Return the folder of a run's first log; a `#` may be part of its name."""
    locator = run.sources[0].locator if run.sources else "-"
    return None if locator == "-" or run.tracked else os.path.dirname(os.path.abspath(locator))
