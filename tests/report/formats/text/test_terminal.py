"""The report as text."""

from pathlib import Path

import numpy as np
import pytest

from gpureport.report import build
from gpureport.report.formats.text import terminal, terminal_tables
from gpureport.report.model.report_content import Report
from gpureport.report.model.shapes import Cell, Fact, Row, Table
from gpureport.report.wording import display
from gpureport.report.wording.terminal_lines import Page
from tests.report import examples

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
    assert [line for line in lines if len(line) > width] == []


def test_plain_when_piped_and_coloured_when_asked(report: Report) -> None:
    """Escape codes appear only on request, and only our own."""
    assert "\x1b" not in terminal.render(report)
    coloured = terminal.render(report, colour=True)
    assert "\x1b[1;31mF2 problem: GPU slowed by heat, GPU 1" in coloured
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


def test_columns_that_hold_a_value_come_first() -> None:
    """Where a table does not fit, what was not recorded gives way; where it fits, it is said to be unrecorded."""
    absent = Cell(text=display.NOT_RECORDED)
    row = Row(head=Cell(text="GPU 0"), cells=(*[absent] * 6, Cell(text="15.6 GiB", value=15.6)))
    table = Table(columns=("GPU", *"ABCDEF", "Peak memory"), numeric=(True,) * 7, rows=(row,))
    narrow, wide = (
        [line.text for line in terminal_tables.grid_lines(table, Page(width=width, ascii=False))] for width in (80, 200)
    )
    assert narrow[-1].split() == ["GPU", "0", "15.6", "GiB"]
    assert wide[-1].count(display.NOT_RECORDED) == 6


def test_names_of_facts_share_a_column() -> None:
    """A name longer than the others moves all of them."""
    named = [Fact(name="GPU-hours", text="better"), Fact(name="GPU-hours per 1,000 steps", text="worse")]
    first, second = (line.text for line in terminal_tables.fact_lines(named, Page(width=80, ascii=False)))
    assert first.index("better") == second.index("worse")


def test_ascii_only(steps: Report) -> None:
    """A terminal without other characters gets none."""
    assert terminal.render(steps, ascii_only=True).isascii()


def test_no_findings_is_not_good_health(clean: Report) -> None:
    """What was not judged stands next to what was not found."""
    text = terminal.render(clean)
    assert "no problems found" in text
    assert "2 not assessed" in text


@pytest.mark.parametrize("width", [50, 60, 80, 100])
@pytest.mark.parametrize("name", ["训练" * 30, "🚀" * 40, "e\u0301" * 60])
def test_wide_letters_take_two_columns(name: str, width: int) -> None:
    """Names in letters that a terminal draws twice as wide, or not at all, keep lines and columns where they are."""
    runs = [examples.pair(examples.run(f"{name} {place}", model=name)) for place in range(2)]
    content = build(runs, title=None, command="gpureport", gpu_hour_price=None, version="0.1.0")
    lines = terminal.render(content, width=width).splitlines()
    unbroken = [line for line in lines if max(map(display.terminal_width, line.split(" "))) <= width - 36]
    assert [line for line in unbroken if display.terminal_width(line) > width] == []
    bars = [line for line in lines if "█" in line and "GPU-" in line]
    assert len({display.terminal_width(line.partition("█")[0]) for line in bars}) == 1


@pytest.mark.parametrize("width", [40, 60, 70, 120])
def test_a_strip_fits_a_narrow_page(width: int) -> None:
    """Columns that do not fit are joined with their neighbours, and not recorded ones count for nothing."""
    busy = np.full(601, 0.9)
    busy[:300] = np.nan
    info = examples.run(gpus=1)
    run = (examples.recording(info, [busy]), examples.analysis(info))
    content = build([run], title=None, command="gpureport", gpu_hour_price=None, version="0.1.0")
    (strip,) = [line for line in terminal.render(content, width=width).splitlines() if "????" in line]
    assert len(strip) <= width
    shown = strip.split(" ")[-1]
    assert set(shown) == {"?", "█"}
    assert abs(shown.count("?") - shown.count("█")) <= 2
