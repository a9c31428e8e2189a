"""The pages of nights as a browser shows them."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpureport.nightly import site
from gpureport.nightly.trend import trends
from tests.nightly.made import year

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages of some nights with every figure."""
    folder = tmp_path_factory.mktemp("site")
    history = year(14)
    site.build(folder, history, trends(history), lambda _: None)
    return folder


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_page_scrolls_sideways(browser: "Browser", pages: Path, width: int) -> None:
    """Tables scroll inside themselves, on the index, the nights and a figure."""
    page = browser.new_page(viewport={"width": width, "height": 844})
    for path in (pages / "index.html", pages / "nights.html", min((pages / "figures").glob("*.html"))):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()
