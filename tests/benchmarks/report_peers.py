"""Pages of the same series by other tools, and a PDF of our page: each run by the interpreter that has the tool.

`PYTHON report_peers.py NAME INPUT OUTPUT`, where INPUT is JSON, `{metric: {device: [seconds, values]}}`, or a page.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

UPLOT = ("uPlot.iife.min.js", "uPlot.min.css")
"""Files of the library, which has no package of Python."""

_DRAWN_BY_UPLOT = """
window.charts = Object.entries(data).map(([title, devices]) => new uPlot({
  title, width: 1200, height: 220, scales: {x: {time: false}},
  series: [{}, ...Object.keys(devices).map((label, at) => ({label, stroke: `hsl(${at * 45} 70% 45%)`}))],
}, uPlot.join(Object.values(devices)), document.body));
"""

Series = Mapping[str, Mapping[str, tuple[list[float], list[float | None]]]]

# The tools have stubs only where they are installed, which is not where these lines are checked.


def plotly(source: Path, output: Path) -> None:
    """Draw one chart a metric with linked axes, its script inside the page."""
    import plotly.graph_objects as go  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - part of its time
    from plotly.subplots import make_subplots  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - as above

    series = _read(source)
    figure: Any = make_subplots(rows=max(len(series), 1), cols=1, shared_xaxes=True, subplot_titles=list(series))
    for row, devices in enumerate(series.values(), start=1):
        for name, (seconds, values) in devices.items():
            figure.add_trace(go.Scatter(x=seconds, y=values, name=name, mode="lines"), row=row, col=1)
    figure.update_layout(height=max(220 * len(series), 400))
    figure.write_html(output, include_plotlyjs=True, auto_play=False)


def bokeh(source: Path, output: Path) -> None:
    """Draw one chart a metric with one range for all, its script inside the page."""
    from bokeh.embed import file_html  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - as above
    from bokeh.layouts import column  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - as above
    from bokeh.models import Range1d  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - as above
    from bokeh.plotting import figure  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - as above
    from bokeh.resources import INLINE  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - as above

    series = _read(source)
    end = max(seconds[-1] for devices in series.values() for seconds, _ in devices.values())
    shared, charts = Range1d(0, end), []
    for title, devices in series.items():
        chart: Any = figure(height=220, width=1200, title=title, x_range=shared)
        for seconds, values in devices.values():
            chart.line(seconds, [float("nan") if value is None else value for value in values])
        charts.append(chart)
    output.write_text(file_html(column(*charts), INLINE), encoding="utf-8")


def uplot(source: Path, output: Path) -> None:
    """Draw one chart a metric with linked axes; the library lies beside the series."""
    script = (source.parent / UPLOT[0]).read_text(encoding="utf-8")
    style = (source.parent / UPLOT[1]).read_text(encoding="utf-8")
    data = source.read_text(encoding="utf-8")
    page = f"<!doctype html><meta charset=utf-8><style>{style}</style><body><script>{script}</script>"
    output.write_text(f"{page}<script>const data = {data};{_DRAWN_BY_UPLOT}</script>", encoding="utf-8")


def weasyprint(source: Path, output: Path) -> None:
    """Set a page as PDF."""
    from weasyprint import HTML  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - as above

    HTML(filename=str(source)).write_pdf(output)


def _read(source: Path) -> Series:
    series: Series = json.loads(source.read_text(encoding="utf-8"))
    return series


PEERS = {"plotly": plotly, "bokeh": bokeh, "uplot": uplot, "weasyprint": weasyprint}

if __name__ == "__main__":
    PEERS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
