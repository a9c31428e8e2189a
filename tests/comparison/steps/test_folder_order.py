"""The order in which folders of runs are steps."""

from dataclasses import replace

import pytest

from gpureport.comparison.steps.folder_order import FolderOrder, order_folders
from gpureport.testing import Quality, Run
from tests.report import examples

ZONES = ("Europe/Berlin", "UTC", None)


def begun(*starts: int, zones: tuple[str | None, ...] = ZONES[:1]) -> list[Run]:
    """Return runs that began then."""
    zone = [*zones, *[zones[-1]] * len(starts)]
    return [replace(examples.run(timezone=zone[place]), started=start) for place, start in enumerate(starts)]


@pytest.mark.parametrize(
    ("folders", "ordered"),
    [
        (["10-amp", "2-workers", "1-base", "10-amp"], ["1-base", "2-workers", "10-amp"]),
        (["16-workers", "8-workers"], ["8-workers", "16-workers"]),
    ],
)
def test_numbers_come_first(folders: list[str], ordered: list[str]) -> None:
    """Where every folder has one of its own, by size and whenever it was recorded."""
    assert order_folders(begun(*range(len(folders))), folders) == (ordered, FolderOrder.NUMBERS)


@pytest.mark.parametrize("folders", [["8-workers", "base", "base", "8-workers"], ["1-b", "1-a", "1-a", "1-b"]])
def test_other_names_stand_by_the_start_of_the_first_run(folders: list[str]) -> None:
    """A number that not all have, or that two have, tells no order; runs of two steps may take turns."""
    ordered = order_folders(begun(5, 9, 2, 7), folders)
    assert ordered == ([folders[1], folders[0]], FolderOrder.STARTS)


def test_times_in_different_zones_are_comparable() -> None:
    """Every start is a moment then."""
    assert order_folders(begun(5, 2, zones=ZONES[:2]), ["a", "b"]) == (["b", "a"], FolderOrder.STARTS)


def test_without_comparable_starts_names_decide() -> None:
    """A time without a zone says nothing beside one that has one; a log without stamps has no time at all."""
    expected = (["a", "b"], FolderOrder.NAMES)
    assert order_folders(begun(5, 2, zones=ZONES[1:]), ["a", "b"]) == expected
    timeless = [replace(each, quality=Quality(synthetic_time=True)) for each in begun(5, 2)]
    assert order_folders(timeless, ["b", "a"]) == expected
