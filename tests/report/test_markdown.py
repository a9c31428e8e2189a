"""The report as Markdown."""

import re

from gpureport.report import markdown
from gpureport.report.model import Report


def test_names_cannot_become_markup(hostile: Report) -> None:
    """Every character that Markdown or HTML reads is escaped, and tables keep their columns."""
    text = markdown.render(hostile)
    outside_code = re.sub(r"`[^`]*`", "", text.replace("\\`", ""))
    assert "<script>" not in outside_code.replace("\\<script\\>", "")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4, 5}


def test_result_first(report: Report) -> None:
    """The verdict is the headline; findings carry evidence and advice."""
    text = markdown.render(report)
    assert text.startswith("# Up to 10\N{NO-BREAK SPACE}% of 0.333\N{NO-BREAK SPACE}GPU-h was lost")
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
