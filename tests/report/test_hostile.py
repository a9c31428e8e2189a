"""Names, params and messages stay text in every format, whatever they hold."""

import json
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gpureport.testing import build_file, build_page
from tests.support.hostile import PLAIN, STEERING, TEXTS, steps_with, visible
from tests.support.runs import ReadPage, plain, strings

FORMS = ("html", "json", "md", "svg", "txt")
QUICK = {"script", "template", "table", "link", "escape codes", "right to left", "length"}
NAMES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in TEXTS]


@cache
def rendered(text: str, form: str) -> str:
    return build_page(steps_with(text), form, title=text, full=form == "txt")


def tokens(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        yield token
        yield from token.children or ()


def is_break(token: Token) -> bool:
    """Return True for the one element that cells of a table have no Markdown for."""
    return token.type == "html_inline" and token.content == "<br>"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_steers_and_the_text_can_be_read(name: str) -> None:
    for form in FORMS:
        shown = rendered(TEXTS[name], form)
        assert {sign for sign in shown if unicodedata.category(sign) in STEERING} <= {"\n"}, form
    seen = visible(TEXTS[name])
    assert seen in plain(rendered(TEXTS[name], "txt"))
    assert any(seen in plain(text) for text in strings(json.loads(rendered(TEXTS[name], "json"))))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_the_elements_it_has_with_plain_names(name: str) -> None:
    page, usual = ReadPage(rendered(TEXTS[name], "html")), ReadPage(rendered(PLAIN, "html"))
    assert set(page.tags) <= set(usual.tags)
    assert {key for key, _ in page.attributes} <= {key for key, _ in usual.attributes}
    for tag in ("section", "article"):
        assert page.tags.count(tag) == usual.tags.count(tag)
    assert [value for value in page.values("href", "src") if not value.startswith(("#", "data:image/"))] == []
    assert visible(TEXTS[name]) in plain("".join(page.words))
    root, other = (ET.fromstring(rendered(text, "svg")) for text in (TEXTS[name], PLAIN))  # noqa: S314 - ours
    assert {element.tag for element in root.iter()} <= {element.tag for element in other.iter()}


@pytest.mark.parametrize("name", NAMES)
def test_markdown_has_the_elements_it_has_with_plain_names(name: str) -> None:
    read = [list(tokens(rendered(text, "md"))) for text in (TEXTS[name], PLAIN)]
    # the lines of a cell are the report's own, and as many whatever the name
    breaks = [sum(is_break(token) for token in each) for each in read]
    found, usual = ([token for token in each if not is_break(token)] for each in read)
    allowed = {token.type for token in usual}
    assert {token.type for token in found} <= allowed
    assert not allowed & {"html_block", "link_open", "image", "fence", "code_block", "blockquote_open"}
    whole = "Shortened" not in rendered(TEXTS[name], "md")
    assert breaks[0] == breaks[1] or not whole
    for kind in ("heading_open", "th_open", "td_open", "bullet_list_open", "list_item_open") if whole else ():
        counts = [sum(token.type == kind for token in each) for each in (found, usual)]
        # what is empty is left out
        assert counts[0] == counts[1] or (not visible(TEXTS[name]) and counts[0] < counts[1]), kind
    words = "".join(token.content for token in found if token.type in {"text", "text_special", "code_inline"})
    assert visible(TEXTS[name]) in plain(words.replace("\u200b", ""))
    # servers make links of bare addresses and call people by @name
    outside_code = re.sub(r"`[^`\n]*`", "", rendered(TEXTS[name], "md").replace("\\`", ""))
    assert not re.search(r"@\w|[^\\]://|www\.", outside_code)


@pytest.mark.slow
def test_endless_names_are_shortened() -> None:
    for form in FORMS:
        for name in ("length", "words"):
            long, usual = (build_page(steps_with(text, ours=False), form) for text in (TEXTS[name], PLAIN))
            assert len(long) < 5 * len(usual) + 10_000, (form, name)


@pytest.mark.slow
def test_a_name_never_stops_a_picture() -> None:
    for name, text in TEXTS.items():
        assert build_file(steps_with(text), "png").startswith(b"\x89PNG"), name
