"""The PDF: vector charts, tagged, archivable, the same bytes for the same report, and names that stay text."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import matplotlib.image
import pytest

from gpureport.errors import RenderError
from gpureport.report import build
from gpureport.report.charts import fonts
from gpureport.report.formats import pdf
from gpureport.report.model.report_content import Report
from tests.report import examples, pdf_reading
from tests.report.pdf_reading import needs_poppler

INJECTIONS = (
    '#include "/etc/passwd"',
    "#panic()",
    "$\\frac{x$",
    "@ref <label> *bold* _it_ `raw` ~ -- // /* =",
    "\\u{41} \\ \\\\",
    "<script>alert(1)</script>",
    '"] #read("model.json") ["',
)
"""Names that a typesetter could take for more than text."""


def _build(*runs: examples.Pair, command: str = "gpureport report a.csv") -> Report:
    return build(list(runs), title=None, command=command, gpu_hour_price=None, version="0.1.0")


def _saved(report: Report, folder: Path, *, full: bool = False) -> Path:
    path = folder / "report.pdf"
    path.write_bytes(pdf.render(report, full=full))
    return path


SHAPES: dict[str, Callable[[], Report]] = {
    "one run": lambda: _build(examples.pair(examples.run(), (examples.idle_gap("gpu:0", 100, 160),))),
    "five steps": lambda: _build(*(examples.pair(examples.run(f"step {step}", work=None)) for step in range(5))),
    "8 GPUs": lambda: _build(examples.pair(examples.run(gpus=8), (examples.throttling("gpu:5", 100, 400),))),
    "64 GPUs": lambda: _build(examples.pair(examples.run(gpus=64))),
    "200 GPUs": lambda: _build(examples.pair(examples.run(gpus=200, seconds=60))),
    "no GPU": lambda: _build(examples.pair(examples.run(gpus=0))),
    "one sample": lambda: _build(examples.pair(examples.run(gpus=1, seconds=0), idle=0.0)),
}


@needs_poppler
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_every_shape_of_report_is_archivable_and_accessible(shape: str, tmp_path: Path) -> None:
    """Tagged, PDF/A-2a and PDF/UA-1, every font embedded, no raster image, A4."""
    path = _saved(SHAPES[shape](), tmp_path)
    info, metadata = pdf_reading.info(path), pdf_reading.metadata(path)
    assert info["Tagged"] == "yes"
    assert info["Page size"].endswith("(A4)")
    assert "<pdfaid:part>2</pdfaid:part><pdfaid:conformance>A</pdfaid:conformance>" in metadata
    assert "<pdfuaid:part>1</pdfuaid:part>" in metadata
    root = pdf_reading.catalog(path)
    stated = ("/Lang(en)", "/StructTreeRoot ", "/MarkInfo<</Marked true", "/OutputIntents ", "/DisplayDocTitle true")
    assert [each for each in stated if each not in root] == []
    assert b"/S/GTS_PDFA1" in path.read_bytes()
    used = pdf_reading.fonts(path)
    assert {name for name, _ in used} <= {"DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono"}
    assert {embedded for _, embedded in used} == {"yes"}
    assert pdf_reading.images(path) == []


@needs_poppler
def test_charts_are_text_that_can_be_found(steps: Report, tmp_path: Path) -> None:
    """Names of GPUs, steps and classes, the axis and the shares are characters, not outlines."""
    text = pdf_reading.text(_saved(steps, tmp_path, full=True))
    labels = ("GPU 0", "0:02:00", "since the first sample, h:min:s", "computing", "8 workers", "100%")
    squeezed = " ".join(text.split())
    assert [label for label in labels if " ".join(label.split()) not in squeezed] == []


@needs_poppler
def test_everything_the_model_says_is_there(report: Report, tmp_path: Path) -> None:
    """Verdict, tiles, evidence, advice, where, what was not judged, data quality, method."""
    text = pdf_reading.text(_saved(report, tmp_path, full=True))
    card = report.findings[0]
    expected = [
        report.verdict.sentence,
        *(part for tile in report.tiles for part in (tile.label, tile.value)),
        *(part for bar in report.gpu_time for each in bar.parts for part in (each.label, each.text)),
        card.title,
        card.summary,
        *(line.observed for line in card.evidence),
        *card.recommendations,
        card.where,
        *(line.reason for line in report.judgement.lines),
        *(fact.text for run in report.quality for fact in run.facts),
        *(note for run in report.quality for note in run.notes),
        *(cell.text for run in report.gpus for row in run.table.rows for cell in row.cells),
        report.method.command,
        *(row.cells[-1].text for row in report.method.thresholds.rows[:20]),
    ]
    assert [each for each in expected if " ".join(each.split()) not in text] == []


@needs_poppler
def test_sections_are_in_the_outline_and_in_the_contents(steps: Report, tmp_path: Path) -> None:
    """Sections and findings can be jumped to."""
    path = _saved(steps, tmp_path, full=True)
    outline, links = pdf_reading.outline(path), pdf_reading.links(path)
    sections = {"Step by step", "GPU time of every run", "Findings", "Every finding", "Timeline", "Per GPU", "Method"}
    assert sections - set(outline) == set()
    assert sections - set(links) == set()
    assert [title for title in outline if title.startswith("F1 ")] != []
    assert links.count("timeline") == len(steps.findings)


@needs_poppler
def test_tables_are_tagged_and_repeat_their_header(tmp_path: Path) -> None:
    """A table of 200 nodes names its columns on each page that it takes; the short form leaves it out and says so."""
    info = examples.run(gpus=400, seconds=60)
    devices = tuple(replace(gpu, node=f"node_{place // 2}") for place, gpu in enumerate(info.devices))
    content = _build(examples.pair(replace(info, devices=devices)))
    path = _saved(content, tmp_path, full=True)
    pages = [pdf_reading.text(path, page) for page in range(1, int(pdf_reading.info(path)["Pages"]) + 1)]
    rows = [page for page in pages if any(f"node_{place}, 2 GPUs 80" in page for place in (5, 100, 199))]
    assert len(rows) > 1
    assert [page for page in rows if "Temperature" not in page] == []
    assert {"H1", "H2", "Table", "THead", "TBody", "TH", "TD", "Figure"} - set(pdf_reading.structure(path)) == set()
    assert f"Page 1 of {len(pages)}" in pages[0]
    short = pdf_reading.text(_saved(content, tmp_path))
    assert "node_100, 2 GPUs 80" not in short
    assert "The table of 200 rows comes with --detail full." in short


@needs_poppler
@pytest.mark.parametrize("name", INJECTIONS)
def test_names_are_text(name: str, tmp_path: Path) -> None:
    """A name from a log is shown as it is: it is read from data and never set as markup."""
    info = examples.run(name, model=name, step=name)
    finding = replace(examples.idle_gap("gpu:0", 10, 40, summary=name), cause=name, recommendation=name)
    path = _saved(_build(examples.pair(info, (finding,)), command=name), tmp_path, full=True)
    text = pdf_reading.text(path)
    assert text.count(name) >= 5
    assert "root:" not in text


@needs_poppler
def test_a_run_without_gpus(tmp_path: Path) -> None:
    """Nothing to draw is said in words."""
    path = _saved(_build(examples.pair(examples.run(gpus=0))), tmp_path, full=True)
    assert "No GPU was recorded, so GPU time could not be divided." in pdf_reading.text(path)


@needs_poppler
def test_the_hostile_report_is_text(hostile: Report, tmp_path: Path) -> None:
    """The same for all texts at once, without escape codes."""
    text = pdf_reading.text(_saved(hostile, tmp_path))
    assert "<script>alert(1)</script> $\\frac{x$ red | `code` next" in text
    assert "\x1b" not in text


@needs_poppler
def test_names_longer_than_a_page_stay_on_it(tmp_path: Path) -> None:
    """A name without a place to break is broken, and nothing runs off the page; copied, it has no gaps."""
    report = _build(examples.pair(examples.run("x" * 10_000, model="y" * 10_000)), command="gpureport " + "z" * 9_990)
    path = _saved(report, tmp_path)
    edges = pdf_reading.right_edges(path)
    assert max(edges) <= 595.3 - 42
    assert pdf_reading.text(path).replace(" ", "").count("z") >= 9_990


@needs_poppler
def test_a_command_can_be_copied(tmp_path: Path) -> None:
    """A long command holds no characters that were not in it, and loses none at the end of a line."""
    command = "nvidia-smi --query-gpu=" + ",".join(f"clocks-event-reasons.field_{n}" for n in range(30)) + " -l 1"
    path = _saved(_build(examples.pair(examples.run()), command=command), tmp_path)
    assert command.replace(" ", "") in pdf_reading.text(path).replace(" ", "")


@needs_poppler
def test_characters_without_a_glyph_are_named(tmp_path: Path) -> None:
    """Emoji and Chinese show as a sign, and the method says which they were; right-to-left text is set."""
    name = "日本 🚀 \u202e\u05e9\u05dc\u05dd\u202c"
    path = _saved(_build(examples.pair(examples.run("run", step=name))), tmp_path)
    text = pdf_reading.text(path)
    assert "� stands for a character that the fonts of this PDF do not hold (U+65E5, U+672C, U+1F680)" in text
    assert "\u05e9\u05dc\u05dd" in text
    assert "stands for a character" not in pdf_reading.text(_saved(_build(examples.pair(examples.run())), tmp_path))


def test_same_report_same_bytes(report: Report, steps: Report) -> None:
    """A PDF holds no clock and no chance."""
    assert pdf.render(report) == pdf.render(report)
    assert pdf.render(steps) == pdf.render(steps)


@pytest.mark.slow
def test_same_bytes_under_every_hash_seed(tmp_path: Path) -> None:
    """Two interpreters write the same file."""
    code = (
        "import sys; from pathlib import Path; from gpureport.report import build;"
        "from gpureport.report.formats import pdf;"
        "from tests.report import examples;"
        "pairs = [examples.pair(examples.run(gpus=3), (examples.idle_gap('gpu:1', 10, 40),))];"
        "report = build(pairs, title=None, command='c', gpu_hour_price=None, version='1');"
        "Path(sys.argv[1]).write_bytes(pdf.render(report))"
    )
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(["", *sys.path])}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / seed)], check=True, env=environment)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@needs_poppler
def test_the_date_is_that_of_the_build_or_of_the_recording(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SOURCE_DATE_EPOCH dates the file; without it the end of the last recording does."""
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert "Mar 14 09:36:53 2026" in pdf_reading.info(_saved(report, tmp_path))["CreationDate"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    assert "Sep  9 01:46:40 2001" in pdf_reading.info(_saved(report, tmp_path))["CreationDate"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    with pytest.raises(RenderError, match="SOURCE_DATE_EPOCH: 'today' is not a whole number; state seconds"):
        pdf.render(report)


def test_a_missing_font_is_one_line(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some distributions ship matplotlib without its fonts."""
    monkeypatch.setattr(mpl, "get_data_path", lambda: str(tmp_path))
    with pytest.raises(RenderError, match=r"DejaVuSans\.ttf: this font of matplotlib is missing; install") as raised:
        pdf.render(report)
    assert "\n" not in str(raised.value)


def test_fonts_hold_what_reports_are_written_with() -> None:
    """Signs of our own words are all in the fonts shipped."""
    drawable = fonts.drawable_characters(fonts.shipped_fonts()[:2])
    assert (
        fonts.find_missing_characters(
            "▼…·≤≥±°µ•\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}\N{NON-BREAKING HYPHEN}", drawable
        )
        == []
    )
    assert fonts.replace_missing_characters("a🚀b", drawable) == "a�b"
