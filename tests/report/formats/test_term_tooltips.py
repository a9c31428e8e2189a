"""Every term is explained where it stands, and in the method section."""

import re
from html import unescape

import pytest

from gpureport.report.formats import html, term_tooltips
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Fact
from gpureport.report.wording import display, terms
from tests.report import sample_reports

_PLAIN = {"Step", "Runs", "GPU"}
"""Labels that need no explanation, or are a unit."""


@pytest.fixture(scope="module")
def content() -> Report:
    """Return the report of five steps."""
    return sample_reports.report_on(sample_reports.SETS["five steps"], price=2.0)


def test_every_figure_is_explained(content: Report) -> None:
    """Tiles, columns of steps and GPUs, and classes of GPU time have a meaning on hover."""
    explained = term_tooltips.term_filter(content.method.definitions)
    labels = [tile.label for tile in content.tiles]
    labels += [name for table in content.gpus for name in table.table.columns]
    labels += [*content.steps.columns] if content.steps else []
    labels += [part.label for bar in content.gpu_time for part in bar.parts]
    assert [label for label in labels if "<abbr" not in explained(label) and label not in _PLAIN] == []
    page = html.render(content)
    titles = re.findall(r'<abbr title="([^"]*)">', page)
    defined = {fact.text for fact in content.method.definitions}
    assert titles
    assert {unescape(title) for title in titles} <= defined


def test_every_class_and_kind_is_defined(content: Report) -> None:
    """No class of GPU time and no kind is a bare word."""
    names = {fact.name.lower() for fact in content.method.definitions}
    assert {name for name in terms.CLASSES.values() if not _known(name.lower(), names)} == set()
    kinds = {fact.name: fact.text for fact in content.method.kinds}
    assert set(kinds) == set(terms.KINDS.values())
    assert all(len(text) > 20 for text in kinds.values())


def _known(name: str, names: set[str]) -> bool:
    return any(name.startswith(each) for each in names)


def test_a_card_explains_its_kind(content: Report) -> None:
    """The title of a finding tells what the kind means, whatever follows the kind in it."""
    page = html.render(content)
    meanings = {fact.name: fact.text for fact in content.method.kinds}
    for card in content.findings:
        (title,) = re.findall(rf'id="{card.id}">.*?<h3 title="([^"]*)">', page, re.DOTALL)[:1]
        if card.title.startswith(tuple(meanings)):
            assert unescape(title) in meanings.values()
    assert "<summary>What each check looks for</summary>" in page


def test_words_from_outside_stay_text() -> None:
    """A unit that a person named is escaped, whether a term is in it or not."""
    explained = term_tooltips.term_filter((Fact(name="Energy", text='of "power"'),))
    assert explained("Energy per <b>") == '<abbr title="of &#34;power&#34;">Energy</abbr> per &lt;b&gt;'
    assert explained("<b>") == "&lt;b&gt;"
    assert explained("Energyless") == "Energyless"


def test_the_longest_term_is_meant() -> None:
    """A term within another gives way, plurals count, and the GPU it is of may be left out."""
    facts = (Fact(name="Idle", text="1"), Fact(name="Idle share", text="2"), Fact(name="GPU utilisation", text="3"))
    explained = term_tooltips.term_filter(facts)
    assert explained("Idle shares") == '<abbr title="2">Idle shares</abbr>'
    assert explained("Mean utilisation") == 'Mean <abbr title="3">utilisation</abbr>'
    assert display.clean(term_tooltips.meaning_filter(facts)("Idle, GPU 0, 1")) == "1"
