"""Names, params and messages stay text in every format, whatever they hold."""

import json
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gpureport.report import FORMATS, render
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display
from tests.quick_share import keep_quick
from tests.report import hostile
from tests.report.hostile import PLAIN, TEXTS, visible

_TEXT_FORMATS = sorted(set(FORMATS) - {".png", ".pdf"})


@cache
def rendered(text: str, extension: str) -> str:
    """Return the report that carries a text everywhere, in one format."""
    return render(content(text), extension, detail=0 if extension == ".txt" else None).decode()


@cache
def content(text: str) -> Report:
    """Return the report that carries a text everywhere."""
    return hostile.report_with(text)


def plain(text: str) -> str:
    """Return text with single plain spaces, as a reader sees it."""
    return unicodedata.normalize("NFC", " ".join(text.replace(display.GAP, " ").split()))


class _Page(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("extension", _TEXT_FORMATS)
@pytest.mark.parametrize("name", TEXTS)
def test_nothing_steers_a_terminal_or_the_direction_of_text(name: str, extension: str) -> None:
    """No control character, no invisible mark, no half of a pair gets through."""
    shown = rendered(TEXTS[name], extension)
    assert {char for char in shown if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co"}} <= {"\n"}


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_has_the_elements_it_has_with_plain_names(name: str) -> None:
    """No tag, no attribute and no address that plain names would not give; and the text can be read."""
    page, usual = _Page(rendered(TEXTS[name], ".html")), _Page(rendered(PLAIN, ".html"))
    assert set(page.tags) <= set(usual.tags)
    assert {name for name, _ in page.attributes} <= {name for name, _ in usual.attributes}
    assert page.tags.count("section") == usual.tags.count("section")
    assert page.tags.count("article") == usual.tags.count("article")
    addresses = [value for name, value in page.attributes if name in {"href", "src"}]
    assert [value for value in addresses if not value.startswith(("#", "data:image/"))] == []
    assert visible(TEXTS[name]) in plain("".join(page.words))


def tokens(text: str) -> Iterator[Token]:
    """Yield what Markdown is read as, tables included."""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        yield token
        yield from token.children or ()


def is_break(token: Token) -> bool:
    """Return True for the one element that cells of a table have no Markdown for."""
    return token.type == "html_inline" and token.content == "<br>"


@pytest.mark.parametrize("name", TEXTS)
def test_markdown_has_the_elements_it_has_with_plain_names(name: str) -> None:
    """No HTML, link, picture or heading of a name's making; tables keep their columns; the text can be read."""
    read = [list(tokens(rendered(text, ".md"))) for text in (TEXTS[name], PLAIN)]
    # the lines of a cell are the report's own, and as many whatever the name
    breaks = [sum(is_break(token) for token in each) for each in read]
    found, usual = ([token for token in each if not is_break(token)] for each in read)
    allowed = {token.type for token in usual}
    assert {token.type for token in found} <= allowed
    assert not allowed & {"html_block", "link_open", "image", "fence", "code_block", "blockquote_open"}
    whole = "Shortened" not in rendered(TEXTS[name], ".md")
    assert breaks[0] == breaks[1] or not whole
    for kind in ("heading_open", "th_open", "td_open", "bullet_list_open", "list_item_open") if whole else ():
        counts = [sum(token.type == kind for token in each) for each in (found, usual)]
        # what is empty is left out
        assert counts[0] == counts[1] or (not visible(TEXTS[name]) and counts[0] < counts[1]), kind
    words = "".join(token.content for token in found if token.type in {"text", "text_special", "code_inline"})
    assert visible(TEXTS[name]) in plain(words.replace("\u200b", ""))


@pytest.mark.parametrize("name", TEXTS)
def test_markdown_names_nobody_and_links_nowhere(name: str) -> None:
    """Servers make links of bare addresses and call people by @name; no name of a run does that."""
    outside_code = re.sub(r"`[^`\n]*`", "", rendered(TEXTS[name], ".md").replace("\\`", ""))
    assert not re.search(r"@\w|[^\\]://|www\.", outside_code)


@pytest.mark.parametrize("name", TEXTS)
def test_text_can_be_read(name: str) -> None:
    """What a terminal shows holds the text, over however many lines."""
    assert visible(TEXTS[name]) in plain(rendered(TEXTS[name], ".txt"))


@pytest.mark.parametrize("name", TEXTS)
def test_data_formats_can_be_parsed_and_hold_the_text(name: str) -> None:
    """JSON and SVG are what their readers expect, of the same shape as with plain names."""
    seen = visible(TEXTS[name])
    strings = list(_strings(json.loads(rendered(TEXTS[name], ".json"))))
    assert any(seen in plain(text) for text in strings)
    root, usual = (ET.fromstring(rendered(text, ".svg")) for text in (TEXTS[name], PLAIN))  # noqa: S314 - ours
    assert {element.tag for element in root.iter()} <= {element.tag for element in usual.iter()}
    texts = [*(element.text or "" for element in root.iter()), *(v for e in root.iter() for v in e.attrib.values())]
    assert any(seen[:10] in plain(text) for text in texts)


def _strings(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        for value in content.values():
            yield from _strings(value)
    elif isinstance(content, list):
        for value in content:
            yield from _strings(value)


@pytest.mark.parametrize("name", ["length", "words"])
@pytest.mark.parametrize("extension", _TEXT_FORMATS)
def test_endless_names_are_shortened(name: str, extension: str) -> None:
    """Ten thousand characters do not make a report of nothing else."""
    long, usual = (render(hostile.report_with(text, ours=False), extension) for text in (TEXTS[name], PLAIN))
    assert len(long) < 5 * len(usual) + 10_000


@pytest.mark.parametrize("name", keep_quick(TEXTS, 5))
def test_pixels_are_drawn(name: str) -> None:
    """A name never stops a picture."""
    assert render(content(TEXTS[name]), ".png").startswith(b"\x89PNG")
