"""The pictures of README and tutorial can be made, are small, and show what the reports say today."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from generators.pictures import IMAGES, PICTURES, ROOT, Picture, read_text, save_picture, take_picture, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_TRIED = {"report", "step-1-starved"}
"""One of steps and one of a run: the others are pairs of the same steps."""


@pytest.mark.browser
@pytest.mark.parametrize("picture", [each for each in PICTURES if each.name in _TRIED], ids=lambda each: each.file.stem)
def test_picture_shows_what_the_report_says(browser: "Browser", picture: Picture, tmp_path: Path) -> None:
    write_report(picture.sources, tmp_path / "report.html")
    taken, text = take_picture(browser, picture, tmp_path / "report.html")
    save_picture(taken, text, tmp_path / "picture.png")
    assert read_text(tmp_path / "picture.png") == read_text(picture.file)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial/five-steps.md"])
def test_pages_show_pictures_in_the_colours_of_the_reader(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    pairs = re.findall(r'<source media="\(prefers-color-scheme: dark\)" srcset="(\S+)">\n<img src="(\S+)"', text)
    shown = re.findall(r"[\w./-]+\.png", text)
    assert sorted(shown) == sorted(name for pair in pairs for name in pair)
    assert [pair for pair in pairs if pair[0] != pair[1].replace(".png", "-dark.png")] == []
    assert {(ROOT / page).parent.joinpath(name).resolve() for name in shown} <= {each.file for each in PICTURES}


def test_pictures_are_small() -> None:
    assert [each.file.name for each in PICTURES if not 10_000 < each.file.stat().st_size < 150_000] == []
    assert sum(file.stat().st_size for file in IMAGES.iterdir()) < 1_500_000
