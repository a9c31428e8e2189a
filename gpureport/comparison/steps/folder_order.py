"""In which order folders of runs are steps: by the numbers they begin with, else by when they were recorded."""

import re
from collections.abc import Sequence
from enum import StrEnum

from gpureport.recording import Run

_NUMBER = re.compile(r"\d+")


class FolderOrder(StrEnum):
    """What the order of folders rests on."""

    NUMBERS = "the numbers that their folders begin with"
    STARTS = "the start of their first runs"
    NAMES = "the names of their folders, since not all starts are known"


def order_folders(runs: Sequence[Run], folders: Sequence[str]) -> tuple[list[str], FolderOrder]:
    """Return different folders in the order of the steps, and what that order rests on.

    Args:
        runs: the runs.
        folders: the folder of each.
    """
    different = list(dict.fromkeys(folders))
    numbers = {folder: int(found[0]) for folder in different if (found := _NUMBER.match(folder))}
    if len(set(numbers.values())) == len(different):
        return sorted(different, key=numbers.__getitem__), FolderOrder.NUMBERS
    if not share_a_clock(runs):
        return sorted(different), FolderOrder.NAMES
    starts: dict[str, int] = {}
    for run, folder in zip(runs, folders, strict=True):
        starts[folder] = min(run.started, starts.get(folder, run.started))
    return sorted(different, key=starts.__getitem__), FolderOrder.STARTS


def share_a_clock(runs: Sequence[Run]) -> bool:
    """Return whether the times of runs can be compared: all have time stamps, and all or none of them a zone."""
    return not any(run.quality.synthetic_time for run in runs) and len({run.timezone is None for run in runs}) < 2  # noqa: PLR2004 - with and without a zone
