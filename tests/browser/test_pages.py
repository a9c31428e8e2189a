"""The pages as a browser shows them: reports, fleets and nights."""

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpureport.testing import build_page
from tests.browser.conftest import UNFOLD
from tests.support.hostile import TEXTS, steps_with

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

    from tests.browser.conftest import Open

pytestmark = pytest.mark.browser

REPORTS = ("page_file", "steps_file", "heat_file", "gpus_file")
PAGES = (*REPORTS, "fleet_file", "site_folder")

WIDE_TABLES = """[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth)
  .map(box => box.getAttribute('aria-label'))"""
LABELS_OUTSIDE = """[...document.querySelectorAll('.figure svg text, .rows svg text')].filter(text => {
  const box = text.getBoundingClientRect(), edge = text.ownerSVGElement.getBoundingClientRect();
  return box.width && (box.left < edge.left - 1 || box.right > edge.right + 1);
}).map(text => text.textContent)"""
LABELS_OVER_LABELS = """[...document.querySelectorAll('.rows svg[role=img], .panels svg')].flatMap(figure => {
  const boxes = [...figure.querySelectorAll('text')].map(text => text.getBoundingClientRect()).filter(box => box.width);
  return boxes.filter((a, at) => boxes.slice(at + 1).some(b => a.left + 1 < b.right && b.left + 1 < a.right
    && a.top + 2 < b.bottom && b.top + 2 < a.bottom));
}).length"""
OPEN_WORDS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), words = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const isApart = element.closest('svg, table, script, style, .rows, .unseen, details:not([open])');
    if (!isApart && element.checkVisibility()) words.push(...walker.currentNode.data.split(/\\s+/).filter(Boolean));
  }
  return words.length;
}"""


def box_of(page: "Page", selector: str) -> dict[str, float]:
    """Return where the first element is that a selector finds, and how large."""
    box: Any = page.locator(selector).first.bounding_box()
    assert box is not None, selector
    return dict(box)


def files_of(name: str, request: pytest.FixtureRequest) -> list[Path]:
    """Return the files of a page; of a site its index and a page of each sort that it leads to."""
    path: Path = request.getfixturevalue(name)
    if path.is_file():
        return [path]
    others = [min(found) for folder in ("reports", "figures", ".") if (found := [*(path / folder).glob("*.html")])]
    return sorted({path / "index.html", *others})


@pytest.mark.smoke
def test_a_report_loads_nothing_and_follows_light_and_dark(open_page: "Open", page_file: Path) -> None:
    shown = []
    for scheme in ("light", "dark"):
        with open_page(page_file, color_scheme=scheme) as page:
            assert page.title().endswith("<b>second</b> - GPU report")
            strip = page.evaluate("getComputedStyle(document.querySelector('#timeline svg .f-busy')).fill")
            shown.append((page.evaluate("getComputedStyle(document.body).backgroundColor"), strip))
    (light, light_strip), (dark, dark_strip) = shown
    assert (light, dark != light, dark_strip != light_strip) == ("rgb(255, 255, 255)", True, True)


def test_no_name_runs_a_script_or_makes_a_telephone_scroll(
    open_page: "Open", hostile_file: Path, tmp_path: Path
) -> None:
    with open_page(hostile_file, unfolded=True) as page:
        assert page.get_by_text("alert(1)").first.is_visible()
    for name, text in TEXTS.items():
        (tmp_path / "page.html").write_text(build_page(steps_with(text, ours=False), "html"), encoding="utf-8")
        with open_page(tmp_path / "page.html", 390) as page:
            assert page.evaluate("document.documentElement.scrollWidth") == 390, name


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_scrolls_sideways_or_runs_into_another(
    open_page: "Open", request: pytest.FixtureRequest, name: str, width: int
) -> None:
    for file in files_of(name, request):
        with open_page(file, width, unfolded=True) as page:
            assert page.evaluate("document.documentElement.scrollWidth") == width, file.name
            assert page.evaluate(WIDE_TABLES) == [], file.name
            assert page.evaluate(LABELS_OVER_LABELS) == 0, file.name
        if name in REPORTS:
            # charts hide the timelines where scripts run
            with open_page(file, width, java_script_enabled=False) as page:
                page.evaluate(UNFOLD)
                assert page.evaluate(LABELS_OUTSIDE) == [], file.name


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["page_file", "steps_file", "fleet_file", "site_folder"])
def test_axe_finds_nothing(open_page: "Open", request: pytest.FixtureRequest, name: str, scheme: str) -> None:
    pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    axe = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    for file in files_of(name, request):
        with open_page(file, unfolded=True, color_scheme=scheme) as page:
            page.evaluate(axe)
            found: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
        assert found["passes"], "axe judged nothing"
        broken = [(rule["id"], [node["html"][:120] for node in rule["nodes"]]) for rule in found["violations"]]
        assert broken == [], file.name


def test_the_first_screen_says_it_all(open_page: "Open", steps_file: Path) -> None:
    """Headline, lead, tiles and every bar of GPU time end above the fold; 450 words on 2,500 px are open at most."""
    with open_page(steps_file) as page:
        for part in ("h1", ".lead", ".tiles", "#gpu-time .bars"):
            box = box_of(page, part)
            assert 0 < box["height"] <= 900 - box["y"], part
        assert 100 < page.evaluate(OPEN_WORDS) <= 450
        assert page.evaluate("document.documentElement.scrollHeight") <= 2500


def test_a_thousand_gpu_hours_are_a_short_page(open_page: "Open", fleet_file: Path) -> None:
    with open_page(fleet_file) as page:
        assert 1_000 < page.evaluate("document.documentElement.scrollHeight") <= 6_000
        assert box_of(page, "#gpu-time .bars")["y"] < 600


def test_a_telephone_names_every_figure_of_a_table(open_page: "Open", gpus_file: Path, steps_file: Path) -> None:
    for file, cell in ((gpus_file, "#gpus td"), (steps_file, "#steps td")):
        for width in (390, 1280):
            with open_page(file, width, unfolded=True) as page:
                name = page.evaluate(f"getComputedStyle(document.querySelector('{cell}'), '::before').content")
                assert (name == "none") == (width == 1280), (file.name, width)


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize("anchor", ["#quality", "#R1", "#F1"])
def test_an_address_opens_its_fold(open_page: "Open", page_file: Path, anchor: str, *, script: bool) -> None:
    with open_page(page_file, anchor=anchor, java_script_enabled=script) as page:
        assert 0 <= box_of(page, anchor)["y"] < 900


def test_a_finding_leads_to_its_mark_without_a_script(open_page: "Open", page_file: Path) -> None:
    with open_page(page_file, java_script_enabled=False) as page:
        address = page.get_by_role("link", name="Show on timeline", include_hidden=True).first.get_attribute("href")
    for width in (390, 1280):
        with open_page(page_file, width, anchor=address or "", java_script_enabled=False) as page:
            box = box_of(page, ":target")
            assert (0 <= box["y"] < 900, 0 <= box["x"] < width) == (True, True)
            stroke = page.evaluate("getComputedStyle(document.querySelector(':target > path, path:target')).stroke")
            assert stroke != "none"


def test_paper_shows_what_matters(open_page: "Open", page_file: Path) -> None:
    with open_page(page_file) as page:
        page.emulate_media(media="print")
        shown = "[...document.querySelectorAll('.fold')].filter(fold => fold.checkVisibility())"
        names = page.evaluate(f"{shown}.flatMap(fold => [...fold.querySelectorAll('section')].map(part => part.id))")
        assert {"findings", "quality", "not-assessed", "method"} & {*names} == {"findings", "quality", "not-assessed"}
        assert page.locator("canvas:visible, .tools:visible, #tip:visible, #scheme:visible").count() == 0
    with open_page(page_file, unfolded=True) as page:
        page.emulate_media(media="print")
        assert page.locator("#timeline .figure:visible").count() == 2


def test_a_page_without_script_is_whole(open_page: "Open", page_file: Path) -> None:
    with open_page(page_file, anchor="#timeline", java_script_enabled=False) as page:
        assert page.locator("#timeline .figure svg").count() == 2
        assert page.locator("#timeline .figure svg").first.is_visible()
        assert page.locator("canvas:visible, button:visible, select:visible").count() == 0


def test_readable_under_a_policy_that_forbids_its_style(browser: "Browser", page_file: Path) -> None:
    page = browser.new_page()
    policy = "sandbox; default-src 'none'; img-src 'self'; style-src 'self'"

    def serve(route: "Route") -> None:
        headers = {"Content-Security-Policy": policy}
        route.fulfill(body=page_file.read_text(), content_type="text/html", headers=headers)

    page.route("http://report.test/", serve)
    page.goto("http://report.test/")
    assert page.get_by_role("heading", level=1).is_visible()
    fills = set(page.evaluate("[...document.querySelectorAll('svg path')].map(path => getComputedStyle(path).fill)"))
    assert fills & {"rgb(0, 0, 0)", "rgb(0, 114, 178)"} == {"rgb(0, 114, 178)"}
    page.close()
