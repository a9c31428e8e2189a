"""Figures as SVG."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from gpureport.report import build
from gpureport.report.charts import svg, timeline_strips
from gpureport.report.model.report_content import Report
from gpureport.report.runs import gpu_time
from gpureport.testing import GPU_TIME_CLASSES
from tests.report import examples


def test_slimmed_svg_keeps_shape_and_loses_weight() -> None:
    """Style becomes attributes, ids get the prefix, paths become relative, stand-ins become colours with a class."""
    document = """<?xml version="1.0"?><!-- comment -->
    <svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 90.04 20">
    <metadata><a/></metadata><defs><style type="text/css">*{stroke-linejoin: round}</style></defs>
    <g id="figure_1"><g id="mark-F1-0">
    <path d="M 10.04 5 L 20.06 5 L 20.06 6.3 z" style="fill: #010207; opacity: 1"/></g>
    <g id="text_1"><text style="font: 600 10px 'DejaVu Sans'; fill: #010203" x="1.234">a &lt; b</text></g></g></svg>"""
    assert svg.slim_svg(document, prefix="p", label='what "it" shows') == (
        '<svg viewBox="0 0 90 20" width="90" height="20" role="img" aria-label="what &quot;it&quot; shows" '
        'font-family="system-ui, -apple-system, &#x27;Segoe UI&#x27;, Roboto, &#x27;DejaVu Sans&#x27;, sans-serif" '
        'fill="none"><title>what &quot;it&quot; shows</title>'
        '<g id="p-mark-F1-0"><path d="M10 5h10.1v1.3z" fill="#0072b2" class="f-busy"/></g>'
        '<text font-size="10" font-weight="600" fill="currentColor" x="1.2">a &lt; b</text></svg>'
    )


@pytest.mark.parametrize("name", ["report", "steps", "many", "hostile"])
def test_figures_are_plain_vector_graphics(name: str, request: pytest.FixtureRequest) -> None:
    """One element each, text as text, no style, no picture, nothing clipped at the left."""
    content: Report = request.getfixturevalue(name)
    drawn = [timeline_strips.draw_timeline(run, "run") for run in content.timeline]
    for text in drawn:
        root = ET.fromstring(text)  # noqa: S314 - drawn by the project itself
        tags = {node.tag for node in root.iter()}
        assert tags <= {"svg", "title", "g", "defs", "pattern", "clipPath", "rect", "path", "text", "use"}
        assert "style=" not in text
        assert root.get("role") == "img"
        assert root.get("aria-label")


def test_every_drawn_gpu_has_a_label(many: Report) -> None:
    """All names are there as text."""
    root = ET.fromstring(timeline_strips.draw_timeline(many.timeline[0], "run"))  # noqa: S314 - drawn by the project itself
    labels = [node.text for node in root.iter("text") if (node.text or "").startswith("GPU")]
    assert labels == [strip.label for strip in many.timeline[0].strips] != []


def test_marks_can_be_found_by_their_card(report: Report) -> None:
    """A mark's id names card and row."""
    text = timeline_strips.draw_timeline(report.timeline[0], "run0")
    assert 'id="run0-mark-F1-0"' in text
    assert 'id="run0-mark-F2-1"' in text
    assert 'id="run0-mark-F2-0"' not in text


def test_a_finding_on_one_gpu_is_named_before_those_on_all() -> None:
    """Beside a strip there is room for a few names, so the telling ones come first."""
    gaps = tuple(examples.idle_gap(f"gpu:{gpu}", 100, 300) for gpu in (0, 1))
    info = examples.run()
    runs = [examples.pair(info, (*gaps, examples.throttling("gpu:1", 400, 500)))]
    content = build(runs, title=None, command="", gpu_hour_price=None, version="0")
    root = ET.fromstring(timeline_strips.draw_timeline(content.timeline[0], "run"))  # noqa: S314 - drawn by the project itself
    names = [node.text for node in root.iter("text") if (node.text or "").startswith("F")]
    assert names == ["F1", "F2 F1"]


def test_legend_in_the_order_of_the_bars() -> None:
    """A class that only a later bar shows still has its place."""
    runs = []
    for name, classes in (("a", {"computing": 500.0, "tail": 100.0}), ("b", {"low_use": 300.0, "idle": 300.0})):
        recording, analysis = examples.pair(examples.run(name))
        times = tuple(replace(time, seconds=tuple(classes.items())) for time in analysis.gpu_time)
        runs.append((recording, replace(analysis, gpu_time=times)))
    bars = build(runs, title=None, command="", gpu_hour_price=None, version="0").gpu_time
    order = [name for name in GPU_TIME_CLASSES if name in {"computing", "tail", "low_use", "idle"}]
    assert list(gpu_time.class_labels(bars)) == order
