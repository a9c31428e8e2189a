"""Folders of runs, from where their logs lie."""

from dataclasses import replace

import pytest

from gpureport.comparison.steps.step_folders import step_folders
from gpureport.testing import Run, Source
from tests.report import examples


def stored(kind: str, locator: str) -> Run:
    """Return a run that was read from there."""
    return replace(examples.run("run"), sources=(Source(kind=kind, locator=locator, sha256=""),))


def folders(*locators: str) -> list[str | None]:
    """Return the folders of runs whose logs lie there."""
    return step_folders([stored("nvidia_smi", locator) for locator in locators])


def test_the_first_folder_that_differs_tells_steps_apart() -> None:
    """A folder for each run may lie below, and relative paths beside whole ones; what all share says nothing."""
    assert folders("a/1.csv", "a/2.csv", "b/1.csv") == ["a", "a", "b"]
    assert folders("x/a/1/smi.csv", "x/a/2/smi.csv", "x/b/1/smi.csv") == ["a", "a", "b"]
    assert folders("./x/a/1.csv", "x/c/../b/1.csv") == ["a", "b"]
    assert folders("/logs/a/1.csv", "/logs/ab/1.csv") == ["a", "ab"]


@pytest.mark.parametrize("locator", ["x/1.csv", "-"])
def test_what_lies_in_no_folder_has_none(locator: str) -> None:
    """Beside the folders, and from a pipe."""
    assert folders("x/a/1.csv", "x/b/1.csv", locator) == ["a", "b", None]


def test_a_run_of_a_tracker_lies_in_no_folder() -> None:
    """Its store may lie in one, which holds other runs as well."""
    runs = [stored("nvidia_smi", "x/a/1.csv"), stored("nvidia_smi", "x/b/1.csv"), stored("mlflow", "x/a/mlruns#1")]
    assert step_folders(runs) == ["a", "b", None]


def test_a_hash_may_be_part_of_a_folders_name() -> None:
    """It parts store and run in the locator of a tracker, and nothing in a path."""
    assert folders("x/run #1/1.csv", "x/run #2/1.csv") == ["run #1", "run #2"]


def test_one_folder_tells_nothing_apart() -> None:
    """All of what their paths say is shared; nor has a run without a source a folder."""
    assert folders("a/1.csv", "a/2.csv") == [None, None]
    assert step_folders([replace(examples.run("run"), sources=())]) == [None]
    assert step_folders([]) == []
