"""The charts that the page's script draws."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.browser

_ALL = "0:00:00 to 0:10:00"


@pytest.fixture
def page(browser: "Browser", page_file: Path) -> Iterator["Page"]:
    """Open the report of two runs on a wide screen; no message may have appeared, nothing been asked for."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    told: list[str] = []
    # Chromium advises tests that read canvases, not readers
    page.on("console", lambda message: None if "willReadFrequently" in message.text else told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: told.append(request.url))
    opened(page, page_file.as_uri())
    yield page
    page.close()
    assert told == [page_file.as_uri()]


def opened(page: "Page", address: str) -> None:
    """Open a page and every fold of it, and wait for its charts."""
    page.goto(address)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.wait_for_selector("#shown:not(:empty)")


def shown(page: "Page") -> str:
    """Return which part of the axis the charts show."""
    return page.locator("#shown").inner_text()


def colours(page: "Page", canvas: str) -> int:
    """Return how many different colours a chart holds once it is painted."""
    return int(
        page.evaluate(
            """async selector => {
                 const frame = () => new Promise(requestAnimationFrame);
                 await frame().then(frame);
                 const canvas = document.querySelector(selector);
                 const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
                 return new Set(new Uint32Array(data.buffer)).size;
               }""",
            canvas,
        )
    )


def over(page: "Page", selector: str, right: float, down: float) -> tuple[float, float]:
    """Scroll to a chart and return a place in it, as a share of its width and in pixels of its height."""
    chart = page.locator(selector)
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    return box["x"] + 54 + right * (box["width"] - 54 - 14), box["y"] + down


def test_charts_stand_in_for_the_figures(page: "Page") -> None:
    """One chart a run and one for all metrics of a GPU; the figures wait for the printer."""
    assert page.locator("canvas:visible").count() == 3
    assert page.locator("#timeline .figure:visible").count() == 0
    assert shown(page) == _ALL
    assert colours(page, "#chart0 canvas") > 5
    assert colours(page, "#charts canvas") > 3


def test_drag_zooms_all_charts_and_double_click_shows_all(page: "Page") -> None:
    """From 2:00 to 4:00 of ten minutes."""
    page.mouse.move(*over(page, "#chart0 canvas", 0.2, 20))
    page.mouse.down()
    page.mouse.move(*over(page, "#chart0 canvas", 0.3, 20))
    assert page.locator("#chart0 .area").is_visible()
    page.mouse.move(*over(page, "#chart0 canvas", 0.4, 20))
    page.mouse.up()
    assert shown(page) == "0:02:00 to 0:04:00"
    assert not page.locator("#chart0 .area").is_visible()
    page.mouse.dblclick(*over(page, "#chart1 canvas", 0.5, 20))
    assert shown(page) == _ALL


def test_hover_tells_values_and_crosses_every_chart(page: "Page") -> None:
    """The time, the value of the row under the pointer, and the findings there."""
    page.mouse.move(*over(page, "#chart0 canvas", 110 / 600, 20))
    text = page.locator("#tip").inner_text()
    assert "GPU 0 at 0:01:50" in text
    assert "GPU utilisation: 90%" in text
    assert "Findings: F" in text
    assert page.locator(".cross:not(.area):visible").count() == 3
    page.mouse.move(5, 5)
    assert not page.locator("#tip").is_visible()


def test_a_slower_stretch_is_drawn_whole(browser: "Browser", tmp_path: Path) -> None:
    """Where a log goes on at 10 s, each sample stands for the time to its neighbours, in the charts too."""
    from gpureport import testing  # noqa: PLC0415 - as above
    from gpureport.report import build, write  # noqa: PLC0415 - as above
    from gpureport.testing import analyze  # noqa: PLC0415 - only when a browser is there

    times = [*range(300), *range(300, 600, 10), *range(600, 901)]
    recorded = testing.recording(util=testing.steps((90, len(times))), times=times)
    path = tmp_path / "report.html"
    write(build([(recorded, analyze(recorded))], title=None, command="", gpu_hour_price=None, version="0"), path)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    opened(page, path.as_uri())
    page.mouse.move(*over(page, "#chart0 canvas", 454.5 / 900, 20))
    assert "GPU utilisation: 90%" in page.locator("#tip").inner_text()
    page.close()


def test_click_on_a_row_shows_its_metrics(page: "Page") -> None:
    """Below the run it belongs to."""
    page.mouse.click(*over(page, "#chart0 canvas", 0.5, 50))
    assert page.locator("#gpu").input_value() == "0:1"
    place = "document.querySelector('#detail').parentElement.id"
    assert page.evaluate(place) == "slot0"
    page.locator("#gpu").select_option("1:0")
    assert page.evaluate(place) == "slot1"


def test_a_finding_zooms_to_its_stretch(page: "Page") -> None:
    """The link shows the first of its stretches and walks to the others; the address can be shared."""
    page.locator("#F1").get_by_role("link", name="Show on timeline").click()
    page.wait_for_selector("#stops:not([hidden])")
    assert re.search(r"#show=F\d+$", page.url)
    first = shown(page)
    assert page.locator("#stops").inner_text().startswith(f"{page.url.rpartition('=')[2]}: 1 of ")
    page.get_by_role("button", name="Next").click()
    assert shown(page) != first
    page.get_by_role("button", name="Previous").click()
    assert shown(page) == first
    box = page.locator("canvas:focus").bounding_box()
    assert box
    assert -50 < box["y"] < 900
    page.get_by_role("button", name="Show all").click()
    assert shown(page) == _ALL
    assert not page.locator("#stops").is_visible()
    page.locator("#F1").get_by_role("link", name="Show on timeline").click()
    assert shown(page) == first


def test_an_address_opens_its_finding(browser: "Browser", page_file: Path) -> None:
    """What a colleague sends leads to the stretch."""
    page = browser.new_page()
    opened(page, f"{page_file.as_uri()}#show=F1")
    assert page.locator("#stops").inner_text().startswith("F1: 1 of ")
    assert shown(page) != _ALL
    page.close()


def test_keyboard_alone_is_enough(page: "Page") -> None:
    """Zoom, pan, choose a GPU, hear values, go back."""
    page.locator("#chart0 canvas").focus()
    for key, expected in (
        ("+", "0:02:30 to 0:07:30"),
        ("ArrowRight", "0:03:08 to 0:08:08"),
        ("ArrowLeft", "0:02:30 to 0:07:30"),
        ("-", _ALL),
        ("=", "0:02:30 to 0:07:30"),
        ("Escape", _ALL),
    ):
        page.keyboard.press(key)
        assert shown(page) == expected
    before = page.locator("#gpu").input_value()
    page.keyboard.press("ArrowDown")
    assert page.locator("#gpu").input_value() != before
    page.keyboard.press("Shift+ArrowRight")
    assert "GPU utilisation: 90%" in page.locator("#tip").inner_text()


def test_wheel_zooms_only_with_control(page: "Page") -> None:
    """Scrolling past a chart scrolls."""
    page.mouse.move(*over(page, "#chart0 canvas", 0.5, 20))
    page.mouse.wheel(0, 10)
    assert shown(page) == _ALL
    page.mouse.move(*over(page, "#chart0 canvas", 0.5, 20))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.wait_for_selector("#shown:text-is('0:01:00 to 0:09:00')")
    page.keyboard.up("Control")


def test_charts_follow_light_and_dark(page: "Page") -> None:
    """A change of the reader's choice repaints."""
    pixel = """(() => {
      const canvas = document.querySelector('#chart0 canvas');
      return [...canvas.getContext('2d').getImageData(canvas.width / 2, 22, 1, 1).data];
    })()"""
    colours(page, "#chart0 canvas")
    light = page.evaluate(pixel)
    page.emulate_media(color_scheme="dark")
    colours(page, "#chart0 canvas")
    assert light == [0, 114, 178, 255]
    assert page.evaluate(pixel) == [86, 180, 233, 255]


def test_a_chart_out_of_sight_follows_a_zoom_when_it_comes_into_sight(page: "Page") -> None:
    """Only what can be seen is painted at once, and nothing stays behind."""
    content = "document.querySelector('#charts canvas').toDataURL()"
    colours(page, "#charts canvas")
    whole = page.evaluate(content)
    page.evaluate("scrollTo(0, 0)")
    page.locator(".tools [data-by='0.5']").evaluate("button => button.click()")
    colours(page, "#charts canvas")
    assert page.evaluate(content) == whole
    page.locator("#charts").evaluate("chart => chart.scrollIntoView()")
    colours(page, "#charts canvas")
    assert page.evaluate(content) != whole


def test_figures_are_printed(page: "Page") -> None:
    """Paper gets the figures and none of the controls."""
    page.emulate_media(media="print")
    assert page.locator("canvas:visible, .tools:visible, #tip:visible").count() == 0
    assert page.locator("#timeline .figure:visible").count() == 2


def test_a_change_on_paper_waits_for_the_screen(page: "Page") -> None:
    """A drawing that is due while the charts are hidden for print fails nowhere, and is made when they show again."""
    page.emulate_media(media="print")
    page.evaluate("document.querySelector('#chart0 canvas').width = 300")
    page.evaluate("onresize()")
    assert colours(page, "#chart0 canvas") == 1
    page.emulate_media(media="screen")
    page.evaluate("onresize()")
    assert colours(page, "#chart0 canvas") > 5


def test_a_page_without_script_is_whole(browser: "Browser", page_file: Path) -> None:
    """The figures are there, and nothing that only a script could move."""
    context: BrowserContext = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{page_file.as_uri()}#timeline")
    assert page.locator("#timeline .figure svg").count() == 2
    assert page.locator("#timeline .figure svg").first.is_visible()
    assert page.locator("canvas:visible, button:visible, select:visible").count() == 0
    context.close()


def test_charts_fit_a_telephone(browser: "Browser", page_file: Path) -> None:
    """390 pixels wide, nothing sticks out."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    opened(page, page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    widths = page.evaluate("[...document.querySelectorAll('canvas')].map(canvas => canvas.clientWidth)")
    assert widths == [358, 358, 358]
    page.mouse.move(*over(page, "#chart0 canvas", 0.9, 20))
    tip = page.locator("#tip").bounding_box()
    assert tip
    assert tip["x"] + tip["width"] <= 390
    page.close()


def test_controls_have_names(page: "Page") -> None:
    """Every control says what it is to those who cannot see it."""
    unnamed = page.evaluate(
        """[...document.querySelectorAll('canvas, button, select')].filter(node =>
             !(node.ariaLabel || node.textContent.trim() || node.labels?.length)).length"""
    )
    assert unnamed == 0
    assert page.get_by_role("combobox", name="All metrics of").is_visible()
