"""The page as a browser shows it."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.browser

_STRICT = "sandbox; default-src 'none'; img-src 'self'; style-src 'self'"
"""What Jenkins serves archived pages with: no script, and no style sheet inside the page."""


def background(page: "Page") -> str:
    """Return the colour behind the page."""
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


@pytest.mark.smoke
def test_it_loads_nothing_and_complains_of_nothing(browser: "Browser", page_file: Path) -> None:
    """One request, no message, the title of the report."""
    page = browser.new_page()
    requests: list[str] = []
    messages: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(page_file.as_uri())
    assert page.title().endswith("<b>second</b> - GPU report")
    assert (requests, messages) == ([page_file.as_uri()], [])
    page.close()


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_the_page_does_not_scroll_sideways(browser: "Browser", page_file: Path, width: int) -> None:
    """Tables and figures scroll inside themselves."""
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


@pytest.mark.smoke
def test_dark_and_light(browser: "Browser", page_file: Path) -> None:
    """The page follows the reader's choice, figures included."""
    shown = []
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
        page.goto(page_file.as_uri())
        strip = page.evaluate("getComputedStyle(document.querySelector('#timeline svg .f-busy')).fill")
        shown.append((background(page), strip))
        page.close()
    (light, light_strip), (dark, dark_strip) = shown
    assert light == "rgb(255, 255, 255)"
    assert dark != light
    assert dark_strip != light_strip


def test_labels_lie_inside_their_figure(browser: "Browser", page_file: Path) -> None:
    """No text of a figure is cut off at its edge; without a script, as charts would hide the timelines."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, java_script_enabled=False)
    page.goto(page_file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    outside = page.evaluate(
        """() => [...document.querySelectorAll('.figure svg text')].filter(text => {
            const box = text.getBoundingClientRect(), edge = text.ownerSVGElement.getBoundingClientRect();
            return box.left < edge.left - 1 || box.right > edge.right + 1 || box.bottom > edge.bottom + 1;
        }).map(text => text.textContent)"""
    )
    assert outside == []
    page.close()


def test_print_opens_what_matters(browser: "Browser", page_file: Path) -> None:
    """On paper findings, data quality and what was not assessed are open; folds for reference are left out."""
    page = browser.new_page()
    page.goto(page_file.as_uri())
    page.emulate_media(media="print")
    shown = "[...document.querySelectorAll('.fold')].filter(fold => fold.checkVisibility())"
    names = page.evaluate(f"{shown}.map(fold => fold.querySelector('section').id)")
    assert {"findings", "quality", "not-assessed"} <= set(names)
    assert "method" not in names
    assert page.locator("#findings .opened").first.is_visible()
    # what stays shut, and what leads to it, is of no use there
    assert page.locator("#findings .opened summary").filter(visible=True).count() == 0
    assert page.locator("#actions a").filter(visible=True).count() == 0
    page.close()


def test_readable_under_a_policy_that_forbids_its_style(browser: "Browser", page_file: Path) -> None:
    """Text and figures stay, and no figure turns black."""
    page = browser.new_page()

    def serve(route: "Route") -> None:
        route.fulfill(
            body=page_file.read_text(), content_type="text/html", headers={"Content-Security-Policy": _STRICT}
        )

    page.route("http://report.test/", serve)
    page.goto("http://report.test/")
    assert page.get_by_role("heading", level=1).is_visible()
    fills = set(page.evaluate("[...document.querySelectorAll('svg path')].map(path => getComputedStyle(path).fill)"))
    assert "rgb(0, 0, 0)" not in fills
    assert "rgb(0, 114, 178)" in fills
    page.close()


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize("anchor", ["quality", "R1", "F1"])
def test_an_address_opens_its_fold(browser: "Browser", page_file: Path, anchor: str, *, script: bool) -> None:
    """A link to a section, a row of findings or a card opens every fold around it, with a script and without."""
    page = browser.new_page(viewport={"width": 1280, "height": 700}, java_script_enabled=script)
    page.goto(f"{page_file.as_uri()}#{anchor}")
    box = page.locator(f"#{anchor}").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 700
    page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_card_shows_its_mark(browser: "Browser", page_file: Path, width: int) -> None:
    """The address of its link scrolls to the strip and sets its mark off, without a script."""
    page = browser.new_page(viewport={"width": width, "height": 700}, java_script_enabled=False)
    page.goto(page_file.as_uri())
    address = page.get_by_role("link", name="Show on timeline", include_hidden=True).first.get_attribute("href")
    page.goto(f"{page_file.as_uri()}{address}")
    box = page.evaluate("(({top, left}) => ({top, left}))(document.querySelector(':target').getBoundingClientRect())")
    assert 0 <= box["top"] < 700
    assert 0 <= box["left"] < width
    stroke = page.evaluate("getComputedStyle(document.querySelector(':target > path, path:target')).stroke")
    assert stroke != "none"
    page.close()


@pytest.mark.parametrize("width", [390, 1200])
def test_verdicts_of_steps_are_on_the_page(browser: "Browser", steps_file: Path, width: int) -> None:
    """What may be said of a step needs no scrolling, nor does any figure; on a narrow page each value has its name."""
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(steps_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    cells = page.locator("#steps tbody tr:last-child td").all()
    boxes = [box for cell in cells if cell.is_visible() and (box := cell.bounding_box())]
    assert boxes[0]["x"] + boxes[0]["width"] <= width
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    tables = "[...document.querySelectorAll('#gains .scroll, #steps .scroll, #links .scroll, #method .scroll')]"
    assert page.evaluate(f"{tables}.filter(box => box.scrollWidth > box.clientWidth).length") == 0
    name = page.evaluate("getComputedStyle(document.querySelector('#steps td'), '::before').content")
    assert (name == "none") == (width == 1200)
    page.close()


def test_many_gpus_are_read_without_scrolling_sideways(browser: "Browser", tmp_path: Path) -> None:
    """On a telephone each figure of each GPU has its name, three to a line; nothing speaks of headings to sort by."""
    from gpureport.report import build, write  # noqa: PLC0415 - only when a browser is there
    from tests.report import examples  # noqa: PLC0415 - as above

    path = tmp_path / "report.html"
    runs = [examples.pair(examples.run(name, gpus=8)) for name in "abcdef"]
    write(build(runs, title=None, command="", gpu_hour_price=None, version="0"), path)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    wide = "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth).length"
    assert page.evaluate(wide) == 0
    # measured at once, since what is above may still grow between two measurements
    tops = page.evaluate(
        "[...document.querySelector('#gpus tbody tr').cells].filter(cell => cell.tagName === 'TD')"
        ".map(cell => cell.getBoundingClientRect().top)"
    )
    assert tops
    assert len(set(tops)) == -(-len(tops) // 3)
    name = page.evaluate("getComputedStyle(document.querySelector('#gpus td'), '::before').content")
    assert name == '"Utilisation mean"'
    assert not page.get_by_text("A heading sorts the table").first.is_visible()
    page.close()


@pytest.mark.parametrize(("width", "columns"), [(390, 1), (1200, 2)])
def test_intervals_are_drawn_to_be_read(browser: "Browser", steps_file: Path, width: int, columns: int) -> None:
    """Charts of steps stand beside each other or below each other, inside the page, with letters of a size."""
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(steps_file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    boxes = [box for figure in page.locator(".panels svg").all() if (box := figure.bounding_box())]
    assert len({round(box["x"]) for box in boxes}) == columns
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    heights = page.evaluate(
        "[...document.querySelectorAll('.panels text')].map(text => text.getBoundingClientRect().height)"
    )
    assert min(heights) >= 11
    overlaps = page.evaluate(
        """[...document.querySelectorAll('.panels svg')].flatMap(svg => {
             const boxes = [...svg.querySelectorAll('text')].map(text => text.getBoundingClientRect());
             return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => a.left < b.right && b.left < a.right
               && a.top + 2 < b.bottom && b.top + 2 < a.bottom));
           }).length"""
    )
    assert overlaps == 0
    page.close()


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_bars_of_gpu_time_fit(browser: "Browser", steps_file: Path, width: int) -> None:
    """Bars, their texts and the figures beside them lie inside the page, and no text covers another."""
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(steps_file.as_uri())
    outside = page.evaluate(
        """width => {
             const texts = [...document.querySelectorAll('#gpu-time svg text, #gpu-time p, #use svg text, #use p')];
             const boxes = texts.map(text => text.getBoundingClientRect()).filter(box => box.width);
             return boxes.filter((a, i) => a.left < -1 || a.right > width + 1
               || boxes.slice(i + 1).some(b => a.left + 1 < b.right && b.left + 1 < a.right
                 && a.top + 2 < b.bottom && b.top + 2 < a.bottom)).length;
           }""",
        width,
    )
    assert outside == 0
    page.close()
