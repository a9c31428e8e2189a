"""The charts and controls that the page's script draws."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gpureport
from gpureport import testing

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Open

pytestmark = pytest.mark.browser

ALL = "0:00:00 to 0:10:00"


@pytest.fixture
def page(open_page: "Open", page_file: Path) -> Iterator["Page"]:
    with open_page(page_file, unfolded=True, color_scheme="light") as page:
        yield page


def shown(page: "Page") -> str:
    return page.locator("#shown").inner_text()


def colours(page: "Page", canvas: str) -> list[int]:
    """Return the colours of a chart once it is painted, the most frequent first."""
    found: list[int] = page.evaluate(
        """async selector => {
             const frame = () => new Promise(requestAnimationFrame);
             await frame().then(frame);
             const canvas = document.querySelector(selector), counts = new Map();
             const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
             for (const each of new Uint32Array(data.buffer)) counts.set(each, (counts.get(each) || 0) + 1);
             return [...counts].filter(([each]) => each).sort((a, b) => b[1] - a[1]).map(([each]) => each);
           }""",
        canvas,
    )
    return found


def over(page: "Page", selector: str, right: float, down: float) -> tuple[float, float]:
    """Scroll to a chart and return a place in it, as a share of its width and in pixels of its height."""
    chart = page.locator(selector)
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    return box["x"] + 54 + right * (box["width"] - 54 - 14), box["y"] + down


def test_charts_stand_in_for_the_figures_and_have_names(page: "Page") -> None:
    assert page.locator("canvas:visible").count() == 3
    assert page.locator("#timeline .figure:visible").count() == 0
    assert shown(page) == ALL
    assert len(colours(page, "#chart0 canvas")) > 5
    unnamed = """[...document.querySelectorAll('canvas, button, select')].filter(node =>
      !(node.ariaLabel || node.textContent.trim() || node.labels?.length)).length"""
    assert page.evaluate(unnamed) == 0


def test_drag_zooms_all_charts_and_double_click_shows_all(page: "Page") -> None:
    page.mouse.move(*over(page, "#chart0 canvas", 0.2, 20))
    page.mouse.down()
    page.mouse.move(*over(page, "#chart0 canvas", 0.4, 20))
    page.mouse.up()
    assert shown(page) == "0:02:00 to 0:04:00"
    page.mouse.dblclick(*over(page, "#chart1 canvas", 0.5, 20))
    assert shown(page) == ALL
    # scrolling past a chart scrolls
    page.mouse.move(*over(page, "#chart0 canvas", 0.5, 20))
    page.mouse.wheel(0, 10)
    assert shown(page) == ALL
    page.mouse.move(*over(page, "#chart0 canvas", 0.5, 20))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.wait_for_selector("#shown:text-is('0:01:00 to 0:09:00')")
    page.keyboard.up("Control")


def test_hover_tells_values_and_crosses_every_chart(page: "Page") -> None:
    page.mouse.move(*over(page, "#chart0 canvas", 110 / 600, 20))
    text = page.locator("#tip").inner_text()
    assert [words in text for words in ("GPU 0 at 0:01:50", "GPU utilisation: 90%", "Findings: F")] == [True] * 3
    assert page.locator(".cross:not(.area):visible").count() == 3
    page.mouse.move(5, 5)
    assert not page.locator("#tip").is_visible()


def test_click_on_a_row_shows_its_metrics_below_its_run(page: "Page") -> None:
    page.mouse.click(*over(page, "#chart0 canvas", 0.5, 50))
    assert page.locator("#gpu").input_value() == "0:1"
    place = "document.querySelector('#detail').parentElement.id"
    assert page.evaluate(place) == "slot0"
    page.locator("#gpu").select_option("1:0")
    assert page.evaluate(place) == "slot1"


def test_a_finding_zooms_to_its_stretches_and_its_address_can_be_shared(
    page: "Page", open_page: "Open", page_file: Path
) -> None:
    page.locator("#F1").get_by_role("link", name="Show on timeline").click()
    page.wait_for_selector("#stops:not([hidden])")
    assert re.search(r"#show=F\d+$", page.url)
    first = shown(page)
    assert page.locator("#stops").inner_text().startswith(f"{page.url.rpartition('=')[2]}: 1 of ")
    page.get_by_role("button", name="Next").click()
    assert shown(page) != first
    page.get_by_role("button", name="Previous").click()
    assert shown(page) == first
    page.get_by_role("button", name="Show all").click()
    assert shown(page) == ALL
    with open_page(page_file, unfolded=True, anchor="#show=F1") as other:
        assert other.locator("#stops").inner_text().startswith("F1: 1 of ")
        assert shown(other) != ALL


def test_keyboard_alone_is_enough(page: "Page") -> None:
    page.locator("#chart0 canvas").focus()
    for key, expected in (
        ("+", "0:02:30 to 0:07:30"),
        ("ArrowRight", "0:03:08 to 0:08:08"),
        ("ArrowLeft", "0:02:30 to 0:07:30"),
        ("-", ALL),
        ("=", "0:02:30 to 0:07:30"),
        ("Escape", ALL),
    ):
        page.keyboard.press(key)
        assert shown(page) == expected, key
    before = page.locator("#gpu").input_value()
    page.keyboard.press("ArrowDown")
    assert page.locator("#gpu").input_value() != before
    page.keyboard.press("Shift+ArrowRight")
    assert "GPU utilisation: 90%" in page.locator("#tip").inner_text()


def test_the_button_turns_page_and_charts_dark_and_back(page: "Page", open_page: "Open", page_file: Path) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light, drawn = page.evaluate(colour), colours(page, "#chart0 canvas")[0]
    page.get_by_role("button", name="Dark", exact=True).click()
    dark = page.evaluate(colour)
    assert (dark != light, colours(page, "#chart0 canvas")[0] != drawn) == (True, True)
    page.emulate_media(media="print")
    assert page.evaluate(colour) == light
    page.emulate_media(media="screen")
    page.get_by_role("button", name="Light", exact=True).press("Enter")
    assert (page.evaluate(colour), colours(page, "#chart0 canvas")[0]) == (light, drawn)
    with open_page(page_file, color_scheme="dark") as other:
        assert other.locator("#scheme").inner_text() == "Light"


def test_a_heading_sorts_by_value(page: "Page") -> None:
    table = page.locator("#gpus table").first
    names = table.locator("tbody th").all_inner_texts()
    memory = table.get_by_role("columnheader", name="Peak memory")
    memory.get_by_role("button").press("Enter")
    assert memory.get_attribute("aria-sort") == "descending"
    # the first column brings back the order of the log, then turns it
    first = table.locator("thead th").first.get_by_role("button")
    first.click()
    assert (table.locator("tbody th").all_inner_texts(), memory.get_attribute("aria-sort")) == (names, None)
    first.click()
    assert table.locator("tbody th").all_inner_texts() == names[::-1]


def test_a_chart_out_of_sight_follows_when_it_comes_into_sight(page: "Page") -> None:
    content = "document.querySelector('#charts canvas').toDataURL()"
    colours(page, "#charts canvas")
    whole = page.evaluate(content)
    page.evaluate("scrollTo(0, 0)")
    page.locator(".tools [data-by='0.5']").evaluate("button => button.click()")
    page.locator("#charts").evaluate("chart => chart.scrollIntoView()")
    colours(page, "#charts canvas")
    assert page.evaluate(content) != whole


def test_charts_fit_a_telephone(open_page: "Open", page_file: Path) -> None:
    with open_page(page_file, 390, unfolded=True) as page:
        widths = page.evaluate("[...document.querySelectorAll('canvas')].map(canvas => canvas.clientWidth)")
        assert widths == [358, 358, 358]
        page.mouse.move(*over(page, "#chart0 canvas", 0.9, 20))
        tip = page.locator("#tip").bounding_box()
        assert tip
        assert tip["x"] + tip["width"] <= 390


def test_a_slower_stretch_is_drawn_whole(open_page: "Open", tmp_path: Path) -> None:
    """Where a log goes on at 10 s, each sample stands for the time to its neighbours, in the charts too."""
    times = [*range(300), *range(300, 600, 10), *range(600, 901)]
    gpureport.report(testing.recording(util=testing.steps((90, len(times))), times=times), tmp_path / "report.html")
    with open_page(tmp_path / "report.html", unfolded=True) as page:
        page.mouse.move(*over(page, "#chart0 canvas", 454.5 / 900, 20))
        assert "GPU utilisation: 90%" in page.locator("#tip").inner_text()
