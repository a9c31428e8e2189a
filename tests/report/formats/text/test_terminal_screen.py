"""The report on one screen: at most 30 lines that say what happened, why, and what next."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import gpureport
from gpureport.report import build, render
from gpureport.report.formats.text import terminal
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display
from tests.report import examples, sample_reports
from tests.report.formats.text import screens

SINGLE = sorted(
    path.name
    for path in sample_reports.SAMPLES.iterdir()
    if path.is_dir() and path.name not in {"recorded", "input_starved", "mapped"}
)
STEPS = ("1-starved", "2-more-workers", "3-pinned-memory", "4-mixed-precision", "5-larger-batch")


def check_screen(content: Report, width: int = 80) -> Sequence[str]:
    """Return the lines of a screen, that fits and begins with the headline."""
    lines = terminal.render(content, width, full=False).splitlines()
    assert len(lines) <= 30
    assert [line for line in lines if display.terminal_width(line) > width and " " in line.strip()] == []
    words = content.verdict.sentence.replace(display.GAP, " ").split()
    assert lines[0].split() == words[: len(lines[0].split())]
    return lines


@pytest.mark.parametrize("name", SINGLE)
def test_every_sample_is_one_screen(name: str) -> None:
    """With the headline first, and where to find more last."""
    lines = check_screen(sample_reports.report_on([name]))
    assert any(line.startswith("FINDINGS") for line in lines)
    assert any(line == "Details: --detail full" for line in lines[-4:])


@pytest.mark.parametrize("width", [60, 80, 120])
def test_steps_are_one_screen(width: int) -> None:
    """Three generated ones, and the five that were recorded three times."""
    check_screen(sample_reports.report_on(sample_reports.CHAIN), width)
    folder = sample_reports.SAMPLES / "recorded/training_steps"
    found = [
        recording
        for step in STEPS
        for run in (1, 2, 3)
        for recording in gpureport.read(folder / step / str(run), labels={"step": step, "work": (32768, "images")})
    ]
    runs = [(recording, gpureport.analyze(recording)) for recording in found]
    content = build(runs, title=None, command="gpureport compare a b", gpu_hour_price=2.5, version="0.1.0")
    lines = check_screen(content, width)
    assert lines[-1].endswith("gpureport report a b -o report.html")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_many_gpus_are_one_screen(many: Report, width: int) -> None:
    """64 GPUs alike."""
    check_screen(many, width)


def test_one_row_is_one_screen(tmp_path: Path) -> None:
    """A log of a single moment has little to say, and says it."""
    with gzip.open(sample_reports.SAMPLES / "thermal_throttle/nvidia-smi.csv.gz", "rt") as log:
        (tmp_path / "row.csv").write_text("".join(log.readlines()[:2]))
    (recording,) = gpureport.read(tmp_path / "row.csv")
    runs = [(recording, gpureport.analyze(recording))]
    check_screen(build(runs, title=None, command="gpureport analyze row.csv", gpu_hour_price=None, version="0.1.0"))


def test_a_hot_gpu_on_one_screen() -> None:
    """Bars as long as the time they stand for, signals from zero with the stretch marked, and what to do."""
    lines = check_screen(screens.hot_run())
    bars = [line for line in lines if line.startswith("  GPU ")]
    drawn = [line.split()[2] for line in bars]
    assert len({len(bar) for bar in drawn}) == 1
    assert ["▓" in bar for bar in drawn] == [False, False, True, False]
    assert bars[2].endswith("7.5% lost to heat")
    assert "WHERE THE GPU TIME WENT  12.5 GPU-min each" in lines
    (clock,) = [line for line in lines if line.startswith("  Clock")]
    heights = ["▁▂▃▄▅▆▇█".index(sign) for sign in clock.split()[1]]
    # from zero, a clock 12% down is drawn one step of eight lower
    assert (heights[0], heights[-1]) == (7, 6)
    (marks,) = [line for line in lines if "▔" in line]
    share = marks.count("▔") / len(heights)
    assert share == pytest.approx(454 / 748, abs=0.03)
    assert lines[lines.index(marks) + 1].strip() == "slowed by heat, 7 min 34 s" or marks.endswith("7 min 34 s")
    assert "GPU 2 OVER TIME  0 to 88 °C, 0 to 1,710 MHz" in lines
    # a class too short to be drawn is not in the legend, and the order is that of the segments
    (legend,) = [line for line in lines if "Computing" in line]
    assert legend.index("Short pauses") < legend.index("Start-up")
    assert ("░" in legend) == any("░" in bar for bar in drawn)


def test_steps_on_one_screen() -> None:
    """Lengths are GPU time per unit of work; changes and verdicts stand in columns of their own."""
    content = screens.five_steps()
    lines = check_screen(content)
    bars = {line.split()[0]: line.split()[1] for line in lines if line[2:3].isdigit() and line[3] == "-"}
    assert len(bars) == 5
    assert content.spent is not None
    longest = len(bars["1-starved"])
    for bar in content.spent.bars:
        assert len(bars[bar.label]) == pytest.approx(float(bar.total) / 3.48 * longest, abs=0.5)
    assert any(line.endswith("−46%  better") for line in lines)
    (memory,) = [line for line in lines if "Peak memory" in line]
    assert memory.split("  ")[-1] == "of 79.6 GiB installed"


def test_a_full_screen_keeps_what_must_be_known_first() -> None:
    """Bars, tiles and the rest of the lead give way before a doubt does."""
    content = screens.five_steps()
    assert content.spent is not None
    bars = tuple(replace(content.spent.bars[0], label=f"step {place}", is_bad=True) for place in range(60))
    doubts = ("b is unfinished: it is still recording.", "The clock went back by 10 min: times after that may be off.")
    verdict = replace(content.verdict, details=(*doubts, *content.verdict.details), doubts=2)
    lines = check_screen(replace(content, verdict=verdict, spent=replace(content.spent, bars=bars)), 40)
    text = " ".join(" ".join(lines).split())
    assert [doubt in text for doubt in doubts] == [True, True]


@pytest.mark.parametrize("width", [50, 80])
def test_no_doubt_is_cut(width: int) -> None:
    """What to do stands at the end of a doubt: rather one less, and how many more there are."""
    content = screens.five_steps()
    told = [f"The work stated of {name} {'is not what the log counts and ' * 5}state it again." for name in "ab"]
    verdict = replace(content.verdict, details=(*told, *content.verdict.details), doubts=2, further_doubts=1)
    text = " ".join(" ".join(check_screen(replace(content, verdict=verdict), width)).split())
    assert text.count("state it again.") == text.count("The work stated") == (1 if width < 80 else 2)
    assert f"{'2 more doubts' if width < 80 else '1 more doubt'}: see --detail full." in text


def test_what_is_not_drawn_is_counted() -> None:
    """Of many bars the first, the bad ones and the last stay."""
    content = screens.five_steps()
    assert content.spent is not None
    first, *rest = content.spent.bars
    bars = (first, *(replace(bar, label=f"step {place}", is_bad=place == 17) for place, bar in enumerate(rest * 5)))
    lines = check_screen(replace(content, spent=replace(content.spent, bars=bars)))
    assert any(line.startswith("  step 17") for line in lines)
    assert any(line.startswith("  step 19") for line in lines)
    shown = sum(line.startswith(("  step ", "  1-starved")) for line in lines)
    assert f"  {len(bars) - shown} more: --detail full." in lines


def test_colour_says_only_what_is_established() -> None:
    """A change that is better is green; one without a verdict, and the text before it, are not."""
    text = terminal.render(screens.five_steps(), colour=True, full=False)
    (better,) = [line for line in text.splitlines() if "2-more-workers" in line and "−46%" in line]
    assert better.endswith("\x1b[32m  −46%  better\x1b[0m")
    (memory,) = [line for line in text.splitlines() if "Peak memory" in line]
    assert "\x1b" not in memory
    plain = terminal.render(screens.five_steps(), full=False)
    assert "\x1b" not in plain
    (worse,) = [
        line for line in terminal.render(screens.hot_run(), colour=True, full=False).splitlines() if "▓▓" in line
    ]
    assert worse.endswith("\x1b[31m  7.5% lost to heat\x1b[0m")


def test_ascii_only() -> None:
    """A terminal without other characters gets none."""
    for content in (screens.hot_run(), screens.five_steps()):
        assert terminal.render(content, ascii_only=True, full=False).isascii()


@pytest.mark.parametrize(
    ("command", "last"),
    [
        ("gpureport analyze a.csv", "Full report: gpureport report a.csv -o report.html"),
        (
            "gpureport -v compare 'a b' c.csv --calibrate --format text --detail=short --by folder",
            "  --by folder -o report.html",
        ),
        ("gpureport demo --detail short", "Full report: gpureport demo -o report.html"),
        ("gpureport analyze … --anonymise", "  -o report.html"),
        ("notebook", "Details: --detail full"),
    ],
)
def test_the_last_line_names_the_source(command: str, last: str) -> None:
    """With the options that matter to the page, and without those that do not."""
    run = examples.pair(examples.run())
    content = build([run], title=None, command=command, gpu_hour_price=None, version="0.1.0")
    lines = terminal.render(content, full=False).splitlines()
    assert lines[-1] == last or lines[-1].endswith(last.strip())


def test_rules_that_do_not_hold_are_named() -> None:
    """A rule of the settings is part of the answer."""
    from gpureport.testing import Check, CheckOutcome  # noqa: PLC0415 - here alone

    checks = [
        Check(limit="idle_ratio <= 5%", run="a", outcome=CheckOutcome.BROKEN, observed="49%", reason=""),
        Check(limit="no thermal_throttle", run="a", outcome=CheckOutcome.PASSED, observed="", reason=""),
    ]
    run = examples.pair(examples.run())
    content = build([run], title=None, command="", gpu_hour_price=None, version="0.1.0", checks=checks)
    lines = check_screen(content)
    assert "RULES  1 of 2 failed or not assessed." in lines
    assert "  failed: idle_ratio <= 5% (49%)" in lines


def test_full_text_is_asked_for(report: Report) -> None:
    """`.txt` is one screen, and with every detail the whole text."""
    assert render(report, ".txt").decode() == terminal.render(report, full=False)
    assert render(report, ".txt", detail=0).decode() == terminal.render(report, full=True)
