"""The pages of nights as a browser shows them."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpureport.nightly.changes.trend import build_trends
from gpureport.nightly.history.capture import capture_missing
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.nightly.site import site_writing
from gpureport.testing import Check, CheckOutcome
from tests.nightly.made import changed, year

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages of some nights with every figure."""
    folder = tmp_path_factory.mktemp("site")
    history = year(14)
    _build(folder, history)
    return folder


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages of nights with limits, a change and a log that is missing."""
    folder = tmp_path_factory.mktemp("eventful")
    *history, last = changed()
    limits = (
        Check(limit="idle_ratio <= 5%", run="bert", outcome=CheckOutcome.BROKEN, observed="9% in the whole run"),
        Check(limit="cost <= 3 EUR", run="bert", outcome=CheckOutcome.CANNOT_JUDGE, reason="no price is stated"),
    )
    missing = capture_missing("node_1/gpu.csv", "a step with a long name", "no such file or run")
    _build(folder, [*history, replace(last, checks=limits, runs=(*last.runs, missing))])
    return folder


def _build(folder: Path, history: list[NightlyRecord]) -> None:
    site_writing.write_site(folder, history, build_trends(history), lambda _: None)


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_page_scrolls_sideways(browser: "Browser", pages: Path, width: int) -> None:
    """Tables scroll inside themselves, on the index and a figure."""
    page = browser.new_page(viewport={"width": width, "height": 844})
    for path in (pages / "index.html", min((pages / "figures").glob("*.html"))):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("site_pages", ["pages", "eventful"])
def test_no_table_scrolls_sideways(
    browser: "Browser", site_pages: str, width: int, request: pytest.FixtureRequest
) -> None:
    """On a telephone limits, changes and nights are stacked, each value beside its name; figures stay in columns."""
    folder: Path = request.getfixturevalue(site_pages)
    page = browser.new_page(viewport={"width": width, "height": 844})
    for path in (folder / "index.html", *(folder / "figures").glob("*gpu_utilization_ratio*")):
        page.goto(path.as_uri())
        boxes = "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth)"
        assert page.evaluate(f"{boxes}.map(box => box.getAttribute('aria-label'))") == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.goto((folder / "index.html").as_uri())
    name = page.evaluate("getComputedStyle(document.querySelector('[aria-label=Nights] td.n'), '::before').content")
    assert name == ('"GPU utilisation"' if width < 1200 else "none")
    page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_of_a_curve_can_be_read(browser: "Browser", eventful: Path, width: int) -> None:
    """The number of a change and the dates below it stand apart, and above what follows the figure."""
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto((eventful / "index.html").as_uri())
    boxes = """[...document.querySelectorAll('figure text')].map(each => each.getBoundingClientRect())
      .map(({left, right, top, bottom}) => [left, right, top, bottom])"""
    found = page.evaluate(boxes)
    below = page.locator("figcaption").first.bounding_box()
    assert below is not None
    assert len(found) > 5
    assert max(bottom for *_, bottom in found) <= below["y"] + 4
    assert [
        (one, other)
        for one, other in combinations(found, 2)
        if min(one[1], other[1]) - max(one[0], other[0]) > 0 and min(one[3], other[3]) - max(one[2], other[2]) > 4
    ] == []
    page.close()
