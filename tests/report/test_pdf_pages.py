"""The PDF of machines without typst: plainer, and still text, vectors and the whole result."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpureport.cli import main
from gpureport.report import build, fonts, paper, pdf
from gpureport.report.model import Report
from tests.report import examples, pdf_reading
from tests.report.pdf_reading import needs_poppler

RUN = "sample_logs/input_starved/3-mixed-precision"


@pytest.fixture(autouse=True)
def _without_typst(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide typst, as if its wheel did not exist for this machine."""
    found = importlib.util.find_spec
    monkeypatch.setattr(pdf, "find_spec", lambda name: None if name == "typst" else found(name))


def _saved(report: Report, folder: Path) -> Path:
    path = folder / "report.pdf"
    path.write_bytes(pdf.render(report))
    return path


@needs_poppler
@pytest.mark.parametrize("name", ["report", "steps", "many", "clean", "hostile"])
def test_it_is_text_and_vectors(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Selectable text in embedded fonts, no raster image, the verdict and what was not judged."""
    report: Report = request.getfixturevalue(name)
    path = _saved(report, tmp_path)
    text = pdf_reading.text(path)
    assert " ".join(report.verdict.sentence.split()) in text
    assert " ".join(report.judgement.sentence.split()) in text
    named = [f"{card.id}, " if card.repeats else f"{card.id} {card.severity}" for card in report.findings]
    assert [name for name in named if name not in text] == []
    assert "since the first sample, h:min:s" in text
    assert {embedded for _, embedded in pdf_reading.fonts(path)} == {"yes"}
    assert pdf_reading.images(path) == []
    assert pdf_reading.info(path)["Page size"].endswith("(A4)")


@needs_poppler
def test_names_are_text(hostile: Report, tmp_path: Path) -> None:
    """Mathematics of a name is not read, escape codes are gone."""
    text = pdf_reading.text(_saved(hostile, tmp_path))
    assert "$\\frac{x$ red | `code` next" in text
    assert "\x1b" not in text


def test_no_stand_in_colour_is_left(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every colour of a figure has become one of paper; stand-ins are near black and would show as bars of it."""
    monkeypatch.setattr(paper, "PDF_SETTINGS", {"pdf.compression": 0})
    content = pdf.render(report)
    assert b"0 0.4470588235 0.6980392157 rg" in content
    assert b"0.0039215686 0.0078431373" not in content


def test_same_report_same_bytes(report: Report) -> None:
    """It holds no clock and no chance."""
    assert pdf.render(report) == pdf.render(report)


def test_lines_fit_and_nothing_is_lost() -> None:
    """Words too long for a line are cut; joined again they are what they were."""
    text = "a word " + "w" * 500 + "\nnext"
    lines = paper.wrapped(text, 100)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "").replace("\n", "")
    assert max(paper.width(line, paper.PLAIN) for line in lines) <= 100
    assert paper.wrapped("", 100) == [""]


@needs_poppler
def test_a_run_without_gpus(tmp_path: Path) -> None:
    """Nothing to draw is said in words."""
    runs = [examples.pair(examples.run(gpus=0))]
    report = build(runs, title=None, command="c", gpu_hour_price=None, version="0.1.0")
    assert "No GPU was recorded, so GPU time could not be divided." in pdf_reading.text(_saved(report, tmp_path))


def test_standard_error_says_what_is_lacking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, after the file was written."""
    with pytest.raises(SystemExit, match="0"):
        main(["report", RUN, "-o", str(tmp_path / "r.pdf")])
    said = capsys.readouterr().err.splitlines()
    assert said == [f"wrote {tmp_path / 'r.pdf'}", pdf.PLAINER]
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")


def test_a_machine_without_the_wheel_writes_a_pdf() -> None:
    """Typst is never asked for where it cannot be imported."""
    code = (
        "import sys; sys.modules['typst'] = None;"
        "from gpureport.report import build, pdf; from tests.report import examples;"
        "report = build([examples.pair(examples.run())], title=None, command='c', gpu_hour_price=None, version='1');"
        "print(pdf.render(report)[:5], bool(pdf.lacks()))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(["", *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "b'%PDF-' True"


def test_widths_of_characters_no_font_holds() -> None:
    """They are as wide as the sign that stands for them."""
    assert paper.width("🚀", paper.PLAIN) == paper.width(fonts.REPLACEMENT, paper.PLAIN)
