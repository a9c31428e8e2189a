"""Pictures written by hand: well-formed, without styles, in per cent on a page and in points on paper."""

import re
from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from gpureport.report.charts.palette import CLASSES
from gpureport.report.charts.vector.class_patterns import draw_swatch
from gpureport.report.charts.vector.signal_panels import draw_signal_panels
from gpureport.report.charts.vector.spent_bars import draw_spent_bars
from gpureport.report.charts.vector.use_rows import draw_use_rows
from gpureport.report.charts.vector.vector_elements import NARROW, TEXT, WIDE, HorizontalScale, draw_axis
from gpureport.report.model.pictures import (
    ClassName,
    ClassStretch,
    SignalHistory,
    SignalLine,
    SignalPanel,
    SpentBar,
    Tick,
    TimeSegment,
    TimeSpent,
    UseOverTime,
    UseRow,
)

_TAGS = {"svg", "g", "defs", "pattern", "clipPath", "rect", "path", "line", "text"}
_TICKS = (Tick(at=0.0, text="0 s"), Tick(at=2.0, text="2"), Tick(at=4.0, text="4"))


def _segment(key: str, value: float) -> TimeSegment:
    return TimeSegment(key=key, label=key.replace("_", " ").capitalize(), value=value, text=f"{value:.2f}")


SPENT = TimeSpent(
    caption="",
    columns=("GPU-s per 1,000 images", ""),
    bars=(
        SpentBar(
            label="a <b> & c",
            segments=tuple(_segment(key, 0.3) for key in CLASSES if key != "no_job"),
            total="3.60",
            interval=(2.9, 9.0),
            interval_text="2.90 to 9.00",
        ),
        SpentBar(label="short", segments=(_segment("computing", 1.0), _segment("idle", 0.001)), total="1.00"),
    ),
    end=4.2,
    ticks=_TICKS,
    legend=(ClassName(key="computing", label="Computing"),),
)
USE = UseOverTime(
    caption="",
    rows=(
        UseRow(
            label="a",
            small="",
            mean=np.array([0.0, np.nan, 1.0, 0.5]),
            bucket_seconds=1.0,
            band=(ClassStretch(key="startup", start=0, end=2), ClassStretch(key="computing", start=2, end=4)),
            total="4 s",
            text="GPU 40% busy",
        ),
    ),
    seconds=8.0,
    ticks=_TICKS,
)
HISTORY = SignalHistory(
    gpu="GPU 2",
    title="GPU 0 over time",
    caption="",
    panels=(
        SignalPanel(
            quantity="Temperature",
            label="Temperature, 20 to 90 °C",
            lines=(SignalLine(label="GPU 0", mean=np.array([30.0, 88.0, np.nan, 88.0])),),
            low=20,
            high=90,
            limit=88,
            limit_text="limit 88 °C",
        ),
        SignalPanel(
            quantity="GPU utilisation",
            label="GPU utilisation, 0 to 100%",
            lines=(SignalLine(label="GPU 0", mean=np.array([1.0, 99, 99, np.nan])),),
            low=0,
            high=100,
            is_filled=True,
        ),
    ),
    start=0,
    end=4,
    bucket_seconds=1,
    ticks=_TICKS,
    spans=((1.0, 3.0),),
    span_text="slowed by heat, 2 s",
)


def _draw_all(width: float | None) -> Iterator[str]:
    yield from draw_spent_bars(SPENT, "spent", width)
    yield from draw_use_rows(USE, "use", width)
    yield from draw_signal_panels(HISTORY, "worst", width)
    yield from (draw_swatch(key, key, f"swatch{key}") for key in CLASSES)


@pytest.mark.parametrize("width", [None, 400.0])
def test_pictures_are_plain_and_spoken(width: float | None) -> None:
    """Each is one element with words for those who cannot see it; nothing that a strict policy forbids."""
    for text in _draw_all(width):
        root = ET.fromstring(text)  # noqa: S314 - drawn by the project itself
        assert {node.tag for node in root.iter()} <= _TAGS
        assert root.get("role") == "img"
        assert root.get("aria-label")
        assert "style=" not in text
        assert "nan" not in text.lower().replace("finance", "")


def test_ids_are_unlike_and_found() -> None:
    """No two pictures of a page share an id, and every reference has its target in the same picture."""
    drawn = list(_draw_all(None))
    found = [name for text in drawn for name in re.findall(r' id="([^"]+)"', text)]
    assert len(found) == len(set(found))
    for text in drawn:
        assert set(re.findall(r"url\(#([^)]+)\)", text)) == set(re.findall(r' id="([^"]+)"', text))


def test_positions_are_shares_on_a_page_and_points_on_paper() -> None:
    """Rectangles of a bar lie end to end, their lengths add up to its share of the axis."""
    (page, *_), (paper, *_) = draw_spent_bars(SPENT, "spent"), draw_spent_bars(SPENT, "spent", 400.0)
    widths = [float(each) for each in re.findall(r'<rect x="[\d.]+%" width="([\d.]+)%" height="22" fill="#', page)]
    points = [float(each) for each in re.findall(r'<rect x="[\d.]+" width="([\d.]+)" height="22" fill="#', paper)]
    length = sum(part.value for part in SPENT.bars[0].segments)
    assert sum(widths) == pytest.approx(100 * length / SPENT.end, abs=0.1)
    assert sum(points) == pytest.approx(400 * length / SPENT.end, abs=0.1)
    assert "%" not in re.sub(r'aria-label="[^"]*"', "", paper)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_texts_inside_a_bar_do_not_collide(width: float) -> None:
    """Text stands in its own segment alone, with room at both sides; what does not fit is not written."""
    segments = tuple(_segment(key, size) for key, size in (("computing", 0.84), ("idle", 0.2), ("startup", 0.54)))
    spent = replace(SPENT, bars=(replace(SPENT.bars[1], segments=segments),), end=4.2)
    text = draw_spent_bars(spent, "spent", width)[0]
    ends = []
    for at, inner in re.findall(r"translate\(([\d.]+) 0\)\">(.*?)</g>", text):
        half = len(re.sub("<[^>]+>", "", inner)) * TEXT * 0.6 / 2
        ends += [float(at) - half, float(at) + half]
    assert ends == sorted(ends)
    assert ends[-1] <= width * sum(part.value for part in segments) / 4.2
    assert "0.20" not in re.sub(r'aria-label="[^"]*"', "", text)


def test_a_narrow_page_has_shorter_texts() -> None:
    """What fits on a wide page alone is marked, and its stand-in is hidden where no style sheet applies."""
    text = draw_spent_bars(replace(SPENT, bars=(SPENT.bars[1],)), "spent")[0]
    assert '<g class="wide-only"><svg' in text
    assert '<g class="narrow-only" display="none"><svg' in text


def test_an_interval_beyond_the_axis_has_no_cap_there() -> None:
    """The line ends at the edge, so that no one takes the edge for the end of the interval."""
    text = draw_spent_bars(SPENT, "spent")[0]
    group = re.search(r'stroke-width="1.4">(.*?)</g>', text)
    assert group is not None
    assert group.group(1).count("<line") == 2
    assert 'x2="100%"' in group.group(1)


def test_a_bar_says_its_row() -> None:
    """The words hold label, total, interval and every class."""
    text = draw_spent_bars(SPENT, "spent")[0]
    label = ET.fromstring(text).get("aria-label")  # noqa: S314 - drawn by the project itself
    assert label is not None
    assert label.startswith("a <b> & c: 3.60 GPU-s per 1,000 images, 95% interval 2.90 to 9.00;")
    assert all(part.label in label for part in SPENT.bars[0].segments)


def test_labels_of_an_axis_do_not_run_into_each_other() -> None:
    """On paper every second is left out where all of them are too many, and none where they fit."""
    ticks = [Tick(at=float(minute), text=f"{minute} min") for minute in range(0, 14, 2)]
    drawn = {
        width: draw_axis(ticks, HorizontalScale(start=0.0, end=12.5, width=width)) for width in (240.0, 520.0, None)
    }
    shown = {width: re.findall(r">(\d+) min</text>", figure) for width, figure in drawn.items()}
    assert shown == {240.0: ["0", "4", "8", "12"], 520.0: [*"02468", "10", "12"], None: [*"02468", "10", "12"]}
