"""The page on many runs as a browser shows it."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

_HEIGHT = 6000
_OPEN = "for (const folded of document.querySelectorAll('details')) folded.open = true"
_WIDER = """[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth)
  .map(box => box.getAttribute('aria-label'))"""
_EMPTY_BARS = """[...document.querySelectorAll('#by-user .bar svg')]
  .filter(each => each.getBoundingClientRect().width < 50).length"""


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_scrolls_sideways(browser: "Browser", fleet_file: Path, width: int) -> None:
    """Neither the page nor a table, with every fold open."""
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(fleet_file.as_uri())
    page.evaluate(_OPEN)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(_WIDER) == []
    assert page.evaluate(_EMPTY_BARS) == 0
    page.close()


def test_the_page_is_short_and_asks_for_nothing(browser: "Browser", fleet_file: Path) -> None:
    """Two thousand runs take less than 6,000 px; the browser loads the one file and has nothing to complain of."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(fleet_file.as_uri())
    assert 1_000 < page.evaluate("document.documentElement.scrollHeight") <= _HEIGHT
    assert requests == [fleet_file.as_uri()]
    assert complaints == []
    box = page.locator("#gpu-time .bars").bounding_box()
    assert box is not None
    assert box["y"] < 600
    page.close()
