"""The button for light and dark, and tables sorted by their columns."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.test_charts import opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

_LIGHT = "rgb(255, 255, 255)"


@pytest.fixture
def page(browser: "Browser", page_file: Path) -> Iterator["Page"]:
    """Open the report of two runs for a reader whose system is light; nothing may be complained of."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    told: list[str] = []
    # Chromium advises tests that read canvases, not readers
    page.on("console", lambda message: None if "willReadFrequently" in message.text else told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    opened(page, page_file.as_uri())
    yield page
    page.close()
    assert told == []


def colour(page: "Page") -> tuple[str, str]:
    """Return the colours behind the page and of a note on it."""
    paper, note = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.lead')).color]"
    )
    return str(paper), str(note)


def busy(page: "Page") -> int:
    """Return the colour that a chart shows most, as a number."""
    found = page.evaluate(
        """async () => {
             const frame = () => new Promise(requestAnimationFrame);
             await frame().then(frame);
             const canvas = document.querySelector('#chart0 canvas'), counts = new Map();
             const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
             for (const each of new Uint32Array(data.buffer)) if (each) counts.set(each, (counts.get(each) || 0) + 1);
             return [...counts].sort((a, b) => b[1] - a[1])[0][0];
           }"""
    )
    return int(found)


def names(page: "Page") -> list[str]:
    """Return the GPUs of the first table in the order shown."""
    return page.locator("#gpus table").first.locator("tbody th").all_inner_texts()


def values(page: "Page", column: int) -> list[float]:
    """Return the values of a column of the first table in the order shown."""
    cells = page.locator("#gpus table").first.locator(f"tbody tr td:nth-child({column})").all()
    return [float(cell.get_attribute("data-value") or "nan") for cell in cells]


def test_the_button_turns_the_page_dark_and_back(page: "Page") -> None:
    """By mouse and by keyboard; text, charts and what the system asks for follow, and paper stays light."""
    light, drawn = colour(page), busy(page)
    assert light[0] == _LIGHT
    page.get_by_role("button", name="Dark", exact=True).click()
    dark = colour(page)
    assert (dark[0] != light[0], dark[1] != light[1], busy(page) != drawn) == (True, True, True)
    page.emulate_media(color_scheme="dark")
    assert colour(page) == dark
    page.emulate_media(media="print")
    assert colour(page) == light
    page.emulate_media(media="screen")
    page.get_by_role("button", name="Light", exact=True).press("Enter")
    assert colour(page) == light
    assert busy(page) == drawn


def test_the_button_begins_where_the_system_is(browser: "Browser", page_file: Path) -> None:
    """For who reads in the dark it offers light, and it follows the system until it is used."""
    page = browser.new_page(color_scheme="dark")
    opened(page, page_file.as_uri())
    assert page.locator("#scheme").inner_text() == "Light"
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Dark", exact=True).wait_for()
    page.close()


def test_without_a_script_there_is_neither(browser: "Browser", page_file: Path) -> None:
    """No button that does nothing."""
    page = browser.new_page(java_script_enabled=False)
    page.goto(page_file.as_uri())
    assert not page.locator("#scheme").is_visible()
    assert page.locator("#gpus button").count() == 0
    page.close()


def test_paper_shows_no_button_and_keeps_the_headings(page: "Page") -> None:
    """A heading that sorts on the screen is a heading on paper."""
    page.emulate_media(media="print")
    assert not page.locator("#scheme").is_visible()
    assert page.locator("#gpus th").get_by_text("Use up to 5%").first.is_visible()


def test_a_heading_sorts_by_value(page: "Page") -> None:
    """Largest first, then smallest first; the first column brings back the order of the log."""
    head = page.locator("#gpus table").first.get_by_role("columnheader", name="Peak memory")
    before = names(page)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert values(page, 8) == sorted(values(page, 8), reverse=True)
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert values(page, 8) == sorted(values(page, 8))
    first = page.locator("#gpus table").first.locator("thead th").first
    first.get_by_role("button").click()
    assert (names(page), head.get_attribute("aria-sort")) == (before, None)
    first.get_by_role("button").click()
    assert names(page) == before[::-1]
