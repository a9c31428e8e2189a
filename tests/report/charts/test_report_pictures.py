"""The timeline alone."""

import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib.image
import numpy as np
import pytest

from gpureport.report import write
from gpureport.report.charts.palette import BUSY, COLOURS
from gpureport.report.formats import picture_png, picture_svg
from gpureport.report.model.report_content import Report
from tests.report import sample_reports

_NAMESPACE = "{http://www.w3.org/2000/svg}"


def words(text: str) -> str:
    """Return all text of an SVG file, for a reader."""
    root = ET.fromstring(text)  # noqa: S314 - drawn by the project itself
    return " ".join(element.text or "" for element in root.iter(f"{_NAMESPACE}text"))


def test_the_vector_picture_stands_alone() -> None:
    """A document of its own, with the run, the GPUs, the findings and events it marks, on a ground, nothing loaded."""
    content = sample_reports.report_on(sample_reports.SETS["broken log"])
    text = picture_svg.render(content)
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    said = words(text)
    assert "mean GPU utilisation over time" in said
    for part in ("GPU 0", "GPU 2", "F1 GPU lost, GPU 2 (problem)", "E1 "):
        assert part in said
    assert not re.search(r"#0102|<image|<script|style=|https?://(?!www\.w3\.org/2000/svg)", text)


def test_steps_stand_below_each_other(steps: Report) -> None:
    """Pictures of all steps, then one a run, none over another, all within the frame; no id twice."""
    text = picture_svg.render(steps)
    root = ET.fromstring(text)  # noqa: S314 - as above
    inner = root.findall(f"{_NAMESPACE}svg")
    assert [re.split("[:;]", each.get("aria-label") or "")[0] for each in inner] == [
        "Where the GPU time went",
        "GPU use over time",
        "Mean GPU utilisation once settled",
        "baseline",
        "bf16",
        "8 workers",
    ]
    bottom = 0.0
    for element in inner:
        assert float(element.get("y", "nan")) == pytest.approx(bottom)
        bottom += float(element.get("height", "nan"))
    assert float(root.get("height", "nan")) == pytest.approx(bottom)
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_the_pixels_have_the_colours_of_the_page(many: Report, steps: Report) -> None:
    """No colour that only stands in for one, no pixel one can look through, and the blue of busy time."""
    for content in (many, steps):
        pixels = matplotlib.image.imread(BytesIO(picture_png.render(content)))
        assert pixels.shape[1] == 1800
        # a pixel as one number: rows of four are slow to compare
        packed = np.unique((pixels * 255).round().astype(np.uint8).view(np.uint32))
        colours = {tuple(colour) for colour in packed.reshape(-1, 1).view(np.uint8).tolist()}
        assert {alpha for *_, alpha in colours} == {255}
        stand_ins = {tuple(bytes.fromhex(colour.stand_in[1:])) for colour in COLOURS}
        assert not {colour[:3] for colour in colours} & stand_ins
        assert (*bytes.fromhex(BUSY.fixed[1:]), 255) in colours


def test_a_run_without_a_gpu_says_so(report: Report) -> None:
    """A picture, not an error: other files of the same command are written too."""
    why = "No GPU was recorded in this run."
    blind = replace(report, timeline=(replace(report.timeline[0], strips=(), absent=why),))
    assert "baseline: no GPU was recorded in this run." in picture_svg.render(blind)
    assert picture_png.render(blind).startswith(b"\x89PNG")


def test_pictures_hold_no_clock(report: Report, tmp_path: Path) -> None:
    """Twice the same bytes."""
    for name in ("a.png", "b.png", "a.svg", "b.svg"):
        write(report, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
