"""Folders of runs as steps: which folder holds the log of each run, and how folders are ordered."""

import os
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpureport.recording import Run


class FolderOrder(StrEnum):
    """What the order of folders rests on."""

    NUMBERS = "the numbers that their folders begin with"
    STARTS = "the start of their first runs"
    NAMES = "the names of their folders, since not all starts are known"


def order_folders(runs: "Sequence[Run]", folders: Sequence[str]) -> tuple[list[str], FolderOrder]:
    """Return the folders of runs, given one each, in the order of the steps, and what that rests on."""
    different = list(dict.fromkeys(folders))
    numbers = {folder: int(found[0]) for folder in different if (found := re.match(r"\d+", folder))}
    if len(set(numbers.values())) == len(different):
        return sorted(different, key=numbers.__getitem__), FolderOrder.NUMBERS
    if not share_a_clock(runs):
        return sorted(different), FolderOrder.NAMES
    starts: dict[str, int] = {}
    for run, folder in zip(runs, folders, strict=True):
        starts[folder] = min(run.started, starts.get(folder, run.started))
    return sorted(different, key=starts.__getitem__), FolderOrder.STARTS


def share_a_clock(runs: "Sequence[Run]") -> bool:
    """Return whether times of runs compare: all have time stamps, and all or none a zone."""
    return not any(run.quality.synthetic_time for run in runs) and len({run.timezone is None for run in runs}) < 2  # noqa: PLR2004 - with and without a zone


def step_folders(runs: "Sequence[Run]") -> list[str | None]:
    """Return for each run the folder that holds its log, the first one below those that all logs share.

    None stands for a run whose log lies in no such folder, or that is no file: what a tracker stored, what came by a
    pipe.
    """
    logs = [None if run.tracked or not run.sources else run.sources[0].locator for run in runs]
    # a `#` may be part of the name of a folder
    places = [None if log in {None, "-"} else os.path.dirname(os.path.abspath(str(log))) for log in logs]
    known = [place for place in places if place is not None]
    try:
        shared = len(PurePath(os.path.commonpath(known)).parts) if known else 0
    except ValueError:
        # folders on different drives share nothing, not even the drive
        shared = 0
    return [next(iter(PurePath(place).parts[shared:]), None) if place else None for place in places]
