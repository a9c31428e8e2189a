"""The PDF: vector charts, tagged, archivable, the same bytes for the same results, and names that stay text."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from gpureport import testing
from gpureport.errors import RenderError
from gpureport.testing import build_file, build_page
from tests.support import pdf_reading, runs
from tests.support.hostile import TEXTS, steps_with
from tests.support.pdf_reading import needs_poppler
from tests.support.runs import divided, plain, run, step, with_run

LONG_GPUS = tuple(replace(gpu, model="y" * 10_000) for gpu in run().run.devices)
LONG = tuple(f"step-{place:02}-{'a-name-of-many-words-' * 3}{'x' * 40}" for place in range(12))
SHAPES: dict[str, Callable[[], Any]] = {
    "one run": lambda: runs.with_findings(divided(computing=540, idle=60), testing.finding("idle_gap", (100, 160))),
    "five steps": lambda: [one for place in range(5) for one in step(f"step {place}")],
    "twelve steps of long names": lambda: [one for name in LONG for one in step(name)],
    "a hot GPU": lambda: runs.sample("thermal_throttle"),
    "a chain": lambda: runs.sample(*runs.CHAIN),
    "64 GPUs": lambda: run(gpus=64, seconds=120),
    "200 GPUs": lambda: run(gpus=200, seconds=60),
    "one sample": lambda: run(gpus=1, seconds=0),
    "no utilisation": lambda: run(util=float("nan")),
    "names longer than a page": lambda: with_run(run("x" * 10_000), devices=LONG_GPUS),
}


def saved(results: Any, folder: Path, *, full: bool = False) -> Path:
    path = folder / "report.pdf"
    path.write_bytes(build_file(results, "pdf", full=full))
    return path


@needs_poppler
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_archivable_and_accessible_and_nothing_runs_into_another(shape: str, tmp_path: Path) -> None:
    path = saved(SHAPES[shape](), tmp_path)
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
    assert pdf_reading.overlaps(path) == []
    assert max(pdf_reading.right_edges(path)) <= 595.3 - 40


def list_cuts(path: Path, callouts: str) -> list[str]:
    """Return what ends a page and begins what stands on the next: a callout, or a heading with a line at most."""
    titles, pages = set(pdf_reading.outline(path)), pdf_reading.page_lines(path)
    begun = (
        next((line for line in page[-2:] if line in titles or page[-1] in callouts), "")
        for page, after in pairwise(pages)
        if after[0] not in titles
    )
    return [line for line in begun if line]


@pytest.mark.slow
@needs_poppler
@pytest.mark.parametrize("full", [False, True])
def test_no_sample_has_texts_that_overlap_or_headings_alone(tmp_path: Path, *, full: bool) -> None:
    faults = {}
    for name in runs.FOLDERS:
        path = saved(runs.sample(name), tmp_path, full=full)
        callouts = plain(" ".join(" ".join(each["outliers"]) for each in runs.sample_page(name)["gpus"]))
        if found := [*pdf_reading.overlaps(path), *list_cuts(path, callouts)]:
            faults[name] = found
    assert faults == {}


@needs_poppler
def test_the_result_of_five_steps_stands_on_the_first_pages(tmp_path: Path) -> None:
    path = saved(runs.recorded_steps(), tmp_path)
    first, second = (pdf_reading.text(path, page) for page in (1, 2))
    sections = ("Where the GPU time went", "GPU use over time", "What to do next")
    assert [name for name in sections if name not in first] == []
    assert "Step by step" in second
    assert pdf_reading.page_lines(path)[2][0] == "Appendix: findings"
    assert int(pdf_reading.info(path)["Pages"]) <= 6
    assert pdf_reading.overlaps(path) == []
    bars = json.loads(build_page(runs.recorded_steps(), "json"))["spent"]["bars"]
    assert pdf_reading.structure(path).count("Figure") >= 2 * len(bars) == 10
    assert path.read_bytes().count(b"/Alt")


@pytest.mark.smoke
@needs_poppler
def test_sections_and_findings_can_be_jumped_to(tmp_path: Path) -> None:
    analyses = runs.sample("thermal_throttle")
    path = saved(analyses, tmp_path, full=True)
    outline, links = pdf_reading.outline(path), pdf_reading.links(path)
    sections = {"Findings", "Timeline", "Per GPU", "Method"}
    assert sections - set(outline) == set()
    assert sections - set(links) == set()
    assert [title for title in outline if title.startswith("R1 ")] != []
    # labels of charts are characters, not outlines
    text = pdf_reading.text(path)
    assert [label for label in ("GPU 0", "computing", "12 min", "100%") if label not in text] == []


@pytest.mark.slow
@needs_poppler
def test_tables_are_tagged_and_repeat_their_header(tmp_path: Path) -> None:
    made = run(gpus=400, seconds=60)
    devices = tuple(replace(gpu, node=f"node_{place // 2}") for place, gpu in enumerate(made.run.devices))
    analysis = testing.analyze(with_run(made, devices=devices))
    path = saved(analysis, tmp_path, full=True)
    pages = [pdf_reading.text(path, page) for page in range(1, int(pdf_reading.info(path)["Pages"]) + 1)]
    rows = [page for page in pages if any(f"node_{place}, 2 GPUs 97" in page for place in (5, 100, 199))]
    assert len(rows) > 1
    assert [page for page in rows if "Temperature" not in page] == []
    assert {"H1", "H2", "Table", "THead", "TBody", "TH", "TD", "Figure"} - set(pdf_reading.structure(path)) == set()
    assert f"Page 1 of {len(pages)}" in pages[0]
    assert "node_100, 2 GPUs 97" not in pdf_reading.text(saved(analysis, tmp_path))


@pytest.mark.slow
@needs_poppler
def test_names_are_text(tmp_path: Path) -> None:
    injections = (
        *('#include "/etc/passwd"', "#panic()", "$\\frac{x$", "@ref <label> *bold* _it_ `raw` ~ -- // /* ="),
        *("\\u{41} \\ \\\\", "<script>alert(1)</script>", '"] #read("model.json") ["'),
    )
    for name in injections:
        text = pdf_reading.text(saved(steps_with(name), tmp_path, full=True))
        assert text.count(name) >= 5, name
        assert "root:" not in text, name
    assert "\x1b" not in pdf_reading.text(saved(steps_with(TEXTS["escape codes"]), tmp_path))


@needs_poppler
def test_characters_without_a_glyph_are_named(tmp_path: Path) -> None:
    text = pdf_reading.text(saved(with_run(run(), step="日本 🚀 \u202e\u05e9\u05dc\u05dd\u202c"), tmp_path))
    assert "�" in text
    assert "(U+65E5, U+672C, U+1F680)" in text
    assert "\u05e9\u05dc\u05dd" in text
    assert "�" not in pdf_reading.text(saved(run(), tmp_path))


@needs_poppler
def test_the_date_is_that_of_the_build_or_of_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert "Mar 14 09:36:53 2026" in pdf_reading.info(saved(run(), tmp_path))["CreationDate"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    assert "Sep  9 01:46:40 2001" in pdf_reading.info(saved(run(), tmp_path))["CreationDate"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    with pytest.raises(RenderError) as raised:
        build_file(run(), "pdf")
    assert (raised.value.code, raised.value.where) == ("not_a_number", "SOURCE_DATE_EPOCH")


def test_a_missing_font_is_an_error_with_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpl, "get_data_path", lambda: str(tmp_path))
    with pytest.raises(RenderError) as raised:
        build_file(run(), "pdf")
    assert raised.value.code == "no_such_file"
    assert raised.value.where.startswith(str(tmp_path))
