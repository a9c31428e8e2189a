"""The report as Markdown."""

import re
from dataclasses import replace
from itertools import groupby

from gpureport.report import build
from gpureport.report.formats.text import markdown
from gpureport.report.formats.text.markdown_trimming import ALWAYS, FINDINGS, GAINS, MarkdownPart, trim_to_size
from gpureport.report.model.report_content import Report
from tests.report import examples, sample_reports


def test_names_cannot_become_markup(hostile: Report) -> None:
    """Every character that Markdown or HTML reads is escaped, and tables keep their columns."""
    text = markdown.render(hostile)
    outside_code = re.sub(r"`[^`]*`", "", text.replace("\\`", ""))
    assert "<script>" not in outside_code.replace("\\<script\\>", "")
    blocks = groupby(text.splitlines(), key=lambda line: line.startswith("|"))
    tables = [{len(re.findall(r"(?<!\\)\|", row)) for row in rows} for is_table, rows in blocks if is_table]
    assert tables == [{4}, {5}, {10}, {4}]


def test_result_first(report: Report) -> None:
    """The verdict is the headline; findings carry evidence and advice."""
    text = markdown.render(report)
    assert text.startswith("# Up to 10% of 20.0\N{NO-BREAK SPACE}GPU-min was lost")
    assert "**F1 warning: Idle gaps, both GPUs**, up to" in text
    assert "- Do this: Prefetch the next batch while the GPU computes." in text
    assert "| Waiting for the CPU, Waiting for storage | No CPU utilisation was recorded. |" in text


def test_small_enough_for_a_job_summary(many: Report) -> None:
    """A report of 64 GPUs stays under 20 KB."""
    assert len(markdown.render(many).encode()) < 20_000


def test_what_the_sampling_cannot_show_is_said(report: Report) -> None:
    """As in every other format: no gap found is not no gap."""
    text = markdown.render(report).replace("\N{NO-BREAK SPACE}", " ")
    assert "\n- Gaps shorter than 5 s cannot be seen at this sampling.\n" in text


def crowded() -> Report:
    """Return a report of more findings, events and GPUs than a summary can hold."""
    gaps = [
        replace(examples.idle_gap("gpu:0", 10 + each, 13 + each), cause=f"cause {each}", summary="Ünlike " * 40)
        for each in range(300)
    ]
    runs = [examples.pair(examples.run(f"step {place}", gpus=8), tuple(gaps)) for place in range(4)]
    return build(runs, title=None, command="gpureport " + "x" * 30_000, gpu_hour_price=1.0, version="0.1.0")


def test_what_is_too_much_is_cut_and_named() -> None:
    """At most 60 000 bytes: the first findings, the result and what was not judged stay, the rest is named."""
    content = crowded()
    text = markdown.render(content)
    assert 45_000 < len(text.encode()) <= markdown.LIMIT
    (notice,) = re.findall(r"\*\*Cut to fit\. Left out: (.*)\. The HTML and JSON reports hold all of it\.\*\*", text)
    shown = re.findall(r"^\*\*(F\d+) ", text, re.MULTILINE)
    ids = [card.id for card in content.findings]
    assert shown == ids[: len(shown)]
    assert f"findings {ids[len(shown)]} to {ids[-1]}" in notice
    assert text.startswith("# ")
    assert "## What could not be judged\n\n" in text
    assert text.splitlines()[-1].startswith("gpureport 0.1.0, made with `gpureport xxx")


def test_nothing_is_cut_that_fits() -> None:
    """A report of one run is whole."""
    content = sample_reports.report_on(sample_reports.SETS["broken log"])
    text = markdown.render(content)
    assert "Cut to fit" not in text
    assert [card.id for card in content.findings if f"**{card.id} " not in text] == []


def test_a_result_longer_than_a_summary_is_cut_too(report: Report) -> None:
    """Whatever the names: a summary that is too long would be lost whole."""
    endless = replace(report, verdict=replace(report.verdict, sentence="ä" * 70_000))
    text = markdown.render(endless)
    assert len(text.encode()) <= markdown.LIMIT
    assert "Left out" in text


def test_the_table_of_gains_outlives_findings() -> None:
    """What a consultant hands over goes last, and is named by itself."""
    parts = [
        MarkdownPart("the result", ALWAYS, ("result",)),
        MarkdownPart("the table of gains", GAINS, ("gains" * 10,)),
        *(MarkdownPart(f"F{place}", FINDINGS, ("finding" * 10,)) for place in (1, 2)),
        MarkdownPart("", ALWAYS, ("end",)),
    ]
    assert trim_to_size(parts, 180).splitlines()[:2] == ["result", "gains" * 10]
    assert "Left out: findings F1 to F2." in trim_to_size(parts, 180)
    assert "Left out: findings F1 to F2; the table of gains." in trim_to_size(parts, 130)
