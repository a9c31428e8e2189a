"""The report as Markdown."""

import re
from dataclasses import replace
from itertools import groupby

import pytest

from gpureport.report import build
from gpureport.report.formats.text import markdown, markdown_syntax
from gpureport.report.model.report_content import Report
from tests.report import examples, first_screens, sample_reports


def test_names_cannot_become_markup(hostile: Report) -> None:
    """Every character that Markdown or HTML reads is escaped, and tables keep their columns."""
    text = markdown.render(hostile)
    outside_code = re.sub(r"`[^`]*`", "", text.replace("\\`", ""))
    assert "<script>" not in outside_code.replace("\\<script\\>", "")
    blocks = groupby(text.splitlines(), key=lambda line: line.startswith("|"))
    tables = [{len(re.findall(r"(?<!\\)\|", row)) for row in rows} for is_table, rows in blocks if is_table]
    assert [len(widths) for widths in tables] == [1] * len(tables)
    assert len(tables) >= 3


def test_result_first(report: Report) -> None:
    """The headline, figures, what to do, a row a finding, how much was assessed, and how to get the page."""
    content = first_screens.fill_first_screen(report, ("1-starved", "2-more-workers"))
    text = markdown.render(content)
    assert text.startswith(f"# {content.verdict.sentence}\n")
    assert "| Whole-job throughput | 287 → 602 images/s | −52%, better<br>−58 to −45% |  |" in text
    assert "| 2-more-workers<br>run 1 | `" in text
    assert "| Since the first | | | −52%, better<br>−58 to −45% | −52%, better<br>−58 to −45% |" in text
    assert "\n1. **Shorten start-up.** Saves up to 43% of a run this short. For 17 of 23 s" in text
    assert (
        r"| problem | Waiting for data: one CPU core saturated (cpu\_bound\_single)<br>One core was saturated for"
        in text
    )
    assert f"\n{content.judgement.sentence}\n" in text
    assert text.splitlines()[-1] == "gpureport 0.1.0 · full report: `gpureport report a.csv -o report.html`"


def test_a_line_that_begins_with_a_figure_is_no_list() -> None:
    """A number with a point after it, a hyphen or an equals sign is escaped; decimals stay as they are."""
    begun = ("1. one", "2) two", "- three", "=== four", "4.7% was lost", "3")
    shown = [markdown_syntax.escape_line_start(text) for text in begun]
    assert shown == ["1\\. one", "2\\) two", "\\- three", "\\=== four", "4.7% was lost", "3"]


def test_bars_are_as_long_as_their_gpu_time(report: Report) -> None:
    """The longest has 24 characters, one of half its time has 12, each class its own sign."""
    content = first_screens.fill_first_screen(report, ("a", "b"))
    assert content.spent
    first, second = content.spent.bars
    half = replace(second, segments=tuple(replace(part, value=part.value / 2) for part in second.segments))
    text = markdown.render(replace(content, spent=replace(content.spent, bars=(first, half))))
    bars = re.findall(r"^\| [ab]<br>run 1 \| `([^`]*)` \|", text, re.MULTILINE)
    assert [len(bar) for bar in bars] == [24, 12]
    assert list(dict.fromkeys(bars[0])) == ["█", "▒", "·", "░"]
    assert "`█` Computing · `▒` Waiting for data · `·` Start-up · `░` Idle" in text


def test_a_single_run_tells_of_its_worst_gpu(report: Report) -> None:
    """What its signals show, in one line; tiles have no column for changes."""
    content = first_screens.fill_first_screen(report, ("GPU 0", "GPU 1"), single=True)
    tiles = tuple(replace(tile, before="", change=None) for tile in content.tiles)
    text = markdown.render(replace(content, tiles=tiles))
    assert "**GPU 2 over time:** Temperature: 88 °C, limit 88 °C; GPU utilisation: works 34%; slowed by heat" in text
    assert "| Figure | Value |  |\n" in text


@pytest.mark.parametrize("name", sorted(sample_reports.SETS))
def test_a_report_of_samples_is_far_below_the_limit(name: str) -> None:
    """Nothing is cut, and five steps fit into a comment."""
    text = markdown.render(sample_reports.report_on(sample_reports.SETS[name]))
    assert "Shortened" not in text
    assert len(text.encode()) < 12_000


def test_64_gpus_are_far_below_the_limit(many: Report) -> None:
    """A summary does not grow with the number of GPUs."""
    assert len(markdown.render(many).encode()) < 8_000


def crowded() -> Report:
    """Return a report of more steps, of longer names, than a summary can hold."""
    runs = [examples.pair(examples.run(f"step {place} {'ä' * 500}", gpus=8)) for place in range(40)]
    report = build(runs, title=None, command="gpureport report " + "x" * 30_000, gpu_hour_price=1.0, version="0.1.0")
    return first_screens.fill_first_screen(report, tuple(f"step {place} {'Ü' * 300}" for place in range(40)))


def test_what_is_too_much_is_cut_with_a_note() -> None:
    """At most 20 000 bytes: the most important stays, and the last line says where the rest is."""
    text = markdown.render(crowded())
    assert 10_000 < len(text.encode()) <= markdown.LIMIT
    assert text.startswith("# 52% less GPU time per image")
    assert "**Shortened: the full report has the rest.**" in text
    assert text.splitlines()[-1].startswith("gpureport 0.1.0")


def test_long_tables_say_how_many_rows_are_elsewhere(report: Report) -> None:
    """Of 30 findings 24 are listed."""
    content = first_screens.fill_first_screen(report, ("a", "b"))
    text = markdown.render(replace(content, rows=content.rows[:1] * 30))
    assert "\n6 more rows are in the full report.\n" in text


def test_a_headline_longer_than_a_summary_is_cut_too(report: Report) -> None:
    """Whatever the names: a summary that is too long would be lost whole."""
    endless = replace(report, verdict=replace(report.verdict, sentence="ä" * 70_000))
    assert len(markdown.render(endless).encode()) <= markdown.LIMIT
