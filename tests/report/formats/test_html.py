"""The page: self-contained, safe, whole without its script."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest

from gpureport.report import build
from gpureport.report.formats import html
from gpureport.report.model.report_content import Report
from tests.report import examples

_VOID = {"meta", "br", "img", "path", "rect", "use"}
_PLAIN: Any = {"title": None, "command": "", "gpu_hour_price": None, "version": "0"}
_FETCHING = {"src", "srcset", "poster", "data", "action", "formaction", "background"}


class _Page(HTMLParser):
    """Collects tags and attributes, and checks that tags are nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(params=["report", "steps", "many", "clean", "hostile"])
def page(request: pytest.FixtureRequest) -> str:
    """Return the page of every kind of report."""
    report: Report = request.getfixturevalue(request.param)
    return html.render(report)


def test_page_is_well_formed(page: str) -> None:
    """Every tag is closed, and no id is used twice."""
    parsed = _Page(page)
    assert parsed.open == []
    ids = [value for name, value in parsed.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_links_lead_somewhere(page: str) -> None:
    """Every reference inside the page has its target."""
    attributes = _Page(page).attributes
    ids = {value for name, value in attributes if name == "id"}
    targets = {value.removeprefix("#") for name, value in attributes if name == "href" and value}
    painted = set(re.findall(r"url\(#([^)]+)\)", page))
    assert (targets | painted) - ids == set()


def test_page_fetches_nothing(page: str) -> None:
    """No style attribute, no handler, nothing to load."""
    parsed = _Page(page)
    names = {name for name, _ in parsed.attributes}
    assert not names & (_FETCHING | {"style"})
    assert not [name for name in names if name.startswith("on")]
    assert not {"link", "img", "iframe", "object", "form"} & set(parsed.tags)
    assert "http://" not in page
    assert "https://" not in page


def test_page_runs_one_script(page: str) -> None:
    """Every other script element is data, which a browser does not run."""
    openings = re.findall(r"<script([^>]*)>", page)
    data = [
        opening for opening in openings if re.match(r' type="application/(json|octet-stream)" id="[a-z0-9-]+"', opening)
    ]
    assert len(openings) - len(data) == 1
    assert len(openings) == page.count("</script>")


def test_policy_allows_style_sheet_and_script_and_nothing_else(page: str) -> None:
    """The hashes in the policy are those of the elements' text."""
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    directives = policy.replace("&#39;", "'").split("; ")
    assert directives == [
        "default-src 'none'",
        f"style-src 'sha256-{_digest(style)}'",
        f"script-src 'sha256-{_digest(script)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def test_a_page_without_charts_has_no_script() -> None:
    """A single moment has no timeline to look into: the page holds no script and allows none."""
    page = html.render(build([examples.pair(examples.run(seconds=0))], **_PLAIN))
    assert "<script" not in page
    assert "script-src" not in page


def test_no_stand_in_colour_is_left(page: str) -> None:
    """Every colour of a figure has become one of the page."""
    assert "#0102" not in page


def test_names_are_text(hostile: Report) -> None:
    """Markup from a log is shown, not obeyed; escape codes are gone; mathematics is not read."""
    page = html.render(hostile)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; $\\frac{x$ red | `code` next" in page
    assert "<script>alert" not in page
    assert "\x1b" not in page


def test_same_input_same_bytes(report: Report, steps: Report) -> None:
    """A page holds no clock and no chance."""
    assert html.render(report) == html.render(report)
    assert html.render(steps) == html.render(steps)


def test_every_section_is_there(clean: Report) -> None:
    """A run without findings still says what was and what was not judged."""
    page = html.render(clean)
    parts = ("verdict", "gpu-time", "findings", "timeline", "gpus", "quality", "not-assessed", "method")
    assert [part for part in parts if f'<section id="{part}"' not in page] == []
    assert "No problems found." in page
    assert "No CPU utilisation was recorded." in page


def test_style_sheet_and_script_are_small(report: Report) -> None:
    """Small enough to read: what a page holds of both."""
    page = html.render(report)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(style.encode()) + len(script.encode()) <= 40_000


def test_cards_lead_to_their_marks(report: Report) -> None:
    """A link without a script, to an id that exists."""
    page = html.render(report)
    links = re.findall(r'<a href="#(run[^"]+)">Show on timeline</a>', page)
    assert sorted(links) == ["run0-mark-F1-0", "run0-mark-F2-1"]
    assert [link for link in links if f'id="{link}"' not in page] == []


@pytest.mark.parametrize("title", ["Training for Norvik", None])
def test_a_title_of_a_persons_own_stands_above_what_was_read(title: str | None) -> None:
    """The names of the runs, which stand there anyway, do not."""
    page = html.render(build([examples.pair(examples.run())], **_PLAIN | {"title": title}))
    assert ("<b>Training for Norvik</b><br>" in page) is (title is not None)
