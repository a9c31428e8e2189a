"""The report as text."""

from pathlib import Path

import pytest

from gpureport.report import terminal
from gpureport.report.model import Report

EXPECTED = Path(__file__).with_name("expected.txt")


def test_the_whole_text(report: Report, *, update_golden: bool) -> None:
    """What a person reads in a pipe of 80 columns."""
    if update_golden:
        EXPECTED.write_text(terminal.render(report), encoding="utf-8")
    assert terminal.render(report) == EXPECTED.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["report", "steps", "many", "clean", "hostile"])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_asked(name: str, width: int, request: pytest.FixtureRequest) -> None:
    """Text is wrapped; timelines have a width of their own."""
    content: Report = request.getfixturevalue(name)
    lines = terminal.render(content, width=width).splitlines()
    assert [line for line in lines if len(line) > width and not line.startswith("  GPU")] == []


def test_plain_when_piped_and_coloured_when_asked(report: Report) -> None:
    """Escape codes appear only on request, and only our own."""
    assert "\x1b" not in terminal.render(report)
    coloured = terminal.render(report, colour=True)
    assert "\x1b[1;31mF2 problem: Clock reduced by heat, GPU 1" in coloured
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;31m", "\x1b[1;33m"):
        coloured = coloured.replace(code, "")
    assert coloured == terminal.render(report)


def test_hostile_text_is_only_text(hostile: Report) -> None:
    """No escape code of a log reaches the terminal, and no line break."""
    text = terminal.render(hostile, width=200)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "F1 warning: <script>alert(1)</script> $\\frac{x$ red | `code` next, GPU 0" in text


def test_labels_keep_their_case(steps: Report) -> None:
    """Headings are ours, labels are not."""
    text = terminal.render(steps)
    assert "PER GPU, 8 workers" in text
    assert "DATA QUALITY, bf16" in text


def test_ascii_only(steps: Report) -> None:
    """A terminal without other characters gets none."""
    assert terminal.render(steps, ascii_only=True).isascii()


def test_no_findings_is_not_good_health(clean: Report) -> None:
    """What was not judged stands next to what was not found."""
    text = terminal.render(clean)
    assert "No loss found among the" in text
    assert "2 could not be judged, or only in part" in text
