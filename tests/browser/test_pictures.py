"""The pictures of README and tutorial can be made, are small, and show what the reports say today."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.pictures import IMAGES, PICTURES, Picture, read_text, save_picture, take_picture, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_TRIED = {"report", "step-1-starved"}
"""One of steps and one of a run: the others are pairs of the same steps."""


@pytest.mark.browser
@pytest.mark.parametrize("picture", [each for each in PICTURES if each.name in _TRIED], ids=lambda each: each.name)
def test_picture_shows_what_the_report_says(browser: "Browser", picture: Picture, tmp_path: Path) -> None:
    """A picture that is made now holds the same text as the one stored; else run `python -m tests.docs.pictures`."""
    write_report(picture.sources, tmp_path / "report.html")
    taken, text = take_picture(browser, picture, tmp_path / "report.html")
    save_picture(taken, text, tmp_path / "picture.png")
    assert read_text(tmp_path / "picture.png") == read_text(picture.file)


def test_pictures_are_small() -> None:
    """Each picture of the script is there, below 150 kB."""
    assert [each.name for each in PICTURES if not 10_000 < each.file.stat().st_size < 150_000] == []
    assert sum(file.stat().st_size for file in IMAGES.iterdir()) < 1_500_000
