"""The charts of steps and the timeline alone, as an SVG file: vector, with text that stays text."""

import re
from html import escape

from gpureport.report.charts import canvas, report_pictures
from gpureport.report.charts.palette import DARK_TEXT, LIGHT_TEXT
from gpureport.report.model.report_content import Report

_HEIGHT = re.compile(r' height="([\d.]+)"')


def render(report: Report) -> str:
    """Return the charts of steps and the timeline of every run, one below the other, on white."""
    top, drawn = 0.0, []
    for place, picture in enumerate(report_pictures.draw_report_pictures(report)):
        element = canvas.to_svg(picture.figure, f"run{place}", picture.spoken)
        (height,) = _HEIGHT.findall(element[: element.index(">")])[:1]
        drawn.append(element.replace("<svg", f'<svg y="{top:g}"', 1))
        top += float(height)
    size = f'width="{canvas.WIDTH:g}" height="{top:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {canvas.WIDTH:g} {top:g}" {size} color="{DARK_TEXT}">'
        f'<title>{escape(report.title)}</title><rect {size} fill="{LIGHT_TEXT}"/>{"".join(drawn)}</svg>\n'
    )
