"""The page of the recorded steps: how much of it there is to read, and what its first screen holds."""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.report.sample_reports import SAMPLES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

_WORDS = 450
_HEIGHT = 2500
_COUNT_WORDS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), words = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const isApart = element.closest('svg, table, script, style, .rows, .unseen, details:not([open])');
    if (!isApart && element.checkVisibility()) words.push(...walker.currentNode.data.split(/\\s+/).filter(Boolean));
  }
  return words.length;
}"""
"""Words that are open: bars and curves with their labels, tables, and folds that are shut do not count."""

_BROKEN_NAMES = """() => [...document.querySelectorAll('.rows b')].filter(each => {
  const range = document.createRange();
  range.selectNodeContents(each);
  return new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1;
}).map(each => each.textContent)"""


_COLLISIONS = """() => [...document.querySelectorAll('.rows svg[role=img]')].flatMap(figure => {
  const whole = figure.getBoundingClientRect();
  const boxes = [...figure.querySelectorAll('text')].filter(each => each.getBoundingClientRect().width)
    .map(each => ({text: each.textContent, box: each.getBoundingClientRect()})).sort((a, b) => a.box.left - b.box.left);
  return boxes.filter(({box}, place) => box.left < whole.left - 1 || box.right > whole.right + 1
    || (place && box.left < boxes[place - 1].box.right)).map(each => each.text);
})"""
"""Labels in the pictures of rows that jut out of their picture or reach into the one before."""


@pytest.fixture(scope="module")
def recorded_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the report of the recorded steps, as the demo does."""
    path = tmp_path_factory.mktemp("recorded") / "report.html"
    subprocess.run([sys.executable, "-m", "gpureport", "demo", "-o", str(path)], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def heated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the report of a run whose bars have a label in a short segment, and ticks of two figures."""
    path = tmp_path_factory.mktemp("heated") / "report.html"
    words = [sys.executable, "-m", "gpureport", "-q", "report", str(SAMPLES / "thermal_throttle"), "-o", str(path)]
    subprocess.run(words, check=True)
    return path


def test_the_page_is_short(browser: "Browser", recorded_file: Path) -> None:
    """At most 450 words outside figures, tables and shut folds, on at most 2,500 px."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(recorded_file.as_uri())
    words = page.evaluate(_COUNT_WORDS)
    assert 100 < words <= _WORDS
    assert page.evaluate("document.documentElement.scrollHeight") <= _HEIGHT
    page.close()


def test_the_first_screen_says_it_all(browser: "Browser", recorded_file: Path) -> None:
    """Headline, lead, tiles and every bar of GPU time end above the fold, and nothing juts out of the page."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(recorded_file.as_uri())
    for part in ("h1", ".lead", ".tiles", "#gpu-time .bars"):
        box = page.locator(part).first.bounding_box()
        assert box is not None, part
        assert box["height"] > 0, part
        assert box["y"] + box["height"] <= 900, part
    right = page.locator("main").bounding_box()
    edges = page.evaluate("[...document.querySelectorAll('.bars .change')].map(e => e.getBoundingClientRect().right)")
    padding = page.evaluate("parseFloat(getComputedStyle(document.querySelector('main')).paddingRight)")
    assert right is not None
    assert max(edges) <= right["x"] + right["width"] - padding + 1
    page.close()


def test_a_telephone_shows_names_of_steps_whole(browser: "Browser", recorded_file: Path) -> None:
    """Nothing scrolls sideways, and no name breaks at a hyphen."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(recorded_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate(_BROKEN_NAMES) == []
    page.close()


@pytest.mark.parametrize("width", [390, 768, 820, 1000, 1100, 1280])
def test_labels_in_bars_have_room(browser: "Browser", recorded_file: Path, heated_file: Path, width: int) -> None:
    """At any width of a window, and in print."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    for file in (recorded_file, heated_file):
        page.goto(file.as_uri())
        assert page.evaluate(_COLLISIONS) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 900})
    assert page.evaluate(_COLLISIONS) == []
    page.close()
