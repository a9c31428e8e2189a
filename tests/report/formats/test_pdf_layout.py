"""How the pages of a PDF are laid out: nothing runs into anything else, and what matters stands on the first pages."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from gpureport.report import build
from gpureport.report.formats import pdf
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display
from tests.report import examples, first_screens, pdf_reading, sample_reports
from tests.report.pdf_reading import needs_poppler
from tests.report.test_same_content import recorded_steps

_STEPS = ("1-starved", "2-more-workers", "3-pinned-memory", "4-mixed-precision", "5-larger-batch")
_LONG = tuple(f"step-{place:02}-{'a-name-of-many-words-' * 3}{'x' * 40}" for place in range(12))


def _steps(names: tuple[str, ...]) -> Report:
    runs = [examples.pair(examples.run(name), (examples.idle_gap("gpu:0", 100, 160),)) for name in names]
    return build(runs, title=None, command="gpureport report", gpu_hour_price=1.0, version="0.1.0")


def _gpus(count: int) -> Report:
    run = examples.pair(examples.run(gpus=count, seconds=120), (examples.throttling("gpu:0", 10, 60),))
    return build([run], title=None, command="gpureport report", gpu_hour_price=1.0, version="0.1.0")


HAND_MADE: dict[str, Callable[[], Report]] = {
    "five steps": lambda: first_screens.fill_first_screen(_steps(_STEPS), _STEPS),
    "twelve steps of long names": lambda: first_screens.fill_first_screen(_steps(_LONG), _LONG),
    "one GPU of many": lambda: first_screens.fill_first_screen(
        _gpus(64), tuple(f"GPU {place}" for place in range(8)), single=True
    ),
}
BUILT: dict[str, Callable[[], Report]] = {
    "twelve steps": lambda: _steps(_LONG),
    "64 GPUs": lambda: _gpus(64),
    "no GPU": lambda: _gpus(0),
    "heat": lambda: sample_reports.report_on(["thermal_throttle"], price=2.5),
    "a chain": lambda: sample_reports.report_on(sample_reports.CHAIN, price=2.5),
}
_OTHER = {"recorded", "input_starved", "mapped"}
"""Folders of several runs, and one that is read with a mapping of its columns."""

FOLDERS = sorted(
    path.name for path in sample_reports.SAMPLES.iterdir() if (path / "README.md").is_file() and path.name not in _OTHER
)


def _saved(report: Report, folder: Path, *, full: bool = False) -> Path:
    path = folder / "report.pdf"
    path.write_bytes(pdf.render(report, full=full))
    return path


@needs_poppler
@pytest.mark.parametrize("name", [*HAND_MADE, *BUILT])
def test_no_text_runs_into_another(name: str, tmp_path: Path) -> None:
    """Neither in tables nor in figures, whatever the length of names."""
    path = _saved((HAND_MADE | BUILT)[name](), tmp_path)
    assert pdf_reading.overlaps(path) == []
    assert max(pdf_reading.right_edges(path)) <= 595.3 - 40


def _list_cuts(path: Path, report: Report) -> list[str]:
    """Return what ends a page and begins what stands on the next: a callout, or a heading with a line at most."""
    titles, pages = set(pdf_reading.outline(path)), pdf_reading.page_lines(path)
    callouts = " ".join(" ".join(run.outliers) for run in report.gpus).replace(display.GAP, " ")
    begun = (
        next((line for line in page[-2:] if line in titles or page[-1] in callouts), "")
        for page, after in pairwise(pages)
        if after[0] not in titles
    )
    return [line for line in begun if line]


@needs_poppler
@pytest.mark.parametrize("folder", ["thermal_throttle", "mem_pressure"])
def test_what_begins_a_table_stands_on_its_page(folder: str, tmp_path: Path) -> None:
    """Neither a heading with one line, nor a callout, stands alone at the foot of a page."""
    report = sample_reports.report_on([folder], price=2.5)
    assert _list_cuts(_saved(report, tmp_path), report) == []
    assert _list_cuts(_saved(report, tmp_path, full=True), report) == []


@pytest.mark.slow
@needs_poppler
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("folder", FOLDERS)
def test_no_text_runs_into_another_in_any_sample(folder: str, tmp_path: Path, *, full: bool) -> None:
    """In the short form and in the long one."""
    report = sample_reports.report_on([folder], price=2.5)
    path = _saved(report, tmp_path, full=full)
    assert pdf_reading.overlaps(path) == []
    assert _list_cuts(path, report) == []


@pytest.mark.slow
@needs_poppler
def test_no_text_runs_into_another_in_the_long_form_of_steps(tmp_path: Path) -> None:
    """With every comparison and every timeline."""
    assert pdf_reading.overlaps(_saved(_recorded(), tmp_path, full=True)) == []


def _recorded() -> Report:
    from gpureport import analyze  # noqa: PLC0415 - as `build` takes runs

    runs = [(recording, analyze(recording)) for recording in recorded_steps()]
    return build(runs, title=None, command="gpureport report", gpu_hour_price=2.5, version="0.1.0")


@needs_poppler
def test_the_result_of_five_steps_stands_on_the_first_pages(tmp_path: Path) -> None:
    """Headline to what to do next on the first, the table and the findings on the second, and six pages at most."""
    path = _saved(replace(_recorded(), tiles=first_screens.build_tiles()), tmp_path)
    first, second = (pdf_reading.text(path, page) for page in (1, 2))
    sections = ("Where the GPU time went", "GPU use over time", "What to do next")
    assert [name for name in sections if name not in first] == []
    assert "Step by step" in second
    assert "Findings" in second
    assert int(pdf_reading.info(path)["Pages"]) <= 6
    assert pdf_reading.overlaps(path) == []


@needs_poppler
def test_text_on_text_is_noticed(tmp_path: Path) -> None:
    """Two words at one place are reported, two lines of a paragraph are not."""
    report = _gpus(1)
    (tmp_path / "report.typ").write_text(
        '#set document(title: "x")\nOne line of words \\ and another\n#place(dx: 2pt, dy: -9pt)[collision]'
    )
    path = tmp_path / "theirs.pdf"
    path.write_bytes(pdf.render(report, tmp_path))
    assert {word for pair in pdf_reading.overlaps(path) for word in pair} >= {"collision"}
    (tmp_path / "report.typ").write_text('#set document(title: "x")\nOne line of words \\ and another')
    path.write_bytes(pdf.render(report, tmp_path))
    assert pdf_reading.overlaps(path) == []
