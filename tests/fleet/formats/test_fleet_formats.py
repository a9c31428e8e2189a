"""The page on many runs in every format, and the one place that writes it."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gpureport.errors import RenderError
from gpureport.fleet.fleet_report import FleetReport
from gpureport.fleet.formats import fleet_output, html_page, markdown_page, pdf_page, terminal_page
from gpureport.fleet.formats.week_columns import draw_week_columns
from gpureport.fleet.page.page_building import build_page
from gpureport.fleet.page.page_model import FleetPage
from gpureport.report.wording.display import GAP
from tests.fleet.page import fleets
from tests.support import pdf_reading

COMMAND = "gpureport fleet --since 30d"


def page(report: FleetReport) -> FleetPage:
    """Return the page of a report."""
    return build_page(report, command=COMMAND, version="0.1.0")


class _Elements(HTMLParser):
    """Collects the names of elements, of attributes, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read_html(content: str) -> _Elements:
    """Return what a page holds."""
    elements = _Elements()
    elements.feed(content)
    return elements


@pytest.mark.parametrize("report", [fleets.month(), fleets.bare()], ids=["month", "bare"])
def test_every_format_has_every_part(report: FleetReport) -> None:
    """The headline, every heading with its line, and the last row of every table."""
    shown = page(report)
    html = " ".join(" ".join(read_html(html_page.render(shown)).text).split())
    markdown = markdown_page.render(shown).replace("\\", "").replace(GAP, " ")
    full = " ".join(terminal_page.render(shown, width=200, full=True).split())
    for text in (html.replace(GAP, " "), markdown, full):
        assert shown.verdict.sentence.replace(GAP, " ") in text
        for part in shown.parts:
            assert part.title.lower() in text.lower()
            assert part.line.replace(GAP, " ").lower() in text.lower()
            for row in part.table.rows[-1:] if part.table else ():
                assert row.head.text in text


def test_the_page_needs_nothing_else_and_is_bounded() -> None:
    """No script, no style attribute, no address, below 300 kB with 2,000 runs, 300 users and 1,000 GPUs."""
    content = html_page.render(page(fleets.month()))
    elements = read_html(content)
    assert not elements.names & {"script", "link", "img", "iframe"}
    assert not elements.attributes & {"style", "src", "onclick"}
    assert not re.findall(r"https?://", content)
    assert len(content.encode()) < 300_000
    assert "default-src &#39;none&#39;" in content
    identifiers = re.findall(r' id="([^"]+)"', content)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r"url\(#([^)]+)\)", content)) <= set(identifiers)


def test_runs_without_gpu_time_make_a_page() -> None:
    """Where no run could be read there is no bar of GPU time, and every format is written all the same."""
    empty = replace(page(fleets.bare()), spent=None)
    assert "Where the GPU time went" not in html_page.render(empty)
    assert pdf_page.render(empty).startswith(b"%PDF")
    assert markdown_page.render(empty)
    assert terminal_page.render(empty)


def test_hostile_names_stay_text() -> None:
    """No name becomes an element, markup of Markdown, or steers a terminal."""
    shown = page(fleets.hostile())
    content = html_page.render(shown)
    assert "<script" not in content
    assert "&lt;script&gt;" in content
    markdown = markdown_page.render(shown)
    assert "<script" not in markdown.replace("\\<script", "")
    assert "@all" not in markdown
    for text in (content, markdown, terminal_page.render(shown, full=True)):
        assert "\x1b" not in text


@pytest.mark.parametrize("name", ["month", "bare", "hostile"])
@pytest.mark.parametrize("width", [80, 120])
def test_text_is_one_screen(name: str, width: int) -> None:
    """At most 30 lines of its width, and where the rest is; ASCII alone where that is asked for."""
    shown = page(getattr(fleets, name)())
    lines = terminal_page.render(shown, width=width).splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= width
    assert lines[-1] == "Details: --detail full"
    assert terminal_page.render(shown, ascii_only=True).isascii()


def test_the_screen_names_who_and_what() -> None:
    """The worst users, the steps, and the GPUs to pull with what was seen."""
    text = terminal_page.render(page(fleets.month()))
    for words in (
        "user000    900    40%",
        "1  More loader workers      Up to 1,210 GPU-h, $3,025",
        "node017, GPU 1  Pull  Stopped",
    ):
        assert words in text


@pytest.mark.parametrize("count", [1, 3], ids=["beside all else", "beside little else"])
def test_the_screen_names_the_worst_runs(count: int) -> None:
    """By name, with what each lost and to what; the heading counts those shown."""
    month = fleets.month()
    shown = page(month if count == 1 else replace(month, groupings=month.groupings[1:2], health=fleets.bare().health))
    (table,) = (part.table for part in shown.parts if part.id == "worst-runs")
    assert table is not None
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in terminal_page.render(shown).splitlines()]
    assert f"WORST RUNS  the {'one' if count == 1 else count} that lost most" in lines
    for place, row in enumerate(table.rows):
        own = [line for line in lines if line.startswith(f"  {row.head.text} ")]
        assert [line.split()[1] for line in own] == [row.cells[0].text][: place < count]


def test_the_screen_says_how_many_rows_it_leaves_out() -> None:
    """Two nodes of which one is shown are said to be two rows."""
    heading = next(
        line for line in terminal_page.render(page(fleets.month())).splitlines() if line.startswith("BY USER")
    )
    assert re.fullmatch(r"BY USER\W+[\d,]+ users; first \d of 21 rows", heading)


def test_markdown_is_at_most_20_kb() -> None:
    """However long names are; it says that it was cut."""
    month = fleets.month()
    long = tuple(
        replace(
            by, groups=tuple(replace(group, name=f"{place:03}{'<&' * 60}") for place, group in enumerate(by.groups))
        )
        for by in month.groupings
    )
    text = markdown_page.render(page(replace(month, groupings=long)))
    assert 10_000 < len(text.encode()) <= 20_000
    assert "Shortened" in text
    assert COMMAND in text


def test_weeks_are_columns_with_what_they_show_in_words() -> None:
    """Those in part are hatched; of a year of weeks only some have labels."""
    weeks = page(fleets.month()).parts[2].weeks
    drawn = draw_week_columns(weeks, "weeks")
    assert drawn.count("url(#weekspartial)") == 2
    assert drawn.count("<text") == 10
    assert 'aria-label="week of 28 September 2026: 4,800' in drawn
    year = next(part for part in page(replace(fleets.month(), weeks=fleets.weeks(60))).parts if part.id == "weeks")
    assert len(year.weeks) == 53
    assert year.notes[0] == "The 7 weeks before are in the JSON."
    assert draw_week_columns(year.weeks, "weeks").count("<text") < 40


@pdf_reading.needs_poppler
def test_a_pdf_is_two_pages_and_an_appendix(tmp_path: Path) -> None:
    """The head on the first, the worst groups, sick GPUs and trend on the second; everything with full."""
    path = tmp_path / "fleet.pdf"
    path.write_bytes(pdf_page.render(page(fleets.month())))
    first, second = (pdf_reading.text(path, number) for number in (1, 2))
    assert "31% of 24,012 GPU-hours lost in October" in first
    assert "3. Give the GPUs back" in first
    for words in ("By user", "281 other users", "GPUs to pull or watch", "node091", "Week by week"):
        assert words in second
    assert int(pdf_reading.info(path)["Pages"]) <= 6
    assert "10 more rows" in pdf_reading.text(path) or "11 more rows" in pdf_reading.text(path)
    path.write_bytes(pdf_page.render(page(fleets.month()), full=True))
    whole = pdf_reading.text(path)
    assert "more rows" not in whole
    assert "106 other nodes" in whole


def test_a_pdf_takes_hostile_names() -> None:
    """Archives refuse control characters and letters that no font holds."""
    shown = page(fleets.hostile())
    assert pdf_page.render(shown).startswith(b"%PDF")
    assert pdf_page.render(shown) == pdf_page.render(shown)


def test_files_are_written_by_their_extension(tmp_path: Path) -> None:
    """One page for all; JSON is the report itself."""
    targets = [tmp_path / "a" / f"fleet{kind}" for kind in (".html", ".md", ".txt", ".json")]
    written = fleet_output.write_fleet_report(fleets.month(), targets, command=COMMAND, version="0.1.0")
    assert all(
        written.verdict.sentence.split(";")[0][:30] in path.read_text().replace("\\", "") for path in targets[:3]
    )
    content = json.loads(targets[3].read_text())
    assert content["schema"] == "gpureport.fleet/1"
    assert content["use"]["runs"] == 2_000


def test_wrong_files_and_options_are_refused_before_any_work(tmp_path: Path) -> None:
    """The message says what there is."""
    with pytest.raises(RenderError, match=r"no report format has this extension; use one of \.html, \.json, \.md"):
        fleet_output.check_fleet_outputs([tmp_path / "fleet.xml"])
    with pytest.raises(RenderError, match="no file to be written has a longer form; write one of"):
        fleet_output.check_fleet_outputs([tmp_path / "fleet.html"], full=True)
    fleet_output.check_fleet_outputs([tmp_path / "fleet.pdf", Path("-")], full=True)
