"""Dots and bars with their intervals, as SVG."""

import re
from xml.etree import ElementTree as ET

import pytest

from gpureport.report.charts import interval_charts
from gpureport.report.model.comparison_parts import IntervalChart, IntervalRow, RunDot


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


def marks(content: IntervalChart) -> list[tuple[str, float, float]]:
    """Return class, place across and place down of every round mark, top to bottom."""
    found = []
    for node in drawn(content).iter("path"):
        data = node.get("d") or ""
        if "C" in data:
            numbers = [float(each) for each in re.findall(r"-?[\d.]+", data)]
            across, down = numbers[::2], numbers[1::2]
            kind = "hollow" if "f-paper" in (node.get("class") or "") else "filled"
            found.append((kind, (min(across) + max(across)) / 2, (min(down) + max(down)) / 2))
    return sorted(found, key=lambda mark: mark[2])


def with_runs(*runs: float, interval: tuple[float, float] | None, left_out: float | None = None) -> IntervalChart:
    """Return a chart of one step with its runs."""
    dots = [RunDot(run=f"r{place}", value=value, counted=True, text="") for place, value in enumerate(runs)]
    dots += [] if left_out is None else [RunDot(run="short", value=left_out, counted=False, text="short")]
    row = IntervalRow(
        label="step", value=sum(runs) / len(runs), interval=interval, text="mean", runs=tuple(dots), each_run="runs"
    )
    return IntervalChart(title="Rate", form="dots", share=False, rows=(row,))


@pytest.mark.parametrize(("interval", "kind"), [((0.4, 0.8), "filled"), (None, "hollow")])
def test_every_run_has_a_dot_below_the_mean(interval: tuple[float, float] | None, kind: str) -> None:
    """Filled where the mean has an interval, hollow where not; in words too."""
    content = with_runs(0.4, 0.6, 0.8, interval=interval)
    mean, *runs = marks(content)
    assert [mark[0] for mark in (mean, *runs)] == [kind] * 4
    assert [mark[1] for mark in runs] == sorted(mark[1] for mark in runs)
    assert runs[1][1] == pytest.approx(mean[1], abs=0.2)
    assert {mark[2] > mean[2] for mark in runs} == {True}
    assert drawn(content).get("aria-label") == "Rate: step mean; runs"


def test_a_single_run_has_one_dot() -> None:
    """It is the mean."""
    assert len(marks(with_runs(0.6, interval=None))) == 1


def test_equal_runs_do_not_hide_each_other() -> None:
    """They stand below each other."""
    _, *runs = marks(with_runs(0.6, 0.6, 0.6, interval=(0.5, 0.7)))
    assert len({mark[2] for mark in runs}) == 3


def test_a_run_that_the_mean_leaves_out_is_a_cross() -> None:
    """No dot, and the axis reaches it."""
    whole, cut = (with_runs(0.6, 0.8, interval=(0.5, 0.9), left_out=each) for each in (None, 0.1))
    assert len(marks(cut)) == len(marks(whole)) == 3
    lines = [
        [node for node in drawn(each).iter("path") if "s-muted" in (node.get("class") or "")] for each in (whole, cut)
    ]
    assert len(lines[1]) == len(lines[0]) + 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (chart((0.5, None), (0.9, None), form="bars"), ["0%", "20%", "40%", "60%", "80%", "100%"]),
        (chart((0.991, (0.98, 1.0)), (0.99, None)), ["95%", "96%", "97%", "98%", "99%", "100%"]),
        (chart((0.2, None), (0.6, None)), ["0%", "20%", "40%", "60%"]),
        (chart((0.000_02, None), (0.000_09, None), share=False), ["0", "2e−05", "4e−05", "6e−05", "8e−05"]),
        (chart((20_000.0, None), (52_000.0, None), form="bars", share=False), ["0", "20,000", "40,000"]),
        (chart((0.0, None), (0.0, None), form="bars", share=False), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ],
)
def test_ticks_are_round_and_few(content: IntervalChart, expected: list[str]) -> None:
    """Bars begin at zero, dots where that is far away do not, and no share is over 100%."""
    assert ticks(drawn(content)) == expected
