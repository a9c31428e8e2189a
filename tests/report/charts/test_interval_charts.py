"""Dots and bars with their intervals, as SVG."""

from xml.etree import ElementTree as ET

import pytest

from gpureport.report.charts import interval_charts
from gpureport.report.model.comparison_parts import IntervalChart, IntervalRow


def chart(
    *rows: tuple[float | None, tuple[float, float] | None], form: str = "dots", share: bool = True
) -> IntervalChart:
    """Return a chart of some values and their intervals."""
    return IntervalChart(
        title="Mean GPU utilisation",
        form=form,
        share=share,
        rows=tuple(
            IntervalRow(label=f"step <{place}> $\\frac{{x$", value=value, interval=interval, text=f"{value}")
            for place, (value, interval) in enumerate(rows)
        ),
    )


def drawn(content: IntervalChart) -> ET.Element:
    """Return a chart as an element."""
    text = interval_charts.draw_interval_chart(content, "panel0")
    assert "style=" not in text
    return ET.fromstring(text)  # noqa: S314 - drawn by the project itself


def ticks(root: ET.Element) -> list[str]:
    """Return the numbers under the axis."""
    return [(node.text or "").replace("\N{NO-BREAK SPACE}", " ") for node in root.iter("text")][: -2 * 2]


@pytest.mark.parametrize("form", ["dots", "bars"])
def test_a_chart_is_plain_vector_graphics(form: str) -> None:
    """Text as text, colours of the page, and a label that says every value."""
    root = drawn(chart((0.6, (0.5, 0.7)), (0.8, None), form=form))
    assert {node.tag for node in root.iter()} <= {"svg", "title", "g", "defs", "clipPath", "rect", "path", "text"}
    assert root.get("aria-label") == "Mean GPU utilisation: step <0> $\\frac{x$ 0.6; step <1> $\\frac{x$ 0.8"
    fills = {node.get("fill") for node in root.iter("path")}
    assert "currentColor" in {node.get("stroke") for node in root.iter("path")}
    assert "currentColor" not in fills, "a fill that turns black without a style sheet"
    assert ("#0072b2" if form == "dots" else "#9ccbe8") in fills
    assert [node.text for node in root.iter("text")][-4:] == [
        "step <0> $\\frac{x$",
        "0.6",
        "step <1> $\\frac{x$",
        "0.8",
    ]


def test_a_dot_without_an_interval_is_hollow() -> None:
    """So that nobody takes it for a sure one; without a value there is none at all."""
    classes = [
        node.get("class") or "" for node in drawn(chart((0.6, (0.5, 0.7)), (0.8, None), (None, None))).iter("path")
    ]
    assert sum("f-busy" in name for name in classes) == 1
    assert sum("f-paper" in name for name in classes) == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (chart((0.5, None), (0.9, None), form="bars"), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
        (chart((0.991, (0.98, 1.0)), (0.99, None)), ["95 %", "96 %", "97 %", "98 %", "99 %", "100 %"]),
        (chart((0.2, None), (0.6, None)), ["0 %", "20 %", "40 %", "60 %"]),
        (chart((0.000_02, None), (0.000_09, None), share=False), ["0", "2e-05", "4e-05", "6e-05", "8e-05"]),
        (chart((20_000.0, None), (52_000.0, None), form="bars", share=False), ["0", "20 000", "40 000"]),
        (chart((0.0, None), (0.0, None), form="bars", share=False), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ],
)
def test_ticks_are_round_and_few(content: IntervalChart, expected: list[str]) -> None:
    """Bars begin at zero, dots where that is far away do not, and no share is over 100 %."""
    assert ticks(drawn(content)) == expected
